/* api_vectors_test.c - watch scenarios of a real kube-apiserver, asked of ours: their writes are
 * sent, and the events must have the same types, names, labels, finalizers and data in the same
 * order, at the revisions of the same writes. Without the recordings there is nothing to do, and
 * that is said. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/base64.h"
#include "proto_client.h"
#include "vectors_world.h"

static bool is_headed; /* the stream has had a Table */

#define WRITES_MAX 16u

struct scenario {
    const char *name;
    const struct vg_json *doc;
    const struct vg_json *responses[WRITES_MAX]; /* ours */
    size_t n_writes;
};

static bool may_replay(const struct scenario *s)
{
    const struct vg_json *watch = get(s->doc, "watch");
    if (!is_served(get_text(watch, "sent_path")))
        return false;
    VG_JSON_FOREACH_ITEM (w, get(s->doc, "writes"))
        if (!is_served(get_text(w, "path")) ||
            strstr(get_text(get(w, "headers"), "Content-Type"), "apply-patch"))
            return false;
    return true;
}

static const char *revision(const struct vg_json *object)
{
    return get_text(get(object, "metadata"), "resourceVersion");
}

static void send_writes(struct scenario *s, const char *when)
{
    const struct vg_json *writes = get(s->doc, "writes");
    for (size_t i = 0; i < writes->n; i++) {
        const struct vg_json *w = &writes->items[i];
        struct vg_reply r = {0};
        if (strcmp(get_text(w, "when"), when) != 0)
            continue;
        send_record(w, &r);
        if (r.status != status_of(w))
            print_error("%s: write %zu: %s\n", s->name, i, r.body.p);
        assert_int_equal(r.status, status_of(w));
        assert_true(i < WRITES_MAX);
        s->responses[i] = parse(vg_buf_slice(&r.body));
        vg_reply_done(&r);
    }
}

/* {{n:/pointer}} becomes a field of our answer to write n. */
static const char *fill_in(const struct scenario *s, const char *path)
{
    VG_AUTO(buf) b = {0};
    const char *open;
    while ((open = strstr(path, "{{"))) {
        const char *close = strstr(open, "}}");
        unsigned long i = strtoul(open + 2, NULL, 10);
        assert_non_null(close);
        assert_true(i < WRITES_MAX && s->responses[i]);
        assert_int_equal(vg_buf_append(&b, path, (size_t)(open - path)), 0);
        assert_int_equal(vg_buf_printf(&b, "%s", revision(s->responses[i])), 0);
        path = close + 2;
    }
    assert_int_equal(vg_buf_printf(&b, "%s%c", path, '\0'), 0);
    return vg_arena_copy(&arena, b.p, b.n);
}

static bool is_table(const struct vg_json *object)
{
    return strcmp(get_text(object, "kind"), "Table") == 0;
}

/* The object that an event is about: of a Table the one in its row, if that is there. */
static const struct vg_json *object_of(const struct vg_json *event)
{
    const struct vg_json *object = get(event, "object");
    return is_table(object) ? get(vg_json_at(get(object, "rows"), 0), "object") : object;
}

static const struct vg_json *cells_of(const struct vg_json *event)
{
    return get(vg_json_at(get(get(event, "object"), "rows"), 0), "cells");
}

/* Is the event about an object that the scenario wrote? */
static bool is_ours(const struct scenario *s, const struct vg_json *event)
{
    const char *name = is_table(get(event, "object"))
                           ? text_of(vg_json_at(cells_of(event), 0))
                           : get_text(get(get(event, "object"), "metadata"), "name");
    VG_JSON_FOREACH_ITEM (w, get(s->doc, "writes")) {
        const struct vg_json *response = get(w, "response");
        const char *other = get_text(get(response, "metadata"), "name");
        if (*other && strcmp(other, name) == 0)
            return true;
    }
    return false;
}

/* The revision as the write that made it: "#3", or "?" for one that no write answered. */
static const char *revision_name(const struct scenario *s, const struct vg_json *object,
                                 bool is_recorded)
{
    const char *rev = revision(object);
    const struct vg_json *writes = get(s->doc, "writes");
    for (size_t i = 0; i < writes->n; i++) {
        const struct vg_json *made =
            is_recorded ? get(&writes->items[i], "response") : s->responses[i];
        if (made && *rev && strcmp(revision(made), rev) == 0) {
            char *text = vg_arena_alloc(&arena, 16, 1);
            snprintf(text, 16, "#%zu", i);
            return text;
        }
    }
    return "?";
}

