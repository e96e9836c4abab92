/* apply_test.c - configurations checked, merged and applied, with who owns what afterwards. */
#include "fields_testing.h"

#include <errno.h>

#include "apply.h"
#include "server/kinds/types.h"
#include "server/schema/decode.h"

static const struct vg_schema_type *type_of(const char *group, const char *kind)
{
    const struct vg_schema_type *t =
        vg_schema_find(vg_slice_str(group), VG_SLICE_LIT("v1"), vg_slice_str(kind));
    assert_non_null(t);
    return t;
}

static void assert_refused(const char *kind, const char *config, const char *want)
{
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) out = {0};
    assert_int_equal(vg_typed_check(&a, type_of("", kind), vg_tree(&a, config), &out),
                     VIGIL_E_INVALID);
    vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(want));
}

static void configurations_are_checked(void **state)
{
    (void)state;
    assert_refused("ConfigMap", "{'nosuch':1}", ".nosuch: field not declared in schema");
    assert_refused("ConfigMap", "{'data':{'a':5}}",
                   ".data.a: expected string, got &value.valueUnstructured{Value:5}");
    assert_refused("ConfigMap", "{'data':['a',{'b':1}]}",
                   ".data: expected map, got &{[a map[b:1]]}");
    assert_refused("ConfigMap", "{'immutable':'x'}", ".immutable: expected boolean, got &{x}");
    assert_refused("ConfigMap", "{'metadata':{'finalizers':['a','b','a']}}",
                   ".metadata.finalizers: duplicate entries for key [=\"a\"]");
    assert_refused("Pod",
                   "{'spec':{'containers':[{'name':'c','ports':[{'containerPort':80},{"
                   "'containerPort':80,'protocol':'TCP'}]}]}}",
                   ".spec.containers[name=\"c\"].ports: duplicate entries for key "
                   "[containerPort=80,protocol=\"TCP\"]");
    assert_refused("Pod", "{'spec':{'containers':[null]}}",
                   ".spec.containers: element 0: associative list with keys may not have a null "
                   "element");
    assert_refused("Pod", "{'spec':{'priority':'x','tolerations':[{'key':1}]}}",
                   "errors:\n  .spec.priority: expected numeric (int or float), got string\n  "
                   ".spec.tolerations[0].key: expected string, got "
                   "&value.valueUnstructured{Value:1}");
}

static void assert_fields(const char *kind, const char *config, const char *want)
{
    VG_AUTO(arena) a = {0};
    struct vg_json set;
    assert_int_equal(vg_typed_fields(&a, type_of("", kind), vg_tree(&a, config), &set), 0);
    vg_assert_tree(&set, want);
}

static void fields_of_a_configuration_are_those_it_names(void **state)
{
    (void)state;
    assert_fields("ConfigMap",
                  "{'metadata':{'labels':null,'annotations':{},'finalizers':[]},'data':{'a':'b'}}",
                  "{'f:data':{'f:a':{}},'f:metadata':{'f:annotations':{},'f:labels':{}}}");
    assert_fields("Pod",
                  "{'spec':{'containers':[{'name':'c','image':'i'}],'nodeSelector':{'a':'b'},"
                  "'tolerations':[{'key':'k'}]}}",
                  "{'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},'f:image':{},"
                  "'f:name':{}}},'f:nodeSelector':{},'f:tolerations':{}}}");
}

static void assert_merged(const char *kind, const char *is, const char *wanted, const char *want)
{
    VG_AUTO(arena) a = {0};
    struct vg_json out;
    assert_int_equal(
        vg_typed_merge(&a, type_of("", kind), vg_tree(&a, is), vg_tree(&a, wanted), &out), 0);
    vg_assert_tree(&out, want);
}

static void lists_merge_by_their_keys(void **state)
{
    (void)state;
#define LIST(x) "{'spec':{'containers':[" x "]}}"
    assert_merged("Pod", LIST("{'name':'a','image':'1'},{'name':'b','image':'2'}"),
                  LIST("{'name':'b','image':'3'},{'name':'c'}"),
                  LIST("{'name':'a','image':'1'},{'name':'b','image':'3'},{'name':'c'}"));
    assert_merged("Pod", LIST("{'name':'a'},{'name':'x'},{'name':'b'}"),
                  LIST("{'name':'b'},{'name':'a'}"),
                  LIST("{'name':'x'},{'name':'b'},{'name':'a'}"));
    assert_merged("Pod", LIST("{'name':'a'}"), "{'spec':{'containers':null}}",
                  LIST("{'name':'a'}"));
    assert_merged("ConfigMap", "{'metadata':{'finalizers':['a','b']}}",
                  "{'metadata':{'finalizers':['c','b']}}",
                  "{'metadata':{'finalizers':['a','c','b']}}");
    assert_merged("Pod", "{'spec':{'nodeSelector':{'a':'1'}}}",
                  "{'spec':{'nodeSelector':{'b':'2'}}}", "{'spec':{'nodeSelector':{'b':'2'}}}");
}

