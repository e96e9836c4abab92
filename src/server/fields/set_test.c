/* set_test.c - sets of fields: operations, order, and what clients send. */
#include <stdio.h>

#include "fields_testing.h"

#include "element.h"
#include "set.h"

static void assert_op(enum vg_fields_op op, const char *x, const char *y, const char *want)
{
    VG_AUTO(arena) a = {0};
    struct vg_json out;
    assert_int_equal(vg_fields_combine(&a, op, vg_tree(&a, x), vg_tree(&a, y), &out), 0);
    vg_assert_tree(&out, want);
}

#define SMALL "{'f:a':{},'f:b':{'.':{},'f:c':{}}}"

static void union_has_what_either_has(void **state)
{
    (void)state;
    assert_op(VG_FIELDS_UNION, SMALL, "{'f:b':{'f:d':{}},'f:e':{}}",
              "{'f:a':{},'f:b':{'.':{},'f:c':{},'f:d':{}},'f:e':{}}");
    assert_op(VG_FIELDS_UNION, "{'f:a':{}}", "{'f:a':{'f:b':{}}}", "{'f:a':{'.':{},'f:b':{}}}");
    assert_op(VG_FIELDS_UNION, "{}", SMALL, SMALL);
    assert_op(VG_FIELDS_UNION, SMALL, "{}", SMALL);
}

static void intersection_has_what_both_have(void **state)
{
    (void)state;
    assert_op(VG_FIELDS_INTERSECTION, SMALL, "{'f:b':{'f:c':{}},'f:e':{}}", "{'f:b':{'f:c':{}}}");
    assert_op(VG_FIELDS_INTERSECTION, SMALL, "{'f:b':{}}", "{'f:b':{}}");
    assert_op(VG_FIELDS_INTERSECTION, SMALL, "{}", "{}");
}

static void difference_keeps_children_unless_it_is_deep(void **state)
{
    (void)state;
    assert_op(VG_FIELDS_DIFFERENCE, SMALL, "{'f:b':{}}", "{'f:a':{},'f:b':{'f:c':{}}}");
    assert_op(VG_FIELDS_DIFFERENCE, SMALL, "{'f:b':{'f:c':{}}}", "{'f:a':{},'f:b':{}}");
    assert_op(VG_FIELDS_DIFFERENCE, SMALL, "{'f:b':{'.':{},'f:c':{}}}", "{'f:a':{}}");
    assert_op(VG_FIELDS_DIFFERENCE_DEEP, SMALL, "{'f:b':{}}", "{'f:a':{}}");
    assert_op(VG_FIELDS_DIFFERENCE_DEEP, "{'f:b':{'f:c':{},'f:d':{}}}", "{'f:b':{'f:c':{}}}",
              "{'f:b':{'f:d':{}}}");
}

static void what_does_not_change_is_the_same_node(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json out, *x = vg_tree(&a, SMALL);
    assert_int_equal(
        vg_fields_combine(&a, VG_FIELDS_UNION, x, vg_tree(&a, "{'f:b':{'f:c':{}}}"), &out), 0);
    assert_ptr_equal(out.members, x->members);
    assert_int_equal(out.begin, x->begin);
    assert_int_equal(out.end, x->end);
}

/* x as it is in a text, after other things. */
static struct vg_json closed(struct vg_arena *a, const char *x)
{
    char text[2000];
    struct vg_json *root = NULL;
    static const struct vg_slice keys[] = {{"list", 4}, {"set", 3}};
    static const struct vg_json_path left = {keys, 2};
    int n = snprintf(text, sizeof text, "{'set':{},'list':[{'set':%s}]}", x);
    for (int i = 0; i < n; i++)
        text[i] = (char)(text[i] == '\'' ? '"' : text[i]);
    char *kept = vg_arena_copy(a, text, (size_t)n);
    assert_non_null(kept);
    struct vg_json_opts opts = {.on_dup = VG_JSON_DUP_NONE, .left = &left};
    assert_int_equal(vg_json_parse(a, vg_slice(kept, (size_t)n), &opts, &root, NULL), 0);
    const struct vg_json *list = vg_json_get_str(root, "list");
    const struct vg_json *set = vg_json_get_str(vg_json_at(list, 0), "set");
    assert_true(vg_fields_is_closed(set));
    return *set;
}

