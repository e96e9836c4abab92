/* patch_test.c - JSON Patch: RFC 6902's examples, and kube-apiserver's liberties. */
#include "test_support.h"

#include <errno.h>

#include "doc_testing.h"
#include "equal.h"
#include "patch.h"
#include "write.h"

struct row {
    const char *name, *doc, *patch;
    const char *want; /* the result; NULL: fails with err */
    int err;
    const char *message; /* NULL: any */
};

static struct vg_slice text_of(const struct vg_json *v, struct vg_buf *b)
{
    vg_buf_clear(b);
    assert_int_equal(vg_json_write(b, v, 0), 0);
    return vg_buf_slice(b);
}

/* Apply, and check that the inputs stay as they were. */
static int apply(struct vg_arena *a, const struct vg_json *doc, const struct vg_json *patch,
                 const struct vg_json_patch_opts *opts, struct vg_json *ret, struct vg_status *st)
{
    VG_AUTO(arena) mine = {0};
    struct vg_json doc_before, patch_before;
    assert_int_equal(vg_json_clone(&mine, doc, &doc_before), 0);
    assert_int_equal(vg_json_clone(&mine, patch, &patch_before), 0);
    int r = vg_json_patch_apply(a, doc, patch, opts, ret, st);
    assert_int_equal(vg_json_equal(doc, &doc_before), 1);
    assert_int_equal(vg_json_equal(patch, &patch_before), 1);
    return r;
}

static void run_row(const struct row *row, const struct vg_json_patch_opts *opts)
{
    VG_AUTO(arena) arena = {0};
    VG_AUTO(buf) got = {0};
    struct vg_json result = vg_json_string_ref(VG_SLICE_LIT("untouched"));
    struct vg_status st = {0};
    int r = apply(&arena, vg_doc(&arena, row->doc), vg_doc(&arena, row->patch), opts, &result, &st);
    if (row->want && (r < 0 || vg_json_equal(&result, vg_doc(&arena, row->want)) != 1))
        fail_msg("%s: %s, result %.*s", row->name, st.message,
                 VG_SLICE_ARG(text_of(&result, &got)));
    if (row->want)
        return;
    vg_assert_slice_equal(vg_json_text(&result), VG_SLICE_LIT("untouched"));
    if (r != row->err || st.err != r)
        fail_msg("%s: %s (%s)", row->name, vg_err_name(r), st.message);
    if (row->message && strcmp(row->message, st.message) != 0)
        fail_msg("%s: message is: %s", row->name, st.message);
}

static void run_rows(const struct row *rows, size_t n, bool strict)
{
    const struct vg_json_patch_opts opts = {.strict = strict};
    for (size_t i = 0; i < n; i++)
        run_row(&rows[i], &opts);
}

