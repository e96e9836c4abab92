/* bench_result_test.c - the document that a run is written as. */
#include "test_support.h"

#include <math.h>

#include "result.h"
#include "json/json.h"

static const struct vg_json *parse(struct vg_arena *a, const struct vg_buf *text)
{
    struct vg_json *root = NULL;
    assert_int_equal(vg_json_parse(a, vg_buf_slice(text), NULL, &root, NULL), 0);
    return root;
}

static void a_run_is_one_document(void **state)
{
    (void)state;
    struct vg_bench_run run;
    VG_AUTO(buf) text = {0};
    VG_AUTO(arena) arena = {0};
    vg_bench_run_init(&run);
    struct vg_bench_result *r = vg_bench_run_add(&run, "fanout");
    assert_non_null(r);
    vg_bench_param_number(r, "watchers", 1000);
    vg_bench_param_text(r, "media", "js\"on");
    vg_bench_param_bool(r, "tls", true);
    vg_bench_metric(r, "p50_ms", 1.25);
    vg_bench_metric(r, "nonsense_ms", NAN);
    vg_bench_metric(r, "server_rss_bytes", 123456789012.0);
    assert_int_equal(vg_bench_run_write(&run, &text), 0);
    const struct vg_json *root = parse(&arena, &text);
    assert_true(
        vg_slice_eq(vg_json_text(vg_json_get_str(root, "format")), VG_SLICE_LIT(VG_BENCH_FORMAT)));
    const struct vg_json *first = vg_json_at(vg_json_get_str(root, "results"), 0);
    const struct vg_json *metrics = vg_json_get_str(first, "metrics");
    assert_int_equal(metrics->n, 2);
    assert_true(
        vg_slice_eq(vg_json_text(vg_json_get_str(metrics, "p50_ms")), VG_SLICE_LIT("1.25")));
    assert_true(vg_slice_eq(vg_json_text(vg_json_get_str(metrics, "server_rss_bytes")),
                            VG_SLICE_LIT("123456789012")));
    const struct vg_json *params = vg_json_get_str(first, "params");
    assert_true(
        vg_slice_eq(vg_json_text(vg_json_get_str(params, "media")), VG_SLICE_LIT("js\"on")));
    assert_true(vg_json_is(vg_json_get_str(params, "tls"), VG_JSON_BOOL));
    assert_true(vg_json_is(vg_json_get_str(first, "error"), VG_JSON_NULL));
    vg_bench_run_done(&run);
}

static void a_failed_result_has_an_error_and_no_metrics(void **state)
{
    (void)state;
    struct vg_bench_run run;
    VG_AUTO(buf) text = {0};
    VG_AUTO(arena) arena = {0};
    vg_bench_run_init(&run);
    for (int i = 0; i < 20; i++) {
        struct vg_bench_result *r = vg_bench_run_add(&run, "list");
        assert_non_null(r);
        vg_bench_metric(r, "wall_ms_per_list", 1);
        vg_bench_fail(r, "the server answered %d", 500);
    }
    assert_int_equal(vg_bench_run_write(&run, &text), 0);
    const struct vg_json *root = parse(&arena, &text);
    const struct vg_json *last = vg_json_at(vg_json_get_str(root, "results"), 19);
    assert_int_equal(vg_json_get_str(last, "metrics")->n, 0);
    assert_true(vg_slice_eq(vg_json_text(vg_json_get_str(last, "error")),
                            VG_SLICE_LIT("the server answered 500")));
    vg_bench_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_one_document),
        cmocka_unit_test(a_failed_result_has_an_error_and_no_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
