/* report_test.c - what a report says of a file made by hand, odd values included. That pages and
 * charts are well-formed XML is tests/cli/report.py's. */
#include "report_int.h"

#include <errno.h>
#include <stdio.h>

#include "test_support.h"

#define CORPUS VG_SOURCE_DIR "/tests/corpus/fuzz_report/"

struct world {
    struct vg_buf text;
    struct vg_report report;
    struct vg_buf out;
};

static void load(struct world *w, const char *path)
{
    char piece[4096];
    struct vg_status status = {0};
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    *w = (struct world){0};
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
        assert_int_equal(vg_buf_append(&w->text, piece, n), 0);
    fclose(f);
    int err = vg_report_read(&w->report, vg_buf_slice(&w->text), &status);
    if (err < 0)
        fail_msg("%s", status.message);
}

static void done(struct world *w)
{
    vg_report_done(&w->report);
    vg_buf_done(&w->text);
    vg_buf_done(&w->out);
}

static void says(struct world *w, const char *text)
{
    assert_int_equal(vg_buf_append_byte(&w->out, '\0'), 0);
    if (!strstr(w->out.p, text))
        fail_msg("'%s' is not in: %s", text, w->out.p);
    w->out.n--;
}

static void says_not(struct world *w, const char *text)
{
    assert_int_equal(vg_buf_append_byte(&w->out, '\0'), 0);
    if (strstr(w->out.p, text))
        fail_msg("'%s' is in: %s", text, w->out.p);
    w->out.n--;
}

/* ---- figures ---- */

static void figure_is(enum vg_unit unit, double value, const char *want)
{
    char buf[VG_FIGURE_SIZE];
    assert_string_equal(vg_figure(buf, unit, value), want);
}

static void figures_have_three_digits_and_a_unit(void **state)
{
    (void)state;
    figure_is(VG_UNIT_SECONDS, 7.126e-6, "7.13 µs");
    figure_is(VG_UNIT_SECONDS, 1e-5, "10 µs");
    figure_is(VG_UNIT_SECONDS, 0.0003, "300 µs");
    figure_is(VG_UNIT_SECONDS, 0.99997, "1.00 s");
    figure_is(VG_UNIT_SECONDS, 2.5, "2.50 s");
    figure_is(VG_UNIT_SECONDS, 0, "0 µs");
    figure_is(VG_UNIT_BYTES, 512, "512 bytes");
    figure_is(VG_UNIT_BYTES, 41234567, "41.2 MB");
    figure_is(VG_UNIT_RATE, 1109.4, "1,109/s");
    figure_is(VG_UNIT_RATE, 35123456, "35,123,456/s");
    figure_is(VG_UNIT_TIMES, 1.044, "1.04x");
    figure_is(VG_UNIT_NONE, 0.031, "0.031");
    figure_is(VG_UNIT_NONE, -1234, "-1,234");
    figure_is(VG_UNIT_NONE, 1e300, "1e+300");
}

static void unit_is(const char *metric, enum vg_unit want, double want_scale)
{
    double scale;
    assert_int_equal(vg_unit_of(vg_slice_str(metric), &scale), want);
    assert_true(scale == want_scale);
}

static void units_come_from_names(void **state)
{
    (void)state;
    unit_is("server_cpu_us_per_event", VG_UNIT_SECONDS, 1e-6);
    unit_is("server_cpu_ms_per_list", VG_UNIT_SECONDS, 1e-3);
    unit_is("s_until_all_caught_up", VG_UNIT_SECONDS, 1);
    unit_is("server_cpu_s", VG_UNIT_SECONDS, 1);
    unit_is("creates_per_s", VG_UNIT_RATE, 1);
    unit_is("server_anon_bytes_per_object", VG_UNIT_BYTES, 1);
    unit_is("relists", VG_UNIT_NONE, 1);
    unit_is("ended", VG_UNIT_NONE, 1);
}

/* ---- files ---- */

static void ratios_are_taken_within_rounds(void **state)
{
    (void)state;
    struct world w;
    struct vg_spread s;
    struct vg_query q = {"fanout", "watchers=10 tls=true", "server_cpu_us_per_event", NULL, 0};
    load(&w, CORPUS "peers.json");
    vg_query_ratio(&w.report, &q, 0, 2, &s); /* 20 / 10 and 30 / 10 */
    assert_int_equal(s.n, 2);
    assert_true(s.min == 2 && s.max == 3 && s.median == 2.5);
    vg_query_ratio(&w.report, &q, 1, 0, &s); /* only the first round has both */
    assert_int_equal(s.n, 1);
    assert_true(s.median == 10);
    done(&w);
}

