/* meta_test.c - metadata read, written and checked; times. */
#include "meta.h"

#include <errno.h>
#include <stdio.h>

#include "test_support.h"
#include "json/write.h"

static struct vg_arena arena;
static struct vg_meta meta;
static struct vg_status why;

static int setup(void **state)
{
    (void)state;
    vg_arena_init(&arena, 0, 0);
    return 0;
}
static int teardown(void **state)
{
    (void)state;
    vg_arena_done(&arena);
    return 0;
}

static int read_meta(const char *text)
{
    struct vg_json *root;
    assert_int_equal(vg_json_parse(&arena, vg_slice_str(text), NULL, &root, NULL), 0);
    return vg_meta_read(&arena, root, "Pod", &meta, NULL, &why);
}

static void refused(const char *text, const char *wanted)
{
    assert_int_equal(read_meta(text), VIGIL_E_INVALID);
    assert_string_equal(why.message, wanted);
}

static void is_written_in_order_without_empties(void **state)
{
    (void)state;
    VG_AUTO(buf) out = {0};
    struct vg_json tree;
    assert_int_equal(
        read_meta("{\"finalizers\":[],\"labels\":{\"b\":\"1\",\"a\":null},\"uid\":\"u\","
                  "\"managedFields\":[],\"generation\":0,\"creationTimestamp\":null,"
                  "\"deletionTimestamp\":\"2026-01-02T05:04:05.5+02:00\",\"bogus\":1,"
                  "\"deletionGracePeriodSeconds\":0,\"name\":\"n\",\"resourceVersion\":\"5\","
                  "\"ownerReferences\":[{\"uid\":\"o\",\"kind\":\"K\",\"controller\":true}]}"),
        0);
    assert_int_equal(vg_meta_write(&arena, &meta, &tree), 0);
    assert_int_equal(vg_json_write(&out, &tree, 0), 0);
    vg_assert_slice_equal(
        vg_buf_slice(&out),
        vg_slice_str("{\"name\":\"n\",\"uid\":\"u\",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\","
                     "\"deletionGracePeriodSeconds\":0,\"labels\":{\"a\":\"\",\"b\":\"1\"},"
                     "\"ownerReferences\":[{\"apiVersion\":\"\",\"kind\":\"K\",\"name\":\"\","
                     "\"uid\":\"o\",\"controller\":true}]}"));
}

static void types_are_told_as_go_does(void **state)
{
    (void)state;
    refused("[]", "json: cannot unmarshal array into Go struct field Pod.metadata of type "
                  "v1.ObjectMeta");
    refused("{\"name\":5}", "json: cannot unmarshal number into Go struct field "
                            "ObjectMeta.metadata.name of type string");
    refused("{\"labels\":{\"a\":1}}", "json: cannot unmarshal number into Go struct field "
                                      "ObjectMeta.metadata.labels of type string");
    refused("{\"generation\":1.5}", "json: cannot unmarshal number 1.5 into Go struct field "
                                    "ObjectMeta.metadata.generation of type int64");
    refused("{\"ownerReferences\":[{\"uid\":true}]}",
            "json: cannot unmarshal bool into Go struct field "
            "OwnerReference.metadata.ownerReferences.uid of type types.UID");
    refused("{\"creationTimestamp\":\"now\"}",
            "parsing time \"now\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"now\" as "
            "\"2006\"");
}

static void unknown_fields_are_told(void **state)
{
    (void)state;
    struct vg_json *root, unknown = vg_json_array();
    assert_int_equal(
        vg_json_parse(&arena, vg_slice_str("{\"x\":1,\"name\":\"n\",\"y\":2}"), NULL, &root, NULL),
        0);
    assert_int_equal(vg_meta_read(&arena, root, "Pod", &meta, &unknown, &why), 0);
    assert_int_equal(unknown.n, 2);
    vg_assert_slice_equal(vg_json_text(&unknown.items[1]), VG_SLICE_LIT("metadata.y"));
}

static void times_go_both_ways(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t s;
    } cases[] = {{"1970-01-01T00:00:00Z", 0},
                 {"2000-02-29T23:59:59Z", 951868799},
                 {"2026-11-15T09:05:39Z", 1794733539},
                 {"1969-12-31T23:59:59Z", -1},
                 {"9999-12-31T23:59:59Z", 253402300799}};
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        int64_t s;
        char text[VG_TIME_TEXT_MAX];
        assert_int_equal(vg_time_parse(vg_slice_str(cases[i].text), &s, NULL), 0);
        assert_true(s == cases[i].s);
        vg_assert_slice_equal(vg_slice(text, vg_time_format(s * 1000, text)),
                              vg_slice_str(cases[i].text));
    }
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-13-01T00:00:00Z",
                                      "2026-02-29T00:00:00Z",
                                      "2026-01-01T24:00:00Z",
                                      "2026-01-01 00:00:00Z",
                                      "2026-01-01T00:00:00",
                                      "2026-01-01T00:00:00Zx",
                                      "2026-01-01T00:00:00+2:00"};
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        int64_t s;
        assert_int_equal(vg_time_parse(vg_slice_str(bad[i]), &s, NULL), VIGIL_E_INVALID);
    }
}

