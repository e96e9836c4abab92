/* yaml_test.c - reading and writing YAML as Kubernetes does. The expectations were compared with
 * sigs.k8s.io/yaml; recorded objects of a real API server are compared byte for byte. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "yaml.h"
#include "json/equal.h"
#include "json/write.h"

/* ---- reading ---- */

static int parse(struct vg_arena *a, const char *text, const struct vg_yaml_opts *opts,
                 struct vg_json **ret, struct vg_status *st)
{
    return vg_yaml_parse(a, vg_slice_str(text), opts, ret, st);
}

/* text reads as json; when it does not, both are shown. */
static void assert_reads(const char *text, const char *json)
{
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) out = {0};
    struct vg_json *v;
    struct vg_status st = {0};
    int r = parse(&a, text, NULL, &v, &st);
    if (r < 0)
        fail_msg("%s: %s", text, st.message);
    assert_int_equal(vg_json_write(&out, v, 0), 0);
    if (!vg_slice_eq(vg_buf_slice(&out), vg_slice_str(json)))
        fail_msg("%s\nread as %.*s\nexpected %s", text, (int)out.n, out.p, json);
}

static void assert_refused(const char *text, int err, const char *message)
{
    VG_AUTO(arena) a = {0};
    struct vg_json *v = NULL;
    struct vg_status st = {0};
    int r = parse(&a, text, NULL, &v, &st);
    if (r != err || strcmp(st.message, message) != 0)
        fail_msg("%s\nanswered %d %s\nexpected %d %s", text, r, st.message, err, message);
    assert_null(v);
}

static void scalars_are_those_of_yaml_1_1(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"y", "true"},
        {"Yes", "true"},
        {"ON", "true"},
        {"n", "false"},
        {"No", "false"},
        {"off", "false"},
        {"yEs", "\"yEs\""},
        {"~", "null"},
        {"Null", "null"},
        {"", "null"},
        {"0x1F", "31"},
        {"0o14", "12"},
        {"010", "8"},
        {"08", "8"},
        {"0b101", "5"},
        {"-0b11", "-3"},
        {"1_000", "1000"},
        {"+7", "7"},
        {"18446744073709551615", "18446744073709551615"},
        {"18446744073709551616", "18446744073709552000"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"1.", "1"},
        {".5", "0.5"},
        {"1e3", "1000"},
        {"1e400", "\"1e400\""},
        {"1:30", "\"1:30\""},
        {"2001-01-01", "\"2001-01-01\""},
        {"2001-01-01T00:00:00Z", "\"2001-01-01T00:00:00Z\""},
        {"!!str 5", "\"5\""},
        {"!!int \"5\"", "5"},
        {"!!float 5", "5"},
        {"!!binary aGVsbG8=", "\"hello\""},
        {"!!binary /w==", "\"\xEF\xBF\xBD\""},
        {"!mine x", "\"x\""},
        {"'y'", "\"y\""},
        {"\"\\x41\\t\"", "\"A\\t\""},
        {"|\n x\n y", "\"x\\ny\""},
        {">-\n x\n y", "\"x y\""},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++)
        assert_reads(cases[i][0], cases[i][1]);
}

static void keys_become_strings(void **state)
{
    (void)state;
    assert_reads("n: 1", "{\"false\":1}");
    assert_reads("0x10: a\n1.5: b\nTrue: c", "{\"16\":\"a\",\"1.5\":\"b\",\"true\":\"c\"}");
    assert_reads("0.1: a\n1e21: b", "{\"0.1\":\"a\",\"1e+21\":\"b\"}");
    assert_reads("'n': 1", "{\"n\":1}");
    assert_refused("~: x", VIGIL_E_JSON_SYNTAX,
                   "unsupported map key of type: %!s(<nil>), key: <nil>");
    assert_refused("? {a: b, c: [1, ~]}\n: c", VIGIL_E_JSON_SYNTAX,
                   "yaml: invalid map key: map[interface {}]interface {}{\"a\":\"b\", "
                   "\"c\":[]interface {}{1, interface {}(nil)}}");
}