/* ---- applies, one after the other ---- */

struct object {
    struct vg_arena a;
    struct vg_json live;
    bool exists;
    struct vg_managers managers;
};

static int apply(struct object *o, const char *manager, const char *config, bool is_forced,
                 struct vg_apply *ret)
{
    struct vg_status why;
    *ret = (struct vg_apply){.arena = &o->a,
                             .type = type_of("", "ConfigMap"),
                             .live = o->exists ? &o->live : NULL,
                             .config = vg_tree(&o->a, config),
                             .who = {.name = vg_slice_str(manager),
                                     .api_version = VG_SLICE_LIT("v1"),
                                     .subresource = VG_SLICE_LIT(""),
                                     .time = VG_SLICE_LIT("2026-01-01T00:00:00Z")},
                             .is_forced = is_forced,
                             .managers = o->managers};
    int err = vg_apply(ret, &why);
    if (err == 0) {
        o->live = ret->result;
        o->exists = true;
        o->managers = ret->managers;
    }
    return err;
}

static void must_apply(struct object *o, const char *manager, const char *config, const char *want)
{
    struct vg_apply x;
    assert_int_equal(apply(o, manager, config, false, &x), 0);
    const struct vg_json none = vg_json_null(), *data = vg_json_get_str(&o->live, "data");
    vg_assert_tree(data ? data : &none, want);
}

static void assert_owns(struct object *o, const char *manager, const char *want)
{
    struct vg_manager like = {.name = vg_slice_str(manager),
                              .api_version = VG_SLICE_LIT("v1"),
                              .subresource = VG_SLICE_LIT(""),
                              .applies = true};
    const struct vg_manager *m = vg_managers_find(&o->managers, &like);
    const struct vg_json none = vg_json_null();
    vg_assert_tree(m ? &m->fields : &none, want);
}

static void what_is_not_applied_any_more_goes(void **state)
{
    (void)state;
    struct object o = {0};
    must_apply(&o, "m1", "{'data':{'a':'1','b':'2'}}", "{'a':'1','b':'2'}");
    must_apply(&o, "m2", "{'data':{'b':'2','c':'3'}}", "{'a':'1','b':'2','c':'3'}");
    assert_owns(&o, "m2", "{'f:data':{'f:b':{},'f:c':{}}}");
    must_apply(&o, "m1", "{'data':{}}", "{'b':'2','c':'3'}"); /* b is still m2's */
    assert_owns(&o, "m1", "{'f:data':{}}");
    must_apply(&o, "m2", "{'data':{'c':'3'}}", "{'c':'3'}");
    vg_arena_done(&o.a);
}

static void what_has_a_name_keeps_it(void **state)
{
    (void)state;
    struct object o = {0};
    must_apply(&o, "m1", "{'metadata':{'name':'x','labels':{'l':'m'}},'data':{'a':'1'}}",
               "{'a':'1'}");
    must_apply(&o, "m1", "{'metadata':{'name':'x'},'data':{'a':'1'}}", "{'a':'1'}");
    vg_assert_tree(vg_json_get_str(&o.live, "metadata"), "{'name':'x'}");
    vg_arena_done(&o.a);
}

static void a_field_of_another_manager_is_a_conflict(void **state)
{
    (void)state;
    struct object o = {0};
    struct vg_apply x;
    must_apply(&o, "m1", "{'data':{'a':'1','b':'2'}}", "{'a':'1','b':'2'}");
    assert_int_equal(apply(&o, "m2", "{'data':{'a':'5','b':'2'}}", false, &x), VIGIL_E_CONFLICT);
    assert_int_equal(x.n_conflicts, 1);
    vg_assert_slice_equal(x.conflicts[0].path, VG_SLICE_LIT(".data.a"));
    vg_assert_slice_equal(x.conflicts[0].manager.name, VG_SLICE_LIT("m1"));
    assert_int_equal(apply(&o, "m2", "{'data':{'a':'5','b':'2'}}", true, &x), 0);
    assert_owns(&o, "m1", "{'f:data':{'f:b':{}}}");
    assert_owns(&o, "m2", "{'f:data':{'f:a':{},'f:b':{}}}");
    vg_arena_done(&o.a);
}

