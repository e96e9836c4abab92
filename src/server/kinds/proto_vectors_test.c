/* What a real server answered in JSON and in protobuf: each is made of the other, byte for byte. */
#include "test_support.h"

#include <glob.h>
#include <stdio.h>

#include "base/base64.h"
#include "server/schema/proto.h"
#include "types.h"
#include "json/scan.h"
#include "json/write.h"

/* Answers to two calls of which the second gave another answer; only round trips can be checked. */
static bool is_another_call(const char *path)
{
    return strstr(path, "_TokenRequest/call/") || strstr(path, "_SelfSubjectRulesReview/");
}

/* Volume claim templates carry kind and apiVersion in JSON only: conversion puts them there. */
static bool is_put_by_conversion(const char *path)
{
    return strstr(path, "/apps_v1_StatefulSet/") != NULL;
}

static char root[2048]; /* the folder of the vectors */

static void read_file(const char *path, struct vg_buf *ret)
{
    vg_test_vector(path + strlen(root), ret);
    while (ret->n && strstr(path, ".json") && ret->p[ret->n - 1] == '\n')
        ret->n--;
}

/* The file that says the same as `path`, in another form. */
static void read_sibling(const char *path, const char *name, struct vg_buf *ret)
{
    char other[4096];
    const char *slash = strrchr(path, '/');
    snprintf(other, sizeof other, "%.*s/%s", (int)(slash - path), path, name);
    read_file(other, ret);
}

static const struct vg_schema_type *find_type(struct vg_slice api_version, struct vg_slice kind)
{
    const char *slash = api_version.n ? memchr(api_version.p, '/', api_version.n) : NULL;
    struct vg_slice group = {"", 0}, version = api_version;
    if (slash) {
        group = vg_slice(api_version.p, (size_t)(slash - api_version.p));
        version = vg_slice(slash + 1, api_version.n - group.n - 1);
    }
    if (version.n == 0)
        version = VG_SLICE_LIT("v1"); /* of core's discovery */
    const struct vg_schema_type *t = vg_schema_find(group, version, kind);
    return t ? t : vg_schema_find(VG_SLICE_LIT("meta.k8s.io"), version, kind);
}

static struct vg_slice text_of(struct vg_slice json, const char *a, const char *b)
{
    struct vg_json_step steps[2] = {vg_json_step_key(a)};
    if (b)
        steps[1] = vg_json_step_key(b);
    struct vg_slice v;
    if (vg_json_find(json, steps, b ? 2 : 1, &v) < 0)
        return VG_SLICE_LIT("");
    return v.n >= 2 && v.p[0] == '"' ? vg_slice(v.p + 1, v.n - 2) : v;
}

static size_t differences; /* all are told before the test fails */

static void assert_same(const char *path, const char *what, struct vg_slice got,
                        struct vg_slice want)
{
    if (vg_slice_eq(got, want))
        return;
    size_t at = 0;
    while (at < got.n && at < want.n && got.p[at] == want.p[at])
        at++;
    size_t from = at > 60 ? at - 60 : 0;
    differences++;
    print_message("%s: %s differs at %zu\n got  %.*s\n want %.*s\n", path, what, at,
                  VG_SLICE_ARG(vg_slice(got.p + from, VG_MIN(got.n - from, (size_t)120))),
                  VG_SLICE_ARG(vg_slice(want.p + from, VG_MIN(want.n - from, (size_t)120))));
}

/* The server itself may have changed an object between the two answers. */
static bool is_of_another_revision(struct vg_slice bytes, struct vg_slice json)
{
    struct vg_slice rv = text_of(json, "metadata", "resourceVersion");
    return rv.n && !memmem(bytes.p, bytes.n, rv.p, rv.n);
}

static void assert_encodes(const char *path, const struct vg_schema_type *t,
                           const struct vg_proto_envelope *x, struct vg_slice json,
                           struct vg_slice bytes)
{
    VG_AUTO(proto_encoder) e = {0};
    VG_AUTO(buf) out = {0};
    int r = vg_proto_encode_object(&e, t, x->api_version, x->kind, json, VG_SLICE_LIT(""), &out);
    if (r < 0)
        fail_msg("%s: %s", path, vg_err_text(r));
    assert_same(path, "encoded", vg_buf_slice(&out), bytes);
}