static void aliases_and_merges_are_expanded(void **state)
{
    (void)state;
    assert_reads("a: &x {b: 1}\nc: *x", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}");
    assert_reads("a: &x {b: 1}\nc:\n  <<: *x\n  b: 2\n  d: 3",
                 "{\"a\":{\"b\":1},\"c\":{\"b\":2,\"d\":3}}");
    assert_reads("<<: [{a: 1}, {a: 2, b: 3}]", "{\"a\":1,\"b\":3}");
    assert_reads("\"<<\": 5", "{\"<<\":5}");
    assert_refused("<<: 5", VIGIL_E_JSON_SYNTAX,
                   "yaml: map merge requires map or sequence of maps as the value");
    assert_refused("a: &x [*x]", VIGIL_E_JSON_SYNTAX, "yaml: anchor 'x' value contains itself");
    assert_refused("a: *y", VIGIL_E_JSON_SYNTAX, "yaml: unknown anchor 'y' referenced");
}

static void only_the_first_document_counts(void **state)
{
    (void)state;
    assert_reads("a: 1\n---\nb: [", "{\"a\":1}");
    assert_reads("---\n---\n", "null");
    assert_reads("# nothing", "null");
    assert_reads("{\"a\":1,\"b\":[true,null,\"x\\u0041\"]}", "{\"a\":1,\"b\":[true,null,\"xA\"]}");
}

static void refusals_name_lines_as_kubernetes_does(void **state)
{
    (void)state;
    int syntax = VIGIL_E_JSON_SYNTAX;
    assert_refused("a: b: c", syntax, "yaml: mapping values are not allowed in this context");
    assert_refused("a:\n\tb: c", syntax,
                   "yaml: line 2: found character that cannot start any token");
    assert_refused("{", syntax, "yaml: line 1: did not find expected node content");
    assert_refused("%YAML 9.9\n---\na: b", syntax, "yaml: found incompatible YAML document");
    assert_refused("%YAML 1.2\n---\na: b", syntax, "yaml: found incompatible YAML document");
    assert_refused("a: !!binary x", syntax, "yaml: !!binary value contains invalid base64 data");
    assert_refused("a: !!int x", syntax, "yaml: cannot decode !!str `x` as a !!int");
    assert_refused("a: .inf", syntax, "json: unsupported value: +Inf");
    assert_refused("a: .NaN", syntax, "json: unsupported value: NaN");
    assert_refused("a: \x01", syntax, "yaml: control characters are not allowed");
    assert_refused("a: \xff", VIGIL_E_JSON_UTF8, "yaml: invalid leading UTF-8 octet");
}

static void keys_given_twice_are_reported_by_line(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json_dups dups;
    struct vg_yaml_opts opts = {.on_dup = VG_JSON_DUP_REPORT, .ret_dups = &dups};
    struct vg_json *v;
    struct vg_status st = {0};
    const char *text = "a: 1\nb:\n  c: 1\n  c: 2\na: 3\n1: x\n1: z\n";
    assert_int_equal(parse(&a, text, &opts, &v, &st), 0);
    assert_int_equal(dups.n, 3);
    vg_assert_slice_equal(dups.v[0].path, VG_SLICE_LIT("line 4: key \"c\" already set in map"));
    vg_assert_slice_equal(dups.v[1].path, VG_SLICE_LIT("line 5: key \"a\" already set in map"));
    vg_assert_slice_equal(dups.v[2].path, VG_SLICE_LIT("line 7: key 1 already set in map"));
    assert_reads(text, "{\"a\":3,\"b\":{\"c\":2},\"1\":\"z\"}");
    opts.on_dup = VG_JSON_DUP_FAIL;
    assert_int_equal(parse(&a, "q: 1\nq: 2", &opts, &v, &st), VIGIL_E_JSON_DUPLICATE);
    assert_string_equal(st.message,
                        "yaml: unmarshal errors:\n  line 2: key \"q\" already set in map");
}

/* More members than are searched one by one, with a duplicate at each end. */
static void keys_given_twice_are_found_in_large_mappings(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) text = {0};
    struct vg_json_dups dups;
    struct vg_yaml_opts opts = {.on_dup = VG_JSON_DUP_REPORT, .ret_dups = &dups};
    struct vg_json *v;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(vg_buf_printf(&text, "k%d: %d\n", i, i), 0);
    assert_int_equal(vg_buf_printf(&text, "k0: x\nk999: x\n"), 0);
    assert_int_equal(vg_yaml_parse(&a, vg_buf_slice(&text), &opts, &v, NULL), 0);
    assert_int_equal(dups.n, 2);
    assert_int_equal(v->n, 1000);
    assert_true(vg_json_is(vg_json_get_str(v, "k999"), VG_JSON_STRING));
}

