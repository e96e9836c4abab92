/* label_parse_test.c - selectors' texts: their canonical form, mistakes, limits. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "label_selector.h"
#include "validate_name_testing.h"

#define REQ "unable to parse requirement: "
#define OPERATORS "expected: in, notin, =, ==, !=, gt, lt"
#define NOT_INTEGER "for 'Gt', 'Lt' operators, the value must be an integer"

static void check_sound(const struct vg_label_selector *s)
{
    if (!vg_label_selector_is_sound(s))
        fail_msg("the selector breaks an invariant");
}

/* `canonical` is what the text becomes, and stays when parsed again. */
static void check_text(struct vg_slice text, const char *canonical)
{
    const struct vg_label_selector *s = NULL, *again = NULL;
    VG_AUTO(buf) message = {0};
    VG_AUTO(buf) out = {0};
    int r = vg_label_selector_parse(text, &s, &message);
    if (r != 0)
        printf("\"%.*s\": %.*s\n", VG_SLICE_ARG(text), VG_SLICE_ARG(vg_buf_slice(&message)));
    assert_int_equal(r, 0);
    check_sound(s);
    assert_int_equal(vg_label_selector_append(&out, s), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(canonical));
    assert_int_equal(vg_label_selector_parse(vg_buf_slice(&out), &again, NULL), 0);
    assert_true(vg_label_selector_equal(s, again));
    vg_label_selector_free(s);
    vg_label_selector_free(again);
}

static void check_refused(struct vg_slice text, const char *want)
{
    static const char untouched;
    const struct vg_label_selector *s = (const void *)&untouched;
    VG_AUTO(buf) message = {0};
    assert_int_equal(vg_label_selector_parse(text, &s, &message), VIGIL_E_INVALID);
    vg_assert_slice_equal(vg_buf_slice(&message), vg_slice_str(want));
    assert_int_equal(vg_label_selector_parse(text, &s, NULL), VIGIL_E_INVALID);
    assert_ptr_equal(s, &untouched);
}

struct row {
    const char *text, *want;
};

static void texts_are_written_back_in_canonical_form(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"x=a,y=b,z=c", "x=a,y=b,z=c"},
        {"", ""},
        {" \t\r\n", ""},
        {"x!=a,y=b", "x!=a,y=b"},
        {"x=", "x="},
        {"x= ", "x="},
        {"x=,z= ", "x=,z="},
        {"x= ,z= ", "x=,z="},
        {"!x", "!x"},
        {"! x", "!x"},
        {"x>1", "x>1"},
        {"x>1,z<5", "x>1,z<5"},
        {"x > 007", "x>007"},
        {"x<9223372036854775807", "x<9223372036854775807"},
        {"x==a", "x==a"},
        {"x=a,a=x", "a=x,x=a"},
        {"a=x,x=a", "a=x,x=a"},
        {"\rx", "x"},
        {"a ", "a"},
        {"this-is-a-dns.domain.com/key-with-dash", "this-is-a-dns.domain.com/key-with-dash"},
        {"this-is-another-dns.domain.com/key-with-dash in (so,what)",
         "this-is-another-dns.domain.com/key-with-dash in (so,what)"},
        {"0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)",
         "0.1.2.domain/99 notin (10.10.100.1,tick.tack.clock)"},
        {"foo  in\t (abc)", "foo in (abc)"},
        {"x notin\n (abc)", "x notin (abc)"},
        {"x  notin\t\t\t(abc,def)", "x notin (abc,def)"},
        {"x in (def,abc)", "x in (abc,def)"},
        {"x in(abc)", "x in (abc)"},
        {"x in (abc,)", "x in (,abc)"},
        {"x in (,abc)", "x in (,abc)"},
        {"x in (abc,abc)", "x in (abc)"},
        {"x in ()", "x in ()"},
        {"x in (,)", "x in ()"},
        {"x in (,,)", "x in ()"},
        {"x in (a,,)", "x in (,a)"},
        {"x in (a,,,)", "x in (,a)"},
        {"x in (a,,,,,,)", "x in (,a)"},
        {"x in (a,,a,,a,,a,,)", "x in (,a)"},
        {"x in (,a,)", "x in (,a)"},
        {"x notin (abc,,def),bar,z in (),w", "bar,w,x notin (,abc,def),z in ()"},
        {"x,y in (a)", "x,y in (a)"},
        {"x=a,y!=b,z in (h,i,j)", "x=a,y!=b,z in (h,i,j)"},
        {"x notin ( )", "x notin ()"},
        {"x notin (, a)", "x notin (,a)"},
        {"a in (x,y,notin, z,in)", "a in (in,notin,x,y,z)"},
        {"x=abc,y==jkl,z!=a,z", "x=abc,y==jkl,z!=a,z"},
        {"z,z!=a,y", "y,z,z!=a"},
        {"z!=a,z,z=b,!z", "z!=a,z,z=b,!z"},
        {"in", "in"},
        {"notin", "notin"},
        {"!in", "!in"},
        {"in in (in)", "in in (in)"},
        {"notin notin (notin)", "notin notin (notin)"},
        {"in=in,notin!=notin", "in=in,notin!=notin"},
        {"x in (A,a,B,b,1)", "x in (1,A,B,a,b)"},
        {"x=" X63("a"), "x=" X63("a")},
        {X253("a") "/" X63("b"), X253("a") "/" X63("b")},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++)
        check_text(vg_slice_str(rows[i].text), rows[i].want);
}

