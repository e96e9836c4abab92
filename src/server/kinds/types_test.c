/* types_test.c - the tables against what a real server prints: every recorded object, decoded,
 * shuffled and arranged, is the same bytes again. */
#include <dirent.h>
#include <stdio.h>

#include "server/schema/decode.h"
#include "test_support.h"
#include "types.h"
#include "json/write.h"

/* "apps_v1_Deployment" as a type. */
static const struct vg_schema_type *type_of_folder(const char *folder)
{
    const char *a = strchr(folder, '_'), *b = strchr(a + 1, '_');
    struct vg_slice group = vg_slice(folder, (size_t)(a - folder));
    if (vg_slice_eq(group, VG_SLICE_LIT("core")))
        group.n = 0;
    return vg_schema_find(group, vg_slice(a + 1, (size_t)(b - a - 1)), vg_slice_str(b + 1));
}

/* What is stored as it was written. */
static bool is_free_form(struct vg_slice key)
{
    static const char *const names[] = {"fieldsV1", "data", "raw", "parameters"};
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        if (vg_slice_eq(key, vg_slice_str(names[i])))
            return true;
    return false;
}

/* Backwards, at every level: nothing may depend on the order of what comes in. */
static void reverse(struct vg_json *v)
{
    for (uint32_t i = 0; v->type == VG_JSON_OBJECT && i < v->n / 2; i++) {
        struct vg_json_member m = v->members[i];
        v->members[i] = v->members[v->n - 1 - i];
        v->members[v->n - 1 - i] = m;
    }
    VG_JSON_FOREACH_MEMBER (m, v)
        if (!is_free_form(vg_json_key(m)))
            reverse(&m->value);
    VG_JSON_FOREACH_ITEM (it, v)
        reverse(it);
}

/* Shows where they part. */
static void expect_same(const char *path, struct vg_slice got, struct vg_slice want)
{
    size_t i = 0;
    while (i < got.n && i < want.n && got.p[i] == want.p[i])
        i++;
    if (i == got.n && i == want.n)
        return;
    size_t from = i > 60 ? i - 60 : 0;
    fail_msg("%s: byte %zu\n got %.*s\nwant %.*s", path, i,
             VG_SLICE_ARG(vg_slice(got.p + from, VG_MIN(got.n - from, (size_t)160))),
             VG_SLICE_ARG(vg_slice(want.p + from, VG_MIN(want.n - from, (size_t)160))));
}

/* What is arranged already is shared, and the text is the same. */
static void expect_alike(struct vg_arena *a, const struct vg_schema_type *type,
                         const struct vg_json *root, struct vg_slice want)
{
    VG_AUTO(buf) out = {0};
    struct vg_json alike;
    assert_int_equal(vg_schema_arrange_like(a, type, root, NULL, &alike), 0);
    assert_int_equal(vg_json_write(&out, &alike, VG_JSON_ESCAPE_HTML), 0);
    expect_same("arranged", vg_buf_slice(&out), want);
}

static size_t check_file(const char *path, const struct vg_schema_type *type)
{
    VG_AUTO(buf) text = {0};
    VG_AUTO(buf) out = {0};
    VG_AUTO(arena) arena = {0};
    struct vg_json *root;
    struct vg_status status = {0};
    struct vg_json unknown = vg_json_array();
    vg_test_vector(path, &text);
    while (text.n && text.p[text.n - 1] == '\n')
        text.n--;
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&text), NULL, &root, &status), 0);
    reverse(root);
    if (vg_schema_decode(&arena, type, root, &unknown, &status) < 0)
        fail_msg("%s: %s", path, status.message);
    if (unknown.n)
        fail_msg("%s: unknown %.*s", path, VG_SLICE_ARG(vg_json_text(&unknown.items[0])));
    struct vg_json arranged;
    assert_int_equal(vg_schema_arrange(&arena, type, root, &arranged), 0);
    assert_int_equal(vg_json_write(&out, &arranged, VG_JSON_ESCAPE_HTML), 0);
    expect_same(path, vg_buf_slice(&out), vg_buf_slice(&text));
    expect_alike(&arena, type, root, vg_buf_slice(&text));
    expect_alike(&arena, type, &arranged, vg_buf_slice(&text));
    return 1;
}