/* ---- limits ---- */

static void many_laughs_are_refused(void **state)
{
    (void)state;
    VG_AUTO(buf) text = {0};
    assert_int_equal(vg_buf_printf(&text, "a0: &a0 [x]\n"), 0);
    for (int i = 1; i < 10; i++) {
        assert_int_equal(vg_buf_printf(&text, "a%d: &a%d [", i, i), 0);
        for (int j = 0; j < 10; j++)
            assert_int_equal(vg_buf_printf(&text, "%s*a%d", j ? "," : "", i - 1), 0);
        assert_int_equal(vg_buf_printf(&text, "]\n"), 0);
    }
    assert_int_equal(vg_buf_append_byte(&text, '\0'), 0);
    assert_refused(text.p, VIGIL_E_TOO_LARGE, "yaml: document contains excessive aliasing");
}

static void depth_is_limited_in_text_and_through_aliases(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) chain = {0};
    struct vg_yaml_opts opts = {.max_depth = 3};
    struct vg_json *v;
    struct vg_status st = {0};
    assert_int_equal(parse(&a, "[[[1]]]", &opts, &v, &st), 0);
    assert_int_equal(parse(&a, "[[[[1]]]]", &opts, &v, &st), VIGIL_E_JSON_DEPTH);
    assert_int_equal(parse(&a, "- &x [[1]]\n- [*x]", &opts, &v, &st), VIGIL_E_JSON_DEPTH);
    assert_int_equal(vg_buf_printf(&chain, "m0: &m0 {a: 1}\n"), 0);
    opts.max_depth = 100;
    for (int i = 1; i < 200; i++)
        assert_int_equal(vg_buf_printf(&chain, "m%d: &m%d {<<: *m%d}\n", i, i, i - 1), 0);
    int r = vg_yaml_parse(&a, vg_buf_slice(&chain), &opts, &v, &st);
    assert_int_equal(r, VIGIL_E_JSON_DEPTH);
}

static void bytes_and_nodes_are_limited(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    struct vg_json *v;
    struct vg_status st = {0};
    struct vg_yaml_opts bytes = {.max_bytes = 4}, nodes = {.max_nodes = 3};
    assert_int_equal(parse(&a, "a: 1", &bytes, &v, &st), 0);
    assert_int_equal(parse(&a, "a: 12", &bytes, &v, &st), VIGIL_E_TOO_LARGE);
    assert_string_equal(st.message, "yaml: document exceeds 4 bytes");
    assert_int_equal(parse(&a, "a: 1", &nodes, &v, &st), 0);
    assert_int_equal(parse(&a, "a: [1]", &nodes, &v, &st), VIGIL_E_TOO_LARGE);
}

/* What libyaml takes quadratic time for. */
static void directives_are_limited(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) text = {0};
    struct vg_json *v;
    struct vg_status st = {0};
    for (int i = 0; i < 100; i++)
        assert_int_equal(vg_buf_printf(&text, "%%TAG !%d! x:%d\n", i, i), 0);
    size_t enough = text.n;
    assert_int_equal(vg_buf_printf(&text, "---\na: \"%%TAG %%TAG\"\n"), 0);
    assert_int_equal(vg_yaml_parse(&a, vg_buf_slice(&text), NULL, &v, &st), 0);
    text.n = enough;
    assert_int_equal(vg_buf_printf(&text, "%%TAG !z! x:z\n---\na: b\n"), 0);
    assert_int_equal(vg_yaml_parse(&a, vg_buf_slice(&text), NULL, &v, &st), VIGIL_E_TOO_LARGE);
    assert_string_equal(st.message, "yaml: document has more than 100 directives");
}