/* RFC 6902, appendix A; A.13 is about duplicate keys and has a test of its own. */
static const struct row rfc_rows[] = {
    {"A.1", "{'foo':'bar'}", "[{'op':'add','path':'/baz','value':'qux'}]",
     "{'baz':'qux','foo':'bar'}", 0, NULL},
    {"A.2", "{'foo':['bar','baz']}", "[{'op':'add','path':'/foo/1','value':'qux'}]",
     "{'foo':['bar','qux','baz']}", 0, NULL},
    {"A.3", "{'baz':'qux','foo':'bar'}", "[{'op':'remove','path':'/baz'}]", "{'foo':'bar'}", 0,
     NULL},
    {"A.4", "{'foo':['bar','qux','baz']}", "[{'op':'remove','path':'/foo/1'}]",
     "{'foo':['bar','baz']}", 0, NULL},
    {"A.5", "{'baz':'qux','foo':'bar'}", "[{'op':'replace','path':'/baz','value':'boo'}]",
     "{'baz':'boo','foo':'bar'}", 0, NULL},
    {"A.6", "{'foo':{'bar':'baz','waldo':'fred'},'qux':{'corge':'grault'}}",
     "[{'op':'move','from':'/foo/waldo','path':'/qux/thud'}]",
     "{'foo':{'bar':'baz'},'qux':{'corge':'grault','thud':'fred'}}", 0, NULL},
    {"A.7", "{'foo':['all','grass','cows','eat']}",
     "[{'op':'move','from':'/foo/1','path':'/foo/3'}]", "{'foo':['all','cows','eat','grass']}", 0,
     NULL},
    {"A.8", "{'baz':'qux','foo':['a',2,'c']}",
     "[{'op':'test','path':'/baz','value':'qux'},{'op':'test','path':'/foo/1','value':2}]",
     "{'baz':'qux','foo':['a',2,'c']}", 0, NULL},
    {"A.9", "{'baz':'qux'}", "[{'op':'test','path':'/baz','value':'bar'}]", NULL,
     VIGIL_E_PATCH_TEST,
     "JSON patch operation 0 (test \"/baz\"): the test failed: the document has another value "
     "there"},
    {"A.10", "{'foo':'bar'}", "[{'op':'add','path':'/child','value':{'grandchild':{}}}]",
     "{'foo':'bar','child':{'grandchild':{}}}", 0, NULL},
    {"A.11", "{'foo':'bar'}", "[{'op':'add','path':'/baz','value':'qux','xyz':123}]",
     "{'foo':'bar','baz':'qux'}", 0, NULL},
    {"A.12", "{'foo':'bar'}", "[{'op':'add','path':'/baz/bat','value':'qux'}]", NULL,
     VIGIL_E_PATCH_FAILED,
     "JSON patch operation 0 (add \"/baz/bat\"): the document has no member \"baz\""},
    {"A.14", "{'/':9,'~1':10}", "[{'op':'test','path':'/~01','value':10}]", "{'/':9,'~1':10}", 0,
     NULL},
    {"A.15", "{'/':9,'~1':10}", "[{'op':'test','path':'/~01','value':'10'}]", NULL,
     VIGIL_E_PATCH_TEST, NULL},
    {"A.16", "{'foo':['bar']}", "[{'op':'add','path':'/foo/-','value':['abc','def']}]",
     "{'foo':['bar',['abc','def']]}", 0, NULL},
};

static void the_examples_of_rfc_6902_hold_in_both_modes(void **state)
{
    (void)state;
    run_rows(rfc_rows, VG_ARRAY_LEN(rfc_rows), false);
    run_rows(rfc_rows, VG_ARRAY_LEN(rfc_rows), true);
}

/* A.13: of two "op" members the parser keeps the last, unless told to refuse them. */
static void an_operation_given_twice_is_the_parsers_to_refuse(void **state)
{
    static const char text[] = "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":1,\"op\":\"remove\"}]";
    static const struct vg_json_opts opts = {.on_dup = VG_JSON_DUP_FAIL};
    static const struct row row = {
        "A.13",
        "{}",
        "[{'op':'add','path':'/baz','value':1,'op':'remove'}]",
        NULL,
        VIGIL_E_PATCH_FAILED,
        "JSON patch operation 0 (remove \"/baz\"): the document has no member \"baz\""};
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *v;
    assert_int_equal(vg_json_parse(&a, VG_SLICE_LIT(text), &opts, &v, NULL),
                     VIGIL_E_JSON_DUPLICATE);
    run_row(&row, NULL);
}

static void operations_work_on_the_whole_document(void **state)
{
    static const struct row rows[] = {
        {"add", "{'a':1}", "[{'op':'add','path':'','value':[1]}]", "[1]", 0, NULL},
        {"replace", "{'a':1}", "[{'op':'replace','path':'','value':null}]", "null", 0, NULL},
        {"test", "{'a':1}", "[{'op':'test','path':'','value':{'a':1.0}}]", "{'a':1}", 0, NULL},
        {"test scalar", "3", "[{'op':'test','path':'','value':30e-1}]", "3", 0, NULL},
        {"move up", "{'a':{'b':1}}", "[{'op':'move','from':'/a','path':''}]", "{'b':1}", 0, NULL},
        {"copy up", "{'a':{'b':1}}", "[{'op':'copy','from':'/a','path':''}]", "{'b':1}", 0, NULL},
        {"copy into itself", "{'a':1}", "[{'op':'copy','from':'','path':'/b'}]",
         "{'a':1,'b':{'a':1}}", 0, NULL},
        {"move to itself", "{'a':1}", "[{'op':'move','from':'','path':''}]", "{'a':1}", 0, NULL},
        {"no operations", "[1,2]", "[]", "[1,2]", 0, NULL},
        {"remove", "{'a':1}", "[{'op':'remove','path':''}]", NULL, VIGIL_E_PATCH_FAILED,
         "JSON patch operation 0 (remove \"\"): the whole document cannot be removed"},
        {"move down", "{'a':1}", "[{'op':'move','from':'','path':'/b'}]", NULL,
         VIGIL_E_PATCH_INVALID, NULL},
        {"test fails", "{'a':1}", "[{'op':'test','path':'','value':{}}]", NULL, VIGIL_E_PATCH_TEST,
         NULL},
    };
    (void)state;
    run_rows(rows, VG_ARRAY_LEN(rows), false);
    run_rows(rows, VG_ARRAY_LEN(rows), true);
}

