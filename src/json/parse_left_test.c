/* parse_left_test.c - values that are left as text, and values that begin inside of a text. */
#include "test_support.h"

#include "json/equal.h"
#include "json/json.h"

static const struct vg_slice keys[] = {{"m", 1}, {"list", 4}, {"set", 3}};
static const struct vg_json_path path = {keys, VG_ARRAY_LEN(keys)};

static const struct vg_json *parse(struct vg_arena *a, const char *text)
{
    struct vg_json_opts opts = {.on_dup = VG_JSON_DUP_NONE, .left = &path};
    struct vg_json *root = NULL;
    assert_int_equal(vg_json_parse(a, vg_slice_str(text), &opts, &root, NULL), 0);
    return root;
}

static const struct vg_json *set_of(const struct vg_json *root, const char *top, size_t i)
{
    const struct vg_json *list = vg_json_get_str(vg_json_get_str(root, top), "list");
    return vg_json_get_str(vg_json_at(list, i), "set");
}

static void what_is_at_the_path_is_left_as_text(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    static const char text[] =
        "{\"set\":{\"a\":1},\"m\":{\"list\":[{\"x\":1,\"set\":{\"a\":{\"}\":[]}}},{\"set\":{}},"
        "{\"set\":5},{\"set\":[1]}],\"set\":{\"b\":2}},\"n\":{\"list\":[{\"set\":{\"c\":3}}]}}";
    const struct vg_json *root = parse(&a, text), *v = set_of(root, "m", 0);
    assert_int_equal(v->type, VG_JSON_NUMBER);
    vg_assert_slice_equal(vg_json_text(v), VG_SLICE_LIT("{\"a\":{\"}\":[]}}"));
    assert_ptr_equal(v->text, text + v->begin);
    assert_int_equal(v->end - v->begin, v->n);
    assert_int_equal(set_of(root, "m", 1)->type, VG_JSON_OBJECT);
    vg_assert_slice_equal(vg_json_text(set_of(root, "m", 2)), VG_SLICE_LIT("5"));
    vg_assert_slice_equal(vg_json_text(set_of(root, "m", 3)), VG_SLICE_LIT("[1]"));
    assert_int_equal(vg_json_get_str(root, "set")->type, VG_JSON_OBJECT);
    assert_int_equal(vg_json_get_str(vg_json_get_str(root, "m"), "set")->type, VG_JSON_OBJECT);
    assert_int_equal(set_of(root, "n", 0)->type, VG_JSON_OBJECT);
}

static void what_is_left_is_equal_by_its_bytes(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    const struct vg_json *x = parse(&a, "{\"m\":{\"list\":[{\"set\":{\"a\":{}}}]}}");
    const struct vg_json *y = parse(&a, "{\"m\":{\"list\":[{\"set\":{\"b\":{}}}]}}");
    const struct vg_json *z = parse(&a, "{\"m\":{\"list\":[{\"set\":0}]}}");
    assert_int_equal(vg_json_equal(x, x), 1);
    assert_int_equal(vg_json_equal(set_of(x, "m", 0), set_of(y, "m", 0)), 0);
    assert_int_equal(vg_json_equal(set_of(x, "m", 0), set_of(z, "m", 0)), 0);
    assert_int_equal(vg_json_equal(x, y), 0);
}

static void what_is_left_has_an_end(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json_opts opts = {.on_dup = VG_JSON_DUP_NONE, .left = &path};
    struct vg_json *root = NULL;
    struct vg_slice text = VG_SLICE_LIT("{\"m\":{\"list\":[{\"set\":{\"a\":");
    assert_int_equal(vg_json_parse(&a, text, &opts, &root, NULL), VIGIL_E_JSON_SYNTAX);
}

static void a_value_inside_of_a_text_keeps_its_offsets(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    static const char text[] = "{\"m\":{\"list\":[{\"set\":{\"a\":1}}]}}";
    const struct vg_json *v = set_of(parse(&a, text), "m", 0);
    struct vg_json_opts opts = {.from = v->begin};
    struct vg_json *root = NULL;
    assert_int_equal(vg_json_parse(&a, vg_slice(text, v->end), &opts, &root, NULL), 0);
    assert_int_equal(root->begin, v->begin);
    assert_int_equal(root->end, v->end);
    const struct vg_json *one = vg_json_get_str(root, "a");
    vg_assert_slice_equal(vg_slice(text + one->begin, one->end - one->begin), VG_SLICE_LIT("1"));
    opts.from = sizeof text + 10;
    assert_int_equal(vg_json_parse(&a, vg_slice(text, v->end), &opts, &root, NULL),
                     VIGIL_E_JSON_SYNTAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_at_the_path_is_left_as_text),
        cmocka_unit_test(what_is_left_is_equal_by_its_bytes),
        cmocka_unit_test(what_is_left_has_an_end),
        cmocka_unit_test(a_value_inside_of_a_text_keeps_its_offsets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