static void test_recorded_objects_are_printed_as_they_were(void **state)
{
    (void)state;
    char dir[512], path[1200];
    vg_test_vector_dir("kinds", dir, sizeof dir);
    size_t n = 0;
    DIR *kinds = opendir(dir);
    for (struct dirent *k = readdir(kinds); k; k = readdir(kinds)) {
        if (k->d_name[0] == '.' || strncmp(k->d_name, "vec.", 4) == 0) /* a custom resource */
            continue;
        const struct vg_schema_type *type = type_of_folder(k->d_name);
        if (!type)
            fail_msg("no type %s", k->d_name);
        snprintf(path, sizeof path, "%s/%s", dir, k->d_name);
        DIR *examples = opendir(path);
        for (struct dirent *e = readdir(examples); e; e = readdir(examples)) {
            if (e->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s/%s/object.pb", dir, k->d_name, e->d_name);
            FILE *f = fopen(path, "r");
            if (!f)
                continue;
            fclose(f);
            snprintf(path, sizeof path, "kinds/%s/%s/response.json", k->d_name, e->d_name);
            n += check_file(path, type);
        }
        closedir(examples);
    }
    closedir(kinds);
    printf("%zu objects\n", n);
    assert_true(n > 100);
}

/* A rule adds to what was arranged: a member at the end, an empty one, one that was out of place in
 * what it holds. */
static void test_what_was_added_is_put_in_its_place(void **state)
{
    (void)state;
    static const char text[] =
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{}}],\"nodeName\":\"n\"},"
        "\"status\":{}}";
    static const char want[] =
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\"},\"spec\":{"
        "\"volumes\":[{\"name\":\"v\"}],\"containers\":[{\"name\":\"c\",\"image\":\"i\","
        "\"workingDir\":\"/\",\"resources\":{}}],\"nodeName\":\"n\"},\"status\":{}}";
    VG_AUTO(arena) a = {0};
    struct vg_json *root, arranged, *volume, list = vg_json_array();
    const struct vg_schema_type *type = type_of_folder("core_v1_Pod");
    assert_int_equal(vg_json_parse(&a, vg_slice_str(text), NULL, &root, NULL), 0);
    assert_int_equal(vg_schema_decode(&a, type, root, NULL, NULL), 0);
    assert_int_equal(vg_schema_arrange(&a, type, root, &arranged), 0);
    expect_alike(&a, type, &arranged, vg_slice_str(text));

    struct vg_json *spec = vg_json_get_str(&arranged, "spec");
    struct vg_json *container = vg_json_at(vg_json_get_str(spec, "containers"), 0);
    assert_int_equal(vg_json_parse(&a, VG_SLICE_LIT("{\"name\":\"v\"}"), NULL, &volume, NULL), 0);
    assert_int_equal(vg_json_array_push(&a, &list, *volume), 0);
    assert_int_equal(vg_json_object_set(&a, spec, VG_SLICE_LIT("volumes"), list), 0);
    assert_int_equal(vg_json_object_set(&a, spec, VG_SLICE_LIT("tolerations"), vg_json_array()), 0);
    assert_int_equal(vg_json_object_set(&a, container, VG_SLICE_LIT("workingDir"),
                                        vg_json_string_ref(VG_SLICE_LIT("/"))),
                     0);
    expect_alike(&a, type, &arranged, vg_slice_str(want));
}

/* ---- refusals ---- */

static struct vg_slice after(struct vg_slice text, const char *what)
{
    const char *at = memmem(text.p, text.n, what, strlen(what));
    if (!at)
        return (struct vg_slice){0};
    at += strlen(what);
    return vg_slice(at, (size_t)(text.p + text.n - at));
}

/* One recorded request: was it refused because a value has the wrong type? Then so do we. */
static size_t check_refusal(struct vg_arena *a, const struct vg_json *record)
{
    struct vg_slice message =
        vg_json_text(vg_json_get_str(vg_json_get_str(record, "response"), "message"));
    struct vg_slice why = after(message, " cannot be handled as a ");
    why = why.p ? after(why, ": ") : why;
    struct vg_json *body = vg_json_get_str(record, "body");
    bool is_ours = why.p && !after(why, "strict decoding").p && !after(why, "no kind").p &&
                   !after(why, "converting").p && vg_json_is(body, VG_JSON_OBJECT);
    if (!is_ours)
        return 0;
    struct vg_slice version = vg_json_text(vg_json_get_str(body, "apiVersion")), group = {"", 0};
    const char *slash = memchr(version.p, '/', version.n);
    if (slash) {
        group = vg_slice(version.p, (size_t)(slash - version.p));
        version = vg_slice(slash + 1, version.n - group.n - 1);
    }
    const struct vg_schema_type *type =
        vg_schema_find(group, version, vg_json_text(vg_json_get_str(body, "kind")));
    if (!type)
        return 0;
    struct vg_status status = {0};
    if (vg_schema_decode(a, type, body, NULL, &status) != VIGIL_E_INVALID)
        fail_msg("not refused: %.*s", VG_SLICE_ARG(message));
    vg_assert_slice_equal(vg_slice_str(status.message), why);
    return 1;
}

static size_t check_refusals(const char *path)
{
    VG_AUTO(buf) text = {0};
    vg_test_vector(path, &text);
    size_t n = 0;
    for (struct vg_slice rest = vg_buf_slice(&text); rest.n;) {
        VG_AUTO(arena) arena = {0};
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t len = end ? (size_t)(end - rest.p) : rest.n;
        struct vg_json *record;
        if (len && vg_json_parse(&arena, vg_slice(rest.p, len), NULL, &record, NULL) == 0)
            n += check_refusal(&arena, record);
        rest = vg_slice(rest.p + len + (end ? 1 : 0), rest.n - len - (end ? 1 : 0));
    }
    return n;
}

static void test_wrong_types_are_refused_in_the_recorded_words(void **state)
{
    (void)state;
    char dir[512], path[1200];
    vg_test_vector_dir("invalid", dir, sizeof dir);
    size_t n = 0;
    DIR *files = opendir(dir);
    for (struct dirent *f = readdir(files); f; f = readdir(files)) {
        if (f->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "invalid/%s", f->d_name);
        n += check_refusals(path);
    }
    closedir(files);
    printf("%zu refusals\n", n);
    assert_true(n > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_objects_are_printed_as_they_were),
        cmocka_unit_test(test_what_was_added_is_put_in_its_place),
        cmocka_unit_test(test_wrong_types_are_refused_in_the_recorded_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