static void members_and_items_are_changed_in_order(void **state)
{
    static const struct row rows[] = {
        {"add replaces", "{'a':1,'b':2}", "[{'op':'add','path':'/a','value':3}]", "{'a':3,'b':2}",
         0, NULL},
        {"add at the end", "[1]", "[{'op':'add','path':'/1','value':2}]", "[1,2]", 0, NULL},
        {"add in front", "[1]", "[{'op':'add','path':'/0','value':2}]", "[2,1]", 0, NULL},
        {"add to empty", "[]", "[{'op':'add','path':'/-','value':2}]", "[2]", 0, NULL},
        {"replace null", "{'a':null}", "[{'op':'replace','path':'/a','value':2}]", "{'a':2}", 0,
         NULL},
        {"empty key", "{'':{'':1}}", "[{'op':'replace','path':'//','value':2}]", "{'':{'':2}}", 0,
         NULL},
        {"key like an index", "{'0':1}", "[{'op':'replace','path':'/0','value':2}]", "{'0':2}", 0,
         NULL},
        {"key like the end", "{}", "[{'op':'add','path':'/-','value':2}]", "{'-':2}", 0, NULL},
        {"a chain", "{}",
         "[{'op':'add','path':'/l','value':[]},{'op':'add','path':'/l/-','value':{'x':1}},"
         "{'op':'copy','from':'/l/0','path':'/l/0'},{'op':'replace','path':'/l/0/x','value':2},"
         "{'op':'move','from':'/l/1','path':'/m'},{'op':'test','path':'/l','value':[{'x':2}]},"
         "{'op':'remove','path':'/l'}]",
         "{'m':{'x':1}}", 0, NULL},
        {"move to its place", "[1,2]", "[{'op':'move','from':'/0','path':'/0'}]", "[1,2]", 0, NULL},
        {"move over a member", "{'a':1,'b':2}", "[{'op':'move','from':'/a','path':'/b'}]",
         "{'b':1}", 0, NULL},
        {"a value used twice", "{}",
         "[{'op':'add','path':'/a','value':{}},{'op':'copy','from':'/a','path':'/b'},"
         "{'op':'add','path':'/a/x','value':1}]",
         "{'a':{'x':1},'b':{}}", 0, NULL},
    };
    (void)state;
    run_rows(rows, VG_ARRAY_LEN(rows), false);
    run_rows(rows, VG_ARRAY_LEN(rows), true);
}