static void assert_object(const char *path, struct vg_slice bytes, struct vg_slice json)
{
    struct vg_proto_envelope x;
    struct vg_status status;
    if (vg_proto_open(bytes, &x, &status) < 0)
        fail_msg("%s: %s", path, status.message);
    const struct vg_schema_type *t = find_type(x.api_version, x.kind);
    if (!t)
        fail_msg("%s: no type %.*s", path, VG_SLICE_ARG(x.kind));
    struct vg_arena arena;
    struct vg_json v;
    VG_AUTO(buf) text = {0};
    vg_arena_init(&arena, 0, 0);
    if (vg_proto_decode(&arena, t, &x, &v, &status) < 0)
        fail_msg("%s: %s", path, status.message);
    assert_int_equal(vg_json_write(&text, &v, VG_JSON_ESCAPE_HTML), 0);
    vg_arena_done(&arena);
    assert_encodes(path, t, &x, vg_buf_slice(&text), bytes);
    if (is_another_call(path) || is_of_another_revision(bytes, json))
        return;
    assert_encodes(path, t, &x, json, bytes);
    if (!is_put_by_conversion(path))
        assert_same(path, "decoded", vg_buf_slice(&text), json);
}

/* The text without resourceVersion, as it is stored, and with the revision given beside it. */
static void assert_stored(const char *path, struct vg_slice bytes, struct vg_slice json)
{
    static const char key[] = "\"resourceVersion\":\"";
    struct vg_slice rv = text_of(json, "metadata", "resourceVersion");
    if (rv.n == 0 || is_of_another_revision(bytes, json))
        return;
    const char *at = rv.p - (sizeof key - 1);
    const char *after = rv.p + rv.n + 1;
    after += *after == ',';
    VG_AUTO(buf) stored = {0};
    assert_int_equal(vg_buf_append(&stored, json.p, (size_t)(at - json.p)), 0);
    assert_int_equal(vg_buf_append(&stored, after, (size_t)(json.p + json.n - after)), 0);
    struct vg_proto_envelope x;
    assert_int_equal(vg_proto_open(bytes, &x, NULL), 0);
    VG_AUTO(proto_encoder) e = {0};
    VG_AUTO(buf) out = {0};
    assert_int_equal(
        vg_proto_encode(&e, find_type(x.api_version, x.kind), vg_buf_slice(&stored), rv, &out), 0);
    assert_same(path, "stored", vg_buf_slice(&out), x.raw);
    uint64_t size;
    assert_int_equal(
        vg_proto_size(&e, find_type(x.api_version, x.kind), vg_buf_slice(&stored), rv, &size), 0);
    assert_int_equal(size, x.raw.n);
}

/* Bodies of items, one after another with their heads. */
static void put_items(struct vg_proto_encoder *e, const struct vg_schema_type *t,
                      struct vg_slice json, struct vg_buf *out)
{
    struct vg_slice items;
    struct vg_json_iter it;
    struct vg_json_raw raw;
    const struct vg_json_step step = vg_json_step_key("items");
    assert_int_equal(vg_json_find(json, &step, 1, &items), 0);
    assert_int_equal(vg_json_iter_init(&it, items), 0);
    while (vg_json_iter_next(&it, &raw) > 0) {
        VG_AUTO(buf) item = {0};
        assert_int_equal(vg_proto_encode(e, t, raw.value, VG_SLICE_LIT(""), &item), 0);
        assert_int_equal(vg_proto_put_item_head(out, item.n), 0);
        assert_int_equal(vg_buf_append_slice(out, vg_buf_slice(&item)), 0);
    }
}

static void assert_list(const char *path, struct vg_slice bytes, struct vg_slice json)
{
    if (is_of_another_revision(bytes, json))
        return;
    struct vg_proto_list list = {.api_version = text_of(json, "apiVersion", NULL),
                                 .kind = text_of(json, "kind", NULL),
                                 .resource_version = text_of(json, "metadata", "resourceVersion"),
                                 .continue_token = text_of(json, "metadata", "continue"),
                                 .remaining = -1};
    const struct vg_schema_type *t =
        find_type(list.api_version, vg_slice(list.kind.p, list.kind.n - strlen("List")));
    if (!t)
        fail_msg("%s: no type of the items", path);
    VG_AUTO(proto_encoder) e = {0};
    VG_AUTO(buf) out = {0};
    VG_AUTO(buf) items = {0};
    put_items(&e, t, json, &items);
    assert_int_equal(vg_proto_put_list_head(&out, &list, items.n), 0);
    assert_int_equal(vg_buf_append_slice(&out, vg_buf_slice(&items)), 0);
    assert_int_equal(vg_buf_append_slice(&out, VG_PROTO_TAIL), 0);
    assert_same(path, "list", vg_buf_slice(&out), bytes);
}

