/* bench_events_test.c - streams are cut at their events wherever the bytes are cut. */
#include "test_support.h"

#include <stdio.h>

#include "base/rng.h"
#include "events.h"

struct seen {
    unsigned n, marks;
    uint64_t sum, last_ns;
    char version[32], type[32];
    bool is_protobuf;
};

static void keep(char to[32], struct vg_slice s)
{
    snprintf(to, 32, "%.*s", VG_SLICE_ARG(s));
}

static void on_event(void *arg, const struct vg_bench_event *e)
{
    struct seen *s = arg;
    s->n++;
    s->marks += e->has_mark;
    s->sum += e->has_mark ? e->number : 0;
    s->last_ns = e->has_mark ? e->sent_ns : s->last_ns;
    keep(s->version, vg_bench_event_version(e, s->is_protobuf));
    keep(s->type, vg_bench_event_type(e, s->is_protobuf));
}

static void feed(struct vg_bench_events *e, struct vg_slice s, size_t step, struct seen *seen)
{
    while (s.n) {
        size_t n = VG_MIN(step, s.n);
        assert_int_equal(vg_bench_events_feed(e, vg_slice(s.p, n), on_event, seen), 0);
        s = vg_slice(s.p + n, s.n - n);
    }
}

static void json_events_are_cut_at_line_breaks(void **state)
{
    (void)state;
    VG_AUTO(buf) text = {0};
    char mark[VG_BENCH_MARK_SIZE];
    for (unsigned i = 0; i < 5; i++) {
        vg_bench_mark(mark, i, 1000 + i);
        assert_int_equal(vg_buf_printf(&text,
                                       "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{"
                                       "\"resourceVersion\":\"%u\",\"annotations\":{\"a\":\"%s\"}}"
                                       "}}\n{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
                                       "\"resourceVersion\":\"9%u\"}}}\n",
                                       i, mark, i),
                         0);
    }
    for (size_t step = 1; step <= text.n; step++) {
        struct vg_bench_events e = {0};
        struct seen seen = {0};
        feed(&e, vg_buf_slice(&text), step, &seen);
        assert_int_equal(seen.n, 10);
        assert_int_equal(seen.marks, 5);
        assert_int_equal(seen.sum, 0 + 1 + 2 + 3 + 4);
        assert_int_equal(seen.last_ns, 1004);
        assert_string_equal(seen.version, "94");
        assert_string_equal(seen.type, "BOOKMARK");
        assert_int_equal(e.rest.n, 0);
        vg_bench_events_done(&e);
    }
}

/* A field with a length, short enough for one byte of it. */
static size_t put(char *to, unsigned number, const char *bytes, size_t n)
{
    assert_true(n < 128);
    to[0] = (char)(number << 3 | 2);
    to[1] = (char)n;
    memmove(to + 2, bytes, n);
    return n + 2;
}

/* WatchEvent{type, RawExtension{Unknown{raw: Object{ObjectMeta}}}} behind its length. */
static size_t proto_event(char *to, const char *version, const char *mark)
{
    char meta[128], object[128], unknown[140], raw[160], event[200];
    size_t n = put(meta, 6, version, strlen(version));
    n += put(meta + n, 12, mark, strlen(mark));
    n = put(object, 1, meta, n);
    memcpy(unknown, "k8s\0", 4);
    n = 4 + put(unknown + 4, 2, object, n);
    n = put(raw, 1, unknown, n);
    size_t at = put(event, 1, "ADDED", 5);
    n = at + put(event + at, 2, raw, n);
    memcpy(to, (char[4]){0, 0, 0, (char)n}, 4);
    memcpy(to + 4, event, n);
    return 4 + n;
}

static void protobuf_events_are_cut_by_their_length(void **state)
{
    (void)state;
    char text[1024], mark[VG_BENCH_MARK_SIZE];
    size_t n = 0;
    for (unsigned i = 0; i < 4; i++) {
        char version[8];
        snprintf(version, sizeof version, "77%u", i);
        vg_bench_mark(mark, 100 + i, 5000 + i);
        n += proto_event(text + n, version, mark);
    }
    for (size_t step = 1; step <= n; step++) {
        struct vg_bench_events e = {.is_protobuf = true};
        struct seen seen = {.is_protobuf = true};
        feed(&e, vg_slice(text, n), step, &seen);
        assert_int_equal(seen.n, 4);
        assert_int_equal(seen.sum, 100 + 101 + 102 + 103);
        assert_string_equal(seen.version, "773");
        assert_string_equal(seen.type, "ADDED");
        vg_bench_events_done(&e);
    }
}

static void an_event_that_never_ends_is_refused(void **state)
{
    (void)state;
    struct vg_bench_events e = {0};
    struct seen seen = {0};
    static char bytes[1 << 20];
    memset(bytes, 'x', sizeof bytes);
    int r = 0;
    size_t sent = 0;
    for (; r == 0 && sent < 2 * VG_BENCH_EVENT_MAX; sent += sizeof bytes)
        r = vg_bench_events_feed(&e, vg_slice(bytes, sizeof bytes), on_event, &seen);
    assert_int_equal(r, VIGIL_E_TOO_LARGE);
    assert_int_equal(seen.n, 0);
    vg_bench_events_done(&e);
}

static void lists_tell_their_version_and_where_to_go_on(void **state)
{
    (void)state;
    struct vg_slice json =
        VG_SLICE_LIT("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
                     "\"resourceVersion\":\"12\",\"continue\":\"abc\"},\"items\":[");
    assert_true(vg_slice_eq(vg_bench_list_version(json, false), VG_SLICE_LIT("12")));
    assert_true(vg_slice_eq(vg_bench_list_continue(json, false), VG_SLICE_LIT("abc")));
    char meta[64], list[80], text[120];
    size_t n = put(meta, 2, "345", 3);
    n += put(meta + n, 3, "next", 4);
    n = put(list, 1, meta, n);
    memcpy(text, "k8s\0", 4);
    n = 4 + put(text + 4, 2, list, n);
    assert_true(vg_slice_eq(vg_bench_list_version(vg_slice(text, n), true), VG_SLICE_LIT("345")));
    assert_true(vg_slice_eq(vg_bench_list_continue(vg_slice(text, n), true), VG_SLICE_LIT("next")));
}

static void a_mark_that_is_cut_short_is_none(void **state)
{
    (void)state;
    struct vg_bench_events e = {0};
    struct seen seen = {0};
    feed(&e,
         VG_SLICE_LIT("{\"a\":\"vgb~00000\"}\n{\"a\":\"vgb~000000000x~0000000000000000001~\"}\n"),
         7, &seen);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.marks, 0);
    vg_bench_events_done(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_events_are_cut_at_line_breaks),
        cmocka_unit_test(protobuf_events_are_cut_by_their_length),
        cmocka_unit_test(an_event_that_never_ends_is_refused),
        cmocka_unit_test(lists_tell_their_version_and_where_to_go_on),
        cmocka_unit_test(a_mark_that_is_cut_short_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
