/* tls_test.c - TLS on real sockets: versions, protocols, certificates of both sides and how they
 * change, answers in records. What limits handshakes is in tls_limits_test.c. */
#include "tls_server_testing.h"

#include <time.h>

static void requests_are_served_over_tls(void **state)
{
    struct tls_test *t = *state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < VG_ARRAY_LEN(versions); i++) {
        dial(t, NULL, H1);
        SSL_set_max_proto_version(t->ssl, versions[i]);
        assert_int_equal(shake(t), 1);
        assert_int_equal(SSL_version(t->ssl), versions[i]);
        for (int k = 0; k < 2; k++) {
            say(t, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
            hear(t, "\r\n\r\nhello");
        }
        say(t, "GET /hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        while (!t->net.last)
            net_turns(&t->net, 1);
        assert_true(vg_http_peer(t->net.last)->is_tls);
        assert_null(vg_http_peer(t->net.last)->identity);
        net_answer(t->net.last, 200, VG_SLICE_LIT("bye"));
        hear(t, NULL);
        assert_int_equal(SSL_get_shutdown(t->ssl), SSL_RECEIVED_SHUTDOWN); /* a clean end */
        hang_up(t);
    }
}

static void older_versions_are_refused(void **state)
{
    struct tls_test *t = *state;
    dial(t, NULL, H1);
    SSL_set_security_level(t->ssl, 0);
    SSL_set_min_proto_version(t->ssl, TLS1_VERSION);
    SSL_set_max_proto_version(t->ssl, TLS1_1_VERSION);
    assert_true(shake(t) < 0);
    net_turns(&t->net, 3);
    struct vg_http_stats stats;
    vg_http_stats(t->net.shared, &stats);
    assert_int_equal(stats.handshakes_failed, 1);
    assert_int_equal(stats.open, 0);
    assert_int_equal(stats.open_tls, 0);
}

static void the_protocol_is_negotiated(void **state)
{
    struct tls_test *t = *state;
    static const struct {
        const char *offer, *chosen;
    } cases[] = {{H2, "h2"}, {H1, "http/1.1"}, {"\x04spdy", ""}, {NULL, ""}};
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        dial(t, NULL, cases[i].offer);
        assert_int_equal(shake(t), 1);
        const unsigned char *proto = NULL;
        unsigned n = 0;
        SSL_get0_alpn_selected(t->ssl, &proto, &n);
        vg_assert_slice_equal(vg_slice(proto, n), vg_slice_str(cases[i].chosen));
        if (i) {
            say(t, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
            hear(t, "\r\n\r\n");
        }
        hang_up(t);
        net_turns(&t->net, 3);
    }
}

static void a_client_certificate_names_the_user(void **state)
{
    struct tls_test *t = *state;
    dial(t, &t->client, H1);
    assert_int_equal(shake(t), 1);
    say(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    while (!t->net.last)
        net_turns(&t->net, 1);
    const struct vg_tls_identity *id = vg_http_peer(t->net.last)->identity;
    assert_non_null(id);
    vg_assert_slice_equal(id->name, VG_SLICE_LIT("alice"));
    assert_int_equal(id->n_groups, 2);
    vg_assert_slice_equal(id->groups[0], VG_SLICE_LIT("system:masters"));
    vg_assert_slice_equal(id->groups[1], VG_SLICE_LIT("dev"));
    int64_t in = id->not_after_s - (int64_t)time(NULL);
    assert_true(in > 86000 && in <= 86400);
}

static void certificates_that_are_not_good_for_clients_are_refused(void **state)
{
    struct tls_test *t = *state;
    struct tls_test_pair other_ca = tls_test_make(&ca_cert, NULL);
    struct tls_test_cert wrong_use = {.cn = "mallory", .usage = "serverAuth"};
    struct tls_test_cert expired = {.cn = "old", .usage = "clientAuth", .not_after_s = -10};
    struct tls_test_pair bad[] = {
        tls_test_make(&client_cert, &other_ca), tls_test_make(&wrong_use, &t->ca),
        tls_test_make(&expired, &t->ca), tls_test_make(&client_cert, NULL)};
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        dial(t, &bad[i], H1);
        int r = shake(t); /* TLS 1.3: the client learns of it when it reads */
        if (r == 1) {
            net_turns(&t->net, 5);
            say(t, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_string_equal(hear(t, NULL), "");
            assert_true(t->last_reason > SSL_AD_REASON_OFFSET); /* an alert */
        }
        hang_up(t);
        tls_test_free(&bad[i]);
    }
    net_turns(&t->net, 3);
    struct vg_http_stats stats;
    vg_http_stats(t->net.shared, &stats);
    assert_int_equal(stats.handshakes_failed, VG_ARRAY_LEN(bad));
    assert_int_equal(stats.requests, 0);
    tls_test_free(&other_ca);
}

static void a_certificate_without_a_name_is_nobody(void **state)
{
    struct tls_test *t = *state;
    struct tls_test_cert nameless = {.groups = {"system:masters"}, .usage = "clientAuth"};
    struct tls_test_pair own = tls_test_make(&nameless, &t->ca);
    dial(t, &own, H1);
    assert_int_equal(shake(t), 1);
    say(t, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    while (!t->net.last)
        net_turns(&t->net, 1);
    assert_int_equal(vg_http_peer(t->net.last)->identity->name.n, 0);
    tls_test_free(&own);
}

static void reloading_changes_what_is_shown(void **state)
{
    struct tls_test *t = *state;
    struct tls_test_cert next = server_cert;
    next.cn = "server-2";
    struct tls_test_pair pair = tls_test_make(&next, &t->ca);
    tls_test_save(&pair, t->dir, "server");
    assert_int_equal(vg_tls_reload(t->tls, NULL), 0);
    dial(t, NULL, H1);
    assert_int_equal(shake(t), 1);
    char cn[64];
    X509 *shown = SSL_get1_peer_certificate(t->ssl);
    X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, cn, sizeof cn);
    assert_string_equal(cn, "server-2");
    X509_free(shown);
    hang_up(t);
    FILE *f = fopen(t->key_file, "w"); /* half written */
    fclose(f);
    struct vg_status status;
    assert_int_equal(vg_tls_reload(t->tls, &status), VIGIL_E_INVALID);
    assert_non_null(strstr(status.message, t->key_file));
    dial(t, NULL, H1);
    assert_int_equal(shake(t), 1); /* what was loaded stays */
    tls_test_free(&pair);
}

static void bad_files_are_named(void **state)
{
    struct tls_test *t = *state;
    struct vg_tls *tls = NULL;
    struct vg_status status;
    struct vg_tls_opts opts = {.cert_file = "/nonexistent/a.crt", .key_file = t->key_file};
    assert_int_equal(vg_tls_new(&opts, &tls, &status), -ENOENT);
    assert_non_null(strstr(status.message, "/nonexistent/a.crt"));
    opts = (struct vg_tls_opts){.cert_file = t->ca_file, .key_file = t->key_file};
    assert_int_equal(vg_tls_new(&opts, &tls, &status), VIGIL_E_INVALID);
    opts = (struct vg_tls_opts){
        .cert_file = t->cert_file, .key_file = t->key_file, .client_ca_file = t->key_file};
    assert_int_equal(vg_tls_new(&opts, &tls, &status), VIGIL_E_INVALID);
    assert_non_null(strstr(status.message, "client CA"));
    opts = (struct vg_tls_opts){
        .cert_file = t->cert_file, .key_file = t->key_file, .min_version = "VersionTLS11"};
    assert_int_equal(vg_tls_new(&opts, &tls, &status), VIGIL_E_INVALID);
    assert_null(tls);
}

static void a_large_answer_arrives_whole(void **state)
{
    struct tls_test *t = *state;
    dial(t, NULL, H1);
    assert_int_equal(shake(t), 1);
    say(t, "GET /big?1500000 HTTP/1.1\r\nHost: a\r\n\r\n");
    char *got = hear(t, "\r\n0\r\n\r\n");
    size_t x = 0;
    for (; *got; got++)
        x += *got == 'x';
    assert_int_equal(x, 1500000);
}

/* The last records of an answer are the ones that a full socket keeps waiting: the connection is
 * not closed before they have left. */
static void the_end_of_an_answer_waits_for_a_full_socket(void **state)
{
    struct tls_test *t = *state;
    for (int n = 40000; n < 500000; n += 23000) {
        char text[100];
        snprintf(text, sizeof text, "GET /big?%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                 n);
        dial(t, NULL, H1);
        assert_int_equal(shake(t), 1);
        say(t, text);
        net_turns(&t->net, 20);
        int x = 0;
        for (const char *got = hear(t, NULL); *got; got++)
            x += *got == 'x';
        assert_int_equal(x, n);
        hang_up(t);
    }
}

/* Counts records of application data that arrive. */
static int n_records;
static void count_records(int write, int version, int type, const void *p, size_t n, SSL *ssl,
                          void *arg)
{
    (void)version, (void)n, (void)ssl, (void)arg;
    const unsigned char *head = p;
    if (!write && type == SSL3_RT_HEADER && head[0] == SSL3_RT_APPLICATION_DATA)
        n_records++;
}

static void events_of_one_turn_share_a_record(void **state)
{
    struct tls_test *t = *state;
    dial(t, NULL, H1);
    assert_int_equal(shake(t), 1);
    say(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(t, "\r\n\r\n");
    SSL_set_msg_callback(t->ssl, count_records);
    n_records = 0;
    for (int i = 0; i < 20; i++)
        assert_int_equal(net_write(t->net.last, "an event\n"), VG_HTTP_OPEN);
    assert_int_equal(net_write(t->net.last, "last"), VG_HTTP_OPEN);
    hear(t, "last\r\n");
    assert_int_equal(n_records, 1);
}

static void a_reader_that_comes_back_gets_the_same_bytes(void **state)
{
    struct tls_test *t = *state;
    dial(t, NULL, H1);
    assert_int_equal(shake(t), 1);
    say(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(t, "\r\n\r\n");
    char text[1001] = "";
    int n = 0;
    for (int i = 0; i < 2000; i++) { /* a blocked record grows while it waits to be retried */
        for (size_t k = 0; k < 1000; k++)
            text[k] = (char)('a' + (n++ % 26));
        if (net_write(t->net.last, text) == VG_HTTP_FULL)
            break;
        if (i % 3 == 0)
            net_turns(&t->net, 1);
    }
    vg_http_end(t->net.last);
    char *got = hear(t, "0\r\n\r\n");
    int m = 0;
    for (char *p = got; *p;) {
        size_t len = strtoul(p, &p, 16);
        for (p += 2; len; len--, p++)
            assert_int_equal(*p, 'a' + (m++ % 26));
        p += 2;
    }
    assert_int_equal(m, n);
}

static void a_client_that_vanishes_without_a_word_cancels(void **state)
{
    struct tls_test *t = *state;
    dial(t, NULL, H1);
    assert_int_equal(shake(t), 1);
    say(t, "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(t, "\r\n\r\n");
    hang_up(t);
    net_turns(&t->net, 5);
    assert_int_equal(t->net.n_closed, 1);
    assert_int_equal(t->net.last_err, VIGIL_E_CANCELED);
}

/* ---- loops that serve while the certificates change ---- */

#define LOOPS 2
#define CLIENTS 4

struct fleet {
    struct tls_test *t;
    uint16_t port;
    _Atomic int n_served;
};

static void quiet_head(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    net_answer(x, 200, VG_SLICE_LIT("ok"));
}
static void quiet_progress(struct vg_http_exchange *x, size_t n, void *arg)
{
    (void)x, (void)n, (void)arg;
}
static void quiet_closed(struct vg_http_exchange *x, int err, void *arg)
{
    (void)x, (void)err, (void)arg;
}
static const struct vg_http_handler quiet = {quiet_head,   quiet_head, quiet_head, quiet_progress,
                                             quiet_closed, NULL,       NULL};

static void ask_once(struct fleet *f)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(f->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    SSL *ssl = tls_test_client(fd, &f->t->ca, &f->t->client, H1);
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    char got[512];
    int n = 0, r;
    assert_int_equal(SSL_connect(ssl), 1);
    assert_true(SSL_write(ssl, text, sizeof text - 1) > 0);
    while ((r = SSL_read(ssl, got + n, (int)sizeof got - 1 - n)) > 0)
        n += r;
    assert_true(n > 2 && memcmp(got + n - 2, "ok", 2) == 0);
    SSL_free(ssl);
    close(fd);
    atomic_fetch_add(&f->n_served, 1);
}

static void one_client(unsigned index, void *arg)
{
    struct fleet *f = arg;
    for (int i = 0; i < 10; i++)
        if (index == 0)
            assert_int_equal(vg_tls_reload(f->t->tls, NULL), 0);
        else
            ask_once(f);
}

static void certificates_change_while_loops_serve(void **state)
{
    struct fleet f = {.t = *state};
    struct vg_http_shared_opts opts = {.handler = &quiet};
    struct vg_http_shared *shared = NULL;
    struct vg_listener *l = NULL;
    struct vg_loop *loops[LOOPS];
    struct vg_http_server *servers[LOOPS];
    assert_int_equal(vg_http_shared_new(&opts, &shared), 0);
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &l, NULL), 0);
    f.port = vg_listener_port(l);
    for (int i = 0; i < LOOPS; i++) {
        assert_int_equal(vg_loop_new(vg_clock_system(), &loops[i]), 0);
        assert_int_equal(vg_http_server_new(shared, loops[i], &servers[i]), 0);
        assert_int_equal(vg_http_server_listen(servers[i], l, f.t->tls), 0);
        assert_int_equal(vg_loop_start(loops[i], "tls-test"), 0);
    }
    vg_test_threads(CLIENTS, one_client, &f);
    assert_int_equal(f.n_served, (CLIENTS - 1) * 10);
    for (int i = 0; i < LOOPS; i++) {
        vg_loop_stop(loops[i]); /* from here on it is ours */
        vg_http_server_free(servers[i]);
        vg_loop_free(loops[i]);
    }
    vg_http_shared_free(shared);
    vg_listener_free(l);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(requests_are_served_over_tls),
        T(older_versions_are_refused),
        T(the_protocol_is_negotiated),
        T(a_client_certificate_names_the_user),
        T(certificates_that_are_not_good_for_clients_are_refused),
        T(a_certificate_without_a_name_is_nobody),
        T(reloading_changes_what_is_shown),
        T(bad_files_are_named),
        T(a_large_answer_arrives_whole),
        T(the_end_of_an_answer_waits_for_a_full_socket),
        T(events_of_one_turn_share_a_record),
        T(a_reader_that_comes_back_gets_the_same_bytes),
        T(a_client_that_vanishes_without_a_word_cancels),
        T(certificates_change_while_loops_serve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