typedef void compare_fn(const char *path, struct vg_slice bytes, struct vg_slice json);

/* Each file of that pattern with the text beside it; returns how many there are. */
static size_t compare_all(const char *pattern, const char *json_name, compare_fn *compare)
{
    char full[4096];
    glob_t found;
    snprintf(full, sizeof full, "%s%s", root, pattern);
    if (glob(full, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (strstr(found.gl_pathv[i], "/vec.example.com_")) /* custom resources have no protobuf */
            continue;
        VG_AUTO(buf) bytes = {0};
        VG_AUTO(buf) json = {0};
        read_file(found.gl_pathv[i], &bytes);
        read_sibling(found.gl_pathv[i], json_name, &json);
        compare(found.gl_pathv[i], vg_buf_slice(&bytes), vg_buf_slice(&json));
    }
    size_t n = found.gl_pathc;
    globfree(&found);
    assert_int_equal(differences, 0);
    return n;
}

static void objects_of_every_kind_equal(void **state)
{
    (void)state;
    assert_true(compare_all("kinds/*/*/object.pb", "response.json", assert_object) >= 150);
    assert_true(compare_all("kinds/*/*/after-status/object.pb", "../status-response.json",
                            assert_object) >= 20);
    assert_true(compare_all("kinds/*/*/response.pb", "response.json", assert_object) >= 15);
    assert_true(compare_all("discovery/api_v1.pb", "api_v1.json", assert_object) == 1);
    assert_true(compare_all("discovery/apis.pb", "apis.json", assert_object) == 1);
    assert_true(compare_all("discovery/aggregated_v2_apis.pb", "aggregated_v2_apis.json",
                            assert_object) == 1);
}

static void stored_values_get_their_revision(void **state)
{
    (void)state;
    assert_true(compare_all("kinds/*/*/object.pb", "response.json", assert_stored) >= 150);
}

static void lists_of_every_kind_equal(void **state)
{
    (void)state;
    assert_true(compare_all("kinds/*/*/list.pb", "list.json", assert_list) >= 150);
    assert_true(compare_all("kinds/*/*/after-status/list.pb", "list.json", assert_list) >= 20);
}

/* The frame of an event, made of the envelope in it and its type. The types are those of the JSON
 * form, so that the one inside need not be looked for. */
static void assert_frame(const char *path, struct vg_slice frame)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    const char *at = memmem(frame.p, frame.n, "k8s", 4);
    assert_non_null(at);
    struct vg_slice envelope = vg_slice(at, frame.n - (size_t)(at - frame.p));
    bool is_one = false;
    for (size_t i = 0; i < VG_ARRAY_LEN(types); i++) {
        VG_AUTO(buf) head = {0};
        assert_int_equal(vg_proto_put_watch_head(&head, vg_slice_str(types[i]), envelope.n), 0);
        is_one |=
            vg_slice_eq(vg_slice(head.p + 4, head.n - 4), vg_slice(frame.p, frame.n - envelope.n));
    }
    if (!is_one)
        fail_msg("%s: a frame begins in another way", path);
    assert_object(path, envelope, VG_SLICE_LIT("{\"metadata\":{\"resourceVersion\":\"none\"}}"));
}

static void frames_of_watches_equal(void **state)
{
    (void)state;
    static const char *const names[] = {"watch/protobuf.json", "watch/protobuf-bookmarks.json",
                                        "watch/protobuf-partial.json",
                                        "watch/expired-resourceversion-protobuf.json"};
    size_t n = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        VG_AUTO(buf) text = {0};
        VG_AUTO(arena) arena;
        struct vg_json *v;
        vg_arena_init(&arena, 0, 0);
        vg_test_vector(names[i], &text);
        assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&text), NULL, &v, NULL), 0);
        VG_JSON_FOREACH_ITEM (frame, vg_json_get_str(v, "frames")) {
            struct vg_slice base64 = vg_json_text(vg_json_get_str(frame, "base64"));
            if (base64.n == 0)
                continue;
            char *bytes = vg_arena_alloc(&arena, base64.n, 1);
            size_t got;
            assert_non_null(bytes);
            assert_true(vg_base64_decode(base64, bytes, &got));
            assert_frame(names[i], vg_slice(bytes, got));
            n++;
        }
    }
    assert_true(n >= 8);
    assert_int_equal(differences, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_of_every_kind_equal),
        cmocka_unit_test(stored_values_get_their_revision),
        cmocka_unit_test(lists_of_every_kind_equal),
        cmocka_unit_test(frames_of_watches_equal),
    };
    vg_test_vector_dir("", root, sizeof root);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