static void what_does_not_fit_the_document_fails_and_says_where(void **state)
{
    static const struct row rows[] = {
        {"remove missing", "{'a':{}}", "[{'op':'remove','path':'/a/b'}]", NULL,
         VIGIL_E_PATCH_FAILED,
         "JSON patch operation 0 (remove \"/a/b\"): \"/a\" has no member \"b\""},
        {"second operation", "{'a':1}",
         "[{'op':'add','path':'/b','value':1},{'op':'add','path':'/a/b','value':1}]", NULL,
         VIGIL_E_PATCH_FAILED,
         "JSON patch operation 1 (add \"/a/b\"): \"/a\" is a number and has no member \"b\""},
        {"index", "{'l':[1]}", "[{'op':'add','path':'/l/2','value':1}]", NULL, VIGIL_E_PATCH_FAILED,
         "JSON patch operation 0 (add \"/l/2\"): \"/l\" is an array of 1 items and has no item 2"},
        {"no index", "[1]", "[{'op':'add','path':'/1x','value':1}]", NULL, VIGIL_E_PATCH_FAILED,
         "JSON patch operation 0 (add \"/1x\"): the document is an array and \"1x\" is no index"},
        {"remove end", "[1]", "[{'op':'remove','path':'/-'}]", NULL, VIGIL_E_PATCH_FAILED, NULL},
        {"replace end", "[1]", "[{'op':'replace','path':'/-','value':1}]", NULL,
         VIGIL_E_PATCH_FAILED, NULL},
        {"replace item", "[1]", "[{'op':'replace','path':'/1','value':1}]", NULL,
         VIGIL_E_PATCH_FAILED, NULL},
        {"replace under nothing", "{}", "[{'op':'replace','path':'/a/b','value':1}]", NULL,
         VIGIL_E_PATCH_FAILED, NULL},
        {"move missing", "{}", "[{'op':'move','from':'/a','path':'/b'}]", NULL,
         VIGIL_E_PATCH_FAILED,
         "JSON patch operation 0 (move \"/b\"): the document has no member \"a\""},
        {"copy missing item", "[]", "[{'op':'copy','from':'/0','path':'/b'}]", NULL,
         VIGIL_E_PATCH_FAILED, NULL},
        {"copy from nowhere", "{}", "[{'op':'copy','from':'/a/b','path':'/b'}]", NULL,
         VIGIL_E_PATCH_FAILED, NULL},
        {"copy to nowhere", "{'a':1}", "[{'op':'copy','from':'/a','path':'/b/c'}]", NULL,
         VIGIL_E_PATCH_FAILED, NULL},
        {"move out of its list", "[1]", "[{'op':'move','from':'/0','path':'/1'}]", NULL,
         VIGIL_E_PATCH_FAILED, NULL},
        {"test missing", "{}", "[{'op':'test','path':'/a','value':1}]", NULL, VIGIL_E_PATCH_TEST,
         "JSON patch operation 0 (test \"/a\"): the document has no member \"a\""},
        {"test item", "[]", "[{'op':'test','path':'/0','value':null}]", NULL, VIGIL_E_PATCH_TEST,
         NULL},
        {"test end", "[1]", "[{'op':'test','path':'/-','value':1}]", NULL, VIGIL_E_PATCH_TEST,
         NULL},
        {"test later", "{'a':1}",
         "[{'op':'replace','path':'/a','value':2},{'op':'test','path':'/a','value':1}]", NULL,
         VIGIL_E_PATCH_TEST,
         "JSON patch operation 1 (test \"/a\"): the test failed: the document has another value "
         "there"},
    };
    (void)state;
    run_rows(rows, VG_ARRAY_LEN(rows), false);
    run_rows(rows, VG_ARRAY_LEN(rows), true);
}

static void what_is_no_patch_is_invalid_before_anything_is_applied(void **state)
{
#define BAD(name, patch, message)                                                                  \
    {                                                                                              \
        name, "{'a':1}", patch, NULL, VIGIL_E_PATCH_INVALID, message                               \
    }
    static const struct row rows[] = {
        BAD("object", "{}", "a JSON patch must be an array of operations, this is object"),
        BAD("null", "null", NULL),
        BAD("item", "[1]", "JSON patch operation 0: must be an object, is number"),
        BAD("no op", "[{'path':'/a'}]",
            "JSON patch operation 0: \"op\" is missing or not a string"),
        BAD("op type", "[{'op':1,'path':'/a'}]", NULL),
        BAD("op name", "[{'op':'Add','path':'/a','value':1}]",
            "JSON patch operation 0: unknown op \"Add\"; known are add, remove, replace, move, "
            "copy and test"),
        BAD("no path", "[{'op':'remove'}]",
            "JSON patch operation 0 (remove): \"path\" is missing or not a string"),
        BAD("null path", "[{'op':'remove','path':null}]", NULL),
        BAD("path", "[{'op':'remove','path':'a'}]",
            "JSON patch operation 0 (remove): \"path\" is malformed: JSON pointer \"a\": must be "
            "empty or start with '/'"),
        BAD("no from", "[{'op':'move','path':'/b'}]",
            "JSON patch operation 0 (move): \"from\" is missing or not a string"),
        BAD("from", "[{'op':'copy','from':'~','path':'/b'}]", NULL),
        BAD("into child", "[{'op':'move','from':'/a','path':'/a/b'}]",
            "JSON patch operation 0 (move): cannot move \"/a\" into its own child \"/a/b\""),
        BAD("before a failing test",
            "[{'op':'test','path':'/a','value':2},{'op':'dance','path':''}]", NULL),
    };
    (void)state;
    run_rows(rows, VG_ARRAY_LEN(rows), false);
    run_rows(rows, VG_ARRAY_LEN(rows), true);
}