/* 0s, 3m10s: a matter of time. */
static bool is_age(struct vg_slice s)
{
    return s.n > 1 && s.p[0] >= '0' && s.p[0] <= '9' && strchr("smhd", s.p[s.n - 1]);
}

/* Columns are defined by the first Table of a stream alone. */
static void check_definitions(const struct vg_json *event)
{
    const struct vg_json *columns = get(get(event, "object"), "columnDefinitions");
    if (!is_table(get(event, "object")))
        return;
    assert_int_equal(columns->type, is_headed ? VG_JSON_NULL : VG_JSON_ARRAY);
    is_headed = true;
}

static int append_table(struct vg_buf *b, const struct vg_json *event)
{
    int r = vg_buf_printf(b, "Table ");
    VG_JSON_FOREACH_ITEM (cell, cells_of(event))
        if (r == 0)
            r = vg_buf_printf(b, "%s ", is_age(vg_json_text(cell)) ? "<age>" : written(cell));
    return r;
}

/* What must be the same, as a text; NULL: does not count. */
static const char *essence(const struct scenario *s, const struct vg_json *event, bool is_recorded)
{
    const char *type = get_text(event, "type");
    const struct vg_json *object = object_of(event), *meta = get(object, "metadata");
    VG_AUTO(buf) b = {0};
    int r = is_table(get(event, "object")) ? append_table(&b, event) : 0;
    assert_int_equal(r, 0);
    if (strcmp(type, "BOOKMARK") == 0) {
        if (!get(meta, "annotations"))
            return NULL; /* when they come is a matter of time */
        r = vg_buf_printf(&b, "BOOKMARK %s %s", get_text(object, "kind"),
                          written(get(meta, "annotations")));
    } else if (strcmp(type, "ERROR") == 0) {
        r = vg_buf_printf(&b, "ERROR %s", written(get(object, "reason")));
    } else if (!is_ours(s, event)) {
        return NULL;
    } else {
        r = vg_buf_printf(
            &b, "%s %s %s/%s %s labels=%s finalizers=%s deleting=%d grace=%s data=%s", type,
            get_text(object, "kind"), get_text(meta, "namespace"), get_text(meta, "name"),
            revision_name(s, object, is_recorded), written(get(meta, "labels")),
            written(get(meta, "finalizers")), get(meta, "deletionTimestamp") != NULL,
            written(get(meta, "deletionGracePeriodSeconds")), written(get(object, "data")));
    }
    assert_int_equal(r, 0);
    assert_int_equal(vg_buf_append_byte(&b, '\0'), 0);
    return vg_arena_copy(&arena, b.p, b.n);
}

static bool is_protobuf(const struct scenario *s)
{
    return strstr(get_text(get(get(s->doc, "watch"), "headers"), "Accept"), "protobuf");
}

/* The next event of ours as JSON; NULL at the end. */
static struct vg_json *next_event(const struct scenario *s, struct vg_stream *stream)
{
    VG_AUTO(buf) json = {0};
    struct vg_slice frame;
    if (!is_protobuf(s)) {
        const char *line = vg_stream_line(stream);
        return line ? parse(vg_slice_str(line)) : NULL;
    }
    if (!vg_stream_frame(stream, &frame))
        return NULL;
    vg_proto_client_event_json(frame, &json);
    return parse(vg_buf_slice(&json));
}

/* A recorded event; protobuf is in base64. */
static const struct vg_json *recorded_event(const struct vg_json *frame)
{
    VG_AUTO(buf) json = {0};
    struct vg_slice text = vg_json_text(get(frame, "base64"));
    if (!text.n)
        return frame;
    char *bytes = vg_arena_alloc(&arena, text.n, 1);
    size_t n = 0;
    assert_true(bytes && vg_base64_decode(text, bytes, &n));
    vg_proto_client_event_json(vg_slice(bytes, n), &json);
    return parse(vg_buf_slice(&json));
}

static const char *next_essence(const struct scenario *s, struct vg_stream *stream)
{
    const struct vg_json *event;
    const char *e = NULL;
    while (!e && (event = next_event(s, stream))) {
        check_definitions(event);
        e = essence(s, event, false);
    }
    return e;
}