static void what_nobody_owned_is_from_before(void **state)
{
    (void)state;
    struct object o = {0};
    struct vg_apply x;
    o.live = *vg_tree(&o.a, "{'metadata':{'name':'x'},'data':{'a':'1'}}");
    o.exists = true;
    assert_int_equal(apply(&o, "m1", "{'data':{'a':'2'}}", false, &x), VIGIL_E_CONFLICT);
    vg_assert_slice_equal(x.conflicts[0].manager.name, VG_SLICE_LIT("before-first-apply"));
    must_apply(&o, "m1", "{'data':{'a':'1'}}", "{'a':'1'}");
    assert_int_equal(o.managers.n, 2);
    vg_arena_done(&o.a);
}

static void the_same_again_is_the_same(void **state)
{
    (void)state;
    struct object o = {0};
    struct vg_apply x;
    must_apply(&o, "m1", "{'data':{'a':'1'}}", "{'a':'1'}");
    assert_int_equal(apply(&o, "m1", "{'data':{'a':'1'}}", false, &x), 0);
    assert_true(x.is_same);
    assert_int_equal(apply(&o, "m2", "{'data':{'a':'1'}}", false, &x), 0);
    assert_true(x.is_same);
    assert_int_equal(x.managers.v[1].time.n, 0); /* nothing changed by it */
    vg_arena_done(&o.a);
}

static void what_kubectl_applied_from_its_side_may_be_taken(void **state)
{
    (void)state;
    struct object o = {0};
    struct vg_apply x;
    o.live = *vg_tree(&o.a, "{'metadata':{'name':'x','annotations':{'kubectl.kubernetes.io/"
                            "last-applied-configuration':'{\\'apiVersion\\':\\'v1\\',\\'data\\':{"
                            "\\'a\\':\\'1\\',\\'b\\':\\'7\\'}}'}},'data':{'a':'1','b':'2'}}");
    o.exists = true;
    assert_int_equal(apply(&o, "other", "{'data':{'a':'3'}}", false, &x), VIGIL_E_CONFLICT);
    assert_int_equal(apply(&o, "kubectl", "{'data':{'b':'3'}}", false, &x), VIGIL_E_CONFLICT);
    assert_int_equal(apply(&o, "kubectl", "{'data':{'a':'3'}}", false, &x), 0);
    vg_arena_done(&o.a);
}

static int apply_with_short_memory(void)
{
    struct object o = {0};
    struct vg_apply x;
    struct vg_status why;
    const struct vg_schema_type *type = type_of("", "ConfigMap");
    x = (struct vg_apply){.arena = &o.a, .type = type, .who = {.name = VG_SLICE_LIT("m")}};
    struct vg_json config = vg_json_object(), data = vg_json_object();
    int err =
        vg_json_object_add(&o.a, &data, VG_SLICE_LIT("a"), vg_json_string_ref(VG_SLICE_LIT("1")));
    if (err == 0)
        err = vg_json_object_add(&o.a, &config, VG_SLICE_LIT("data"), data);
    x.config = &config;
    if (err == 0)
        err = vg_apply(&x, &why);
    vg_arena_done(&o.a);
    return err;
}

static void memory_may_be_short(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        int err = apply_with_short_memory();
        assert_int_equal(err, vg_test_alloc_failed() ? -ENOMEM : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_are_checked),
        cmocka_unit_test(fields_of_a_configuration_are_those_it_names),
        cmocka_unit_test(lists_merge_by_their_keys),
        cmocka_unit_test(what_is_not_applied_any_more_goes),
        cmocka_unit_test(what_has_a_name_keeps_it),
        cmocka_unit_test(a_field_of_another_manager_is_a_conflict),
        cmocka_unit_test(what_nobody_owned_is_from_before),
        cmocka_unit_test(the_same_again_is_the_same),
        cmocka_unit_test(what_kubectl_applied_from_its_side_may_be_taken),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
