/* tls_gather.c - see tls_gather.h.
 *   G1 while something is kept, nothing else is sent or taken: records leave in order.
 *   G2 `room` is borrowed between begin and end alone. */
#include "tls_gather.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"

struct vg_tls_gather {
    int fd;
    char *room; /* NULL: no batch is under way */
    size_t size, used;
    char *kept; /* NULL: nothing */
    size_t kept_at, kept_n;
};

static ssize_t send_some(int fd, const char *p, size_t n)
{
    ssize_t sent;
    do
        sent = send(fd, p, n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? -EAGAIN : -EIO;
    return sent;
}

int vg_tls_gather_resume(struct vg_tls_gather *g)
{
    while (g->kept) {
        ssize_t n = send_some(g->fd, g->kept + g->kept_at, g->kept_n - g->kept_at);
        if (n < 0)
            return n == -EAGAIN ? 0 : (int)n;
        g->kept_at += (size_t)n;
        if (g->kept_at == g->kept_n) {
            vg_free(g->kept);
            g->kept = NULL;
        }
    }
    return 1;
}

void vg_tls_gather_begin(struct vg_tls_gather *g, char *room, size_t size)
{
    g->room = room;
    g->size = size;
    g->used = 0;
}

int vg_tls_gather_end(struct vg_tls_gather *g)
{
    const char *p = vg_steal(g->room);
    size_t left = g->used;
    while (left) {
        ssize_t n = send_some(g->fd, p, left);
        if (n == -EAGAIN)
            break;
        if (n < 0)
            return (int)n;
        p += n;
        left -= (size_t)n;
    }
    if (!left)
        return 1;
    g->kept = vg_malloc(left);
    if (!g->kept)
        return -ENOMEM;
    memcpy(g->kept, p, left);
    g->kept_at = 0;
    g->kept_n = left;
    return 0;
}

/* ---- as a BIO ---- */

static int gather_write(BIO *bio, const char *p, int len)
{
    struct vg_tls_gather *g = BIO_get_data(bio);
    size_t n = (size_t)len;
    BIO_clear_retry_flags(bio);
    int r = vg_tls_gather_resume(g);
    ssize_t sent = r < 0 ? r : -EAGAIN;
    if (r > 0 && g->room && n <= g->size - g->used) {
        memcpy(g->room + g->used, p, n);
        g->used += n;
        return len;
    }
    if (r > 0 && !g->room)
        sent = send_some(g->fd, p, n);
    if (sent == -EAGAIN)
        BIO_set_retry_write(bio);
    return sent < 0 ? -1 : (int)sent;
}

static long gather_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    (void)bio;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH; /* the rest, kernel TLS among it, is not there */
}

static int gather_destroy(BIO *bio)
{
    struct vg_tls_gather *g = BIO_get_data(bio);
    if (g)
        vg_free(g->kept);
    vg_free(g);
    BIO_set_data(bio, NULL);
    return 1;
}

static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gather");
    if (!method)
        return;
    BIO_meth_set_write(method, gather_write);
    BIO_meth_set_ctrl(method, gather_ctrl);
    BIO_meth_set_destroy(method, gather_destroy);
}

int vg_tls_gather_new(int fd, struct vg_tls_gather **ret_gather, BIO **ret_bio)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_method);
    struct vg_tls_gather *g = vg_new(struct vg_tls_gather);
    BIO *bio = g && method ? BIO_new(method) : NULL;
    if (!bio) {
        vg_free(g);
        return -ENOMEM;
    }
    g->fd = fd;
    BIO_set_data(bio, g);
    BIO_set_init(bio, 1);
    *ret_gather = g;
    *ret_bio = bio;
    return 0;
}
