/* api_list_test.c - LIST over real sockets, on the engine named by the first argument. */
#include <pthread.h>
#include <stdlib.h>

#include "read_world.h"
#include "json/json.h"

/* "a b c": the names of the items; and what metadata says. */
struct listed {
    char names[4096];
    char token[1024];
    unsigned long long rev, remaining;
    size_t n;
};

static struct listed listed(void)
{
    struct listed l = {.n = 0};
    VG_AUTO(arena) arena;
    struct vg_json *root;
    vg_arena_init(&arena, 0, 0);
    assert_int_equal(reply.status, 200);
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&reply.body), NULL, &root, NULL), 0);
    struct vg_json *meta = vg_json_get_str(root, "metadata");
    l.rev = strtoull(vg_json_text(vg_json_get_str(meta, "resourceVersion")).p, NULL, 10);
    snprintf(l.token, sizeof l.token, "%.*s",
             VG_SLICE_ARG(vg_json_text(vg_json_get_str(meta, "continue"))));
    uint64_t remaining;
    if (vg_json_to_uint64(vg_json_get_str(meta, "remainingItemCount"), &remaining) == 0)
        l.remaining = remaining;
    struct vg_json *items = vg_json_get_str(root, "items");
    l.n = items->n;
    VG_JSON_FOREACH_ITEM (it, items) {
        struct vg_slice name =
            vg_json_text(vg_json_get_str(vg_json_get_str(it, "metadata"), "name"));
        size_t at = strlen(l.names);
        if (at + name.n + 2 < sizeof l.names)
            snprintf(l.names + at, sizeof l.names - at, "%s%.*s", at ? " " : "",
                     VG_SLICE_ARG(name));
    }
    return l;
}

static struct listed list(const char *target)
{
    get(target);
    return listed();
}

/* Config maps named by the letters of the alphabet. */
static void put_letters(const char *from, const char *to)
{
    for (char name[2] = {*from}; name[0] <= *to; name[0]++)
        vg_adrv_config(&d, "a", name, "v");
}

static void a_list_has_its_items_in_order(void **state)
{
    (void)state;
    get(MAPS);
    assert_non_null(strstr(reply.body.p, "\"items\":[]}\n"));
    vg_rev one = vg_adrv_config(&d, "a", "y", "1");
    vg_adrv_config(&d, "a", "x", "2");
    vg_rev last = vg_adrv_config(&d, "b", "z", "3");
    struct listed l = list(MAPS);
    assert_string_equal(l.names, "x y");
    assert_true(l.rev >= last);
    assert_non_null(strstr(reply.body.p, "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\","
                                         "\"metadata\":{\"resourceVersion\":\""));
    assert_non_null(strstr(reply.body.p, "\"items\":[{\"metadata\":{\"name\":\"x\""));
    assert_non_null(vg_reply_field(&reply, "Content-Length"));
    assert_string_equal(list("/api/v1/configmaps").names, "x y z");
    assert_string_equal(list("/api/v1/configmaps?fieldSelector=metadata.namespace%3Db").names, "z");
    assert_string_equal(list("/api/v1/configmaps?fieldSelector=metadata.name%3Dy").names, "y");
    assert_string_equal(list("/api/v1/namespaces/none/configmaps").names, "");
    l = list(vg_adrv_path(MAPS "?resourceVersion=%llu&resourceVersionMatch=Exact",
                          (unsigned long long)one));
    assert_string_equal(l.names, "y");
    assert_int_equal(l.rev, one);
    assert_true(list(vg_adrv_path(MAPS "?resourceVersion=%llu", (unsigned long long)one)).rev >=
                last);
}

