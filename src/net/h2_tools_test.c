/* h2_tools_test.c - nghttp2's own client tools against a server of two loops, over TCP with prior
 * knowledge and over TLS by ALPN. Names of tests that start with a tool run it as a process. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "server.h"
#include "tls.h"

#define LOOPS 2
/* 100 watches for each of 10 clients, and some. */
#define BIG_MAX 3000000u

static struct vg_loop *loops[LOOPS];
static struct vg_http_server *servers[LOOPS];
static struct vg_http_shared *shared;
static struct vg_listener *plain, *secure;
static struct vg_tls *tls;
static const char *dir;
static char block[BIG_MAX];

/* ---- a server that says hello, repeats bodies and sends what it is asked for ---- */

static void respond(struct vg_http_exchange *x, uint64_t length)
{
    struct vg_http_field f = {VG_SLICE_LIT("Content-Type"), VG_SLICE_LIT("text/plain")};
    struct vg_http_head head = {.status = 200, .fields = &f, .n_fields = 1, .length = length};
    if (vg_http_respond(x, &head) < 0)
        abort();
}

static void ref(const void *b)
{
    (void)b;
}
static const struct vg_http_pin pin = {block, ref, ref};

static void on_head(struct vg_http_exchange *x, void *arg)
{
    (void)arg;
    vg_http_authenticated(x);
}

static void on_request(struct vg_http_exchange *x, void *arg)
{
    const struct vg_http_request *r = vg_http_request(x);
    struct vg_slice body = VG_SLICE_LIT("hello\n");
    char path[64];
    (void)arg;
    snprintf(path, sizeof(path), "%.*s", VG_SLICE_ARG(r->target));
    bool is_big = strncmp(path, "/big/", 5) == 0;
    if (is_big)
        body = vg_slice(block, VG_MIN(strtoul(path + 5, NULL, 10), BIG_MAX));
    else if (strcmp(path, "/echo") == 0)
        body = r->body;
    respond(x, body.n);
    if (vg_http_write(x, &body, 1, is_big ? &pin : NULL) < 0)
        abort();
    vg_http_end(x);
}

static void on_drained(struct vg_http_exchange *x, void *arg)
{
    (void)x;
    (void)arg;
}

static void on_progress(struct vg_http_exchange *x, size_t n, void *arg)
{
    (void)x;
    (void)n;
    (void)arg;
}

static void on_closed(struct vg_http_exchange *x, int err, void *arg)
{
    (void)x;
    (void)err;
    (void)arg;
}

static const struct vg_http_handler handler = {.on_head = on_head,
                                               .on_request = on_request,
                                               .on_drained = on_drained,
                                               .on_progress = on_progress,
                                               .on_closed = on_closed};

/* ---- tools ---- */

/* What a command prints, and its exit status. */
VG_PRINTF(2, 3) static int run(struct vg_buf *ret_text, const char *fmt, ...)
{
    char command[1024], piece[4096];
    size_t n;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        assert_int_equal(vg_buf_append(ret_text, piece, n), 0);
    int status = pclose(f);
    if (status != 0)
        fail_msg("%s: status %d; is nghttp2-client installed (make setup)?\n%.*s", command, status,
                 VG_SLICE_ARG(vg_buf_slice(ret_text)));
    return status;
}

static void assert_says(const struct vg_buf *text, const char *what)
{
    if (!memmem(text->p, text->n, what, strlen(what)))
        fail_msg("no '%s' in: %.*s", what, VG_SLICE_ARG(vg_buf_slice(text)));
}

static const char *body_file(size_t n)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/body", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(block, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static int make_certificate(char cert[256], char key[256])
{
    VG_AUTO(buf) text = {0};
    snprintf(cert, 256, "%s/cert.pem", dir);
    snprintf(key, 256, "%s/key.pem", dir);
    return run(&text,
               "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
               "-subj /CN=localhost -keyout %s -out %s 2>&1",
               key, cert);
}

