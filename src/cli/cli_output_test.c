/* cli_output_test.c - what is made of a server's answers: kinds, columns, JSON, metrics. */
#include "test_support.h"

#include "kinds.h"
#include "print.h"
#include "prom.h"
#include "top.h"

/* ---- kinds ---- */

static const char core[] =
    "{\"kind\":\"APIResourceList\",\"resources\":["
    "{\"name\":\"pods\",\"singularName\":\"pod\",\"namespaced\":true,\"kind\":\"Pod\","
    "\"shortNames\":[\"po\"],\"verbs\":[\"list\",\"watch\"]},"
    "{\"name\":\"pods/log\",\"singularName\":\"\",\"namespaced\":true,\"kind\":\"Pod\"},"
    "{\"name\":\"events\",\"singularName\":\"event\",\"namespaced\":true,\"kind\":\"Event\","
    "\"shortNames\":[\"ev\",\"evt\"],\"verbs\":[\"list\"]}]}";
static const char newer[] =
    "{\"resources\":[{\"name\":\"events\",\"singularName\":\"event\",\"kind\":\"Event\"}]}";

static void kinds_are_found_by_each_of_their_names(void **state)
{
    struct vg_kinds k;
    (void)state;
    vg_kinds_init(&k);
    assert_int_equal(vg_kinds_add(&k, vigil_text(core), "v1"), 0);
    assert_int_equal(vg_kinds_add(&k, vigil_text(newer), "events.k8s.io/v1"), 0);
    static const char *const names[] = {"pods", "pod", "po", "Pod", "PODS", "po."};
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        const struct vg_kind *kind = vg_kinds_match(&k, names[i]);
        assert_non_null(kind);
        assert_string_equal(kind->r.plural, "pods");
        assert_true(kind->r.namespaced && kind->can_list && kind->can_watch);
    }
    assert_string_equal(vg_kinds_match(&k, "evt")->r.group, "");
    assert_false(vg_kinds_match(&k, "evt")->can_watch);
    assert_string_equal(vg_kinds_match(&k, "events.events.k8s.io")->r.group, "events.k8s.io");
    assert_null(vg_kinds_match(&k, "pods.apps"));
    assert_null(vg_kinds_match(&k, "pods/log"));
    assert_null(vg_kinds_match(&k, ""));
    assert_string_equal(vg_kinds_near(&k, "pdos"), "pods");
    assert_string_equal(vg_kinds_near(&k, "evnt"), "events");
    assert_null(vg_kinds_near(&k, "deployments"));
    vg_kinds_done(&k);
}

static void answers_that_are_no_lists_add_nothing(void **state)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "[]",
                                        "{\"resources\":7}",
                                        "{\"resources\":[",
                                        "{\"resources\":[{}]}",
                                        "{\"resources\":[\"pods\"]}"};
    struct vg_kinds k;
    (void)state;
    vg_kinds_init(&k);
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        assert_int_equal(vg_kinds_add(&k, vigil_text(texts[i]), "v1"), 0);
    assert_null(k.first);
    vg_kinds_done(&k);
}

/* ---- columns ---- */

static void assert_row(const struct vigil_resource *r, bool has_namespace, const char *json,
                       const char *want)
{
    struct vigil_error err;
    const struct vigil_object *o = vigil_object_parse(vigil_text(json), &err);
    struct vg_columns c = vg_columns_of(r, has_namespace);
    VG_AUTO(buf) line = {0};
    struct vg_table t;
    assert_non_null(o);
    vg_table_init(&t, vg_columns_count(&c));
    vg_columns_row(&c, &t, o, 1704067205); /* 2024-01-01T00:00:05Z */
    assert_int_equal(vg_table_rows(&t), 1);
    assert_int_equal(vg_table_line(&t, 0, 0, &line), 0);
    vg_assert_slice_equal(vg_buf_slice(&line), vg_slice_str(want));
    vg_table_done(&t);
    vigil_object_unref(o);
}