static void pages_are_exact(void **state)
{
    (void)state;
    put_letters("a", "g");
    struct listed first = list(MAPS "?limit=3");
    assert_string_equal(first.names, "a b c");
    assert_int_equal(first.remaining, 4);
    vg_adrv_delete(&d, "", "configmaps", "a", "d");
    vg_adrv_config(&d, "a", "cc", "v");
    struct listed second = list(vg_adrv_path(MAPS "?limit=3&continue=%s", first.token));
    assert_string_equal(second.names, "d e f");
    assert_int_equal(second.rev, first.rev);
    assert_int_equal(second.remaining, 1);
    struct listed third = list(vg_adrv_path(MAPS "?limit=3&continue=%s", second.token));
    assert_string_equal(third.names, "g");
    assert_string_equal(third.token, "");
    assert_int_equal(third.remaining, 0);
    assert_string_equal(list(MAPS).names, "a b c cc e f g"); /* waits for the cache */
    assert_string_equal(list(MAPS "?limit=3&resourceVersion=0").names, "a b c cc e f g");
    struct listed old = list(vg_adrv_path(MAPS "?limit=2&resourceVersion=%llu", first.rev));
    assert_int_equal(old.rev, first.rev);
    assert_int_equal(old.remaining, 5);
    struct listed some = list(MAPS "?limit=2&fieldSelector=metadata.name%21%3Da");
    assert_string_equal(some.names, "b c");
    assert_int_equal(some.remaining, 0);
    assert_string_not_equal(some.token, "");
    /* The same from another start, all of it. */
    struct listed rest = list(vg_adrv_path(MAPS "?continue=%s", first.token));
    assert_string_equal(rest.names, "d e f g");
}

/* A hot tail that keeps next to nothing. */
static int open_with_short_tail(void **state)
{
    (void)state;
    open_driver((struct vg_adrv_opts){
        .cacher = {.events_min = 1, .events_max = 1, .bytes_max = 1, .window_ms = 1}});
    return 0;
}

static void what_the_tail_has_lost_is_read_from_storage(void **state)
{
    (void)state;
    put_letters("a", "d");
    struct listed first = list(MAPS "?limit=2");
    vg_adrv_delete(&d, "", "configmaps", "a", "c");
    vg_rev last = 0;
    for (int i = 0; i < 2000; i++)
        last = vg_adrv_config(&d, "a", "d", "w");
    list(MAPS);
    double before = vg_adrv_metric(&d, "apiserver_storage_list_total", "configmaps");
    struct listed old =
        list(vg_adrv_path(MAPS "?resourceVersion=%llu&resourceVersionMatch=Exact", first.rev));
    assert_string_equal(old.names, "a b c d");
    assert_int_equal(old.rev, first.rev);
    assert_string_equal(list(vg_adrv_path(MAPS "?limit=2&continue=%s", first.token)).names, "c d");
    assert_true(vg_adrv_metric(&d, "apiserver_storage_list_total", "configmaps") == before + 2);
    vg_adrv_compact(&d, last);
    get(vg_adrv_path(MAPS "?resourceVersion=%llu&resourceVersionMatch=Exact", first.rev));
    expect_message(410, "The resourceVersion for the provided list is too old.");
    get(vg_adrv_path(MAPS "?limit=2&continue=%s", first.token));
    assert_int_equal(reply.status, 410);
    assert_non_null(strstr(reply.body.p, "The provided continue parameter is too old"));
    const char *at = strstr(reply.body.p, "\"continue\":\"");
    assert_non_null(at);
    struct listed rest =
        list(vg_adrv_path(MAPS "?continue=%.*s", (int)strcspn(at + 12, "\""), at + 12));
    assert_string_equal(rest.names, "d");
    assert_true(rest.rev >= last);
}

static int open_cold(void **state)
{
    (void)state;
    open_driver((struct vg_adrv_opts){.is_cold = true, .cacher.ready_ms = 600000});
    return 0;
}

static int open_cold_for_long(void **state)
{
    (void)state;
    open_driver((struct vg_adrv_opts){.is_cold = true, .cacher.ready_ms = 1});
    return 0;
}

struct asker {
    pthread_t thread;
    struct vg_reply reply;
    struct vg_stream stream;
};

static void *ask_list(void *arg)
{
    vg_adrv_get(&d, MAPS, &((struct asker *)arg)->reply);
    return NULL;
}

static void *ask_watch(void *arg)
{
    vg_stream_open(&d, MAPS "?watch=1&resourceVersion=0", NULL, &((struct asker *)arg)->stream);
    return NULL;
}

