/* log_test.c - what a line looks like, that values cannot forge one, and switching by component. */
#include "test_support.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "log_sink.h"

#define WALL_MS INT64_C(1704067200123)

/* Keeps the last line of each kind; for one thread. */
struct kept {
    int calls;
    enum vg_log_level level;
    char text[VG_LOG_LINE_MAX + 1];
    char json[VG_LOG_LINE_MAX + 1];
};

static void keep(void *arg, const struct vg_log_record *rec)
{
    struct kept *k = arg;
    k->calls++;
    k->level = rec->level;
    k->text[vg_log_line(k->text, VG_LOG_LINE_MAX, VG_LOG_TEXT, WALL_MS, rec)] = '\0';
    k->json[vg_log_line(k->json, VG_LOG_LINE_MAX, VG_LOG_JSON, WALL_MS, rec)] = '\0';
}

#define TEXT_HEAD "2024-01-01T00:00:00.123Z warn cacher "
#define JSON_HEAD                                                                                  \
    "{\"ts\":\"2024-01-01T00:00:00.123Z\",\"level\":\"warn\",\"component\":\"cacher\","

static void a_line_has_time_level_component_event_and_fields(void **state)
{
    (void)state;
    struct kept k = {0};
    struct vg_log log;
    vg_log_init(&log, "cacher", keep, &k, VG_LOG_INFO);
    vg_warn(&log, "watch_expired", "rv=%" PRIu64 " user=%s share=%.1f", UINT64_C(42), "bob", 0.5);
    assert_string_equal(k.text, TEXT_HEAD "watch_expired rv=42 user=bob share=0.5\n");
    assert_string_equal(k.json, JSON_HEAD "\"event\":\"watch_expired\",\"rv\":42,\"user\":\"bob\","
                                          "\"share\":\"0.5\"}\n");
    assert_int_equal(k.level, VG_LOG_WARN);
    vg_log_done(&log);
}

static void an_event_needs_no_fields(void **state)
{
    (void)state;
    struct kept k = {0};
    struct vg_log log;
    vg_log_init(&log, "cacher", keep, &k, VG_LOG_INFO);
    vg_warn(&log, "started");
    assert_string_equal(k.text, TEXT_HEAD "started\n");
    assert_string_equal(k.json, JSON_HEAD "\"event\":\"started\"}\n");
}

static void a_log_that_is_off_evaluates_and_calls_nothing(void **state)
{
    (void)state;
    struct kept k = {0};
    struct vg_log log;
    int evaluated = 0;
    vg_log_init(&log, "cacher", keep, &k, VG_LOG_WARN);
    vg_info(&log, "quiet", "n=%d", ++evaluated);
    vg_debug(&log, "quiet", "n=%d", ++evaluated);
    vg_error(NULL, "nobody", "n=%d", ++evaluated);
    assert_int_equal(evaluated, 0);
    assert_int_equal(k.calls, 0);
    vg_error(&log, "loud", "n=%d", ++evaluated);
    assert_int_equal(k.calls, 1);
}

static void check_value(const char *value, const char *text, const char *json)
{
    struct kept k = {0};
    struct vg_log log;
    char want[256];
    vg_log_init(&log, "cacher", keep, &k, VG_LOG_INFO);
    vg_warn(&log, "e", "a=%s b=%d", value, 7);
    snprintf(want, sizeof want, TEXT_HEAD "e a=%s b=7\n", text);
    assert_string_equal(k.text, want);
    snprintf(want, sizeof want, JSON_HEAD "\"event\":\"e\",\"a\":%s,\"b\":7}\n", json);
    assert_string_equal(k.json, want);
}

