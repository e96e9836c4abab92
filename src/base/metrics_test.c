/* metrics_test.c - series, caps, overflow, and the text of a scrape. */
#include "test_support.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "metrics.h"

static const double bounds[] = {0.005, 0.1, 1, 2.5};

static const struct vg_metric_desc requests = {.name = "vigil_requests_total",
                                               .help = "Requests by verb and code.",
                                               .type = VG_METRIC_COUNTER,
                                               .labels = {"verb", "code"}};
static const struct vg_metric_desc watchers = {
    .name = "vigil_watchers", .help = "Open watches.", .type = VG_METRIC_GAUGE};
static const struct vg_metric_desc latency = {.name = "vigil_latency_seconds",
                                              .help = "Time to answer.",
                                              .type = VG_METRIC_HISTOGRAM,
                                              .labels = {"verb"},
                                              .bounds = bounds,
                                              .bound_count = VG_ARRAY_LEN(bounds)};
static const struct vg_metric_desc sizes = {.name = "vigil_sizes",
                                            .help = "Backslash \\ and\nnewline, \"quotes\" stay.",
                                            .type = VG_METRIC_HISTOGRAM,
                                            .bounds = bounds,
                                            .bound_count = 1};
static const struct vg_metric_desc computed = {.name = "vigil_computed",
                                               .help = "Known at the scrape.",
                                               .type = VG_METRIC_GAUGE,
                                               .labels = {"of"}};
static const struct vg_metric_desc capped = {.name = "vigil_capped_total",
                                             .help = "Few series.",
                                             .type = VG_METRIC_COUNTER,
                                             .labels = {"who"},
                                             .max_series = 3};

static int setup(void **state)
{
    *state = vg_metrics_new();
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    vg_metrics_free(*state);
    return 0;
}

static struct vg_metric *add(struct vg_metrics *m, const struct vg_metric_desc *desc)
{
    struct vg_metric *metric = NULL;
    assert_int_equal(vg_metrics_add(m, desc, &metric), 0);
    return metric;
}

static struct vg_counter *counter2(struct vg_metric *metric, const char *a, const char *b)
{
    return vg_metric_counter(metric, (struct vg_slice[]){vg_slice_str(a), vg_slice_str(b)});
}

static struct vg_counter *counter1(struct vg_metric *metric, const char *a)
{
    return vg_metric_counter(metric, (struct vg_slice[]){vg_slice_str(a)});
}

#define OVERFLOW_HEAD                                                                              \
    "# HELP vigil_metrics_overflow_total Lookups of a series that were given the overflow series " \
    "of their metric.\n# TYPE vigil_metrics_overflow_total counter\n"

static void check_exposition(struct vg_metrics *m, const char *want)
{
    VG_AUTO(buf) out = {0};
    assert_int_equal(vg_metrics_write(m, &out), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(want));
}

static void emit_two(void *arg, struct vg_metric_writer *w)
{
    struct vg_slice a = VG_SLICE_LIT("a"), b = VG_SLICE_LIT("b\"\xFF");
    vg_metric_emit(w, &a, *(double *)arg);
    vg_metric_emit(w, &b, -INFINITY);
}

static void observe_some(struct vg_histogram *h)
{
    vg_histogram_observe(h, 0.005); /* bounds are inclusive */
    vg_histogram_observe(h, 0.5);
    vg_histogram_observe(h, NAN);
    vg_histogram_observe(h, 3);
    vg_histogram_observe_ns(h, 250000000);
}