/* Who asks while the cache is being filled is answered once, and not sent away. */
static void a_cache_that_is_being_filled_is_waited_for(void **state)
{
    (void)state;
    struct asker lister = {0}, watcher = {0};
    put_letters("a", "c");
    assert_int_equal(pthread_create(&lister.thread, NULL, ask_list, &lister), 0);
    assert_int_equal(pthread_create(&watcher.thread, NULL, ask_watch, &watcher), 0);
    for (int i = 0; i < 50; i++) { /* what needs no cache is answered meanwhile */
        get(MAPS "/b");
        assert_int_equal(reply.status, 200);
    }
    vg_adrv_warm(&d);
    assert_int_equal(pthread_join(lister.thread, NULL), 0);
    assert_int_equal(pthread_join(watcher.thread, NULL), 0);
    assert_int_equal(lister.reply.status, 200);
    assert_non_null(strstr(lister.reply.body.p, "\"name\":\"c\""));
    assert_int_equal(watcher.stream.status, 200);
    assert_non_null(strstr(vg_stream_line(&watcher.stream), "\"name\":\"a\""));
    vg_stream_close(&watcher.stream);
    vg_reply_done(&lister.reply);
}

/* Who has gone meanwhile is forgotten. */
static void who_leaves_while_the_cache_is_filled_is_forgotten(void **state)
{
    (void)state;
    put_letters("a", "c");
    for (int i = 0; i < 8; i++)
        vg_adrv_shoot(&d, "GET", i % 2 ? MAPS : MAPS "?watch=1", NULL, NULL);
    get(MAPS "/b");
    assert_int_equal(reply.status, 200);
    vg_adrv_warm(&d);
    assert_string_equal(list(MAPS).names, "a b c");
}

static void a_cold_cache_asks_to_come_again(void **state)
{
    (void)state;
    put_letters("a", "c");
    get(MAPS);
    expect_message(429, "storage is (re)initializing");
    assert_non_null(vg_reply_field(&reply, "Retry-After"));
    get(MAPS "?watch=1");
    expect_message(429, "storage is (re)initializing");
    get(MAPS "?resourceVersion=0&limit=2");
    assert_int_equal(reply.status, 429);
    assert_string_equal(list(MAPS "?limit=2").names, "a b");
    get(MAPS "/b");
    assert_int_equal(reply.status, 200);
    vg_adrv_warm(&d);
    assert_string_equal(list(MAPS).names, "a b c");
}

static void selectors_narrow_the_walk(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%u", i);
        vg_adrv_config(&d, i % 2 ? "a" : "b", name, "v");
    }
    list(MAPS);
#define FETCHED vg_adrv_metric(&d, "apiserver_cache_list_fetched_objects_total", "configmaps")
    double before = FETCHED;
    assert_string_equal(list(MAPS "?fieldSelector=metadata.name%3Dm1").names, "m1");
    assert_true(FETCHED - before == 1);
    assert_string_equal(list(MAPS "?limit=1&fieldSelector=metadata.name%3Dm1").token, "");
    assert_string_equal(list(MAPS "?fieldSelector=metadata.name%3Dm").names, "");
    before = FETCHED;
    assert_int_equal(list("/api/v1/configmaps?fieldSelector=metadata.namespace%3Db").n, 100);
    assert_true(FETCHED - before == 100);
    struct listed l = list("/api/v1/configmaps?limit=3&fieldSelector=metadata.namespace%3Db");
    assert_int_equal(l.n, 3);
    l = list(vg_adrv_path("/api/v1/configmaps?fieldSelector=metadata.namespace%%3Db&continue=%s",
                          l.token));
    assert_int_equal(l.n, 97);
}

static void requests_that_take_too_long_are_504(void **state)
{
    (void)state;
    get(MAPS "?resourceVersion=999999&timeout=20ms");
    expect_message(504, "Timeout: request did not complete within the allotted timeout");
    get(MAPS "/x?resourceVersion=999999&timeout=20ms");
    expect_message(504, "Timeout: request did not complete within the allotted timeout");
}

static void bad_list_options_are_refused(void **state)
{
    (void)state;
    get(MAPS "?continue=bogus");
    expect_message(400, "invalid continue token: continue key is not valid: illegal base64 data at "
                        "input byte 4");
    get(MAPS "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJhXHUwMDAwIn0&"
             "resourceVersion=1");
    expect_message(400, "specifying resource version is not allowed when using continue");
    get(MAPS "?resourceVersion=abc");
    expect_message(400, "invalid resource version: resourceVersion: Invalid value: \\\"abc\\\": "
                        "strconv.ParseUint: parsing \\\"abc\\\": invalid syntax");
    get(MAPS "?resourceVersion=999999&resourceVersionMatch=Exact");
    assert_int_equal(reply.status, 504);
    get(MAPS "?resourceVersion=999999&resourceVersionMatch=NotOlderThan&limit=1");
    assert_int_equal(reply.status, 504);
    assert_string_equal(vg_reply_field(&reply, "Retry-After"), "1");
    get(MAPS "?limit=x");
    expect_message(400, "strconv.ParseInt: parsing \\\"x\\\": invalid syntax");
    get(MAPS "?sendInitialEvents=1");
    assert_int_equal(reply.status, 422);
}

