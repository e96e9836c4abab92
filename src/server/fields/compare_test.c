/* compare_test.c - what differs between two objects, as sets. */
#include "fields_testing.h"

#include "compare.h"
#include "fresh.h"
#include "server/kinds/types.h"
#include "server/schema/decode.h"

static const struct vg_schema_type *type_of(const char *group, const char *kind)
{
    const struct vg_schema_type *t =
        vg_schema_find(vg_slice_str(group), VG_SLICE_LIT("v1"), vg_slice_str(kind));
    assert_non_null(t);
    return t;
}

static void compare(const struct vg_schema_type *t, const char *old, const char *now,
                    const struct vg_fields_path *without, const char *changed, const char *removed)
{
    VG_AUTO(arena) a = {0};
    struct vg_json l, r;
    struct vg_fields_delta d;
    struct vg_status why = {0};
    if (old)
        assert_int_equal(vg_schema_arrange(&a, t, vg_tree(&a, old), &l), 0);
    assert_int_equal(vg_schema_arrange(&a, t, vg_tree(&a, now), &r), 0);
    int err = vg_fields_compare(&a, t, old ? &l : NULL, &r, without, &d, &why);
    if (err < 0)
        fail_msg("%s", why.message);
    vg_assert_tree(&d.changed, changed);
    vg_assert_tree(&d.removed, removed);
    if (old)
        return;
    VG_AUTO(buf) walked = {0}, built = {0};
    assert_int_equal(vg_fields_print_fresh(&a, t, &r, without, &walked, &why), 0);
    assert_int_equal(vg_fields_print(&built, &d.changed, VG_SLICE_LIT("")), 0);
    vg_assert_slice_equal(vg_buf_slice(&walked), vg_buf_slice(&built));
}

static void a_new_object_owns_what_it_has(void **state)
{
    (void)state;
    compare(type_of("", "ConfigMap"), NULL,
            "{'metadata':{'name':'x','uid':'u','labels':{'b':'1','a':'2'},'finalizers':['e/f']},"
            "'data':{'k':'v'}}",
            NULL,
            "{'f:data':{'.':{},'f:k':{}},'f:metadata':{'f:finalizers':{'.':{},'v:\\'e/f\\'':{}},"
            "'f:labels':{'.':{},'f:a':{},'f:b':{}}}}",
            "{}");
}

static void what_an_empty_object_prints_is_not_new(void **state)
{
    static const struct vg_fields_path status[] = {{"status", NULL}, {NULL, NULL}};
    (void)state;
    compare(type_of("apps", "Deployment"), NULL,
            "{'metadata':{'name':'x'},'spec':{'selector':{'matchLabels':{'a':'b'}},'template':{"
            "'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','ports':[{"
            "'containerPort':80}]}]}}},'status':{'replicas':1}}",
            status,
            "{'f:spec':{'f:selector':{},'f:template':{'f:metadata':{'f:labels':{'.':{},'f:a':{}}},"
            "'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{},'f:ports':{"
            "'.':{},'k:{\\'containerPort\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},"
            "'f:containerPort':{}}},'f:resources':{}}}}}}}",
            "{}");
}

static void only_what_differs_is_told(void **state)
{
    (void)state;
    compare(type_of("", "ConfigMap"),
            "{'metadata':{'name':'x','labels':{'a':'1'}},'data':{'k':'v','g':'h'}}",
            "{'metadata':{'name':'x','annotations':{'n':'m'}},'data':{'k':'w','g':'h'}}", NULL,
            "{'f:data':{'f:k':{}},'f:metadata':{'f:annotations':{'.':{},'f:n':{}}}}",
            "{'f:metadata':{'f:labels':{'.':{},'f:a':{}}}}");
}

static void items_that_are_there_twice_are_one(void **state)
{
    (void)state;
    const struct vg_schema_type *pod = type_of("", "Pod");
#define POD(env) "{'metadata':{'name':'x'},'spec':{'containers':[{'name':'c','env':[" env "]}]}}"
#define FOUND(x) "{'f:spec':{'f:containers':{'k:{\\'name\\':\\'c\\'}':{'f:env':{" x "}}}}}"
#define A "'k:{\\'name\\':\\'A\\'}':"
    compare(pod, POD("{'name':'A','value':'1'},{'name':'A','value':'2'}"),
            POD("{'name':'A','value':'1'},{'name':'A','value':'3'}"), NULL, FOUND(A "{}"), "{}");
    compare(pod, POD("{'name':'A','value':'1'}"),
            POD("{'name':'A','value':'1'},{'name':'A','value':'2'}"), NULL, FOUND(A "{}"),
            FOUND(A "{'.':{},'f:name':{},'f:value':{}}"));
    compare(pod, POD("{'name':'A','value':'1'},{'name':'A','value':'2'}"),
            POD("{'name':'A','value':'1'}"), NULL, FOUND(A "{'.':{},'f:name':{},'f:value':{}}"),
            FOUND(A "{}"));
    compare(pod, POD("{'name':'A','value':'1'},{'name':'B'}"),
            POD("{'name':'B'},{'name':'A','value':'2'}"), NULL, FOUND(A "{'f:value':{}}"), "{}");
}

static void what_a_write_leaves_alone_is_not_told(void **state)
{
    static const struct vg_fields_path without[] = {
        {"spec", NULL}, {"metadata", "labels"}, {NULL, NULL}};
    (void)state;
    compare(type_of("apps", "Deployment"),
            "{'metadata':{'name':'x','labels':{'a':'b'}},'spec':{'replicas':1},'status':{}}",
            "{'metadata':{'name':'y','annotations':{'c':'d'}},'spec':{'replicas':2},"
            "'status':{'replicas':1}}",
            without,
            "{'f:metadata':{'f:annotations':{'.':{},'f:c':{}}},'f:status':{'f:replicas':{}}}",
            "{}");
}

static void an_item_without_an_element_cannot_be_told(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    const struct vg_schema_type *pod = type_of("", "Pod");
    struct vg_fields_delta d;
    struct vg_status why = {0};
    struct vg_json *now = vg_tree(&a, "{'metadata':{'finalizers':[null]}}");
    assert_int_equal(vg_fields_compare(&a, pod, NULL, now, NULL, &d, &why), VIGIL_E_INVALID);
    assert_non_null(strstr(why.message, "an explicit null"));
    now = vg_tree(&a, "{'spec':{'containers':[3]}}");
    assert_int_equal(vg_fields_compare(&a, pod, NULL, now, NULL, &d, &why), VIGIL_E_INVALID);
    assert_non_null(strstr(why.message, "non-map elements"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_object_owns_what_it_has),
        cmocka_unit_test(what_an_empty_object_prints_is_not_new),
        cmocka_unit_test(only_what_differs_is_told),
        cmocka_unit_test(items_that_are_there_twice_are_one),
        cmocka_unit_test(what_a_write_leaves_alone_is_not_told),
        cmocka_unit_test(an_item_without_an_element_cannot_be_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