static void mistakes_are_told_as_kube_apiserver_tells_them(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* recorded from a server */
        {"a b", REQ "found 'b', " OPERATORS},
        {"a=b=c", "found '=', expected: ',' or 'end of string'"},
        {"=", "found '=', expected: !, identifier, or 'end of string'"},
        {"a in", REQ "found '' expected: '('"},
        {"a in (", REQ "found '', expected: ',', ')' or identifier"},
        {"a in (b", REQ "found '', expected: ',' or ')'"},
        {"a notin b", REQ "found 'b' expected: '('"},
        {"!", REQ "found '', expected: identifier"},
        {"!!a", REQ "found '!', expected: identifier"},
        {",", "found ',', expected: !, identifier, or 'end of string'"},
        {"a,", "found '', expected: identifier after ','"},
        {"a=-b", REQ "values[0][a]: Invalid value: \"-b\": " VALUE_RULE},
        {"a=b c", "found 'c', expected: ',' or 'end of string'"},
        {"-a=b", REQ "<nil>: Invalid value: \"-a\": name part " KEY_RULE},
        {"a/b/c=d", REQ "<nil>: Invalid value: \"a/b/c\": a valid label key " KEY_RULE
                        " with an optional DNS subdomain prefix and '/' (e.g. "
                        "'example.com/MyName')"},
        {"A_/x=d", REQ "<nil>: Invalid value: \"A_/x\": prefix part " SUBDOMAIN_RULE},
        {"a>b", REQ "values[0]: Invalid value: \"b\": " NOT_INTEGER},
        {"a>1,b<x", REQ "values[0]: Invalid value: \"x\": " NOT_INTEGER},
        {"a=" X63("x") "x",
         REQ "values[0][a]: Invalid value: \"" X63("x") "x\": must be no more than 63 bytes"},
        {X63("k") "k",
         REQ "<nil>: Invalid value: \"" X63("k") "k\": name part must be no more than 63 bytes"},
        {"a=b,c===d", REQ "found '=', expected: identifier"},
        {"(a)", "found '(', expected: !, identifier, or 'end of string'"},
        {"a!b", REQ "found '!', " OPERATORS},
        {"\xc3\xa9=x", REQ "<nil>: Invalid value: \"\xc3\xa9\": name part " KEY_RULE},
        {"a in (b c)", REQ "found 'c', expected: ',' or ')'"},
        /* from apimachinery's own cases and its grammar */
        {"x=a||y=b", REQ "values[0][x]: Invalid value: \"a||y\": " VALUE_RULE},
        {"x==a==b", "found '==', expected: ',' or 'end of string'"},
        {"!x=a", "found '=', expected: ',' or 'end of string'"},
        {"!x in (a)", "found 'in', expected: ',' or 'end of string'"},
        {"x<a", REQ "values[0]: Invalid value: \"a\": " NOT_INTEGER},
        {"x>", REQ "values[0]: Invalid value: \"\": " NOT_INTEGER},
        {"x>9223372036854775808",
         REQ "values[0]: Invalid value: \"9223372036854775808\": " NOT_INTEGER},
        {"x>-1", REQ "values[0][x]: Invalid value: \"-1\": " VALUE_RULE},
        {"x<-", REQ "[values[0]: Invalid value: \"-\": " NOT_INTEGER
                    ", values[0][x]: Invalid value: \"-\": " VALUE_RULE "]"},
        {"x in (-b,ok,-a)", REQ "[values[0][x]: Invalid value: \"-a\": " VALUE_RULE
                                ", values[1][x]: Invalid value: \"-b\": " VALUE_RULE "]"},
        {"x in (ok,_)", REQ "values[0][x]: Invalid value: \"_\": " VALUE_RULE},
        {"x,,y", "found ',', expected: identifier after ','"},
        {",x,y", "found ',', expected: !, identifier, or 'end of string'"},
        {"x nott in (y)", REQ "found 'nott', " OPERATORS},
        {"a in (xyz),", "found '', expected: identifier after ','"},
        {"a in (xyz)b notin ()", "found 'b', expected: ',' or 'end of string'"},
        {"a in (xyz abc)", REQ "found 'abc', expected: ',' or ')'"},
        {"a notin(", REQ "found '', expected: ',', ')' or identifier"},
        {"a (", REQ "found '(', " OPERATORS},
        {"(", "found '(', expected: !, identifier, or 'end of string'"},
        {")", "found ')', expected: !, identifier, or 'end of string'"},
        {"a exists", REQ "found 'exists', " OPERATORS},
        {"a in (,", REQ "found '', expected: ',', or identifier"},
        {"a in (b,", REQ "found '', expected: ',', or identifier"},
        {"a in (b,=)", REQ "found '=', expected: ',', or identifier"},
        {"a in (b(", REQ "found '(', expected: ',' or ')'"},
        {"a in (=)", REQ "found '=', expected: ',', ')' or identifier"},
        {"a in =b", REQ "found '=' expected: '('"},
        {"a==)", REQ "found ')', expected: identifier"},
        {"x = = a", REQ "found '=', expected: identifier"},
        {"a>=1", REQ "found '=', expected: identifier"},
        {"a=!b", REQ "found '!', expected: identifier"},
        {"a,=", "found '=', expected: identifier after ','"},
        {"a,!", REQ "found '', expected: identifier"},
        {"a)", REQ "found ')', " OPERATORS},
        {"!,a", REQ "found ',', expected: identifier"},
        {"/a", REQ "<nil>: Invalid value: \"/a\": prefix part must be non-empty"},
        {"a/",
         REQ "<nil>: Invalid value: \"a/\": name part must be non-empty; name part " KEY_RULE},
        {"~", REQ "<nil>: Invalid value: \"~\": name part " KEY_RULE},
        {"a=\"q\"", REQ "values[0][a]: Invalid value: \"\\\"q\\\"\": " VALUE_RULE},
        {"a=\xff", REQ "values[0][a]: Invalid value: \"\\xff\": " VALUE_RULE},
        {"a \xff", REQ "found '\xff', " OPERATORS},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++)
        check_refused(vg_slice_str(rows[i].text), rows[i].want);
}