static void put_pod(unsigned i, const char *node, size_t size)
{
    VG_AUTO(buf) json = {0};
    char name[32], padding[8192];
    snprintf(name, sizeof name, "p-%05u", i);
    memset(padding, 'x', sizeof padding);
    assert_int_equal(
        vg_buf_printf(&json,
                      "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
                      "\"namespace\":\"a\",\"uid\":\"u\",\"labels\":{\"i\":\"%u\"}},\"spec\":{"
                      "\"nodeName\":\"%s\",\"pad\":\"%.*s\"}}%c",
                      name, i, node, (int)size, padding, '\0'),
        0);
    vg_adrv_put(&d, "", "pods", "a", name, json.p);
}

static void large_lists_are_streamed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 400; i++)
        put_pod(i, i % 4 ? "n1" : "n2", 2000);
    struct listed l = list("/api/v1/pods");
    assert_int_equal(l.n, 400);
    assert_false(reply.is_cut);
    assert_string_equal(vg_reply_field(&reply, "Transfer-Encoding"), "chunked");
    assert_int_equal(list("/api/v1/pods?fieldSelector=spec.nodeName%3Dn2").n, 100);
    assert_int_equal(list("/api/v1/pods?labelSelector=i%20in%20(3,7)").n, 2);
    assert_int_equal(list("/api/v1/pods?limit=150").n, 150);
    l = list("/api/v1/pods?limit=60&fieldSelector=spec.nodeName%3Dn2");
    assert_int_equal(l.n, 60);
    assert_int_equal(
        list(vg_adrv_path("/api/v1/pods?fieldSelector=spec.nodeName%%3Dn2&continue=%s", l.token)).n,
        40);
    assert_int_equal(list("/api/v1/pods?pretty=1").n, 400);
    assert_non_null(strstr(reply.body.p, "\n      \"metadata\": {\n        \"name\": \"p-00000\""));
    vg_adrv_request(&d, "GET", "/api/v1/pods",
                    "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io\r\n",
                    NULL, &reply);
    assert_int_equal(listed().n, 400);
    assert_non_null(strstr(reply.body.p, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":"
                                         "\"meta.k8s.io/v1\""));
    vg_adrv_request(&d, "GET", "/api/v1/pods", "Accept: application/yaml\r\n", NULL, &reply);
    assert_int_equal(strncmp(reply.body.p, "apiVersion: v1\nitems:\n- metadata:\n", 33), 0);
    assert_non_null(strstr(reply.body.p, "\nkind: PodList\nmetadata:\n  resourceVersion: \""));
}

static void events_come_from_storage(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1200; i++) {
        VG_AUTO(buf) json = {0};
        char name[32];
        snprintf(name, sizeof name, "e-%05u", i);
        assert_int_equal(
            vg_buf_printf(&json,
                          "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
                          "\"namespace\":\"a\"},\"reason\":\"r%u\",\"message\":\"%0200u\"}%c",
                          name, i % 10, i, '\0'),
            0);
        vg_adrv_put(&d, "", "events", "a", name, json.p);
    }
    struct listed l = list("/api/v1/namespaces/a/events");
    assert_int_equal(l.n, 1200);
    assert_int_equal(list("/api/v1/events?fieldSelector=reason%3Dr3").n, 120);
    l = list("/api/v1/events?limit=700");
    assert_int_equal(l.n, 700);
    assert_int_equal(l.remaining, 500);
    unsigned long long rev = l.rev;
    l = list(vg_adrv_path("/api/v1/events?limit=700&continue=%s", l.token));
    assert_int_equal(l.n, 500);
    assert_int_equal(l.rev, rev);
    l = list("/api/v1/events?limit=7&fieldSelector=reason%3Dr3");
    assert_int_equal(l.n, 7);
    assert_int_equal(l.remaining, 0);
    assert_int_equal(
        list(vg_adrv_path("/api/v1/events?fieldSelector=reason%%3Dr3&continue=%s", l.token)).n,
        113);
    get("/api/v1/namespaces/a/events/e-00007");
    assert_int_equal(reply.status, 200);
    assert_true(vg_adrv_metric(&d, "etcd_requests_total", "operation=\"get\"") == 1);
    assert_true(vg_adrv_metric(&d, "etcd_request_duration_seconds_count", "operation=\"list\"") >=
                8);
    get("/api/v1/events?resourceVersion=999999");
    assert_int_equal(reply.status, 504);
    assert_null(vg_reply_field(&reply, "Retry-After"));
}

