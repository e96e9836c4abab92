/* managers_test.c - managedFields: read, changed, written. */
#include "fields_testing.h"

#include "managers.h"

#define ENTRY(name, op, version, time, set)                                                        \
    "{'manager':'" name "','operation':'" op "','apiVersion':'" version "','time':'" time          \
    "','fieldsType':'FieldsV1','fieldsV1':" set "}"
#define T0 "2026-01-01T00:00:00Z"
#define T1 "2026-01-01T00:00:01Z"

static int delta_v1(void *arg, struct vg_slice api_version, const struct vg_fields_delta **ret)
{
    *ret = arg;
    return vg_slice_eq(api_version, VG_SLICE_LIT("v1"));
}

static void assert_updated(const char *was, const char *who, const char *changed,
                           const char *removed, const char *want)
{
    VG_AUTO(arena) a = {0};
    struct vg_managers m;
    struct vg_status why = {0};
    struct vg_fields_delta d = {*vg_tree(&a, changed), *vg_tree(&a, removed)};
    struct vg_manager by = {.name = vg_slice_str(who),
                            .api_version = VG_SLICE_LIT("v1"),
                            .subresource = VG_SLICE_LIT(""),
                            .time = VG_SLICE_LIT(T1)};
    struct vg_json *list;
    assert_int_equal(vg_managers_read(&a, vg_tree(&a, was), true, &m, &why), 0);
    assert_int_equal(vg_managers_update(&a, &m, &by, delta_v1, &d), 0);
    assert_int_equal(vg_managers_write(&a, &m, vg_slice(NULL, 0), &list), 0);
    if (!list)
        assert_string_equal(want, "null");
    else
        vg_assert_tree(list, want);
}

static void an_update_takes_what_it_changes(void **state)
{
    (void)state;
    assert_updated("[]", "x", "{'f:a':{}}", "{}",
                   "[" ENTRY("x", "Update", "v1", T1, "{'f:a':{}}") "]");
    assert_updated("[" ENTRY("y", "Update", "v1", T0, "{'f:a':{},'f:b':{}}") "]", "x", "{'f:a':{}}",
                   "{}",
                   "[" ENTRY("y", "Update", "v1", T0,
                             "{'f:b':{}}") "," ENTRY("x", "Update", "v1", T1, "{'f:a':{}}") "]");
    assert_updated("[" ENTRY("y", "Apply", "v1", T0, "{'f:a':{}}") "]", "x", "{'f:a':{}}", "{}",
                   "[" ENTRY("x", "Update", "v1", T1, "{'f:a':{}}") "]");
}

static void its_own_entry_grows_and_gets_the_time(void **state)
{
    (void)state;
    assert_updated("[" ENTRY("x", "Update", "v1", T0, "{'f:a':{},'f:c':{}}") "]", "x", "{'f:b':{}}",
                   "{'f:c':{}}", "[" ENTRY("x", "Update", "v1", T1, "{'f:a':{},'f:b':{}}") "]");
    assert_updated("[" ENTRY("x", "Update", "v1", T0, "{'f:a':{},'f:c':{}}") "]", "x", "{}",
                   "{'f:c':{}}", "[" ENTRY("x", "Update", "v1", T0, "{'f:a':{}}") "]");
    assert_updated("[" ENTRY("x", "Update", "v1", T0, "{'f:c':{}}") "]", "x", "{}", "{'f:c':{}}",
                   "null");
}

static void entries_of_versions_that_are_gone_go(void **state)
{
    (void)state;
    assert_updated("[" ENTRY("y", "Update", "v0", T0, "{'f:z':{}}") "]", "x", "{'f:a':{}}", "{}",
                   "[" ENTRY("x", "Update", "v1", T1, "{'f:a':{}}") "]");
}