static int start(void **state)
{
    struct vg_http_shared_opts opts = {.handler = &handler};
    struct vg_status status = {0};
    char cert[256], key[256];
    (void)state;
    dir = vg_test_tmpdir();
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (char)('a' + i % 23);
    assert_int_equal(make_certificate(cert, key), 0);
    assert_int_equal(
        vg_tls_new(&(struct vg_tls_opts){.cert_file = cert, .key_file = key}, &tls, &status), 0);
    assert_int_equal(vg_http_shared_new(&opts, &shared), 0);
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &plain, &status), 0);
    assert_int_equal(vg_listener_open("127.0.0.1", 0, &secure, &status), 0);
    for (int i = 0; i < LOOPS; i++) {
        assert_int_equal(vg_loop_new(vg_clock_system(), &loops[i]), 0);
        assert_int_equal(vg_http_server_new(shared, loops[i], &servers[i]), 0);
        assert_int_equal(vg_http_server_listen(servers[i], plain, NULL), 0);
        assert_int_equal(vg_http_server_listen(servers[i], secure, tls), 0);
        assert_int_equal(vg_loop_start(loops[i], "h2-tools"), 0);
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < LOOPS; i++)
        vg_loop_stop(loops[i]);
    for (int i = 0; i < LOOPS; i++) {
        vg_http_server_free(servers[i]);
        vg_loop_turn(loops[i], false);
        vg_loop_free(loops[i]);
    }
    vg_listener_free(plain);
    vg_listener_free(secure);
    vg_http_shared_free(shared);
    vg_tls_free(tls);
    return 0;
}

/* Both ways to the same server. */
static const char *url(bool is_tls)
{
    static char text[64];
    snprintf(text, sizeof(text), "%s://127.0.0.1:%u", is_tls ? "https" : "http",
             vg_listener_port(is_tls ? secure : plain));
    return text;
}

static void nghttp_gets_and_posts(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        VG_AUTO(buf) got = {0};
        run(&got, "nghttp -y %s/hello 2>&1", url(t));
        vg_assert_slice_equal(vg_buf_slice(&got), VG_SLICE_LIT("hello\n"));
        vg_buf_clear(&got);
        run(&got, "nghttp -y -d %s %s/echo", body_file(2000000), url(t));
        vg_assert_slice_equal(vg_buf_slice(&got), vg_slice(block, 2000000));
        vg_buf_clear(&got);
        run(&got, "nghttp -y -w 16 -W 17 %s/big/3000000", url(t));
        vg_assert_slice_equal(vg_buf_slice(&got), vg_slice(block, 3000000));
    }
}

static void nghttp_sees_our_settings(void **state)
{
    (void)state;
    VG_AUTO(buf) got = {0};
    run(&got, "nghttp -nv --no-dep %s/hello 2>&1", url(false));
    assert_says(&got, "SETTINGS_MAX_CONCURRENT_STREAMS(0x03):1000");
    assert_says(&got, "SETTINGS_MAX_HEADER_LIST_SIZE(0x06):65536");
    assert_says(&got, ":status: 200");
    assert_says(&got, "END_STREAM");
}

static void nghttp_sends_many_at_once_with_continuations(void **state)
{
    (void)state;
    VG_AUTO(buf) got = {0};
    run(&got, "nghttp -m 100 -n --continuation --trailer 'x: y' -d %s %s/echo 2>&1", body_file(10),
        url(false));
}

static void load(unsigned requests, unsigned clients, unsigned streams, const char *more,
                 bool is_tls, const char *path)
{
    VG_AUTO(buf) got = {0};
    char want[64];
    run(&got, "h2load -n %u -c %u -m %u %s %s%s 2>&1", requests, clients, streams, more,
        url(is_tls), path);
    snprintf(want, sizeof(want), "%u succeeded, 0 failed, 0 errored, 0 timeout", requests);
    assert_says(&got, want);
    if (is_tls)
        assert_says(&got, "Application protocol: h2\n");
}

static void h2load_finds_no_failure(void **state)
{
    (void)state;
    char post[300];
    snprintf(post, sizeof(post), "-d %s", body_file(100000));
    for (int t = 0; t < 2; t++) {
        load(5000, 10, 100, "", t, "/hello");
        load(100, 5, 10, "", t, "/big/1000000");
        load(100, 5, 10, "-w 16 -W 20", t, "/big/300000");
        load(200, 5, 20, post, t, "/echo");
    }
    struct vg_http_stats stats;
    vg_http_stats(shared, &stats);
    assert_int_equal(stats.floods, 0);
    assert_int_equal(stats.malformed, 0);
    assert_true(stats.requests >= 10800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nghttp_gets_and_posts),
        cmocka_unit_test(nghttp_sees_our_settings),
        cmocka_unit_test(nghttp_sends_many_at_once_with_continuations),
        cmocka_unit_test(h2load_finds_no_failure),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
