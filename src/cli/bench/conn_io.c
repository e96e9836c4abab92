/* conn_io.c - the socket under a connection. When bytes came is asked of the kernel, which knows
 * when it had them: the tool may then read them later, when it does not take the processor away
 * from the server that it measures, and decrypt and parse them later still. */
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include "clock.h"
#include "conn_int.h"

static uint64_t ns_of(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * VG_NS_PER_S + (uint64_t)t->tv_nsec;
}

void vg_bench_engine_set_clock(struct vg_bench_engine *e)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    e->now_ns = vg_bench_now();
    e->wall_ahead_ns = ns_of(&wall) - e->now_ns;
}

void vg_bench_io_init(int fd)
{
    int one = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one); /* without: see arrival */
}

/* By our clock. A system that does not tell when: now, which is before anything is decrypted. */
static uint64_t arrival(const struct vg_bench_engine *e, struct msghdr *m)
{
    struct timespec at;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            memcpy(&at, CMSG_DATA(c), sizeof at);
            return ns_of(&at) - e->wall_ahead_ns;
        }
    return vg_bench_now();
}

ssize_t vg_bench_io_read(struct vg_bench_conn *c, void *to, size_t room)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
    } control;
    struct iovec v = {to, room};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    if (c->is_drained) {
        errno = EAGAIN;
        return -1;
    }
    ssize_t n = recvmsg(c->fd, &m, 0);
    if (n > 0)
        c->engine->arrived_ns = arrival(c->engine, &m);
    /* There was no more, and epoll tells when there is: asking again would cost a call for each
     * event. An end that came with the bytes is not told twice. */
    c->is_drained = !c->may_be_over && n > 0 && (size_t)n < room;
    c->is_over = n == 0;
    return n;
}

/* ---- as OpenSSL wants it ---- */

static int bio_result(BIO *bio, ssize_t r, int retry)
{
    BIO_clear_retry_flags(bio);
    if (r < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    return (int)r;
}

static int bio_read(BIO *bio, char *to, int room)
{
    return bio_result(bio, vg_bench_io_read(BIO_get_data(bio), to, (size_t)room), BIO_FLAGS_READ);
}

static int bio_write(BIO *bio, const char *p, int n)
{
    const struct vg_bench_conn *c = BIO_get_data(bio);
    return bio_result(bio, send(c->fd, p, (size_t)n, MSG_NOSIGNAL), BIO_FLAGS_WRITE);
}

static long bio_control(BIO *bio, int what, long n, void *p)
{
    const struct vg_bench_conn *c = BIO_get_data(bio);
    (void)n;
    (void)p;
    return what == BIO_CTRL_EOF ? c->is_over : what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "vigil-bench");
    if (!method || BIO_meth_set_read(method, bio_read) != 1 ||
        BIO_meth_set_write(method, bio_write) != 1 || BIO_meth_set_ctrl(method, bio_control) != 1)
        method = NULL;
}

int vg_bench_io_attach(struct vg_bench_conn *c)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_method);
    BIO *bio = method ? BIO_new(method) : NULL;
    if (!bio)
        return -ENOMEM;
    BIO_set_data(bio, c);
    BIO_set_init(bio, 1);
    SSL_set_bio(c->ssl, bio, bio);
    return 0;
}