static void the_exposition_is_as_prometheus_reads_it(void **state)
{
    struct vg_metrics *m = *state;
    struct vg_metric *r = add(m, &requests), *ignored;
    double value = 0.1;
    vg_counter_add(counter2(r, "put", "200"), 3);
    vg_counter_inc(counter2(r, "get", "404"));
    vg_counter_inc(counter2(r, "get", "200"));
    vg_gauge_set(vg_metric_gauge(add(m, &watchers), NULL), 5);
    vg_gauge_add(vg_metric_gauge(add(m, &watchers), NULL), -7);
    observe_some(
        vg_metric_histogram(add(m, &latency), (struct vg_slice[]){VG_SLICE_LIT("a\\b\"c\nd")}));
    add(m, &sizes);
    assert_int_equal(vg_metrics_add_callback(m, &computed, emit_two, &value, &ignored), 0);
    check_exposition(m, "# HELP vigil_computed Known at the scrape.\n"
                        "# TYPE vigil_computed gauge\n"
                        "vigil_computed{of=\"a\"} 0.1\n"
                        "vigil_computed{of=\"b\\\"\xEF\xBF\xBD\"} -Inf\n"
                        "# HELP vigil_latency_seconds Time to answer.\n"
                        "# TYPE vigil_latency_seconds histogram\n"
                        "vigil_latency_seconds_bucket{verb=\"a\\\\b\\\"c\\nd\",le=\"0.005\"} 1\n"
                        "vigil_latency_seconds_bucket{verb=\"a\\\\b\\\"c\\nd\",le=\"0.1\"} 1\n"
                        "vigil_latency_seconds_bucket{verb=\"a\\\\b\\\"c\\nd\",le=\"1\"} 3\n"
                        "vigil_latency_seconds_bucket{verb=\"a\\\\b\\\"c\\nd\",le=\"2.5\"} 3\n"
                        "vigil_latency_seconds_bucket{verb=\"a\\\\b\\\"c\\nd\",le=\"+Inf\"} 4\n"
                        "vigil_latency_seconds_sum{verb=\"a\\\\b\\\"c\\nd\"} 3.755\n"
                        "vigil_latency_seconds_count{verb=\"a\\\\b\\\"c\\nd\"} 4\n" OVERFLOW_HEAD
                        "# HELP vigil_requests_total Requests by verb and code.\n"
                        "# TYPE vigil_requests_total counter\n"
                        "vigil_requests_total{verb=\"get\",code=\"200\"} 1\n"
                        "vigil_requests_total{verb=\"get\",code=\"404\"} 1\n"
                        "vigil_requests_total{verb=\"put\",code=\"200\"} 3\n"
                        "# HELP vigil_sizes Backslash \\\\ and\\nnewline, \"quotes\" stay.\n"
                        "# TYPE vigil_sizes histogram\n"
                        "vigil_sizes_bucket{le=\"0.005\"} 0\n"
                        "vigil_sizes_bucket{le=\"+Inf\"} 0\n"
                        "vigil_sizes_sum 0\n"
                        "vigil_sizes_count 0\n"
                        "# HELP vigil_watchers Open watches.\n"
                        "# TYPE vigil_watchers gauge\n"
                        "vigil_watchers -2\n");
}

static void the_same_labels_are_the_same_series(void **state)
{
    struct vg_metric *r = add(*state, &requests);
    assert_ptr_equal(counter2(r, "a", "bc"), counter2(r, "a", "bc"));
    assert_ptr_not_equal(counter2(r, "a", "bc"), counter2(r, "ab", "c"));
    assert_ptr_not_equal(counter2(r, "", "x"), counter2(r, "x", ""));
    assert_ptr_equal(add(*state, &requests), r);
    assert_int_equal(vg_counter_get(counter2(r, "a", "bc")), 0);
}

static void labels_that_would_look_the_same_are_the_same(void **state)
{
    struct vg_metric *c = add(*state, &capped);
    assert_ptr_equal(counter1(c, "x\xFFy"), counter1(c, "x\xFEy"));
    char a[2 * VG_METRIC_VALUE_MAX + 1], b[2 * VG_METRIC_VALUE_MAX + 1];
    memset(a, 'a', sizeof a);
    a[sizeof a - 1] = '\0';
    memcpy(b, a, sizeof b);
    b[VG_METRIC_VALUE_MAX] = 'b'; /* beyond what is kept */
    assert_ptr_equal(counter1(c, a), counter1(c, b));
    b[VG_METRIC_VALUE_MAX - 1] = 'b';
    assert_ptr_not_equal(counter1(c, a), counter1(c, b));
}