#define META                                                                                       \
    "\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"creationTimestamp\":\"2024-01-01T00:00:"   \
    "00Z\""

static void kinds_have_columns_of_their_own(void **state)
{
    (void)state;
    assert_row(&vigil_pods, true, "{" META "},\"status\":{\"phase\":\"Running\"}}",
               "n   a   Running   5s");
    assert_row(&vigil_pods, false, "{" META ",\"deletionTimestamp\":\"2024-01-01T00:00:00Z\"}}",
               "a   Terminating   5s");
    assert_row(&vigil_nodes, false,
               "{" META "},\"status\":{\"conditions\":[{\"type\":\"X\",\"status\":\"True\"},"
               "{\"type\":\"Ready\",\"status\":\"False\"}]}}",
               "a   NotReady   5s");
    assert_row(&vigil_nodes, false, "{" META "}}", "a   Unknown   5s");
    assert_row(&vigil_deployments, false,
               "{" META "},\"spec\":{\"replicas\":3},\"status\":{\"readyReplicas\":2}}",
               "a   2/3   5s");
    assert_row(&vigil_configmaps, false, "{" META "}}", "a   5s");
    assert_row(&vigil_configmaps, false, "{\"metadata\":{\"name\":\"a\"}}", "a   <unknown>");
}

/* ---- JSON ---- */

static void json_is_laid_out_and_harmless(void **state)
{
    VG_AUTO(buf) out = {0};
    (void)state;
    const char *json =
        "{\"a\":[1,{\"b\":\"x\\\"y,{\"}],\"c\":{},\"d\":[ ],\"e\":\"\x7f\xc2\x9b\"}\n";
    assert_int_equal(vg_print_json(&out, vigil_text(json), 0), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), VG_SLICE_LIT("{\n"
                                                           "    \"a\": [\n"
                                                           "        1,\n"
                                                           "        {\n"
                                                           "            \"b\": \"x\\\"y,{\"\n"
                                                           "        }\n"
                                                           "    ],\n"
                                                           "    \"c\": {},\n"
                                                           "    \"d\": [],\n"
                                                           "    \"e\": \"\\u007f\\u009b\"\n"
                                                           "}"));
    vg_buf_clear(&out);
    assert_int_equal(vg_print_json_line(&out, vigil_text("{\"a b\":\n [1, \"c\\\" d\"]}")), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), VG_SLICE_LIT("{\"a b\":[1,\"c\\\" d\"]}"));
    static const char *const broken[] = {"", "\"", "\"\\", "{", "}}]", "\"\xc2"};
    for (size_t i = 0; i < VG_ARRAY_LEN(broken); i++) {
        assert_int_equal(vg_print_json(&out, vigil_text(broken[i]), 0), 0);
        assert_int_equal(vg_print_json_line(&out, vigil_text(broken[i])), 0);
    }
}

/* ---- metrics ---- */

static void samples_are_read(void **state)
{
    struct vg_slice text = VG_SLICE_LIT("# HELP a b\n# TYPE a counter\n"
                                        "a{x=\"1\",y=\"q\\\"},z\"} 3\nbroken\nb 1.5e3 170000\n"
                                        "c{x=\"open 1\nd{} NaN\ne 7");
    struct vg_prom s;
    (void)state;
    assert_true(vg_prom_next(&text, &s));
    vg_assert_slice_equal(s.name, VG_SLICE_LIT("a"));
    vg_assert_slice_equal(vg_prom_label(&s, "x"), VG_SLICE_LIT("1"));
    vg_assert_slice_equal(vg_prom_label(&s, "y"), VG_SLICE_LIT("q\\\"},z"));
    assert_int_equal(vg_prom_label(&s, "z").n, 0);
    assert_true(s.value == 3);
    assert_true(vg_prom_next(&text, &s) && s.value == 1500);
    assert_true(vg_prom_next(&text, &s)); /* d */
    assert_true(vg_prom_next(&text, &s) && s.value == 7);
    assert_false(vg_prom_next(&text, &s));
}