static void only_utf8_is_read(void **state)
{
    (void)state;
    assert_reads("\xEF\xBB\xBF"
                 "a: b",
                 "{\"a\":\"b\"}");
    assert_refused("\xFF\xFE"
                   "a",
                   VIGIL_E_JSON_UTF8, "yaml: invalid leading UTF-8 octet");
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    const char *text = "a: &x {b: 1, c: \"x y\", 1: 2}\nd: [*x, 0.5]\n<<: *x\na: 1\n";
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(arena) a = {.first = 64};
        VG_AUTO(buf) out = {0};
        struct vg_json_dups dups;
        struct vg_yaml_opts opts = {.on_dup = VG_JSON_DUP_REPORT, .ret_dups = &dups};
        struct vg_json *v = NULL;
        int r = parse(&a, text, &opts, &v, NULL);
        if (r == 0)
            r = vg_yaml_write(&out, v);
        if (vg_test_alloc_failed())
            assert_int_equal(r, -ENOMEM);
        else
            assert_int_equal(r, 0);
    }
}

/* ---- writing ---- */

static void assert_writes(const char *json, const char *yaml)
{
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) out = {0};
    struct vg_json *v, *again;
    assert_int_equal(vg_json_parse(&a, vg_slice_str(json), NULL, &v, NULL), 0);
    assert_int_equal(vg_yaml_write(&out, v), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(yaml));
    assert_int_equal(vg_yaml_parse(&a, vg_buf_slice(&out), NULL, &again, NULL), 0);
    assert_int_equal(vg_json_equal(v, again), 1);
}

static void blocks_are_laid_out_as_kubernetes_does(void **state)
{
    (void)state;
    assert_writes("{\"b\":[1,{\"d\":2,\"c\":[]}],\"a\":{}}", "a: {}\nb:\n- 1\n- c: []\n  d: 2\n");
    assert_writes("[[1,[2]],[]]", "- - 1\n  - - 2\n- []\n");
    assert_writes("{\"k10\":1,\"k2\":2,\"K\":3,\"1\":4,\"k\":5}",
                  "\"1\": 4\nK: 3\nk: 5\nk2: 2\nk10: 1\n");
    assert_writes("\"x\"", "x\n");
    assert_writes("{}", "{}\n");
    assert_writes("{\"a\\nb\":[1]}", "? |-\n  a\n  b\n: - 1\n");
}

static void strings_stay_strings(void **state)
{
    (void)state;
    assert_writes("[\"y\",\"1\",\"1:30\",\"null\",\"\",\"~\",\"2001-01-01\",\"1e3\",\"0x\"]",
                  "- \"y\"\n- \"1\"\n- \"1:30\"\n- \"null\"\n- \"\"\n- \"~\"\n- \"2001-01-01\"\n"
                  "- \"1e3\"\n- 0x\n");
    assert_writes("[\"a: b\",\"a:b\",\"- a\",\"-a\",\"a #b\",\"a#b\",\"'q'\",\"*\",\" a\",\"a \"]",
                  "- 'a: b'\n- a:b\n- '- a'\n- -a\n- 'a #b'\n- a#b\n- '''q'''\n- '*'\n- ' a'\n"
                  "- 'a '\n");
    assert_writes("[\"a\\tb\",\"\\u0001\",\"\xF0\x9F\x98\x80\",\"\xC3\xA9\"]",
                  "- \"a\\tb\"\n- \"\\x01\"\n- \"\\U0001F600\"\n- \xC3\xA9\n");
}

static void lines_are_literal_blocks(void **state)
{
    (void)state;
    assert_writes("{\"a\":\"x\\ny\",\"b\":\"x\\n\",\"c\":\"x\\n\\n\",\"d\":\" x\\ny\\n\"}",
                  "a: |-\n  x\n  y\nb: |\n  x\nc: |+\n  x\n\nd: |2\n   x\n  y\n");
    assert_writes("{\"a\":\"x \\ny\"}", "a: \"x \\ny\"\n");
    assert_writes("[\"\\n\"]", "- |2+\n\n");
}

static void long_lines_are_folded_at_blanks(void **state)
{
    (void)state;
    assert_writes("{\"a\":\"0123456789 123456789 123456789 123456789 123456789 123456789 123456789 "
                  "123456789 123456789 x\"}",
                  "a: 0123456789 123456789 123456789 123456789 123456789 123456789 123456789 "
                  "123456789\n  123456789 x\n");
}