static void beyond_the_cap_series_share_the_overflow(void **state)
{
    struct vg_metric *c = add(*state, &capped);
    for (int i = 0; i < 5; i++) {
        char who[16];
        snprintf(who, sizeof who, "w%d", i);
        vg_counter_inc(counter1(c, who));
    }
    vg_counter_inc(counter1(c, "_overflow_")); /* a peer may send the word itself */
    vg_counter_inc(counter1(c, "w0"));
    check_exposition(*state, "# HELP vigil_capped_total Few series.\n"
                             "# TYPE vigil_capped_total counter\n"
                             "vigil_capped_total{who=\"_overflow_\"} 3\n"
                             "vigil_capped_total{who=\"w0\"} 2\n"
                             "vigil_capped_total{who=\"w1\"} 1\n"
                             "vigil_capped_total{who=\"w2\"} 1\n" OVERFLOW_HEAD
                             "vigil_metrics_overflow_total{metric=\"vigil_capped_total\"} 2\n");
}

static void a_stopped_callback_is_not_called(void **state)
{
    struct vg_metric *metric;
    double value = 1;
    assert_int_equal(vg_metrics_add_callback(*state, &computed, emit_two, &value, &metric), 0);
    vg_metric_stop(metric);
    vg_metric_stop(metric);
    vg_metric_stop(NULL);
    check_exposition(*state, "# HELP vigil_computed Known at the scrape.\n"
                             "# TYPE vigil_computed gauge\n" OVERFLOW_HEAD);
}

static void a_name_belongs_to_one_description(void **state)
{
    struct vg_metric *metric = NULL;
    struct vg_metric_desc other = requests;
    add(*state, &requests);
    assert_int_equal(vg_metrics_add(*state, &other, &metric), VIGIL_E_EXISTS);
    assert_int_equal(vg_metrics_add_callback(*state, &requests, emit_two, NULL, &metric),
                     VIGIL_E_EXISTS);
    assert_null(metric);
}

static void malformed_descriptions_are_refused(void **state)
{
    static const double falling[] = {1, 1}, infinite[] = {1, INFINITY};
    const struct vg_metric_desc bad[] = {
        {.name = "", .help = ""},
        {.name = "9lives", .help = ""},
        {.name = "a-b", .help = ""},
        {.name = "a", .help = "", .labels = {"le"}},
        {.name = "a", .help = "", .labels = {"__x"}},
        {.name = "a", .help = "", .labels = {"x:y"}},
        {.name = "a",
         .help = "",
         .labels = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}},
        {.name = "a", .help = "", .type = VG_METRIC_HISTOGRAM},
        {.name = "a", .help = "", .type = VG_METRIC_HISTOGRAM, .bounds = falling, .bound_count = 2},
        {.name = "a",
         .help = "",
         .type = VG_METRIC_HISTOGRAM,
         .bounds = infinite,
         .bound_count = 2},
        {.name = "a", .help = "", .type = VG_METRIC_GAUGE, .bounds = bounds, .bound_count = 2},
    };
    struct vg_metric *metric = NULL;
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++)
        assert_int_equal(vg_metrics_add(*state, &bad[i], &metric), VIGIL_E_INVALID);
    assert_int_equal(vg_metrics_add_callback(*state, &latency, emit_two, NULL, &metric),
                     VIGIL_E_INVALID);
    assert_null(metric);
}

static void a_scrape_that_does_not_fit_leaves_the_buffer_as_it_was(void **state)
{
    VG_AUTO(buf) out;
    add(*state, &sizes);
    vg_buf_init(&out, 300);
    assert_int_equal(vg_buf_append(&out, "before", 6), 0);
    assert_int_equal(vg_metrics_write(*state, &out), VIGIL_E_TOO_LARGE);
    vg_assert_slice_equal(vg_buf_slice(&out), VG_SLICE_LIT("before"));
}

