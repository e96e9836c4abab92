/* api_refusals_test.c - what a real kube-apiserver refused, asked of ours: list options and Accept.
 * Status, reason and message must be the same. What differs by nature (revisions in texts) is not
 * compared; kinds and media types that are not served are left out and counted. Without the
 * recordings there is nothing to do, and that is said. */
#include "vectors_world.h"

/* Numbers that are this server's own become N. */
static const char *without_current(const char *message)
{
    const char *at = strstr(message, ", current: ");
    if (!at)
        return message;
    char *copy = vg_arena_copy(&arena, message, strlen(message) + 1);
    copy[at - message] = '\0';
    return copy;
}

static bool may_compare(const struct vg_json *record)
{
    const char *path = get_text(record, "path");
    const char *accept = get_text(get(record, "headers"), "Accept");
    if (status_of(record) < 400 || strcmp(get_text(record, "method"), "GET") != 0 ||
        get(record, "response")->type != VG_JSON_OBJECT ||
        strstr(accept, "PartialObjectMetadata;") || strstr(path, "resourceVersion=5&"))
        return false;
    return strncmp(path, "/api", 4) == 0 && is_served(path);
}

static void compare_record(const struct vg_json *record)
{
    struct vg_reply r = {0};
    VG_JSON_FOREACH_ITEM (before, get(record, "setup")) {
        if (strstr(get_text(before, "path"), "${"))
            return;
        send_record(before, &r);
    }
    send_record(record, &r);
    const struct vg_json *wanted = get(record, "response");
    struct vg_json *got = r.body.n && r.body.p[0] == '{' ? parse(vg_buf_slice(&r.body)) : NULL;
    const char *a = without_current(get_text(wanted, "message"));
    const char *b = without_current(get_text(got, "message"));
    if (r.status != status_of(record) || strcmp(a, b) != 0)
        print_error("%s: %d\n", get_text(record, "id"), r.status);
    assert_string_equal(b, a);
    assert_int_equal(r.status, status_of(record));
    assert_string_equal(get_text(got, "reason"), get_text(wanted, "reason"));
    assert_string_equal(written(get(got, "details")), written(get(wanted, "details")));
    vg_reply_done(&r);
}

static void refusals_are_the_same(void **state)
{
    static const char *const files[] = {"invalid/list-options.jsonl",
                                        "invalid/content-types.jsonl"};
    size_t n = 0, left_out = 0;
    (void)state;
    make_namespace("veci-ns");
    vg_adrv_config(&d, "veci-ns", "anchor", "0");
    vg_adrv_config(&d, "veci-ns", "anchor", "1");
    vg_adrv_compact(&d, vg_storage_revision(d.storage));
    for (size_t i = 0; i < VG_ARRAY_LEN(files); i++) {
        VG_AUTO(buf) text = {0};
        vg_test_vector(files[i], &text);
        for (char *at = text.p, *end; (end = memchr(at, '\n', (size_t)(text.p + text.n - at)));
             at = end + 1) {
            struct vg_json *record = parse(vg_slice(at, (size_t)(end - at)));
            bool is_compared = may_compare(record);
            if (is_compared)
                compare_record(record);
            n += is_compared;
            left_out += !is_compared;
            vg_arena_reset(&arena);
        }
    }
    print_message("%zu refusals compared, %zu left out\n", n, left_out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refusals_are_the_same, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