/* Not of a source, as what is built. */
static void forget_places(struct vg_json *v)
{
    v->begin = v->end = 0;
    VG_JSON_FOREACH_MEMBER (m, v)
        forget_places(&m->value);
}

/* Whether x stays closed; the result is what it is when both are open. */
static void assert_closed(enum vg_fields_op op, const char *x, const char *y, bool stays)
{
    VG_AUTO(arena) a = {0};
    struct vg_json shut = closed(&a, x), open, of_shut, of_open;
    struct vg_json *other = vg_tree(&a, y);
    forget_places(other);
    VG_AUTO(buf) one = {0}, two = {0};
    assert_int_equal(vg_fields_open(&a, &shut, &open), 0);
    assert_int_equal(vg_fields_combine(&a, op, &shut, other, &of_shut), 0);
    assert_int_equal(vg_fields_combine(&a, op, &open, other, &of_open), 0);
    assert_int_equal(vg_fields_is_closed(&of_shut), stays);
    struct vg_slice source = vg_slice(shut.text - shut.begin, shut.end);
    assert_int_equal(vg_fields_print(&one, &of_shut, source), 0);
    assert_int_equal(vg_fields_print(&two, &of_open, VG_SLICE_LIT("")), 0);
    vg_assert_slice_equal(vg_buf_slice(&one), vg_buf_slice(&two));
}

static void a_closed_set_is_opened_only_to_be_changed(void **state)
{
    (void)state;
    static const char x[] = "{'f:a':{'.':{},'f:\\u003c\\u0026':{},'f:x':{}},'f:b':{'f:y':{}},"
                            "'f:l':{'k:{\\'name\\':\\'1\\'}':{'.':{},'f:name':{}},"
                            "'k:{\\'name\\':\\'3\\'}':{'.':{},'f:name':{}}},'f:z':{}}";
    enum vg_fields_op more = VG_FIELDS_UNION, less = VG_FIELDS_DIFFERENCE;
    assert_closed(more, x, "{}", true);
    assert_closed(more, x, "{'f:z':{}}", true);
    assert_closed(more, x, "{'f:a':{},'f:z':{}}", true);
    assert_closed(more, x, "{'f:a':{'f:<&':{}},'f:b':{'f:y':{}}}", true);
    assert_closed(more, x, "{'f:b':{}}", false);
    assert_closed(more, x, "{'f:b':{'f:y':{'f:q':{}}}}", false);
    assert_closed(more, x, "{'f:c':{}}", false);
    assert_closed(more, x, "{'f:zz':{}}", false);
    assert_closed(more, x, "{'f:l':{'k:{\\'name\\':\\'3\\'}':{'f:name':{}}}}", true);
    assert_closed(more, x, "{'f:l':{'k:{\\'name\\':\\'2\\'}':{}}}", false);
    assert_closed(less, x, "{}", true);
    assert_closed(less, "{'f:d':{'f:a':{},'f:b':{}}}", "{'f:d':{'f:b':{}}}", false);
    assert_closed(less, x, "{'f:b':{},'f:c':{},'f:zz':{}}", true);
    assert_closed(less, x, "{'f:a':{'f:q':{}},'f:b':{'f:y':{'f:q':{}}}}", true);
    assert_closed(less, x, "{'f:a':{}}", false);
    assert_closed(less, x, "{'f:a':{'f:<&':{}}}", false);
    assert_closed(less, x, "{'f:c':{},'f:z':{}}", false);
    assert_closed(less, x, "{'f:l':{'k:{\\'name\\':\\'2\\'}':{}}}", true);
    assert_closed(less, x, "{'f:l':{'k:{\\'name\\':\\'2\\'}':{},'k:{\\'name\\':\\'3\\'}':{}}}",
                  false);
    assert_closed(VG_FIELDS_INTERSECTION, x, "{'f:a':{}}", false);
    assert_closed(VG_FIELDS_DIFFERENCE_DEEP, x, "{'f:a':{}}", false);
}

static void assert_before(const char *x, const char *y)
{
    assert_true(vg_fields_order(vg_slice_str(x), vg_slice_str(y)) < 0);
    assert_true(vg_fields_order(vg_slice_str(y), vg_slice_str(x)) > 0);
    assert_int_equal(vg_fields_order(vg_slice_str(x), vg_slice_str(x)), 0);
}

