/* cli_output_test.c - what is made of a server's answers: kinds, columns, JSON, metrics. */
#include "test_support.h"

#include <stdio.h>

#include "kinds.h"
#include "print.h"
#include "prom.h"
#include "server_table.h"
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

static void assert_row(const struct vigil_resource *r, bool is_wide, const char *json,
                       const char *want)
{
    struct vigil_error err;
    const struct vigil_object *o = vigil_object_parse(vigil_text(json), &err);
    struct vg_columns c = vg_columns_of(r, is_wide, is_wide);
    VG_AUTO(buf) line = {0};
    struct vg_table t;
    assert_non_null(o);
    vg_table_init(&t, vg_columns_count(&c));
    vg_columns_row(&c, &t, o, 1704067205); /* 2024-01-01T00:00:05Z */
    assert_int_equal(vg_table_rows(&t), 1);
    assert_int_equal(vg_table_line(&t, 0, 0, &line), 0);
    vg_assert_slice_equal(vg_buf_slice(&line), vg_slice_str(want));
    vg_table_clear(&t);
    vg_columns_head(&c, &t);
    assert_int_equal(t.n, vg_columns_count(&c));
    vg_table_done(&t);
    vigil_object_unref(o);
}

#define META                                                                                       \
    "\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"creationTimestamp\":\"2024-01-01T00:00:"   \
    "00Z\""
#define SPEC "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{},{}]}"

static void pods_say_what_keeps_them(void **state)
{
    (void)state;
    assert_row(&vigil_pods, true,
               "{" META "}," SPEC ",\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.1\","
               "\"containerStatuses\":[{\"ready\":true,\"restartCount\":2},"
               "{\"ready\":true,\"restartCount\":1}]}}",
               "n   a   2/2   Running   3   5s   10.0.0.1   n1");
    assert_row(&vigil_pods, false,
               "{" META "}," SPEC ",\"status\":{\"phase\":\"Running\",\"containerStatuses\":["
               "{\"ready\":true},{\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}]}}",
               "a   1/2   CrashLoopBackOff   0   5s");
    assert_row(&vigil_pods, false, "{" META "},\"status\":{\"reason\":\"Evicted\"}}",
               "a   0/0   Evicted   0   5s");
    assert_row(&vigil_pods, false, "{" META ",\"deletionTimestamp\":\"2024-01-01T00:00:00Z\"}}",
               "a   0/0   Terminating   0   5s");
    assert_row(&vigil_pods, true, "{" META "}}", "n   a   0/0   <none>   0   5s   <none>   <none>");
}

static void kinds_have_columns_of_their_own(void **state)
{
    (void)state;
    assert_row(&vigil_nodes, false,
               "{" META "},\"spec\":{\"unschedulable\":true},\"status\":{\"nodeInfo\":"
               "{\"kubeletVersion\":\"v1\"},\"conditions\":[{\"type\":\"X\",\"status\":\"True\"},"
               "{\"type\":\"Ready\",\"status\":\"False\"}]}}",
               "a   NotReady,SchedulingDisabled   v1   5s");
    assert_row(&vigil_nodes, false, "{" META "}}", "a   Unknown   <none>   5s");
    assert_row(&vigil_deployments, false,
               "{" META "},\"spec\":{\"replicas\":3},\"status\":{\"readyReplicas\":2}}",
               "a   2/3   0   0   5s");
    assert_row(&vigil_services, false,
               "{" META "},\"spec\":{\"type\":\"NodePort\",\"clusterIP\":\"10.0.0.9\",\"ports\":["
               "{\"port\":80,\"protocol\":\"TCP\"},"
               "{\"port\":443,\"nodePort\":30443,\"protocol\":\"TCP\"}]}}",
               "a   NodePort   10.0.0.9   80/TCP,443:30443/TCP   5s");
    assert_row(&vigil_configmaps, false,
               "{" META "},\"data\":{\"x\":\"\",\"y\":\"\"},\"binaryData\":{\"z\":\"\"}}",
               "a   3   5s");
    assert_row(&vigil_serviceaccounts, false, "{\"metadata\":{\"name\":\"a\"}}", "a   <unknown>");
}

static void objects_as_they_were_are_no_changes(void **state)
{
    static const struct {
        const char *version, *uid;
        bool is_changed;
    } rows[] = {{"1", "a", false}, {"2", "a", true}, {"1", "b", true}, {"", "a", true}};
    struct vigil_error err;
    (void)state;
    const struct vigil_object *o = vigil_object_parse(
        vigil_text("{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"1\",\"uid\":\"a\"}}"),
        &err);
    assert_false(vg_cli_is_changed(o, o));
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        char json[128];
        snprintf(json, sizeof json,
                 "{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"%s\",\"uid\":\"%s\"}}",
                 rows[i].version, rows[i].uid);
        const struct vigil_object *now = vigil_object_parse(vigil_text(json), &err);
        assert_non_null(now);
        assert_int_equal(vg_cli_is_changed(o, now), rows[i].is_changed);
        vigil_object_unref(now);
    }
    vigil_object_unref(o);
}

/* ---- tables of the server ---- */

static void assert_server_table(bool is_wide, const char *json, const char *want)
{
    struct vg_server_table s = {.has_namespace = is_wide, .is_wide = is_wide};
    struct vigil_value v = {VIGIL_OBJECT, vigil_text(json)};
    struct vg_table t = {0};
    VG_AUTO(buf) out = {0};
    assert_true(vg_server_table_is(v));
    assert_int_equal(vg_server_table_put(&s, v, &t), 0);
    for (size_t i = 0; i < vg_table_rows(&t); i++) {
        assert_int_equal(vg_table_line(&t, i, 0, &out), 0);
        assert_int_equal(vg_buf_append_byte(&out, '\n'), 0);
    }
    vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(want));
    vg_table_done(&t);
}

