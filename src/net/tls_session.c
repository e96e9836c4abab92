/* tls_session.c - OpenSSL directly on the socket of a connection; see tls_int.h. */
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/alloc.h"
#include "tls_client.h"
#include "tls_ctx.h"
#include "tls_gather.h"
#include "tls_int.h"

struct vg_tls_session {
    SSL *ssl;
    struct vg_tls_identity *identity;
    struct vg_tls_gather *gather; /* NULL until a batch was wanted; its BIO's */
    size_t owed;                  /* bytes of a batch of which a part is still kept */
    const char *why;              /* static, of OpenSSL */
    bool is_h2, is_kernel;
    bool is_broken; /* say no bye: OpenSSL forbids it after an error */
};

int vg_tls_session_adopt(SSL *take_ssl, int fd, struct vg_tls_session **ret_session)
{
    struct vg_tls_session *s = vg_new(struct vg_tls_session);
    if (!s || SSL_set_fd(take_ssl, fd) != 1) {
        SSL_free(take_ssl);
        vg_free(s);
        ERR_clear_error();
        return -ENOMEM;
    }
    s->ssl = take_ssl;
    *ret_session = s;
    return 0;
}

int vg_tls_session_new(struct vg_tls *t, int fd, struct vg_tls_session **ret_session)
{
    SSL *ssl = vg_tls_make_ssl(t);
    if (!ssl) {
        ERR_clear_error();
        return -ENOMEM;
    }
    SSL_set_accept_state(ssl);
    return vg_tls_session_adopt(ssl, fd, ret_session);
}

void vg_tls_session_free(struct vg_tls_session *s)
{
    if (!s)
        return;
    SSL_free(s->ssl);
    vg_free(s->identity);
    vg_free(s);
}

static int read_peer(struct vg_tls_session *s)
{
    const unsigned char *proto = NULL;
    unsigned n = 0;
    SSL_get0_alpn_selected(s->ssl, &proto, &n);
    s->is_h2 = n == 2 && memcmp(proto, "h2", 2) == 0;
    s->is_kernel = BIO_get_ktls_send(SSL_get_wbio(s->ssl));
    if (!SSL_is_server(s->ssl))
        return 0; /* who a server is was checked by its name */
    const X509 *cert = SSL_get0_peer_certificate(s->ssl);
    if (!cert || SSL_get_verify_result(s->ssl) != X509_V_OK)
        return 0; /* none: OpenSSL ends a handshake with one that it does not believe */
    int r = vg_tls_identity_new(cert, &s->identity);
    vg_tls_forget_client(s->ssl);
    return r;
}

int vg_tls_session_handshake(struct vg_tls_session *s, bool *ret_wants_write)
{
    ERR_clear_error();
    int r = SSL_do_handshake(s->ssl);
    int e = r == 1 ? SSL_ERROR_NONE : SSL_get_error(s->ssl, r);
    *ret_wants_write = e == SSL_ERROR_WANT_WRITE;
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
        return 0;
    if (e != SSL_ERROR_NONE) {
        s->why = ERR_reason_error_string(ERR_peek_error());
        s->is_broken = true;
        return VIGIL_E_CANCELED;
    }
    r = read_peer(s);
    return r < 0 ? r : 1;
}

const char *vg_tls_session_why(const struct vg_tls_session *s)
{
    return s->why ? s->why : "ended by the client";
}

const char *vg_tls_session_trouble(const struct vg_tls_session *s)
{
    long r = SSL_get_verify_result(s->ssl);
    return r != X509_V_OK ? X509_verify_cert_error_string(r) : s->why;
}

bool vg_tls_session_has_refused(const struct vg_tls_session *s)
{
    return s->is_broken && SSL_get_verify_result(s->ssl) != X509_V_OK;
}

bool vg_tls_session_is_h2(const struct vg_tls_session *s)
{
    return s->is_h2;
}

bool vg_tls_session_has_pending(const struct vg_tls_session *s)
{
    return SSL_pending(s->ssl) > 0;
}

bool vg_tls_session_is_kernel(const struct vg_tls_session *s)
{
    return s->is_kernel;
}

const struct vg_tls_identity *vg_tls_session_identity(const struct vg_tls_session *s)
{
    return s->identity;
}

static ssize_t fail(struct vg_tls_session *s, int e)
{
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
        return -EAGAIN;
    unsigned long error = ERR_peek_error();
    s->why = error ? ERR_reason_error_string(error) : NULL;
    s->is_broken = true;
    return -EIO;
}

ssize_t vg_tls_session_read(struct vg_tls_session *s, void *p, size_t n)
{
    size_t got = 0;
    ERR_clear_error();
    int r = SSL_read_ex(s->ssl, p, n, &got);
    if (r == 1)
        return (ssize_t)got;
    int e = SSL_get_error(s->ssl, r);
    if (e == SSL_ERROR_ZERO_RETURN)
        return 0;
    return e == SSL_ERROR_WANT_WRITE ? -EINPROGRESS : fail(s, e);
}

ssize_t vg_tls_session_write(struct vg_tls_session *s, const void *p, size_t n)
{
    size_t put = 0;
    ERR_clear_error();
    int r = SSL_write_ex(s->ssl, p, n, &put);
    return r == 1 ? (ssize_t)put : fail(s, SSL_get_error(s->ssl, r));
}

/* The socket's own BIO until here, since kernel TLS needs that one. Without memory there are no
 * batches, and no harm. */
static bool can_gather(struct vg_tls_session *s)
{
    BIO *bio;
    if (!s->gather && vg_tls_gather_new(SSL_get_fd(s->ssl), &s->gather, &bio) == 0)
        SSL_set0_wbio(s->ssl, bio);
    return s->gather != NULL;
}

/* Make records of the bytes; how many became one. */
static ssize_t write_records(struct vg_tls_session *s, const char *p, size_t n)
{
    size_t done = 0;
    ssize_t put = 0;
    while (done < n && (put = vg_tls_session_write(s, p + done, n - done)) > 0)
        done += (size_t)put;
    return done || put == -EAGAIN ? (ssize_t)done : put;
}

bool vg_tls_session_is_owing(const struct vg_tls_session *s)
{
    return s->owed > 0;
}

static ssize_t pay(struct vg_tls_session *s, int is_gone)
{
    if (is_gone < 0)
        s->is_broken = true;
    if (is_gone <= 0)
        return is_gone < 0 ? is_gone : -EAGAIN;
    ssize_t n = (ssize_t)s->owed;
    s->owed = 0;
    return n;
}

ssize_t vg_tls_session_resume(struct vg_tls_session *s)
{
    return pay(s, vg_tls_gather_resume(s->gather));
}

ssize_t vg_tls_session_write_many(struct vg_tls_session *s, const void *p, size_t n, char *room)
{
    if (!can_gather(s))
        return vg_tls_session_write(s, p, n);
    vg_tls_gather_begin(s->gather, room, VG_TLS_ROOM);
    ssize_t made = write_records(s, p, n);
    int is_gone = vg_tls_gather_end(s->gather);
    if (made <= 0)
        return made < 0 ? made : -EAGAIN;
    s->owed = (size_t)made;
    return pay(s, is_gone);
}

void vg_tls_session_bye(struct vg_tls_session *s)
{
    ERR_clear_error();
    if (!s->is_broken)
        SSL_shutdown(s->ssl);
    ERR_clear_error();
}
