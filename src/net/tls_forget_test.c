/* tls_forget_test.c - a connection whose client's certificate was forgotten after the handshake:
 * how little is left of it, and that everything a client may do afterwards still works. OpenSSL's
 * memory is counted here, and refused when a test says so. */
#include "tls_testing.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls.h"
#include "tls_ctx.h"
#include "tls_int.h"

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
#define BODY ((size_t)200 << 10)
/* Of a blank certificate; one that is kept takes 4.6 to 5.5 KB, and its issuer's the same. */
#define KEPT_MAX 2048

/* ---- OpenSSL's memory ---- */

static _Atomic size_t live;    /* bytes */
static _Atomic long fail_from; /* that many are granted, none after; negative: all are */
static _Atomic bool has_failed;

static bool is_granted(void)
{
    if (fail_from == 0) {
        has_failed = true;
        return false;
    }
    if (fail_from > 0)
        fail_from--;
    return true;
}

union head {
    size_t n;
    max_align_t align;
};

static void count_free(void *p, const char *file, int line)
{
    (void)file, (void)line;
    union head *h = p;
    if (!h)
        return;
    live -= h[-1].n;
    free(h - 1);
}

static void *count_realloc(void *p, size_t n, const char *file, int line)
{
    union head *h = p;
    if (n == 0) {
        count_free(p, file, line);
        return NULL;
    }
    if (!is_granted())
        return NULL;
    size_t old = h ? h[-1].n : 0;
    union head *next = realloc(h ? h - 1 : NULL, sizeof *next + n);
    if (!next)
        return NULL;
    live += n - old;
    next->n = n;
    return next + 1;
}

static void *count_malloc(size_t n, const char *file, int line)
{
    return count_realloc(NULL, n, file, line);
}

/* ---- a connection ---- */

struct line {
    struct tls_test_pair root, ca, server, client; /* root signs ca, ca signs the others */
    const char *dir;
    struct vg_tls *tls;
    int here, there;
    SSL *ssl; /* the client */
    struct vg_tls_session *session;
};

static void name_file(char path[512], const struct line *l, const char *name)
{
    snprintf(path, 512, "%s/%s", l->dir, name);
}

static int set_up(void **state)
{
    static struct line line;
    struct line *l = &line;
    *l = (struct line){.here = -1, .there = -1, .dir = vg_test_tmpdir()};
    static const struct tls_test_cert root = {.cn = "root", .is_ca = true};
    static const struct tls_test_cert ca = {.cn = "ca", .is_ca = true};
    static const struct tls_test_cert server = {.cn = "server", .usage = "serverAuth"};
    static const struct tls_test_cert client = {
        .cn = "system:node:a", .groups = {"system:nodes"}, .usage = "clientAuth"};
    l->root = tls_test_make(&root, NULL);
    l->ca = tls_test_make(&ca, &l->root);
    l->server = tls_test_make(&server, &l->root);
    l->client = tls_test_make(&client, &l->ca);
    tls_test_save(&l->root, l->dir, "root");
    tls_test_save(&l->server, l->dir, "server");
    char cert_file[512], key_file[512], ca_file[512];
    name_file(cert_file, l, "server.crt");
    name_file(key_file, l, "server.key");
    name_file(ca_file, l, "root.crt");
    struct vg_tls_opts opts = {
        .cert_file = cert_file, .key_file = key_file, .client_ca_file = ca_file};
    assert_int_equal(vg_tls_new(&opts, &l->tls, NULL), 0);
    *state = l;
    return 0;
}

static void hang_up(struct line *l)
{
    SSL_free(l->ssl);
    vg_tls_session_free(l->session);
    if (l->here >= 0) {
        close(l->here);
        close(l->there);
    }
    l->ssl = NULL;
    l->session = NULL;
    l->here = l->there = -1;
}

static int tear_down(void **state)
{
    struct line *l = *state;
    hang_up(l);
    vg_tls_free(l->tls);
    tls_test_free(&l->root);
    tls_test_free(&l->ca);
    tls_test_free(&l->server);
    tls_test_free(&l->client);
    vg_test_tmpdir_remove(l->dir);
    return 0;
}

/* A client that shows its certificate and the one of the CA between it and the root, or nothing. */
static void dial(struct line *l, int version, bool has_cert)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    l->here = fds[0];
    l->there = fds[1];
    l->ssl = tls_test_client(l->there, &l->root, has_cert ? &l->client : NULL, NULL);
    if (has_cert)
        assert_int_equal(SSL_add1_chain_cert(l->ssl, l->ca.cert), 1);
    SSL_set_max_proto_version(l->ssl, version);
    SSL_set_mode(l->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE);
}

static void shake(struct line *l)
{
    bool wants_write;
    int here = 0, there = 0;
    assert_int_equal(vg_tls_session_new(l->tls, l->here, &l->session), 0);
    for (int i = 0; i < 100 && (here != 1 || there != 1); i++) {
        there = there == 1 ? 1 : SSL_do_handshake(l->ssl);
        here = here == 1 ? 1 : vg_tls_session_handshake(l->session, &wants_write);
        assert_true(here >= 0);
    }
    assert_int_equal(here, 1);
    assert_int_equal(there, 1);
}