static void numbers_are_short(void **state)
{
    (void)state;
    static const struct {
        double n;
        const char *text;
    } rows[] = {{0, "0"},         {-1, "0"},        {0.0 / 0.0, "0"},  {2.5, "2.5"},
                {99999, "99999"}, {100000, "100k"}, {1234567, "1.2M"}, {5e9, "5.0G"}};
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        char text[VG_TOP_NUMBER_SIZE];
        vg_top_number(rows[i].n, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void top_adds_up_by_kind_and_tells_rates(void **state)
{
    static struct vg_top_kind kinds[VG_TOP_KINDS_MAX];
    struct vg_top top = {.kinds = kinds};
    struct vg_table t;
    VG_AUTO(buf) line = {0};
    (void)state;
    vg_top_metrics(
        &top, VG_SLICE_LIT("apiserver_watch_events_total{group=\"\",resource=\"pods\"} 100\n"), 0);
    vg_top_metrics(
        &top,
        VG_SLICE_LIT(
            "apiserver_resource_objects{group=\"\",resource=\"pods\"} 12\n"
            "apiserver_resource_objects{group=\"apps\",resource=\"deployments\"} 3\n"
            "apiserver_watch_events_total{group=\"\",resource=\"pods\"} 150\n"
            "apiserver_longrunning_requests{resource=\"pods\",scope=\"a\",verb=\"WATCH\"} 1\n"
            "apiserver_longrunning_requests{resource=\"pods\",scope=\"b\",verb=\"WATCH\"} 1\n"
            "apiserver_longrunning_requests{resource=\"pods\",verb=\"LOG\"} 9\n"),
        10);
    vg_table_init(&t, VG_TOP_KIND_COLUMNS);
    vg_top_put_kinds(&top, &t);
    assert_int_equal(vg_table_rows(&t), 3);
    assert_int_equal(vg_table_line(&t, 1, 0, &line), 0);
    vg_assert_slice_equal(
        vg_buf_slice(&line),
        VG_SLICE_LIT("pods               12        150      5          2          0"));
    vg_table_done(&t);
}

static void watches_that_lag_most_come_first(void **state)
{
    struct vg_table t;
    VG_AUTO(buf) line = {0};
    (void)state;
    vg_table_init(&t, VG_TOP_WATCH_COLUMNS);
    const char *json =
        "{\"watches\":[{\"user\":\"a\",\"lag\":1},{\"user\":\"b\",\"resource\":\"pods\","
        "\"labelSelector\":\"x=y\",\"fieldSelector\":\"z=1\",\"lag\":5,\"bytes\":9,"
        "\"seconds\":61}]}";
    assert_int_equal(vg_top_put_watches(vigil_text(json), &t), 0);
    assert_int_equal(vg_table_rows(&t), 3);
    assert_int_equal(vg_table_line(&t, 1, 0, &line), 0);
    vg_assert_slice_equal(
        vg_buf_slice(&line),
        VG_SLICE_LIT("b      pods                   x=y z=1    5     0        9       61s"));
    vg_table_clear(&t);
    assert_int_equal(vg_top_put_watches(vigil_text("garbage"), &t), 0);
    assert_int_equal(vg_table_rows(&t), 1);
    vg_table_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_found_by_each_of_their_names),
        cmocka_unit_test(answers_that_are_no_lists_add_nothing),
        cmocka_unit_test(kinds_have_columns_of_their_own),
        cmocka_unit_test(json_is_laid_out_and_harmless),
        cmocka_unit_test(samples_are_read),
        cmocka_unit_test(numbers_are_short),
        cmocka_unit_test(top_adds_up_by_kind_and_tells_rates),
        cmocka_unit_test(watches_that_lag_most_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