static void a_table_has_every_metric_and_error(void **state)
{
    (void)state;
    struct world w;
    load(&w, CORPUS "peers.json");
    assert_int_equal(vg_report_table(&w.report, &w.out), 0);
    says(&w, "fanout watchers=10 tls=true\n");
    says(&w, "25 µs (20..30) *");
    says(&w, "failed (vigild on lmdb, round 1): no <restart>");
    says(&w, "* here the tool");
    says_not(&w, "\x01");
    done(&w);
}

static void a_page_escapes_what_the_file_says(void **state)
{
    (void)state;
    struct world w;
    load(&w, CORPUS "peers.json");
    assert_int_equal(vg_report_html(&w.report, &w.out), 0);
    says(&w, "A &lt;fast&gt; &amp; &quot;old&quot; one");
    says_not(&w, "<fast>");
    says_not(&w, "<apiserver>");
    says_not(&w, "<script");
    done(&w);
}

static void bars_are_met_or_missed(void **state)
{
    (void)state;
    struct world w;
    load(&w, CORPUS "peers.json");
    assert_int_equal(vg_report_markdown(&w.report, "c", VG_SLICE_LIT("the end\n"), &w.out), 0);
    says(&w, "| fan-out \\| floor | at most 1.50x | 2.50x (2..3) \\* |  | missed by 67 % |");
    says(&w, "| creates | at least 40,000/s | 30,000/s |  | missed by 33 %: it was late |");
    says(&w, "| not there | at most 1 | - |  | not measured |");
    says(&w, "| fan-out | at most 100 µs | 25 µs (20..30) \\* | 10 µs (10..10) | met |");
    says_not(&w, "of nobody");
    says(&w, "![Fan-out: processor time per event and watcher](c/fanout.svg)");
    says(&w, "the end\n");
    done(&w);
}

static void charts_leave_out_what_was_not_measured(void **state)
{
    (void)state;
    struct world w;
    const char *name = "";
    unsigned made = 0;
    load(&w, CORPUS "run.json");
    for (size_t i = 0; name; i++) {
        int r = vg_report_chart(&w.report, i, &w.out, &name);
        assert_true(r >= 0);
        made += r > 0;
    }
    assert_int_equal(made, 2); /* list and latency */
    says(&w, "LIST of everything");
    says_not(&w, "NaN");
    says_not(&w, "nan");
    says_not(&w, "inf");
    done(&w);
}

static void files_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"format\":\"vigil-bench/2\"}",
        "{\"format\":\"vigil-bench-peers/1\"}",
        "{\"format\":\"vigil-bench-peers/1\",\"peers\":[{}],\"runs\":[]}",
        "{\"format\":\"vigil-bench-peers/"
        "1\",\"peers\":[{\"name\":\"a\"}],\"runs\":[{\"peer\":\"b\","
        "\"round\":1}]}",
        "{\"format\":\"vigil-bench-peers/"
        "1\",\"peers\":[{\"name\":\"a\"}],\"runs\":[{\"peer\":\"a\","
        "\"round\":0}]}",
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++) {
        struct vg_report r;
        struct vg_status status = {0};
        assert_true(vg_report_read(&r, vg_slice_str(texts[i]), &status) < 0);
        assert_true(status.message[0] != '\0');
        vg_report_done(&r);
    }
}

static void memory_may_run_out(void **state)
{
    (void)state;
    struct world w;
    load(&w, CORPUS "peers.json");
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_report r;
        struct vg_buf out = {0};
        const char *name;
        int err = vg_report_read(&r, vg_buf_slice(&w.text), NULL);
        if (err == 0)
            err = vg_report_table(&r, &out);
        if (err == 0)
            err = vg_report_html(&r, &out);
        if (err == 0)
            err = vg_report_summary(&r, &out);
        if (err == 0)
            err = vg_report_chart(&r, 0, &out, &name);
        if (vg_test_alloc_failed())
            assert_int_equal(err, -ENOMEM);
        else
            assert_true(err >= 0);
        vg_buf_done(&out);
        vg_report_done(&r);
    }
    done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_have_three_digits_and_a_unit),
        cmocka_unit_test(units_come_from_names),
        cmocka_unit_test(ratios_are_taken_within_rounds),
        cmocka_unit_test(a_table_has_every_metric_and_error),
        cmocka_unit_test(a_page_escapes_what_the_file_says),
        cmocka_unit_test(bars_are_met_or_missed),
        cmocka_unit_test(charts_leave_out_what_was_not_measured),
        cmocka_unit_test(files_that_are_none_are_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