static char pattern(size_t k)
{
    return (char)(k * 7 + k / 251);
}

static void fill(char *p, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = pattern(at + i);
}

static void check(const char *p, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(p[i], pattern(at + i));
}

/* A body from the client to the server and one back, at the same time. */
static void talk(struct line *l)
{
    static char out[16000], in[20000];
    size_t up_put = 0, up_got = 0, down_put = 0, down_got = 0, n;
    for (int i = 0; i < 100000 && (up_got < BODY || down_got < BODY); i++) {
        n = VG_MIN(sizeof out, BODY - up_put);
        fill(out, up_put, n);
        if (n && SSL_write_ex(l->ssl, out, n, &n) == 1)
            up_put += n;
        n = VG_MIN(sizeof out, BODY - down_put);
        fill(out, down_put, n);
        ssize_t r = n ? vg_tls_session_write(l->session, out, n) : -EAGAIN;
        assert_true(r > 0 || r == -EAGAIN);
        down_put += r > 0 ? (size_t)r : 0;
        while ((r = vg_tls_session_read(l->session, in, sizeof in)) > 0) {
            check(in, up_got, (size_t)r);
            up_got += (size_t)r;
        }
        assert_true(r == -EAGAIN || r == -EINPROGRESS);
        while (SSL_read_ex(l->ssl, in, sizeof in, &n) == 1) {
            check(in, down_got, n);
            down_got += n;
        }
        assert_int_not_equal(SSL_get_error(l->ssl, 0), SSL_ERROR_SSL);
    }
    assert_int_equal(up_got, BODY);
    assert_int_equal(down_got, BODY);
}

static void assert_is_the_client(const struct line *l)
{
    const struct vg_tls_identity *id = vg_tls_session_identity(l->session);
    assert_non_null(id);
    vg_assert_slice_equal(id->name, VG_SLICE_LIT("system:node:a"));
    assert_int_equal(id->n_groups, 1);
    vg_assert_slice_equal(id->groups[0], VG_SLICE_LIT("system:nodes"));
    assert_true(id->not_after_s > 0);
}

/* ---- tests ---- */

static size_t live_of_a_session(struct line *l, int version, bool has_cert)
{
    size_t before, after;
    dial(l, version, has_cert);
    shake(l);
    after = live;
    vg_tls_session_free(l->session);
    l->session = NULL;
    before = live;
    hang_up(l);
    return after - before;
}

static void little_is_left_of_a_certificate(void **state)
{
    struct line *l = *state;
    for (size_t i = 0; i < VG_ARRAY_LEN(versions); i++) {
        live_of_a_session(l, versions[i], true); /* what the first one needs once */
        size_t with = live_of_a_session(l, versions[i], true);
        size_t without = live_of_a_session(l, versions[i], false);
        if (with > without + KEPT_MAX)
            fail_msg("%zu bytes with a certificate, %zu without", with, without);
    }
}

/* As vg_tls_session does it, but by hand, to look inside. Returns the server's side. */
static SSL *shake_by_hand(struct line *l, int version)
{
    SSL *server = vg_tls_make_ssl(l->tls);
    int here = 0, there = 0;
    dial(l, version, true);
    assert_int_equal(SSL_set_fd(server, l->here), 1);
    SSL_set_accept_state(server);
    for (int i = 0; i < 100 && (here != 1 || there != 1); i++) {
        there = there == 1 ? 1 : SSL_do_handshake(l->ssl);
        here = here == 1 ? 1 : SSL_do_handshake(server);
    }
    assert_int_equal(here, 1);
    ERR_clear_error();
    return server;
}

static void the_blank_certificate_is_nobodys(void **state)
{
    struct line *l = *state;
    for (size_t i = 0; i < VG_ARRAY_LEN(versions); i++) {
        SSL *server = shake_by_hand(l, versions[i]);
        assert_int_equal(sk_X509_num(SSL_get0_verified_chain(server)), 3);
        assert_int_equal(sk_X509_num(SSL_get_peer_cert_chain(server)), 1);
        vg_tls_forget_client(server);
        assert_int_equal(ERR_peek_error(), 0);
        const X509 *left = SSL_get0_peer_certificate(server);
        assert_non_null(left);
        assert_int_equal(X509_NAME_entry_count(X509_get_subject_name(left)), 0);
        assert_int_equal(X509_get_ext_count(left), 0);
        assert_null(X509_get0_pubkey(left));
        ERR_clear_error();
        assert_true(X509_cmp_current_time(X509_get0_notAfter(left)) < 0);
        assert_int_equal(sk_X509_num(SSL_get0_verified_chain(server)), 0);
        assert_int_equal(sk_X509_num(SSL_get_peer_cert_chain(server)), 0);
        vg_tls_forget_client(server); /* again: no harm */
        SSL_free(server);
        hang_up(l);
    }
}

/* Of some 700 allocations these are the certificate's own; then OpenSSL looks for decoders of a key
 * that there is not, and a few of those will do. */