static void a_nul_byte_separates_after_a_token_and_ends_before_one(void **state)
{
    (void)state;
    check_text(VG_SLICE_LIT("\0a b c"), "");
    check_text(VG_SLICE_LIT("a\0"), "a");
    check_text(VG_SLICE_LIT("a \0b"), "a");
    check_text(VG_SLICE_LIT("a=\0b"), "a=b");
    check_text(VG_SLICE_LIT("a=\0\0b"), "a=");
    check_refused(VG_SLICE_LIT("a\0b"), REQ "found 'b', " OPERATORS);
    check_refused(VG_SLICE_LIT("a,\0\0"), "found '', expected: identifier after ','");
}

static void check_too_large(struct vg_slice text, const char *want)
{
    const struct vg_label_selector *s = NULL;
    VG_AUTO(buf) message = {0};
    assert_int_equal(vg_label_selector_parse(text, &s, &message), VIGIL_E_TOO_LARGE);
    vg_assert_slice_equal(vg_buf_slice(&message), vg_slice_str(want));
    assert_null(s);
}

static void limits_are_exact(void **state)
{
    (void)state;
    static char text[VG_LABEL_SELECTOR_BYTES_MAX + 1];
    memset(text, ' ', sizeof text);
    check_text(vg_slice(text, VG_LABEL_SELECTOR_BYTES_MAX), "");
    check_too_large(vg_slice(text, sizeof text), "label selector has more than 65536 bytes");
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 2 ? ',' : 'a';
    const struct vg_label_selector *s = NULL;
    size_t most = 2 * VG_LABEL_SELECTOR_REQUIREMENTS_MAX - 1;
    assert_int_equal(vg_label_selector_parse(vg_slice(text, most), &s, NULL), 0);
    assert_int_equal(vg_label_selector_count(s), VG_LABEL_SELECTOR_REQUIREMENTS_MAX);
    vg_label_selector_free(s);
    check_too_large(vg_slice(text, most + 2), "label selector has more than 1024 requirements");
}