static void elements_are_ordered_by_kind_and_value(void **state)
{
    (void)state;
    assert_before("f:a", "f:b");
    assert_before("f:zz", "k:{\"a\":1}");
    assert_before("k:{\"z\":1}", "v:1");
    assert_before("v:\"z\"", "i:0");
    assert_before("k:{\"port\":80}", "k:{\"port\":443}");
    assert_before("k:{\"name\":\"a\"}", "k:{\"name\":\"a!\"}");
    assert_before("k:{\"name\":\"a\"}", "k:{\"name\":\"b\"}");
    assert_before("k:{\"name\":\"a\\\"\"}", "k:{\"name\":\"a#\"}");
    assert_before("k:{\"port\":80,\"protocol\":\"TCP\"}", "k:{\"port\":80,\"protocol\":\"UDP\"}");
    assert_before("k:{\"port\":80,\"protocol\":\"UDP\"}", "k:{\"port\":443,\"protocol\":\"TCP\"}");
    assert_before("k:{\"port\":80}", "k:{\"port\":80,\"protocol\":\"TCP\"}");
    assert_before("v:2", "v:10");
    assert_before("v:10", "v:\"1\"");
    assert_before("v:\"x\"", "v:false");
    assert_before("v:false", "v:true");
}

static void assert_read(const char *given, const char *want)
{
    VG_AUTO(arena) a = {0};
    struct vg_json out;
    struct vg_status why = {0};
    if (vg_fields_read(&a, vg_tree(&a, given), &out, &why) < 0)
        fail_msg("%s: %s", given, why.message);
    vg_assert_tree(&out, want);
}

static void what_a_client_sends_is_put_in_order(void **state)
{
    (void)state;
    assert_read("{'f:b':{},'f:a':{'f:y':{},'.':{},'f:x':{}}}",
                "{'f:a':{'.':{},'f:x':{},'f:y':{}},'f:b':{}}");
    assert_read("{'f:a':{'.':{}}}", "{'f:a':{}}");
    assert_read("{'.':{},'f:a':{}}", "{'f:a':{}}");
    assert_read("{'f:a':null,'x:new':{}}", "{'f:a':{}}");
    assert_read("{'k:{\\'b\\': 1, \\'a\\':\\'x\\'}':{}}", "{'k:{\\'a\\':\\'x\\',\\'b\\':1}':{}}");
    assert_read("{'i:7':{},'v: true':{}}", "{'v:true':{},'i:7':{}}");
}

static void elements_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {"{'a':{}}",   "{'fa':{}}", "{'k:1':{}}",
                                      "{'k:{':{}}", "{'v:':{}}", "{'i:x':{}}",
                                      "{'f:a':1}",  "[]",        "{'f:a':{'v:{':{}}}"};
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        VG_AUTO(arena) a = {0};
        struct vg_json out;
        struct vg_status why;
        if (vg_fields_read(&a, vg_tree(&a, bad[i]), &out, &why) != VIGIL_E_INVALID)
            fail_msg("%s was taken", bad[i]);
    }
}

static void assert_shown(const char *element, const char *want)
{
    VG_AUTO(buf) out = {0};
    assert_int_equal(vg_element_show(&out, vg_slice_str(element)), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(want));
}

static void elements_are_shown_as_paths(void **state)
{
    (void)state;
    assert_shown("f:spec", ".spec");
    assert_shown("k:{\"port\":80,\"protocol\":\"TCP\"}", "[port=80,protocol=\"TCP\"]");
    assert_shown("v:\"a\\\"\"", "[=\"a\\\"\"]");
    assert_shown("v:true", "[=true]");
    assert_shown("i:3", "[3]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(union_has_what_either_has),
        cmocka_unit_test(intersection_has_what_both_have),
        cmocka_unit_test(difference_keeps_children_unless_it_is_deep),
        cmocka_unit_test(what_does_not_change_is_the_same_node),
        cmocka_unit_test(a_closed_set_is_opened_only_to_be_changed),
        cmocka_unit_test(elements_are_ordered_by_kind_and_value),
        cmocka_unit_test(what_a_client_sends_is_put_in_order),
        cmocka_unit_test(elements_that_are_none_are_refused),
        cmocka_unit_test(elements_are_shown_as_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
