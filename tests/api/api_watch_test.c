/* api_watch_test.c - WATCH over real sockets, on the engine named by the first argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_world.h"

static int setup(void **state)
{
    (void)state;
    open_driver((struct vg_adrv_opts){.n_loops = 2});
    return 0;
}

/* For a wait that is in vain. */
static int setup_hasty(void **state)
{
    (void)state;
    open_driver((struct vg_adrv_opts){.n_loops = 2, .cacher.fresh_ms = 200});
    return 0;
}

#define MAPS "/api/v1/namespaces/a/configmaps"
#define ULL(n) (unsigned long long)(n)

static void expect_line(struct vg_stream *s, const char *wanted)
{
    const char *line = vg_stream_line(s);
    assert_non_null(line);
    assert_string_equal(line, wanted);
}

static const char *map_event(const char *type, const char *name, const char *data, vg_rev rev)
{
    return vg_adrv_path("{\"type\":\"%s\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
                        "\"metadata\":{\"name\":\"%s\",\"namespace\":\"a\",\"uid\":\"u-%s\","
                        "\"resourceVersion\":\"%llu\"},\"data\":{\"k\":\"%s\"}}}",
                        type, name, name, ULL(rev), data);
}

static void expect_map(struct vg_stream *s, const char *type, const char *name, const char *data,
                       vg_rev rev)
{
    expect_line(s, map_event(type, name, data, rev));
}

static void expect_bookmark(struct vg_stream *s, bool is_end)
{
    const char *line = vg_stream_line(s);
    assert_non_null(line);
    static const char head[] = "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConfigMap\","
                               "\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"";
    assert_int_equal(strncmp(line, head, sizeof head - 1), 0);
    const char *tail = strchr(line + sizeof head - 1, '"');
    assert_string_equal(
        tail, is_end ? "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}" : "\"}}}");
}

static void expect_end(struct vg_stream *s)
{
    assert_null(vg_stream_line(s));
    assert_false(s->is_cut);
}

/* ---- where a watch starts ---- */

