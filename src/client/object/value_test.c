/* value_test.c - looking inside an object: paths, iteration, C values. */
#include "test_support.h"

#include "object_int.h"

#define assert_text(t, want) vg_assert_slice_equal(vg_slice_of(t), vg_slice_str(want))

static const char json[] =
    "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"x.y/z\":\"dotted\",\"q\":\"a\\u00e9\\n\"}},"
    "\"spec\":{\"containers\":[{\"image\":\"one\"},{\"image\":\"two\",\"ports\":[80, 443]}],"
    "\"replicas\":3,\"neg\":-7,\"big\":9223372036854775808,\"half\":0.5,\"exp\":1e3,\"on\":true,"
    "\"off\":false,\"nil\":null,\"none\":{},\"empty\":[]}}";

static const struct vigil_object *made(void)
{
    const struct vigil_object *o = vigil_object_parse(vigil_text(json), NULL);
    assert_non_null(o);
    return o;
}

static void a_path_leads_to_a_value(void **state)
{
    (void)state;
    const struct vigil_object *o = made();
    assert_text(vigil_get_string(o, "spec.containers[1].image"), "two");
    assert_text(vigil_get_string(o, "metadata.annotations[\"x.y/z\"]"), "dotted");
    assert_text(vigil_get_string(o, "[\"metadata\"].name"), "a");
    assert_text(vigil_get(o, "spec.containers[1].ports").raw, "[80, 443]");
    assert_int_equal(vigil_get(o, "spec.containers").type, VIGIL_ARRAY);
    assert_int_equal(vigil_get(o, "").type, VIGIL_OBJECT);
    assert_int_equal(vigil_get(o, "spec.nil").type, VIGIL_NULL);
    assert_int_equal(vigil_get_int(o, "spec.containers[1].ports[1]", 0), 443);
    struct vigil_value spec = vigil_get(o, "spec");
    assert_int_equal(vigil_value_int(vigil_value_get(spec, "replicas"), 0), 3);
    vigil_object_unref(o);
}

static void a_path_that_leads_nowhere_gives_nothing(void **state)
{
    (void)state;
    const struct vigil_object *o = made();
    static const char *const paths[] = {"none",
                                        "spec.none.x",
                                        "spec.containers[2]",
                                        "spec.containers[x]",
                                        "spec..replicas",
                                        "spec.",
                                        ".spec",
                                        "spec.containers[",
                                        "spec[0]",
                                        "spec[\"none",
                                        "spec[\"none\"",
                                        "spec.containers[1",
                                        "spec.containers.image",
                                        "spec.containers[]",
                                        "spec.containers[99999999999999999999999999]",
                                        "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z"};
    for (size_t i = 0; i < VG_ARRAY_LEN(paths); i++) {
        assert_int_equal(vigil_get(o, paths[i]).type, VIGIL_NONE);
        assert_text(vigil_get_string(o, paths[i]), "");
        assert_int_equal(vigil_get_int(o, paths[i], 5), 5);
    }
    assert_int_equal(vigil_value_get(vigil_get(o, "none"), "x").type, VIGIL_NONE);
    vigil_object_unref(o);
}

static void a_path_longer_than_one_look_is_followed(void **state)
{
    (void)state;
    VG_AUTO(buf) b = {0};
    VG_AUTO(buf) path = {0};
    assert_int_equal(vg_buf_printf(&b, "{\"metadata\":{\"name\":\"a\"},\"x\":"), 0);
    for (int i = 0; i < 40; i++)
        assert_int_equal(vg_buf_printf(&b, "{\"x\":"), 0);
    assert_int_equal(vg_buf_printf(&b, "17"), 0);
    for (int i = 0; i < 41; i++)
        assert_int_equal(vg_buf_printf(&b, "}"), 0);
    for (int i = 0; i < 41; i++)
        assert_int_equal(vg_buf_printf(&path, "%sx", i ? "." : ""), 0);
    assert_int_equal(vg_buf_append_byte(&path, '\0'), 0);
    const struct vigil_object *o = vigil_object_parse((struct vigil_text){b.p, b.n}, NULL);
    assert_non_null(o);
    assert_int_equal(vigil_get_int(o, path.p, 0), 17);
    vigil_object_unref(o);
}