/* The messages of all errors, joined by lines. */
static const char *errors_of(const struct vg_field_errors *e)
{
    static char text[4096];
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < e->n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s: %.*s", i ? "\n" : "",
                              VG_SLICE_ARG(e->v[i].field), VG_SLICE_ARG(e->v[i].message));
    return text;
}

static const struct vg_kind *configs(void)
{
    return vg_kind_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), VG_SLICE_LIT("configmaps"));
}

static void checks_come_in_order(void **state)
{
    (void)state;
    struct vg_field_errors e = {.arena = &arena};
    assert_int_equal(read_meta("{\"generation\":-1,\"finalizers\":[\"x\"],\"namespace\":\"ns\","
                               "\"labels\":{\"a/b/c\":\"\"},\"annotations\":{\"Up/Low\":\"\"}}"),
                     0);
    vg_meta_check(&e, &meta, configs(), NULL, false);
    vg_meta_check_finalizers(&e, &meta, configs());
    assert_int_equal(e.n, 4);
    vg_assert_slice_equal(e.v[0].field, VG_SLICE_LIT("metadata.name"));
    vg_assert_slice_equal(e.v[1].field, VG_SLICE_LIT("metadata.generation"));
    vg_assert_slice_equal(e.v[2].field, VG_SLICE_LIT("metadata.labels"));
    vg_assert_slice_equal(e.v[3].field, VG_SLICE_LIT("metadata.finalizers[0]"));
}

static void updates_keep_what_cannot_change(void **state)
{
    (void)state;
    struct vg_field_errors e = {.arena = &arena};
    struct vg_meta old;
    assert_int_equal(read_meta("{\"name\":\"a\",\"uid\":\"u\",\"generation\":2,"
                               "\"deletionTimestamp\":\"2026-01-02T03:04:05Z\","
                               "\"finalizers\":[\"x.io/a\"]}"),
                     0);
    old = meta;
    vg_meta_check_update(&e, &meta, &old);
    assert_int_equal(e.n, 0);
    meta.uid = VG_SLICE_LIT("v");
    meta.generation = 1;
    vg_meta_check_update(&e, &meta, &old);
    assert_string_equal(errors_of(&e),
                        "metadata.generation: Invalid value: 1: must not be decremented\n"
                        "metadata.uid: Invalid value: \"v\": field is immutable");
}

static void owners_that_repeat_are_dropped(void **state)
{
    (void)state;
    struct vg_slice uids;
    assert_int_equal(
        read_meta("{\"ownerReferences\":[{\"uid\":\"a\"},{\"uid\":\"b\"},{\"uid\":\"a\"},"
                  "{\"uid\":\"b\",\"name\":\"x\"},{\"uid\":\"a\"}]}"),
        0);
    assert_int_equal(vg_meta_dedup_owners(&arena, &meta, &uids), 0);
    vg_assert_slice_equal(uids, VG_SLICE_LIT("a, a"));
    assert_int_equal(meta.owners->n, 3);
}

static void memory_may_be_short(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(arena) a;
        vg_arena_init(&a, 16, 0);
        struct vg_json *root, tree;
        struct vg_meta m;
        int err = vg_json_parse(&a,
                                VG_SLICE_LIT("{\"name\":\"n\",\"labels\":{\"b\":\"\",\"a\":\"\"},"
                                             "\"ownerReferences\":[{\"uid\":\"a\"}]}"),
                                NULL, &root, NULL);
        if (err == 0)
            err = vg_meta_read(&a, root, "Pod", &m, NULL, NULL);
        if (err == 0)
            err = vg_meta_write(&a, &m, &tree);
        assert_int_equal(err, vg_test_alloc_failed() ? -ENOMEM : 0);
    }
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(is_written_in_order_without_empties),
        TEST(types_are_told_as_go_does),
        TEST(unknown_fields_are_told),
        TEST(times_go_both_ways),
        TEST(checks_come_in_order),
        TEST(updates_keep_what_cannot_change),
        TEST(owners_that_repeat_are_dropped),
        TEST(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