static void those_who_apply_come_first(void **state)
{
    (void)state;
    assert_updated("[" ENTRY("z", "Update", "v1", T0, "{'f:z':{}}") "," ENTRY(
                       "b", "Apply", "v1", T1, "{'f:y':{}}") "," ENTRY("a", "Apply", "v1", T1,
                                                                       "{'f:y':{}}") "]",
                   "x", "{'f:a':{}}", "{}",
                   "[" ENTRY("a", "Apply", "v1", T1, "{'f:y':{}}") "," ENTRY(
                       "b", "Apply", "v1", T1,
                       "{'f:y':{}}") "," ENTRY("z", "Update", "v1", T0,
                                               "{'f:z':{}}") "," ENTRY("x", "Update", "v1", T1,
                                                                       "{'f:a':{}}") "]");
}

static void the_oldest_of_many_become_one(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_managers m = {0};
    for (int i = 0; i < 12; i++) {
        struct vg_slice name, time, field;
        struct vg_json set = vg_json_object();
        assert_int_equal(vg_arena_printf(&a, &name, "m%02d", i), 0);
        assert_int_equal(vg_arena_printf(&a, &time, "2026-01-01T00:00:%02dZ", i), 0);
        assert_int_equal(vg_arena_printf(&a, &field, "f:%02d", i), 0);
        assert_int_equal(vg_json_object_add(&a, &set, field, vg_json_object()), 0);
        struct vg_manager one = {.name = name,
                                 .api_version = VG_SLICE_LIT("v1"),
                                 .subresource = VG_SLICE_LIT(""),
                                 .time = time,
                                 .fields = set};
        struct vg_fields_delta d = {set, vg_json_object()};
        assert_int_equal(vg_managers_update(&a, &m, &one, delta_v1, &d), 0);
        assert_true(m.n <= VG_MANAGERS_UPDATE_MAX);
    }
    struct vg_json *list;
    assert_int_equal(vg_managers_write(&a, &m, vg_slice(NULL, 0), &list), 0);
    assert_int_equal(list->n, 10);
    vg_assert_tree(&list->items[0], ENTRY("ancient-changes", "Update", "v1", "2026-01-01T00:00:02Z",
                                          "{'f:00':{},'f:01':{},'f:02':{}}"));
}

static void of_equal_identities_the_last_counts(void **state)
{
    (void)state;
    assert_updated("[" ENTRY("y", "Update", "v1", T0, "{'f:p':{}}") "," ENTRY("y", "Update", "v1",
                                                                              T0, "{'f:q':{}}") "]",
                   "x", "{'f:a':{}}", "{}",
                   "[" ENTRY("y", "Update", "v1", T0,
                             "{'f:q':{}}") "," ENTRY("x", "Update", "v1", T1, "{'f:a':{}}") "]");
}

static void assert_refused(const char *list, const char *message)
{
    VG_AUTO(arena) a = {0};
    struct vg_managers m;
    struct vg_status why = {0};
    assert_int_equal(vg_managers_read(&a, vg_tree(&a, list), false, &m, &why), VIGIL_E_INVALID);
    assert_string_equal(why.message, message);
}

static void entries_that_are_none_are_refused(void **state)
{
    (void)state;
    assert_refused("[{}]", "operation must be `Apply` or `Update`");
    assert_refused("[{'operation':'Update'}]", "apiVersion must not be empty");
    assert_refused("[{'operation':'Apply','apiVersion':'v1'}]",
                   "missing fieldsType in managed fields entry 0");
    assert_refused("[{'operation':'Apply','apiVersion':'v1','fieldsType':'x'}]",
                   "invalid fieldsType \"x\" in managed fields entry 0");
    assert_refused("[" ENTRY("y", "Update", "v1", T0, "{'p':{}}") "]",
                   "key must be 2 characters long:");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_takes_what_it_changes),
        cmocka_unit_test(its_own_entry_grows_and_gets_the_time),
        cmocka_unit_test(entries_of_versions_that_are_gone_go),
        cmocka_unit_test(those_who_apply_come_first),
        cmocka_unit_test(the_oldest_of_many_become_one),
        cmocka_unit_test(of_equal_identities_the_last_counts),
        cmocka_unit_test(entries_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