static void values_are_read_as_c_values(void **state)
{
    (void)state;
    const struct vigil_object *o = made();
    assert_int_equal(vigil_get_int(o, "spec.neg", 0), -7);
    assert_int_equal(vigil_get_int(o, "spec.big", 1), 1);  /* does not fit */
    assert_int_equal(vigil_get_int(o, "spec.half", 1), 1); /* not an integer */
    assert_int_equal(vigil_get_int(o, "spec.on", 1), 1);
    assert_true(vigil_value_double(vigil_get(o, "spec.half"), 0) == 0.5);
    assert_true(vigil_value_double(vigil_get(o, "spec.exp"), 0) == 1000.0);
    assert_true(vigil_value_double(vigil_get(o, "spec.on"), 2) == 2.0);
    assert_true(vigil_value_bool(vigil_get(o, "spec.on"), false));
    assert_false(vigil_value_bool(vigil_get(o, "spec.off"), true));
    assert_true(vigil_value_bool(vigil_get(o, "spec.nil"), true));
    vigil_object_unref(o);
}

static void numbers_that_are_none_are_not_read(void **state)
{
    (void)state;
    static const char *const bad[] = {"1x", "--1", "1-", "-", "1.2.3", "1e", "+", "0x10", "1e+-2"};
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        struct vigil_value v = {VIGIL_NUMBER, vigil_text(bad[i])};
        assert_int_equal(vigil_value_int(v, 77), 77);
        assert_true(vigil_value_double(v, 77) == 77.0);
    }
}

static void strings_are_handed_out_or_copied(void **state)
{
    (void)state;
    const struct vigil_object *o = made();
    struct vigil_value v = vigil_get(o, "metadata.annotations.q");
    char buf[16];
    assert_null(vigil_value_string(v).p);
    assert_int_equal(vigil_value_copy(v, buf, sizeof(buf)), 4);
    assert_string_equal(buf, "a\xc3\xa9\n");
    assert_int_equal(vigil_value_copy(v, buf, 3), 4); /* no half of a character */
    assert_string_equal(buf, "a");
    assert_int_equal(vigil_value_copy(v, buf, 4), 4);
    assert_string_equal(buf, "a\xc3\xa9");
    assert_int_equal(vigil_value_copy(v, NULL, 0), 4);
    assert_int_equal(vigil_value_copy(vigil_get(o, "spec.on"), buf, sizeof(buf)), -1);
    assert_null(vigil_value_string(vigil_get(o, "spec.on")).p);
    vigil_object_unref(o);
}

static void containers_are_stepped_through(void **state)
{
    (void)state;
    const struct vigil_object *o = made();
    struct vigil_iter at = {0};
    struct vigil_text key;
    struct vigil_value v;
    assert_true(vigil_value_next(vigil_get(o, "metadata"), &at, &key, &v));
    assert_text(key, "name");
    assert_text(vigil_value_string(v), "a");
    assert_true(vigil_value_next(vigil_get(o, "metadata"), &at, &key, &v));
    assert_text(key, "annotations");
    assert_false(vigil_value_next(vigil_get(o, "metadata"), &at, &key, &v));
    assert_false(vigil_value_next(vigil_get(o, "metadata"), &at, &key, &v));
    at = (struct vigil_iter){0};
    struct vigil_value ports = vigil_get(o, "spec.containers[1].ports");
    int64_t sum = 0;
    while (vigil_value_next(ports, &at, NULL, &v))
        sum += vigil_value_int(v, 0);
    assert_int_equal(sum, 523);
    static const char *const empty[] = {"spec.none", "spec.empty", "spec.on", "nowhere"};
    for (size_t i = 0; i < VG_ARRAY_LEN(empty); i++) {
        at = (struct vigil_iter){0};
        assert_false(vigil_value_next(vigil_get(o, empty[i]), &at, NULL, &v));
    }
    vigil_object_unref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_leads_to_a_value),
        cmocka_unit_test(a_path_that_leads_nowhere_gives_nothing),
        cmocka_unit_test(a_path_longer_than_one_look_is_followed),
        cmocka_unit_test(values_are_read_as_c_values),
        cmocka_unit_test(numbers_that_are_none_are_not_read),
        cmocka_unit_test(strings_are_handed_out_or_copied),
        cmocka_unit_test(containers_are_stepped_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