static void clients_that_leave_cost_nothing(void **state)
{
    (void)state;
    static const char *const headers[] = {NULL, "Accept-Encoding: gzip\r\n",
                                          "Accept: application/yaml\r\n"};
    for (unsigned i = 0; i < 2000; i++)
        put_pod(i, "n", 8000);
    for (size_t i = 0; i < 3 * VG_ARRAY_LEN(headers); i++) {
        struct vg_stream s;
        vg_stream_open(&d, "/api/v1/pods", headers[i % VG_ARRAY_LEN(headers)], &s);
        assert_int_equal(s.status, 200);
        vg_stream_close(&s); /* the driver asserts that no call is left */
    }
    assert_int_equal(list("/api/v1/pods").n, 2000);
}

static void large_lists_are_compressed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 400; i++)
        put_pod(i, "n", 2000);
    get("/api/v1/pods");
    VG_AUTO(buf) plain = {0};
    assert_int_equal(vg_buf_append_slice(&plain, vg_buf_slice(&reply.body)), 0);
    vg_adrv_request(&d, "GET", "/api/v1/pods", "Accept-Encoding: gzip\r\n", NULL, &reply);
    assert_string_equal(vg_reply_field(&reply, "Content-Encoding"), "gzip");
    assert_string_equal(vg_reply_field(&reply, "Vary"), "Accept-Encoding");
    assert_false(reply.is_cut);
    /* By the real program. */
    const char *dir = vg_test_tmpdir();
    char file[512], command[1024];
    snprintf(file, sizeof file, "%s/list.gz", dir);
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(reply.body.p, 1, reply.body.n, f), reply.body.n);
    fclose(f);
    snprintf(command, sizeof command, "gzip -dc %s", file);
    FILE *p = popen(command, "r");
    VG_AUTO(buf) unpacked = {0};
    char bytes[65536];
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, p)))
        assert_int_equal(vg_buf_append(&unpacked, bytes, n), 0);
    assert_int_equal(pclose(p), 0);
    assert_int_equal(unpacked.n, plain.n);
    assert_memory_equal(unpacked.p, plain.p, plain.n);
    vg_test_tmpdir_remove(dir);
    vg_adrv_request(&d, "GET", "/api/v1/pods?pretty=1", "Accept-Encoding: gzip\r\n", NULL, &reply);
    assert_string_equal(vg_reply_field(&reply, "Content-Encoding"), "gzip");
    vg_adrv_request(&d, "GET", "/api/v1/pods?limit=10", "Accept-Encoding: gzip\r\n", NULL, &reply);
    assert_null(vg_reply_field(&reply, "Content-Encoding"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_SERVER(a_list_has_its_items_in_order),
        ON_SERVER(pages_are_exact),
        cmocka_unit_test_setup_teardown(what_the_tail_has_lost_is_read_from_storage,
                                        open_with_short_tail, close_server),
        cmocka_unit_test_setup_teardown(a_cold_cache_asks_to_come_again, open_cold_for_long,
                                        close_server),
        cmocka_unit_test_setup_teardown(a_cache_that_is_being_filled_is_waited_for, open_cold,
                                        close_server),
        cmocka_unit_test_setup_teardown(who_leaves_while_the_cache_is_filled_is_forgotten,
                                        open_cold, close_server),
        ON_SERVER(selectors_narrow_the_walk),
        ON_SERVER(requests_that_take_too_long_are_504),
        ON_SERVER(clients_that_leave_cost_nothing),
        ON_HASTY_SERVER(bad_list_options_are_refused),
        ON_SERVER(large_lists_are_streamed),
        ON_SERVER(large_lists_are_compressed),
        ON_SERVER(events_come_from_storage),
    };
    return RUN_ON_ENGINE(argc, argv, tests);
}