static void a_watch_tells_what_follows_its_revision(void **state)
{
    (void)state;
    vg_rev r0 = vg_adrv_config(&d, "a", "anchor", "0");
    vg_rev r1 = vg_adrv_config(&d, "a", "x", "1");
    struct vg_stream s;
    vg_stream_open(&d, vg_adrv_path(MAPS "?watch=1&resourceVersion=%llu", ULL(r0)), NULL, &s);
    assert_int_equal(s.status, 200);
    assert_non_null(strstr(s.head.p, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(s.head.p, "\r\nCache-Control: no-cache, private\r\n"));
    assert_non_null(strstr(s.head.p, "\r\nTransfer-Encoding: chunked\r\n"));
    expect_map(&s, "ADDED", "x", "1", r1);
    vg_rev r2 = vg_adrv_config(&d, "a", "x", "2");
    vg_adrv_config(&d, "b", "x", "other");
    vg_rev r3 = vg_adrv_delete(&d, "", "configmaps", "a", "x");
    expect_map(&s, "MODIFIED", "x", "2", r2);
    expect_map(&s, "DELETED", "x", "2", r3);
    vg_stream_close(&s);
}

static void a_watch_without_a_revision_begins_with_the_state(void **state)
{
    (void)state;
    vg_rev r1 = vg_adrv_config(&d, "a", "x", "1");
    vg_rev r2 = vg_adrv_config(&d, "a", "y", "2");
    struct vg_stream s, marked;
    vg_stream_open(&d, MAPS "?watch", NULL, &s);
    vg_stream_open(&d,
                   MAPS "?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&"
                        "allowWatchBookmarks=1",
                   NULL, &marked);
    expect_map(&s, "ADDED", "x", "1", r1);
    expect_map(&s, "ADDED", "y", "2", r2);
    expect_map(&marked, "ADDED", "x", "1", r1);
    expect_map(&marked, "ADDED", "y", "2", r2);
    expect_bookmark(&marked, true);
    vg_rev r3 = vg_adrv_config(&d, "a", "z", "3");
    expect_map(&s, "ADDED", "z", "3", r3);
    expect_map(&marked, "ADDED", "z", "3", r3);
    vg_stream_close(&s);
    vg_stream_close(&marked);
#define OF_MAPS "resource=\"configmaps\""
    assert_true(vg_adrv_metric(&d, "apiserver_watch_list_duration_seconds_count", OF_MAPS) == 2);
    assert_true(vg_adrv_metric(&d, "apiserver_init_events_total", OF_MAPS) == 5);
    assert_true(vg_adrv_metric(&d, "apiserver_watch_events_total", OF_MAPS) == 7);
    assert_true(vg_adrv_metric(&d, "apiserver_resource_objects", OF_MAPS) == 3);
    double bytes = vg_adrv_metric(&d, "apiserver_resource_size_estimate_bytes", OF_MAPS);
    assert_true(bytes > 3 * 100 && bytes < 3 * 1000);
    vg_adrv_config(&d, "a", "z", "3, and so on and so on");
    double more = bytes;
    while (more <= bytes) { /* until the cache has seen it, which no stream tells here */
        uv_sleep(1);
        more = vg_adrv_metric(&d, "apiserver_resource_size_estimate_bytes", OF_MAPS);
    }
    assert_true(more < bytes + 100);
}

static void a_watch_may_begin_with_what_comes_now(void **state)
{
    (void)state;
    vg_adrv_config(&d, "a", "x", "1");
    struct vg_stream s;
    vg_stream_open(&d, MAPS "?watch=1&sendInitialEvents=0&resourceVersionMatch=NotOlderThan", NULL,
                   &s);
    vg_rev r2 = vg_adrv_config(&d, "a", "x", "2");
    expect_map(&s, "MODIFIED", "x", "2", r2);
    vg_stream_close(&s);
}

static void a_future_revision_is_waited_for_in_silence(void **state)
{
    (void)state;
    vg_rev r1 = vg_adrv_config(&d, "a", "x", "1");
    struct vg_stream s;
    vg_stream_open(&d, vg_adrv_path(MAPS "?watch=1&resourceVersion=%llu", ULL(r1 + 2)), NULL, &s);
    vg_adrv_config(&d, "a", "x", "2");
    vg_adrv_config(&d, "a", "x", "3");
    vg_rev r4 = vg_adrv_config(&d, "a", "x", "4");
    expect_map(&s, "MODIFIED", "x", "4", r4);
    vg_stream_close(&s);
    vg_stream_open(&d,
                   MAPS "?watch=1&resourceVersion=999999&sendInitialEvents=1&resourceVersionMatch="
                        "NotOlderThan",
                   NULL, &s);
    assert_int_equal(s.status, 200);
    const char *line = vg_stream_line(&s);
    assert_non_null(line);
    assert_int_equal(strncmp(line, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\"", 41), 0);
    assert_non_null(strstr(line, "Timeout: Too large resource version: 999999, current: "));
    expect_end(&s);
    vg_stream_close(&s);
}

static void a_compacted_revision_is_an_error_event(void **state)
{
    (void)state;
    vg_adrv_config(&d, "a", "x", "1");
    vg_rev last = vg_adrv_config(&d, "a", "x", "2");
    vg_adrv_compact(&d, last);
    struct vg_stream s;
    vg_stream_open(&d, MAPS "?watch=1&resourceVersion=1", NULL, &s);
    assert_int_equal(s.status, 200);
    expect_line(&s, vg_adrv_path(
                        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                        "\"metadata\":{},\"status\":\"Failure\",\"message\":\"too old resource "
                        "version: 1 (%llu)\",\"reason\":\"Expired\",\"code\":410}}",
                        ULL(last)));
    expect_end(&s);
    vg_stream_close(&s);
}

static void legacy_paths_are_served(void **state)
{
    (void)state;
    vg_rev r1 = vg_adrv_config(&d, "a", "x", "1");
    vg_rev r2 = vg_adrv_config(&d, "a", "y", "2");
    struct vg_reply warm = {0};
    vg_adrv_get(&d, MAPS, &warm); /* a consistent read: the cache has both */
    vg_reply_done(&warm);
    struct vg_stream s;
    vg_stream_open(&d, "/api/v1/watch/namespaces/a/configmaps?allowWatchBookmarks=1", NULL, &s);
    expect_map(&s, "ADDED", "x", "1", r1);
    expect_map(&s, "ADDED", "y", "2", r2);
    vg_rev r3 = vg_adrv_config(&d, "a", "x", "3");
    expect_map(&s, "MODIFIED", "x", "3", r3);
    vg_stream_close(&s);
    vg_stream_open(
        &d, vg_adrv_path("/api/v1/watch/namespaces/a/configmaps/y?resourceVersion=%llu", ULL(r1)),
        NULL, &s);
    expect_map(&s, "ADDED", "y", "2", r2);
    vg_rev r4 = vg_adrv_delete(&d, "", "configmaps", "a", "y");
    expect_map(&s, "DELETED", "y", "2", r4);
    vg_stream_close(&s);
}

static void what_is_wrong_is_told_before_the_stream(void **state)
{
    (void)state;
    struct vg_reply r = {0};
    vg_adrv_get(&d, MAPS "?watch=1&resourceVersion=abc", &r);
    assert_int_equal(r.status, 500);
    vg_adrv_get(&d, MAPS "?watch=1&timeoutSeconds=x", &r);
    assert_int_equal(r.status, 400);
    vg_adrv_get(&d, MAPS "?watch=1&fieldSelector=data.k%3D1", &r);
    assert_int_equal(r.status, 400);
    vg_adrv_request(&d, "GET", MAPS "?watch=1", "Accept: application/yaml\r\n", NULL, &r);
    assert_int_equal(r.status, 406);
    vg_reply_done(&r);
}

/* ---- what it tells ---- */

static vg_rev put_pod(const char *name, const char *node, const char *phase)
{
    VG_AUTO(buf) json = {0};
    assert_int_equal(
        vg_buf_printf(&json,
                      "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
                      "\"namespace\":\"a\"},\"spec\":{\"nodeName\":\"%s\"},\"status\":{\"phase\":"
                      "\"%s\"}}%c",
                      name, node, phase, '\0'),
        0);
    return vg_adrv_put(&d, "", "pods", "a", name, json.p);
}

static void expect_type(struct vg_stream *s, const char *type, const char *part)
{
    const char *line = vg_stream_line(s);
    assert_non_null(line);
    char head[64];
    snprintf(head, sizeof head, "{\"type\":\"%s\",", type);
    if (strncmp(line, head, strlen(head)) != 0 || !strstr(line, part))
        assert_string_equal(line, part);
}

static void selectors_make_comings_and_goings(void **state)
{
    (void)state;
    vg_rev r0 = put_pod("p", "", "Pending");
    struct vg_stream node, phase;
    vg_stream_open(
        &d,
        vg_adrv_path("/api/v1/pods?watch=1&resourceVersion=%llu&fieldSelector=spec.nodeName%%3D"
                     "n1",
                     ULL(r0)),
        NULL, &node);
    vg_stream_open(
        &d,
        vg_adrv_path("/api/v1/pods?watch=1&resourceVersion=%llu&fieldSelector=status.phase%%3D"
                     "Pending",
                     ULL(r0)),
        NULL, &phase);
    put_pod("p", "n1", "Pending");
    put_pod("p", "n1", "Running");
    vg_rev r3 = put_pod("p", "n2", "Running");
    expect_type(&node, "ADDED", "Pending");
    expect_type(&node, "MODIFIED", "Running");
    expect_type(&node, "DELETED", vg_adrv_path("\"resourceVersion\":\"%llu\"", ULL(r3)));
    expect_type(&phase, "MODIFIED", "\"n1\"");
    expect_type(&phase, "DELETED", "Pending");
    vg_stream_close(&node);
    vg_stream_close(&phase);
}

static void metadata_alone_is_watched(void **state)
{
    (void)state;
    vg_rev r1 = vg_adrv_config(&d, "a", "x", "1");
    struct vg_stream s;
    vg_stream_open(&d, MAPS "?watch=1&allowWatchBookmarks=1",
                   "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n", &s);
#define PARTIAL "\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
    expect_line(&s, vg_adrv_path("{\"type\":\"ADDED\"," PARTIAL
                                 "\"metadata\":{\"name\":\"x\",\"namespace\":"
                                 "\"a\",\"uid\":\"u-x\",\"resourceVersion\":\"%llu\"}}}",
                                 ULL(r1)));
    expect_type(&s, "BOOKMARK", PARTIAL "\"metadata\":{\"resourceVersion\":\"");
    vg_rev r2 = vg_adrv_delete(&d, "", "configmaps", "a", "x");
    expect_line(&s,
                vg_adrv_path("{\"type\":\"DELETED\"," PARTIAL "\"metadata\":{\"name\":\"x\","
                             "\"namespace\":\"a\",\"uid\":\"u-x\",\"resourceVersion\":\"%llu\"}}}",
                             ULL(r2)));
    vg_stream_close(&s);
}

static void events_are_watched_without_a_cache(void **state)
{
    (void)state;
    static const char event[] = "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                                "\"e\",\"namespace\":\"a\"},\"reason\":\"Started\"}";
    vg_adrv_put(&d, "", "events", "a", "e", event);
    struct vg_stream s;
    vg_stream_open(&d,
                   "/api/v1/events?watch=1&allowWatchBookmarks=1&sendInitialEvents=1&"
                   "resourceVersionMatch=NotOlderThan",
                   NULL, &s);
    expect_type(&s, "ADDED", "Started");
    expect_type(&s, "BOOKMARK", "initial-events-end");
    vg_adrv_delete(&d, "", "events", "a", "e");
    expect_type(&s, "DELETED", "Started");
    vg_stream_close(&s);
}

/* ---- how it ends ---- */

static void a_watch_ends_in_its_time(void **state)
{
    (void)state;
    struct vg_stream s;
    vg_stream_open(&d, MAPS "?watch=1&resourceVersion=1&timeoutSeconds=-1", NULL, &s);
    assert_int_equal(s.status, 200);
    expect_end(&s);
    vg_stream_close(&s);
    vg_stream_open(&d, MAPS "?watch=1&resourceVersion=1&timeoutSeconds=1", NULL, &s);
    expect_end(&s);
    vg_stream_close(&s);
}

static void count_watches(struct vg_api_loop *l, void *arg);

static size_t n_watches(void)
{
    size_t n = 0;
    for (size_t i = 0; i < d.n_loops; i++)
        vg_adrv_call(&d, i, count_watches, &n);
    return n;
}

static struct vg_api_watch_info last_info;
static char last_selector[128];

static void see_watch(void *arg, const struct vg_api_watch_info *info)
{
    ++*(size_t *)arg;
    last_info = *info;
    VG_AUTO(buf) text = {0};
    assert_int_equal(vg_label_selector_append(&text, vg_obj_predicate_labels(info->predicate)), 0);
    snprintf(last_selector, sizeof last_selector, "%.*s", VG_SLICE_ARG(vg_buf_slice(&text)));
}

static void count_watches(struct vg_api_loop *l, void *arg)
{
    vg_api_each_watch(l, see_watch, arg);
}

static void watches_can_be_looked_at(void **state)
{
    (void)state;
    struct vg_stream s;
    vg_rev r0 = vg_adrv_config(&d, "a", "x", "1");
    vg_stream_open(
        &d, vg_adrv_path(MAPS "?watch=1&resourceVersion=%llu&labelSelector=%%21none", ULL(r0)),
        NULL, &s);
    vg_rev r1 = vg_adrv_config(&d, "a", "x", "2");
    expect_map(&s, "MODIFIED", "x", "2", r1);
    assert_int_equal(n_watches(), 1);
    assert_string_equal(last_selector, "!none");
    assert_string_equal(last_info.kind->resource, "configmaps");
    assert_int_equal(last_info.events, 1);
    assert_true(last_info.rev >= r1);
    vg_stream_close(&s);
    while (n_watches()) /* until the server has noticed */
        uv_sleep(1);
}

static void a_slow_reader_misses_nothing(void **state)
{
    (void)state;
    char data[4001];
    memset(data, 'x', sizeof data - 1);
    data[sizeof data - 1] = '\0';
    vg_rev r0 = vg_adrv_config(&d, "a", "x", "0");
    struct vg_stream s;
    vg_stream_open(&d, vg_adrv_path(MAPS "?watch=1&resourceVersion=%llu", ULL(r0)), NULL, &s);
    enum { N = 3000 };
    vg_rev revs[N];
    for (int i = 0; i < N; i++) { /* some 12 MB: far more than sockets hold */
        data[0] = (char)('a' + i % 26);
        revs[i] = vg_adrv_config(&d, "a", "x", data);
    }
    for (int i = 0; i < N; i++) {
        char rev[64];
        const char *line = vg_stream_line(&s);
        assert_non_null(line);
        snprintf(rev, sizeof rev, "\"resourceVersion\":\"%llu\"", ULL(revs[i]));
        if (!strstr(line, rev))
            assert_string_equal(line, rev);
    }
    vg_stream_close(&s);
}

static void a_shutdown_ends_streams_cleanly(void **state)
{
    (void)state;
    struct vg_stream s;
    open_driver((struct vg_adrv_opts){.n_loops = 1});
    vg_rev r0 = vg_adrv_config(&d, "a", "x", "0");
    vg_stream_open(&d, vg_adrv_path(MAPS "?watch=1&resourceVersion=%llu", ULL(r0)), NULL, &s);
    vg_adrv_drain(&d);
    expect_end(&s);
    vg_stream_close(&s);
    vg_adrv_close(&d);
}

/* ---- WebSocket ---- */

static void a_websocket_carries_an_event_per_message(void **state)
{
    (void)state;
    vg_rev r1 = vg_adrv_config(&d, "a", "x", "1");
    struct vg_stream s;
    static const char upgrade[] =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: http://localhost\r\n";
    vg_stream_open(&d, MAPS "?watch=1", upgrade, &s);
    assert_int_equal(s.status, 101);
    s.is_over = s.is_chunked = false;
    s.left = UINT64_MAX;
    const char *line = vg_stream_line(&s);
    assert_non_null(line);
    const char *wanted = map_event("ADDED", "x", "1", r1);
    assert_int_equal((unsigned char)line[0], 0x81);
    assert_int_equal((unsigned char)line[1], 126);
    assert_int_equal((unsigned char)line[2] << 8 | (unsigned char)line[3], strlen(wanted) + 1);
    assert_string_equal(line + 4, wanted);
    vg_stream_close(&s);
    struct vg_reply r = {0};
    char no_origin[sizeof upgrade];
    memcpy(no_origin, upgrade, sizeof upgrade);
    *strstr(no_origin, "Origin") = '\0';
    vg_adrv_request(&d, "GET", MAPS "?watch=1", no_origin, NULL, &r);
    assert_int_equal(r.status, 403);
    vg_reply_done(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, close_server)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_watch_tells_what_follows_its_revision),
        TEST(a_watch_without_a_revision_begins_with_the_state),
        TEST(a_watch_may_begin_with_what_comes_now),
        cmocka_unit_test_setup_teardown(a_future_revision_is_waited_for_in_silence, setup_hasty,
                                        close_server),
        TEST(a_compacted_revision_is_an_error_event),
        TEST(legacy_paths_are_served),
        TEST(what_is_wrong_is_told_before_the_stream),
        TEST(selectors_make_comings_and_goings),
        TEST(metadata_alone_is_watched),
        TEST(events_are_watched_without_a_cache),
        TEST(a_watch_ends_in_its_time),
        TEST(watches_can_be_looked_at),
        TEST(a_slow_reader_misses_nothing),
        TEST(a_websocket_carries_an_event_per_message),
        cmocka_unit_test(a_shutdown_ends_streams_cleanly),
    };
    return RUN_ON_ENGINE(argc, argv, tests);
}