static int use_all(struct vg_buf *out)
{
    struct vg_metric *metric;
    struct vg_metrics *m = vg_metrics_new();
    if (!m)
        return -ENOMEM;
    int r = vg_metrics_add(m, &requests, &metric);
    if (r == 0)
        vg_counter_inc(counter2(metric, "get", "200"));
    if (r == 0)
        r = vg_metrics_add(m, &latency, &metric);
    if (r == 0)
        observe_some(vg_metric_histogram(metric, (struct vg_slice[]){VG_SLICE_LIT("get")}));
    if (r == 0)
        r = vg_metrics_write(m, out);
    vg_metrics_free(m);
    return r;
}

static void without_memory_it_fails_cleanly_or_uses_the_overflow(void **state)
{
    (void)state;
    int overflowed = 0;
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(buf) out = {0};
        int r = use_all(&out);
        if (!vg_test_alloc_failed())
            assert_int_equal(r, 0);
        if (r < 0)
            assert_int_equal(r, -ENOMEM);
        else
            overflowed += out.p && memmem(out.p, out.n, "_overflow_\"", 11);
    }
    assert_int_equal(overflowed, 2); /* once for each of the two series */
}

/* many threads update, look up and scrape */

#define UPDATERS 4
#define ROUNDS 2000

static void update_or_scrape(unsigned index, void *arg)
{
    struct vg_metrics *m = arg;
    if (index == UPDATERS) {
        for (int i = 0; i < 30; i++) {
            VG_AUTO(buf) out = {0};
            assert_int_equal(vg_metrics_write(m, &out), 0);
        }
        return;
    }
    struct vg_metric *r = add(m, &requests);
    struct vg_histogram *h =
        vg_metric_histogram(add(m, &latency), (struct vg_slice[]){VG_SLICE_LIT("get")});
    for (unsigned i = 0; i < ROUNDS; i++) {
        char code[12];
        snprintf(code, sizeof code, "%u", i % 50);
        vg_counter_inc(counter2(r, "get", code));
        vg_histogram_observe(h, 0.5);
    }
}

static void threads_update_and_scrape_at_once(void **state)
{
    struct vg_metrics *m = *state;
    VG_AUTO(buf) out = {0};
    uint64_t total = 0;
    vg_test_threads(UPDATERS + 1, update_or_scrape, m);
    for (unsigned i = 0; i < 50; i++) {
        char code[12];
        snprintf(code, sizeof code, "%u", i);
        total += vg_counter_get(counter2(add(m, &requests), "get", code));
    }
    assert_int_equal(total, UPDATERS * ROUNDS);
    assert_int_equal(vg_metrics_write(m, &out), 0);
    assert_int_equal(vg_buf_append_byte(&out, '\0'), 0);
    assert_non_null(strstr(out.p, "vigil_latency_seconds_count{verb=\"get\"} 8000\n"));
    assert_non_null(strstr(out.p, "vigil_latency_seconds_sum{verb=\"get\"} 4000\n"));
}

#define WITH_REGISTRY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_REGISTRY(the_exposition_is_as_prometheus_reads_it),
        WITH_REGISTRY(the_same_labels_are_the_same_series),
        WITH_REGISTRY(labels_that_would_look_the_same_are_the_same),
        WITH_REGISTRY(beyond_the_cap_series_share_the_overflow),
        WITH_REGISTRY(a_stopped_callback_is_not_called),
        WITH_REGISTRY(a_name_belongs_to_one_description),
        WITH_REGISTRY(malformed_descriptions_are_refused),
        WITH_REGISTRY(a_scrape_that_does_not_fit_leaves_the_buffer_as_it_was),
        cmocka_unit_test(without_memory_it_fails_cleanly_or_uses_the_overflow),
        WITH_REGISTRY(threads_update_and_scrape_at_once),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