static void numbers_are_written_as_go_does(void **state)
{
    (void)state;
    assert_writes("[1.5,1e6,123456.789,100000.0,1e-5,0.0001,1e300,-0.5,18446744073709551615]",
                  "- 1.5\n- 1e+06\n- 123456.789\n- 100000\n- 1e-05\n- 0.0001\n- 1e+300\n- -0.5\n"
                  "- 18446744073709551615\n");
}

static void a_tree_too_deep_is_refused(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) out = {0};
    struct vg_json v = vg_json_array();
    for (int i = 0; i < 1025; i++) {
        struct vg_json outer = vg_json_array();
        assert_int_equal(vg_json_array_push(&a, &outer, v), 0);
        v = outer;
    }
    assert_int_equal(vg_yaml_write(&out, &v), VIGIL_E_JSON_DEPTH);
    assert_int_equal(out.n, 0);
}

/* ---- recorded objects ---- */

static const char *const recorded[] = {
    "apiextensions.k8s.io_v1_CustomResourceDefinition/full",
    "apps_v1_ControllerRevision/full",
    "apps_v1_DaemonSet/full",
    "apps_v1_Deployment/full",
    "apps_v1_StatefulSet/full",
    "batch_v1_CronJob/full",
    "batch_v1_Job/full",
    "coordination.k8s.io_v1_Lease/full",
    "core_v1_ConfigMap/full",
    "core_v1_Endpoints/full",
    "core_v1_Event/full",
    "core_v1_Namespace/full",
    "core_v1_Node/full",
    "core_v1_PersistentVolume/full",
    "core_v1_Pod/full",
    "core_v1_Secret/full",
    "core_v1_Service/full",
    "core_v1_ServiceAccount/full",
};

/* The object as it was answered in JSON and as it was read in YAML. */
static void check_recorded(const char *name)
{
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) yaml = {0};
    VG_AUTO(buf) json = {0};
    VG_AUTO(buf) out = {0};
    struct vg_json *from_yaml, *from_json;
    char path[256];
    snprintf(path, sizeof path, "kinds/%s/object.yaml", name);
    vg_test_vector(path, &yaml);
    snprintf(path, sizeof path, "kinds/%s/response.json", name);
    vg_test_vector(path, &json);
    assert_int_equal(vg_yaml_parse(&a, vg_buf_slice(&yaml), NULL, &from_yaml, NULL), 0);
    assert_int_equal(vg_json_parse(&a, vg_buf_slice(&json), NULL, &from_json, NULL), 0);
    if (vg_json_equal(from_yaml, from_json) != 1)
        fail_msg("%s: the YAML reads as another object", name);
    assert_int_equal(vg_yaml_write(&out, from_json), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), vg_buf_slice(&yaml));
}

static void recorded_objects_are_read_and_written_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(recorded); i++)
        check_recorded(recorded[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_are_those_of_yaml_1_1),
        cmocka_unit_test(keys_become_strings),
        cmocka_unit_test(aliases_and_merges_are_expanded),
        cmocka_unit_test(only_the_first_document_counts),
        cmocka_unit_test(refusals_name_lines_as_kubernetes_does),
        cmocka_unit_test(keys_given_twice_are_reported_by_line),
        cmocka_unit_test(keys_given_twice_are_found_in_large_mappings),
        cmocka_unit_test(many_laughs_are_refused),
        cmocka_unit_test(depth_is_limited_in_text_and_through_aliases),
        cmocka_unit_test(bytes_and_nodes_are_limited),
        cmocka_unit_test(directives_are_limited),
        cmocka_unit_test(only_utf8_is_read),
        cmocka_unit_test(memory_may_fail_anywhere),
        cmocka_unit_test(blocks_are_laid_out_as_kubernetes_does),
        cmocka_unit_test(strings_stay_strings),
        cmocka_unit_test(lines_are_literal_blocks),
        cmocka_unit_test(long_lines_are_folded_at_blanks),
        cmocka_unit_test(numbers_are_written_as_go_does),
        cmocka_unit_test(a_tree_too_deep_is_refused),
        cmocka_unit_test(recorded_objects_are_read_and_written_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