#define DENSE 60

static void it_is_forgotten_without_memory_too(void **state)
{
    struct line *l = *state;
    long n = 0;
    do {
        SSL *server = shake_by_hand(l, versions[n % 2]);
        has_failed = false;
        fail_from = n;
        n += n < DENSE ? 1 : 23;
        vg_tls_forget_client(server);
        fail_from = -1;
        assert_int_equal(SSL_write(server, "x", 1), 1);
        assert_int_equal(SSL_read(l->ssl, &(char){0}, 1), 1);
        SSL_free(server);
        hang_up(l);
    } while (has_failed);
    assert_true(n > DENSE);
}

static void the_connection_lives_on(void **state)
{
    struct line *l = *state;
    static const uint8_t fragments[] = {TLSEXT_max_fragment_length_DISABLED,
                                        TLSEXT_max_fragment_length_512};
    for (size_t i = 0; i < 2 * VG_ARRAY_LEN(versions); i++) {
        dial(l, versions[i / 2], true);
        assert_int_equal(SSL_set_tlsext_max_fragment_length(l->ssl, fragments[i % 2]), 1);
        shake(l);
        assert_int_equal(SSL_version(l->ssl), versions[i / 2]);
        talk(l);
        for (int k = 0; k < 3 && versions[i / 2] == TLS1_3_VERSION; k++) {
            assert_int_equal(SSL_key_update(l->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
            talk(l);
        }
        assert_is_the_client(l);
        vg_tls_session_bye(l->session);
        assert_int_equal(SSL_read(l->ssl, &(char){0}, 1), 0);
        assert_int_equal(SSL_get_shutdown(l->ssl), SSL_RECEIVED_SHUTDOWN);
        assert_int_equal(SSL_shutdown(l->ssl), 1);
        assert_int_equal(vg_tls_session_read(l->session, &(char){0}, 1), 0);
        hang_up(l);
    }
}

static void the_client_ends_it_first(void **state)
{
    struct line *l = *state;
    for (size_t i = 0; i < VG_ARRAY_LEN(versions); i++) {
        dial(l, versions[i], true);
        shake(l);
        assert_int_equal(SSL_shutdown(l->ssl), 0);
        assert_int_equal(vg_tls_session_read(l->session, &(char){0}, 1), 0);
        vg_tls_session_bye(l->session);
        assert_int_equal(SSL_shutdown(l->ssl), 1);
        hang_up(l);
    }
}

/* The server says no to a second handshake, and goes on. */
static void no_second_handshake(void **state)
{
    struct line *l = *state;
    dial(l, TLS1_2_VERSION, true);
    shake(l);
    assert_int_equal(SSL_renegotiate(l->ssl), 1);
    assert_true(SSL_do_handshake(l->ssl) <= 0);
    assert_int_equal(vg_tls_session_read(l->session, &(char){0}, 1), -EAGAIN);
    assert_int_equal(vg_tls_session_write(l->session, "x", 1), 1);
    assert_is_the_client(l);
}

static void what_is_not_a_record_ends_it(void **state)
{
    struct line *l = *state;
    for (size_t i = 0; i < VG_ARRAY_LEN(versions); i++) {
        dial(l, versions[i], true);
        shake(l);
        static const char forged[] = "\x17\x03\x03\x00\x20 thirty-two bytes that are forged";
        assert_int_equal(send(l->there, forged, 37, 0), 37);
        assert_int_equal(vg_tls_session_read(l->session, &(char){0}, 1), -EIO);
        assert_true(SSL_read(l->ssl, &(char){0}, 1) <= 0);
        assert_true(ERR_GET_REASON(ERR_peek_last_error()) > SSL_AD_REASON_OFFSET); /* an alert */
        ERR_clear_error();
        hang_up(l);
    }
}

/* A session of before brings nobody's identity along: the certificate is shown anew or there is
 * none. */
static void an_old_session_proves_nothing(void **state)
{
    struct line *l = *state;
    for (size_t i = 0; i < VG_ARRAY_LEN(versions); i++) {
        dial(l, versions[i], true);
        shake(l);
        talk(l);
        SSL_SESSION *old = SSL_get1_session(l->ssl);
        hang_up(l);
        for (int has_cert = 0; has_cert < 2; has_cert++) {
            dial(l, versions[i], has_cert);
            SSL_set_session(l->ssl, old);
            shake(l);
            assert_false(SSL_session_reused(l->ssl));
            if (has_cert)
                assert_is_the_client(l);
            else
                assert_null(vg_tls_session_identity(l->session));
            hang_up(l);
        }
        SSL_SESSION_free(old);
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    fail_from = -1;
    if (CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free) != 1)
        return 1; /* OpenSSL has memory already */
    const struct CMUnitTest tests[] = {
        T(little_is_left_of_a_certificate),    T(the_blank_certificate_is_nobodys),
        T(it_is_forgotten_without_memory_too), T(the_connection_lives_on),
        T(the_client_ends_it_first),           T(no_second_handshake),
        T(what_is_not_a_record_ends_it),       T(an_old_session_proves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