static void complaints_about_values_are_bounded(void **state)
{
    (void)state;
    VG_AUTO(buf) text = {0};
    VG_AUTO(buf) message = {0};
    const struct vg_label_selector *s = NULL;
    assert_int_equal(vg_buf_printf(&text, "a in ("), 0);
    for (int i = 0; i < 8000; i++)
        assert_int_equal(vg_buf_printf(&text, "-%d,", i), 0);
    assert_int_equal(vg_buf_append_byte(&text, ')'), 0);
    assert_int_equal(vg_label_selector_parse(vg_buf_slice(&text), &s, &message), VIGIL_E_INVALID);
    assert_true(message.n < 400 * VG_LABEL_SELECTOR_COMPLAINTS_MAX);
    assert_memory_equal(message.p + message.n - 2, ")]", 2);
}

static void many_values_make_a_set(void **state)
{
    (void)state;
    VG_AUTO(buf) text = {0};
    const struct vg_label_selector *s = NULL;
    assert_int_equal(vg_buf_printf(&text, "a in ("), 0);
    for (int i = 0; i < 9000; i++)
        assert_int_equal(vg_buf_printf(&text, "%dx,", i % 1000), 0);
    assert_int_equal(vg_buf_append_byte(&text, ')'), 0);
    assert_int_equal(vg_label_selector_parse(vg_buf_slice(&text), &s, NULL), 0);
    check_sound(s);
    assert_int_equal(vg_label_selector_at(s, 0)->values_n, 1001); /* and the empty one */
    vg_label_selector_free(s);
}

static void running_out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    static const char *const texts[] = {"b in (x,y),a=1,!c", "a in (-1,-2)", "a b", "-a", "a>x"};
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++) {
        VG_ALLOC_FAIL_LOOP (n) {
            const struct vg_label_selector *s = NULL;
            VG_AUTO(buf) message = {0};
            int r = vg_label_selector_parse(vg_slice_str(texts[i]), &s, &message);
            if (vg_test_alloc_failed())
                assert_int_equal(r, -ENOMEM);
            else
                assert_int_equal(r, i == 0 ? 0 : VIGIL_E_INVALID);
            vg_label_selector_free(s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_written_back_in_canonical_form),
        cmocka_unit_test(mistakes_are_told_as_kube_apiserver_tells_them),
        cmocka_unit_test(a_nul_byte_separates_after_a_token_and_ends_before_one),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(complaints_about_values_are_bounded),
        cmocka_unit_test(many_values_make_a_set),
        cmocka_unit_test(running_out_of_memory_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