/* What kube-apiserver accepts and the RFC does not. */
static const struct row kube_rows[] = {
    {"replace adds", "{'a':1}", "[{'op':'replace','path':'/b','value':2}]", "{'a':1,'b':2}",
     VIGIL_E_PATCH_FAILED, NULL},
    {"test null", "{'a':1}", "[{'op':'test','path':'/b','value':null}]", "{'a':1}",
     VIGIL_E_PATCH_TEST, NULL},
    {"last item", "[1,2]", "[{'op':'replace','path':'/-1','value':3}]", "[1,3]",
     VIGIL_E_PATCH_FAILED, NULL},
    {"first from the end", "[1,2]", "[{'op':'remove','path':'/-2'}]", "[2]", VIGIL_E_PATCH_FAILED,
     NULL},
    {"-1 appends", "[1,2]", "[{'op':'add','path':'/-1','value':3}]", "[1,2,3]",
     VIGIL_E_PATCH_FAILED, NULL},
    {"-3 is the front", "[1,2]", "[{'op':'add','path':'/-3','value':3}]", "[3,1,2]",
     VIGIL_E_PATCH_FAILED, NULL},
    {"leading zeros", "[1,2]", "[{'op':'add','path':'/01','value':3}]", "[1,3,2]",
     VIGIL_E_PATCH_FAILED, NULL},
    {"a plus", "[1,2]", "[{'op':'remove','path':'/+1'}]", "[1]", VIGIL_E_PATCH_FAILED, NULL},
    {"minus nothing", "[1,2]", "[{'op':'remove','path':'/-0'}]", "[2]", VIGIL_E_PATCH_FAILED, NULL},
    {"copy missing", "{}", "[{'op':'copy','from':'/a','path':'/b'}]", "{'b':null}",
     VIGIL_E_PATCH_FAILED, NULL},
    {"no escape", "{}", "[{'op':'add','path':'/a~2~','value':1}]", "{'a~2~':1}",
     VIGIL_E_PATCH_INVALID, NULL},
    {"before the slash", "{}", "[{'op':'add','path':'x/a','value':1}]", "{'a':1}",
     VIGIL_E_PATCH_INVALID, NULL},
    {"no value", "{}", "[{'op':'add','path':'/a'}]", "{'a':null}", VIGIL_E_PATCH_INVALID, NULL},
    {"no value to test", "{}", "[{'op':'test','path':'/a'}]", "{}", VIGIL_E_PATCH_INVALID, NULL},
};

static void kube_apiservers_liberties_are_taken_unless_strict(void **state)
{
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(kube_rows); i++) {
        struct row strict = kube_rows[i];
        const struct vg_json_patch_opts opts = {.strict = true};
        strict.want = NULL;
        run_row(&kube_rows[i], NULL);
        run_row(&strict, &opts);
    }
}

static void liberties_have_their_limits(void **state)
{
    static const struct row rows[] = {
        {"-3 of two", "[1,2]", "[{'op':'remove','path':'/-3'}]", NULL, VIGIL_E_PATCH_FAILED, NULL},
        {"-4 of two", "[1,2]", "[{'op':'add','path':'/-4','value':1}]", NULL, VIGIL_E_PATCH_FAILED,
         NULL},
        {"null is not absent", "{'a':1}", "[{'op':'test','path':'/a','value':null}]", NULL,
         VIGIL_E_PATCH_TEST, NULL},
        {"parent missing", "{}", "[{'op':'test','path':'/a/b','value':null}]", NULL,
         VIGIL_E_PATCH_TEST, NULL},
    };
    (void)state;
    run_rows(rows, VG_ARRAY_LEN(rows), false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_rfc_6902_hold_in_both_modes),
        cmocka_unit_test(an_operation_given_twice_is_the_parsers_to_refuse),
        cmocka_unit_test(operations_work_on_the_whole_document),
        cmocka_unit_test(members_and_items_are_changed_in_order),
        cmocka_unit_test(what_does_not_fit_the_document_fails_and_says_where),
        cmocka_unit_test(what_is_no_patch_is_invalid_before_anything_is_applied),
        cmocka_unit_test(kube_apiservers_liberties_are_taken_unless_strict),
        cmocka_unit_test(liberties_have_their_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