static void values_cannot_forge_lines_or_fields(void **state)
{
    (void)state;
    check_value("x\n2024 error", "\"x\\n2024 error\"", "\"x\\n2024 error\"");
    check_value("x b=8", "\"x b=8\"", "\"x b=8\"");
    check_value("a=b", "\"a=b\"", "\"a=b\"");
    check_value("", "\"\"", "\"\"");
    check_value("\"},{", "\"\\\"},{\"", "\"\\\"},{\"");
    check_value("back\\slash", "\"back\\\\slash\"", "\"back\\\\slash\"");
    check_value("\r\t\x1b[31m\x7f", "\"\\r\\t\\u001b[31m\\u007f\"", "\"\\r\\t\\u001b[31m\\u007f\"");
    check_value("12", "12", "\"12\"");
}

static void values_are_valid_utf8_in_the_line(void **state)
{
    (void)state;
    check_value("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"",
                "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
    check_value("\xFFz\xC3", "\"\\xffz\\xc3\"", "\"\\ufffdz\\ufffd\"");
    check_value("\xC0\x80", "\"\\xc0\\x80\"", "\"\\ufffd\\ufffd\"");
    check_value("\xED\xA0\x80", "\"\\xed\\xa0\\x80\"", "\"\\ufffd\\ufffd\\ufffd\"");
    check_value("\xF5\x80\x80\x80", "\"\\xf5\\x80\\x80\\x80\"", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
    check_value("\xE0\x80\x80", "\"\\xe0\\x80\\x80\"", "\"\\ufffd\\ufffd\\ufffd\"");
    check_value("\xC2\x9B", "\"\\u009b\"", "\"\\u009b\"");     /* C1: a terminal's CSI */
    check_value("\xE2\x80\xA8", "\"\\u2028\"", "\"\\u2028\""); /* line separator */
}

static void a_value_with_our_marks_becomes_one_quoted_text(void **state)
{
    (void)state;
    struct kept k = {0};
    struct vg_log log;
    vg_log_init(&log, "cacher", keep, &k, VG_LOG_INFO);
    vg_warn(&log, "e", "a=%s b=%d", "x\x02level=\x01y", 7);
    assert_string_equal(k.text, TEXT_HEAD "e msg=\"a=x\\u0002level=\\u0001y b=7\"\n");
    vg_warn(&log, "e", "a=%c%c b=%d", 'x', '\0', 7);
    assert_string_equal(k.text, TEXT_HEAD "e a=\"x\\u0000\" b=7\n");
}

static void text_without_keys_is_kept_whole(void **state)
{
    (void)state;
    struct kept k = {0};
    struct vg_log log;
    vg_log_init(&log, "cacher", keep, &k, VG_LOG_INFO);
    vg_warn(&log, "e", "just %s", "words");
    assert_string_equal(k.text, TEXT_HEAD "e msg=\"just words\"\n");
    vg_warn(&log, "e", "k=1 word");
    assert_string_equal(k.text, TEXT_HEAD "e msg=\"k=1 word\"\n");
    vg_warn(&log, "e", "k=%05d", 42);
    assert_string_equal(k.json, JSON_HEAD "\"event\":\"e\",\"k\":\"00042\"}\n");
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static void long_text_is_cut_and_says_so(void **state)
{
    (void)state;
    static char huge[20000];
    struct kept k = {0};
    struct vg_log log;
    vg_log_init(&log, "cacher", keep, &k, VG_LOG_INFO);
    memset(huge, 'h', sizeof huge - 1);
    vg_warn(&log, "e", "a=%s b=%d", huge, 7);
    assert_true(ends_with(k.text, "hh\" truncated=true\n")); /* msg holds an '=', so it is quoted */
    assert_true(ends_with(k.json, "hh\",\"truncated\":true}\n"));
    memset(huge, '\n', 4000); /* fits the detail, but not the line once escaped as JSON */
    memset(huge + 1000, '\x01', 3000);
    huge[4000] = '\0';
    vg_warn(&log, "e", "a=%s", huge);
    assert_true(ends_with(k.text, "\\u0001\" truncated=true\n"));
    assert_true(ends_with(k.json, "\\u0001\",\"truncated\":true}\n"));
    assert_true(strchr(k.text, '\n') == k.text + strlen(k.text) - 1);
}

static void any_line_size_gives_one_whole_line(void **state)
{
    (void)state;
    char line[700];
    char value[600];
    memset(value, 'v', sizeof value);
    for (size_t n = 350; n < 600; n++) {
        struct vg_log_field fields[] = {{VG_SLICE_LIT("k"), {value, n}, false},
                                        {VG_SLICE_LIT("number"), VG_SLICE_LIT("123"), true}};
        struct vg_log_record rec = {VG_LOG_INFO, "c", "e", fields, 2, false};
        size_t text = vg_log_line(line, 512, VG_LOG_TEXT, 0, &rec);
        assert_in_range(text, 1, 512);
        assert_int_equal(line[text - 1], '\n');
        size_t json = vg_log_line(line, 512, VG_LOG_JSON, 0, &rec);
        assert_in_range(json, 1, 512);
        assert_memory_equal(line + json - 2, "}\n", 2);
    }
}

static void a_spec_switches_components(void **state)
{
    (void)state;
    struct kept k = {0};
    struct vg_log_root root;
    struct vg_log h2, tls, loop, late;
    vg_log_root_init(&root, keep, &k);
    vg_log_root_add(&root, &h2, "h2");
    vg_log_root_add(&root, &tls, "tls");
    vg_log_root_add(&root, &loop, "loop");
    assert_true(vg_log_is_on(&h2, VG_LOG_INFO));
    assert_false(vg_log_is_on(&h2, VG_LOG_DEBUG));
    assert_int_equal(vg_log_root_set(&root, VG_LOG_WARN, "h2,late,-tls", NULL), 0);
    vg_log_root_add(&root, &late, "late");
    assert_true(vg_log_is_on(&h2, VG_LOG_DEBUG));
    assert_true(vg_log_is_on(&late, VG_LOG_DEBUG));
    assert_true(vg_log_is_on(&tls, VG_LOG_ERROR));
    assert_false(vg_log_is_on(&tls, VG_LOG_WARN));
    assert_true(vg_log_is_on(&loop, VG_LOG_WARN));
    assert_false(vg_log_is_on(&loop, VG_LOG_INFO));
    assert_int_equal(vg_log_root_set(&root, VG_LOG_INFO, "all=error,h2=warn", NULL), 0);
    assert_false(vg_log_is_on(&loop, VG_LOG_WARN));
    assert_true(vg_log_is_on(&h2, VG_LOG_WARN));
    assert_false(vg_log_is_on(&h2, VG_LOG_INFO));
    vg_log_done(&h2);
    vg_log_done(&h2);
    vg_log_done(&tls);
    vg_log_done(&loop);
    vg_log_done(&late);
    vg_log_done(NULL);
    vg_log_root_done(&root);
}

static void a_malformed_spec_changes_nothing(void **state)
{
    (void)state;
    struct vg_log_root root;
    struct vg_log h2;
    struct vg_status status;
    char huge[VG_LOG_SPEC_MAX + 1];
    const char *const bad[] = {",h2", "h2,,tls", "-",        "h2=loud", "=info",
                               "h 2", "H2",      "-h2=info", huge};
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    vg_log_root_init(&root, keep, NULL);
    vg_log_root_add(&root, &h2, "h2");
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++) {
        int r = vg_log_root_set(&root, VG_LOG_DEBUG, bad[i], &status);
        assert_int_equal(r, VIGIL_E_INVALID);
        assert_false(vg_log_is_on(&h2, VG_LOG_DEBUG));
    }
    assert_int_equal(vg_log_root_set(&root, VG_LOG_DEBUG, "", &status), 0);
    assert_true(vg_log_is_on(&h2, VG_LOG_DEBUG));
    vg_log_done(&h2);
    vg_log_root_done(&root);
}

static void levels_have_names_both_ways(void **state)
{
    (void)state;
    for (int i = VG_LOG_ERROR; i <= VG_LOG_DEBUG; i++) {
        enum vg_log_level level;
        const char *name = vg_log_level_name((enum vg_log_level)i);
        assert_int_equal(vg_log_level_parse(vg_slice_str(name), &level), 0);
        assert_int_equal(level, i);
    }
    enum vg_log_level level;
    assert_int_equal(vg_log_level_parse(VG_SLICE_LIT("Info"), &level), VIGIL_E_INVALID);
}

/* many threads on one sink while another switches */

#define WRITERS 4
#define LINES_EACH 300

struct crowd {
    struct vg_log_root root;
    struct vg_log log;
};

static void write_or_switch(unsigned index, void *arg)
{
    struct crowd *c = arg;
    for (int i = 0; i < LINES_EACH; i++) {
        if (index < WRITERS)
            vg_info(&c->log, "line", "thread=%u n=%d pad=%s", index, i, "pppppppppppppppppppppppp");
        else
            assert_int_equal(vg_log_root_set(&c->root, VG_LOG_INFO, i % 2 ? "x" : "crowd", NULL),
                             0);
    }
}

/* Each line must be whole and, per thread, in order. */
static void check_lines(FILE *f)
{
    char line[512];
    int next[WRITERS] = {0}, total = 0;
    for (; fgets(line, sizeof line, f); total++) {
        unsigned thread;
        int n;
        char pad[64];
        int got = sscanf(line, "%*s info crowd line thread=%u n=%d pad=%63s", &thread, &n, pad);
        assert_int_equal(got, 3);
        assert_in_range(thread, 0, WRITERS - 1);
        assert_int_equal(n, next[thread]++);
        assert_string_equal(pad, "pppppppppppppppppppppppp");
    }
    assert_int_equal(total, WRITERS * LINES_EACH);
}

static void threads_write_whole_lines_while_switches_move(void **state)
{
    (void)state;
    struct crowd c;
    struct vg_log_sink sink;
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_true(fcntl(fileno(f), F_SETFL, O_APPEND) == 0);
    vg_log_sink_init(&sink, fileno(f), VG_LOG_TEXT, vg_clock_system());
    vg_log_root_init(&c.root, vg_log_sink_write, &sink);
    vg_log_root_add(&c.root, &c.log, "crowd");
    vg_test_threads(WRITERS + 1, write_or_switch, &c);
    rewind(f);
    check_lines(f);
    assert_int_equal(sink.lost, 0);
    vg_log_done(&c.log);
    vg_log_root_done(&c.root);
    fclose(f);
}

static void a_line_that_cannot_be_written_is_counted(void **state)
{
    (void)state;
    struct vg_log_sink sink;
    struct vg_log log;
    vg_log_sink_init(&sink, -1, VG_LOG_JSON, vg_clock_system());
    vg_log_init(&log, "cacher", vg_log_sink_write, &sink, VG_LOG_INFO);
    vg_info(&log, "gone");
    vg_info(&log, "gone");
    assert_int_equal(sink.lost, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_time_level_component_event_and_fields),
        cmocka_unit_test(an_event_needs_no_fields),
        cmocka_unit_test(a_log_that_is_off_evaluates_and_calls_nothing),
        cmocka_unit_test(values_cannot_forge_lines_or_fields),
        cmocka_unit_test(values_are_valid_utf8_in_the_line),
        cmocka_unit_test(a_value_with_our_marks_becomes_one_quoted_text),
        cmocka_unit_test(text_without_keys_is_kept_whole),
        cmocka_unit_test(long_text_is_cut_and_says_so),
        cmocka_unit_test(any_line_size_gives_one_whole_line),
        cmocka_unit_test(a_spec_switches_components),
        cmocka_unit_test(a_malformed_spec_changes_nothing),
        cmocka_unit_test(levels_have_names_both_ways),
        cmocka_unit_test(threads_write_whole_lines_while_switches_move),
        cmocka_unit_test(a_line_that_cannot_be_written_is_counted),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