static void tables_of_the_server_are_shown(void **state)
{
    (void)state;
    static const char json[] =
        "{\"kind\":\"Table\",\"columnDefinitions\":[{\"name\":\"Name\",\"priority\":0},"
        "{\"name\":\"Node\",\"priority\":1},{\"name\":\"Ready\"}],\"rows\":["
        "{\"cells\":[\"a\",\"n1\",3],\"object\":{\"metadata\":{\"namespace\":\"x\"}}},"
        "{\"cells\":[\"b\\n\",null]},{\"cells\":[\"c\",\"n2\",true,\"more\"]},7]}";
    assert_server_table(false, json,
                        "NAME     READY\na        3\nb?       <none>\nc        true\n"
                        "<none>   <none>\n");
    assert_server_table(true, json,
                        "NAMESPACE   NAME     NODE     READY\nx           a        n1       3\n"
                        "<none>      b?       <none>   <none>\n<none>      c        n2       true\n"
                        "<none>      <none>   <none>   <none>\n");
    assert_server_table(false, "{\"kind\":\"Table\"}", "\n");
    assert_false(
        vg_server_table_is((struct vigil_value){VIGIL_OBJECT, vigil_text("{\"kind\":7}")}));
    assert_false(vg_server_table_is((struct vigil_value){VIGIL_OBJECT, vigil_text("garbage")}));
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

/* ---- YAML ---- */

static void yaml_stands_alone_or_as_an_item(void **state)
{
    VG_AUTO(buf) out = {0};
    (void)state;
    const struct vigil_text json = vigil_text("{\"b\":[1],\"a\":\"x\\n\\ny\\n\"}");
    assert_int_equal(vg_print_yaml(&out, json, false), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), VG_SLICE_LIT("a: |\n  x\n\n  y\nb:\n- 1"));
    vg_buf_clear(&out);
    assert_int_equal(vg_print_yaml(&out, json, true), 0);
    vg_assert_slice_equal(vg_buf_slice(&out),
                          VG_SLICE_LIT("\n- a: |\n    x\n\n    y\n  b:\n  - 1"));
    vg_buf_clear(&out);
    assert_int_equal(vg_print_yaml(&out, vigil_text("{\"a\":\"\x1b[2J\xc2\x9b\"}"), false) < 0 ||
                         !memchr(out.p, 0x1b, out.n),
                     true);
    assert_true(vg_print_yaml(&out, vigil_text("{"), false) < 0);
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
            "apiserver_resource_size_estimate_bytes{group=\"\",resource=\"pods\"} 4096\n"
            "apiserver_resource_size_estimate_bytes{group=\"apps\",resource=\"deployments\"} -1\n"
            "apiserver_watch_events_total{group=\"\",resource=\"pods\"} 150\n"
            "apiserver_longrunning_requests{resource=\"pods\",scope=\"a\",verb=\"WATCH\"} 1\n"
            "apiserver_longrunning_requests{resource=\"pods\",scope=\"b\",verb=\"WATCH\"} 1\n"
            "apiserver_longrunning_requests{resource=\"pods\",verb=\"LOG\"} 9\n"),
        10);
    vg_top_lags(&top, vigil_text("{\"watches\":[{\"resource\":\"pods\",\"lag\":4},"
                                 "{\"resource\":\"pods\",\"lag\":9},{\"resource\":7}]}"));
    vg_table_init(&t, VG_TOP_KIND_COLUMNS);
    vg_top_put_kinds(&top, &t);
    assert_int_equal(vg_table_rows(&t), 3);
    assert_int_equal(vg_table_line(&t, 1, 0, &line), 0);
    vg_assert_slice_equal(
        vg_buf_slice(&line),
        VG_SLICE_LIT(
            "pods               12        4096    150      5          2          -        9"));
    vg_buf_clear(&line);
    assert_int_equal(vg_table_line(&t, 2, 0, &line), 0);
    vg_assert_slice_equal(
        vg_buf_slice(&line),
        VG_SLICE_LIT(
            "deployments.apps   3         -       0        0          0          -        -"));
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
        "\"unsent\":7,\"seconds\":61}]}";
    assert_int_equal(vg_top_put_watches(vigil_text(json), &t), 0);
    assert_int_equal(vg_table_rows(&t), 3);
    assert_int_equal(vg_table_line(&t, 1, 0, &line), 0);
    vg_assert_slice_equal(
        vg_buf_slice(&line),
        VG_SLICE_LIT(
            "b      pods       -           x=y z=1    5     0        9       7        61s"));
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
        cmocka_unit_test(pods_say_what_keeps_them),
        cmocka_unit_test(kinds_have_columns_of_their_own),
        cmocka_unit_test(objects_as_they_were_are_no_changes),
        cmocka_unit_test(tables_of_the_server_are_shown),
        cmocka_unit_test(yaml_stands_alone_or_as_an_item),
        cmocka_unit_test(json_is_laid_out_and_harmless),
        cmocka_unit_test(samples_are_read),
        cmocka_unit_test(numbers_are_short),
        cmocka_unit_test(top_adds_up_by_kind_and_tells_rates),
        cmocka_unit_test(watches_that_lag_most_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