static void compare_stream(const struct scenario *s, struct vg_stream *stream)
{
    size_t n = 0;
    bool is_over = false;
    is_headed = false;
    VG_JSON_FOREACH_ITEM (frame, get(s->doc, "frames")) {
        const char *wanted = essence(s, recorded_event(frame), true);
        if (!wanted)
            continue;
        const char *got = next_essence(s, stream);
        if (!got || strcmp(got, wanted) != 0)
            print_error("%s: event %zu\n", s->name, n);
        assert_non_null(got);
        assert_string_equal(got, wanted);
        is_over |= strncmp(wanted, "ERROR", 5) == 0;
        n++;
    }
    /* That nothing more comes is seen at the end; waiting for all ends would take minutes. */
    if (n == 0 || is_over || vg_test_is_long())
        assert_null(next_essence(s, stream));
}

static void compare_refusal(const struct scenario *s, const struct vg_json *wanted,
                            struct vg_slice body)
{
    struct vg_json *got = parse(body);
    if (strcmp(get_text(wanted, "message"), get_text(got, "message")) != 0)
        print_error("%s\n", s->name);
    assert_string_equal(get_text(got, "message"), get_text(wanted, "message"));
    assert_string_equal(get_text(got, "reason"), get_text(wanted, "reason"));
}

/* A state that may be older than the last write is not what was recorded. */
static void await_cache(void)
{
    static const struct timespec nap = {.tv_nsec = 1000000};
    while (vg_cacher_revision(d.cacher) < vg_storage_revision(d.storage))
        nanosleep(&nap, NULL);
}

static void replay_watch(const char *name)
{
    struct scenario s = {.name = name};
    VG_AUTO(buf) text = {0};
    char file[128];
    snprintf(file, sizeof file, "watch/%s.json", name);
    vg_test_vector(file, &text);
    s.doc = parse(vg_buf_slice(&text));
    if (!may_replay(&s)) {
        print_message("not served yet: %s\n", name);
        return;
    }
    send_writes(&s, "before");
    await_cache();
    const struct vg_json *watch = get(s.doc, "watch");
    struct vg_stream stream;
    vg_stream_open(&d, fill_in(&s, get_text(watch, "path")), headers_of(watch), &stream);
    if (stream.status != status_of(s.doc))
        print_error("%s\n", name);
    assert_int_equal(stream.status, status_of(s.doc));
    send_writes(&s, "during");
    if (stream.status == 200 && !strstr(name, "existing")) {
        compare_stream(&s, &stream);
    } else if (stream.status != 200 && strcmp(name, "yaml") != 0) {
        const char *line = vg_stream_line(&stream);
        assert_non_null(line);
        compare_refusal(&s, &get(s.doc, "frames")->items[0], vg_slice_str(line));
    }
    vg_stream_close(&stream);
}

static void watch_scenarios_are_the_same(void **state)
{
    (void)state;
    static const char *const names[] = {
        "all-namespaces",
        "apply-events",
        "bookmark-before-timeout",
        "cluster-scoped",
        "custom-resource",
        "delete-collection",
        "deletion-foreground",
        "deletion-with-finalizer",
        "expired-resourceversion",
        "expired-resourceversion-protobuf",
        "expired-resourceversion-table",
        "field-selector-invalid",
        "field-selector-name",
        "field-selector-transitions",
        "future-resourceversion-initial-events",
        "future-resourceversion",
        "invalid-resourceversion",
        "invalid-timeout",
        "label-selector-invalid",
        "label-selector-transitions",
        "legacy-path-all",
        "legacy-path-name",
        "legacy-path",
        "missing-namespace",
        "namespace-lifecycle",
        "namespace-scoped-other-ignored",
        "no-resourceversion",
        "noop-update",
        "partial-object-metadata",
        "plain",
        "pod-graceful-deletion",
        "pod-unscheduled-deletion",
        "protobuf",
        "protobuf-bookmarks",
        "protobuf-partial",
        "protobuf-plain-accept",
        "resourceversion-0",
        "resourceversionmatch-without-initial",
        "resume",
        "send-initial-events-at-version",
        "send-initial-events-empty",
        "send-initial-events-false",
        "send-initial-events-no-bookmarks",
        "send-initial-events-no-match",
        "send-initial-events-table",
        "send-initial-events",
        "single-name-existing",
        "single-name",
        "table",
        "table-include-none",
        "timeout",
        "unwatchable",
        "watch-equals-1",
        "yaml",
    };
    make_namespace("vecp-watch");
    make_namespace("vecp-watch2");
    vg_adrv_compact(&d, vg_storage_revision(d.storage));
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        replay_watch(names[i]);
        vg_arena_reset(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(watch_scenarios_are_the_same, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
