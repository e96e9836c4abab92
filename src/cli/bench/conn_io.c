/* conn_io.c - the socket under a connection, with and without TLS: when bytes came is known before
 * they are decrypted (late.h). */
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/socket.h>

#include "conn_int.h"
#include "late.h"

ssize_t vg_bench_io_read(struct vg_bench_conn *c, void *to, size_t room)
{
    if (c->is_drained) {
        errno = EAGAIN;
        return -1;
    }
    struct vg_bench_engine *e = c->engine;
    ssize_t n = vg_bench_late_recv(c->fd, to, room, 0, e->wall_ahead_ns, &e->arrived_ns);
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
