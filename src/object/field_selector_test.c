/* field_selector_test.c - field selectors: parsing, matching, words for what is wrong. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "base/rng.h"
#include "field_selector.h"

static const struct vg_field_selector *parse(struct vg_slice text)
{
    const struct vg_field_selector *s = NULL;
    VG_AUTO(buf) message = {0};
    if (vg_field_selector_parse(text, &s, &message) != 0)
        fail_msg("cannot parse %.*s: %.*s", VG_SLICE_ARG(text),
                 VG_SLICE_ARG(vg_buf_slice(&message)));
    return s;
}

static const struct vg_field_selector *parse_str(const char *text)
{
    return parse(vg_slice_str(text));
}

/* ---- parsing ---- */

struct row {
    const char *text, *want;
};

/* `canonical` is what the text becomes; parsing it again gives an equal selector. */
static void check_text(struct vg_slice text, struct vg_slice canonical)
{
    const struct vg_field_selector *s = parse(text);
    VG_AUTO(buf) out = {0};
    assert_int_equal(vg_field_selector_append(&out, s), 0);
    vg_assert_slice_equal(vg_buf_slice(&out), canonical);
    const struct vg_field_selector *again = parse(vg_buf_slice(&out));
    assert_true(vg_field_selector_equal(s, again));
    vg_field_selector_free(s);
    vg_field_selector_free(again);
}

static void texts_are_written_back_in_canonical_form(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", ""},
        {",", ""},
        {",,,", ""},
        {"=", ""},
        {"==,!=,=", ""},
        {"x=a,y=b,z=c", "x=a,y=b,z=c"},
        {"x=a,a=x", "a=x,x=a"},
        {"a=x,x=a", "a=x,x=a"},
        {"x!=a,y=b", "x!=a,y=b"},
        {"a=avalue,b==bvalue,c!=cvalue", "a=avalue,b=bvalue,c!=cvalue"},
        {"a=a,", "a=a"},
        {",a=a", "a=a"},
        {"a==z,a=c", "a=z,a=c"}, /* sorted as written, not as meant */
        {"=x", "=x"},
        {"!=x", "!=x"},
        {"a=", "a="},
        {"a!=", "a!="},
        {"a!b=c", "a!b=c"},
        {"a!!=c", "a!!=c"},
        {" a = b ", " a = b "}, /* spaces count */
        {"x=a||y\\=b", "x=a||y\\=b"},
        {"x=a\\=\\=b", "x=a\\=\\=b"},
        {"k=\\,,k2=v2", "k2=v2,k=\\,"},
        {"k=\\\\,k2=v2", "k2=v2,k=\\\\"},
        {"k=\\\\\\,,k2=v2", "k2=v2,k=\\\\\\,"},
        {"a\\,b=c", "a\\,b=c"}, /* no escapes in a field, but the comma is protected */
        {"a\\=b", "a\\=b"},
        {"k\\==", "k\\="},
        {"\xed\x95\xa8=\xec\x88\x98,\xeb\xaa\xa9=\xeb\xa1\x9d",
         "\xeb\xaa\xa9=\xeb\xa1\x9d,\xed\x95\xa8=\xec\x88\x98"},
        {"a=\xff", "a=\xff"},               /* kept as it is, */
        {"a=\xff\\,", "a=\xef\xbf\xbd\\,"}, /* unless something is escaped */
        {"metadata.name=x,metadata.namespace!=y", "metadata.name=x,metadata.namespace!=y"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++)
        check_text(vg_slice_str(rows[i].text), vg_slice_str(rows[i].want));
    check_text(VG_SLICE_LIT("a\0=\0b"), VG_SLICE_LIT("a\0=\0b"));
}

static void check_refused(struct vg_slice text, struct vg_slice want)
{
    const struct vg_field_selector *s = NULL;
    VG_AUTO(buf) message = {0};
    assert_int_equal(vg_field_selector_parse(text, &s, &message), VIGIL_E_INVALID);
    vg_assert_slice_equal(vg_buf_slice(&message), want);
    assert_int_equal(vg_field_selector_parse(text, &s, NULL), VIGIL_E_INVALID);
    assert_null(s);
}

static void mistakes_are_told_as_kube_apiserver_tells_them(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* recorded from a server */
        {"a", "invalid selector: 'a'; can't understand 'a'"},
        {"metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"},
        {"metadata.name=a,b", "invalid selector: 'metadata.name=a,b'; can't understand 'b'"},
        {"metadata.name>a",
         "invalid selector: 'metadata.name>a'; can't understand 'metadata.name>a'"},
        {"metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"},
        {"metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b"},
        {"metadata.name=a=b", "invalid field selector: unescaped character in value: 61"},
        {"metadata.name in (a)",
         "invalid selector: 'metadata.name in (a)'; can't understand 'metadata.name in (a)'"},
        /* from apimachinery's own cases */
        {"x=a||y=b", "invalid field selector: unescaped character in value: 61"},
        {"x==a==b", "invalid field selector: unescaped character in value: 61"},
        {"x===a", "invalid field selector: unescaped character in value: 61"},
        {"x!==a", "invalid field selector: unescaped character in value: 61"},
        {"x=a,b", "invalid selector: 'x=a,b'; can't understand 'b'"},
        {"x in (a,b,c)", "invalid selector: 'x in (a,b,c)'; can't understand 'b'"},
        {"x", "invalid selector: 'x'; can't understand 'x'"},
        {"k=\\", "invalid field selector: invalid escape sequence: \\"},
        {"k=\\\\\\", "invalid field selector: invalid escape sequence: \\"},
        {"k=\\a\\b\\", "invalid field selector: invalid escape sequence: \\a"},
        {"k=\\\xed\x95\xa8", "invalid field selector: invalid escape sequence: \\\xed\x95\xa8"},
        {"k=\\\xff", "invalid field selector: invalid escape sequence: \\\xef\xbf\xbd"},
        {"z=\\,b=c=d,a=1", "invalid field selector: unescaped character in value: 61"},
        {"z,a=b=c", "invalid field selector: unescaped character in value: 61"},
        {"b,a", "invalid selector: 'b,a'; can't understand 'a'"},
        {"!", "invalid selector: '!'; can't understand '!'"},
        {"\\,", "invalid selector: '\\,'; can't understand '\\,'"},
        {" ", "invalid selector: ' '; can't understand ' '"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++)
        check_refused(vg_slice_str(rows[i].text), vg_slice_str(rows[i].want));
    check_refused(VG_SLICE_LIT("a\0b"),
                  VG_SLICE_LIT("invalid selector: 'a\0b'; can't understand 'a\0b'"));
}

static void limits_are_exact(void **state)
{
    (void)state;
    static char text[VG_FIELD_SELECTOR_BYTES_MAX + 1];
    const struct vg_field_selector *s = NULL;
    VG_AUTO(buf) message = {0};
    memset(text, ',', sizeof text);
    check_text(vg_slice(text, VG_FIELD_SELECTOR_BYTES_MAX), VG_SLICE_LIT(""));
    assert_int_equal(vg_field_selector_parse(vg_slice(text, sizeof text), &s, &message),
                     VIGIL_E_TOO_LARGE);
    vg_assert_slice_equal(vg_buf_slice(&message),
                          VG_SLICE_LIT("field selector has more than 65536 bytes"));
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "a=,"[i % 3];
    size_t most = 3 * VG_FIELD_SELECTOR_TERMS_MAX;
    assert_int_equal(vg_field_selector_parse(vg_slice(text, most), &s, NULL), 0);
    assert_int_equal(vg_field_selector_count(s), VG_FIELD_SELECTOR_TERMS_MAX);
    vg_field_selector_free(s);
    assert_int_equal(vg_field_selector_parse(vg_slice(text, most + 1), &s, &message),
                     VIGIL_E_TOO_LARGE);
    vg_assert_slice_equal(vg_buf_slice(&message),
                          VG_SLICE_LIT("field selector has more than 1024 terms"));
    assert_int_equal(vg_field_selector_from_terms(NULL, VG_FIELD_SELECTOR_TERMS_MAX + 1, &s),
                     VIGIL_E_TOO_LARGE);
}

/* ---- matching ---- */

/* An object is text such as "foo=bar;baz=blah;": no escapes, the value runs to the semicolon. */
static struct vg_slice get_by_name(const void *object, const struct vg_field_term *term)
{
    for (const char *at = object; *at; at = strchr(at, ';') + 1) {
        size_t n = strcspn(at, "=");
        if (vg_slice_eq(vg_slice(at, n), term->field))
            return vg_slice(at + n + 1, strcspn(at + n + 1, ";"));
    }
    return vg_slice("", 0);
}

static void fields_match_or_do_not(void **state)
{
    (void)state;
    static const struct {
        const char *selector, *object;
        bool yes;
    } rows[] = {
        {"", "x=y;", true},
        {"x=y", "x=y;", true},
        {"x==y", "x=y;", true},
        {"x=y,z=w", "x=y;z=w;", true},
        {"x!=y,z!=w", "x=z;z=a;", true},
        {"notin=in", "notin=in;", true},
        {"x=y", "x=z;", false},
        {"x=y,z=w", "x=w;z=w;", false},
        {"x!=y,z!=w", "x=z;z=w;", false},
        {"foo=bar,baz=blah", "foo=bar;baz=blah;", true},
        {"foo=bar,baz=blah,complex=\\=value\\\\\\,\\\\", "foo=bar;baz=blah;complex==value\\,\\;",
         true},
        {"foo=blah", "foo=bar;baz=blah;", false},
        {"foo=bar,foobar=bar,baz=blah", "foo=bar;baz=blah;", false},
        {"x=", "y=1;", true}, /* unset reads as empty */
        {"x!=", "y=1;", false},
        {"x!=a", "y=1;", true},
        {"x=a,x=b", "x=a;", false},
        {"x!=a,x!=b", "x=c;", true},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        const struct vg_field_selector *s = parse_str(rows[i].selector);
        if (vg_field_selector_matches(s, get_by_name, rows[i].object) != rows[i].yes)
            fail_msg("%s on %s should be %d", rows[i].selector, rows[i].object, rows[i].yes);
        vg_field_selector_free(s);
    }
}

static void everything_and_nothing_are_what_they_say(void **state)
{
    (void)state;
    const struct vg_field_selector *all = vg_field_selector_everything();
    const struct vg_field_selector *none = vg_field_selector_nothing();
    assert_true(vg_field_selector_matches(all, get_by_name, "x=y;"));
    assert_false(vg_field_selector_matches(none, get_by_name, "x=y;"));
    assert_true(vg_field_selector_is_everything(all));
    assert_false(vg_field_selector_is_everything(none));
    assert_true(vg_field_selector_is_nothing(none));
    assert_false(vg_field_selector_is_nothing(all));
    assert_false(vg_field_selector_equal(all, none));
    assert_ptr_equal(parse_str(""), all);
    assert_ptr_equal(parse_str("="), all);
    struct vg_field_labels kind = {.n = 0};
    const struct vg_field_selector *s = NULL;
    assert_int_equal(vg_field_selector_resolve(none, &kind, &s, NULL), 0);
    assert_ptr_equal(s, none);
    assert_int_equal(vg_field_selector_resolve(all, &kind, &s, NULL), 0);
    assert_ptr_equal(s, all);
    vg_field_selector_free(all);
    vg_field_selector_free(none);
    vg_field_selector_free(NULL);
}

static void a_selector_tells_which_value_it_requires(void **state)
{
    (void)state;
    static const struct {
        const char *selector, *value; /* of test; NULL: none */
    } rows[] = {
        {"", NULL},          {"a=b", NULL},           {"test=b", "b"},
        {"test=", ""},       {"test!=b", NULL},       {"test!=", NULL},
        {"a=b,test=c", "c"}, {"test!=a,test=b", "b"}, {"test=b,test=a", "a"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        const struct vg_field_selector *s = parse_str(rows[i].selector);
        struct vg_slice v = {0};
        bool found = vg_field_selector_requires(s, VG_SLICE_LIT("test"), &v);
        assert_int_equal(found, rows[i].value != NULL);
        vg_assert_slice_equal(v, vg_slice_str(rows[i].value ? rows[i].value : ""));
        vg_field_selector_free(s);
    }
}

static void values_are_escaped_so_that_they_can_be_read_back(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", ""},     {"a", "a"},     {"=", "\\="},
        {",", "\\,"}, {"\\", "\\\\"}, {"\\=\\,\\", "\\\\\\=\\\\\\,\\\\"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        VG_AUTO(buf) b = {0};
        assert_int_equal(vg_buf_printf(&b, "f="), 0);
        assert_int_equal(vg_field_value_append(&b, vg_slice_str(rows[i].text)), 0);
        vg_assert_slice_equal(vg_slice(b.p + 2, b.n - 2), vg_slice_str(rows[i].want));
        const struct vg_field_selector *s = parse(vg_buf_slice(&b));
        struct vg_slice v = {0};
        assert_true(vg_field_selector_requires(s, VG_SLICE_LIT("f"), &v));
        vg_assert_slice_equal(v, vg_slice_str(rows[i].text));
        vg_field_selector_free(s);
    }
}

static void a_selector_is_made_of_terms(void **state)
{
    (void)state;
    char field[] = "spec.nodeName", value[] = "a,b";
    struct vg_field_term term = {.field = vg_slice_str(field),
                                 .value = vg_slice_str(value),
                                 .op = VG_FIELD_NOT_EQUALS,
                                 .index = VG_FIELD_UNRESOLVED};
    const struct vg_field_selector *s = NULL, *same = parse_str("spec.nodeName!=a\\,b");
    assert_int_equal(vg_field_selector_from_terms(&term, 1, &s), 0);
    memset(field, '#', sizeof field);
    memset(value, '#', sizeof value);
    assert_true(vg_field_selector_equal(s, same));
    assert_true(vg_field_selector_size(s) > 0);
    vg_field_selector_free(s);
    vg_field_selector_free(same);
}

static void equality_does_not_ask_for_order(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"a==z,a=c", "a=c,a=z", true},
        {"a=1", "a!=1", false},
        {"a=1", "b=1", false},
        {"a=1", "a=2", false},
        {"a=1,a=1,b=2", "a=1,b=2,b=2", false},
        {"a=1", "", false},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        const struct vg_field_selector *a = parse_str(rows[i].a), *b = parse_str(rows[i].b);
        assert_int_equal(vg_field_selector_equal(a, b), rows[i].equal);
        vg_field_selector_free(a);
        vg_field_selector_free(b);
    }
}

/* ---- the fields of a kind ---- */

#define NAME VG_SLICE_LIT("metadata.name")
#define NAMESPACE VG_SLICE_LIT("metadata.namespace")

static const struct vg_field_label pod_labels[] = {
    {.name = {"metadata.name", 13}, .index = 0},
    {.name = {"spec.host", 9}, .canonical = {"spec.nodeName", 13}, .index = 7},
    {.name = {"spec.nodeName", 13}, .index = 7},
};

static void resolving_gives_canonical_names_and_indexes(void **state)
{
    (void)state;
    struct vg_field_labels pod = {.v = pod_labels, .n = VG_ARRAY_LEN(pod_labels)};
    const struct vg_field_selector *s = parse_str("spec.host=n1,metadata.name!=x"), *r = NULL;
    assert_int_equal(vg_field_selector_at(s, 0).index, VG_FIELD_UNRESOLVED);
    assert_int_equal(vg_field_selector_resolve(s, &pod, &r, NULL), 0);
    VG_AUTO(buf) b = {0};
    assert_int_equal(vg_field_selector_append(&b, r), 0);
    vg_assert_slice_equal(vg_buf_slice(&b), VG_SLICE_LIT("metadata.name!=x,spec.nodeName=n1"));
    assert_int_equal(vg_field_selector_at(r, 0).index, 0);
    assert_int_equal(vg_field_selector_at(r, 1).index, 7);
    struct vg_slice v = {0};
    assert_true(vg_field_selector_requires(r, VG_SLICE_LIT("spec.nodeName"), &v));
    vg_assert_slice_equal(v, VG_SLICE_LIT("n1"));
    vg_field_selector_free(s);
    vg_field_selector_free(r);
}

static void each_kind_refuses_in_its_own_words(void **state)
{
    (void)state;
    static const struct {
        enum vg_field_refusal refusal;
        const char *kind, *text, *want;
    } rows[] = {
        {VG_FIELD_NOT_KNOWN, "", "metadata.uid=x",
         "\"metadata.uid\" is not a known field selector: only \"metadata.name\", "
         "\"metadata.namespace\""},
        {VG_FIELD_NOT_KNOWN, "", "=x",
         "\"\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""},
        {VG_FIELD_NOT_KNOWN, "", "Metadata.Name=x",
         "\"Metadata.Name\" is not a known field selector: only \"metadata.name\", "
         "\"metadata.namespace\""},
        {VG_FIELD_NOT_KNOWN, "", "metadata.name!=a,metadata.bogus=1",
         "\"metadata.bogus\" is not a known field selector: only \"metadata.name\", "
         "\"metadata.namespace\""},
        {VG_FIELD_NOT_KNOWN, "", "a\"\n=1",
         "\"a\\\"\\n\" is not a known field selector: only \"metadata.name\", "
         "\"metadata.namespace\""},
        {VG_FIELD_NOT_SUPPORTED, "", "status.bogus=1", "field label not supported: status.bogus"},
        {VG_FIELD_NOT_SUPPORTED, "", "metadata.name=a,spec.nodeName=x",
         "field label not supported: spec.nodeName"},
        {VG_FIELD_NOT_SUPPORTED_FOR, "Job", "spec.bogus=1",
         "field label \"spec.bogus\" not supported for Job"},
        {VG_FIELD_NOT_SUPPORTED_KIND, "resource.k8s.io/v1, Kind=ResourceSlice", "spec.bogus=1",
         "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.bogus"},
    };
    const struct vg_field_label labels[] = {{.name = NAME, .index = 0},
                                            {.name = NAMESPACE, .index = 1}};
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct vg_field_labels kind = {.v = labels,
                                       .n = VG_ARRAY_LEN(labels),
                                       .refusal = rows[i].refusal,
                                       .kind = vg_slice_str(rows[i].kind)};
        const struct vg_field_selector *s = parse_str(rows[i].text), *r = NULL;
        VG_AUTO(buf) message = {0};
        assert_int_equal(vg_field_selector_resolve(s, &kind, &r, &message), VIGIL_E_INVALID);
        vg_assert_slice_equal(vg_buf_slice(&message), vg_slice_str(rows[i].want));
        assert_int_equal(vg_field_selector_resolve(s, &kind, &r, NULL), VIGIL_E_INVALID);
        assert_null(r);
        vg_field_selector_free(s);
    }
}

/* ---- faults and chance ---- */

static int parse_and_resolve(const char *text, struct vg_buf *message)
{
    struct vg_field_labels pod = {.v = pod_labels, .n = VG_ARRAY_LEN(pod_labels)};
    const struct vg_field_selector *s = NULL, *resolved = NULL;
    int r = vg_field_selector_parse(vg_slice_str(text), &s, message);
    if (r == 0)
        r = vg_field_selector_resolve(s, &pod, &resolved, message);
    vg_field_selector_free(s);
    vg_field_selector_free(resolved);
    return r;
}

static void running_out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    static const char *const texts[] = {"spec.host=a\\,b,metadata.name=x", "spec.bogus=1", "a",
                                        "a=\\b", "a=b=c"};
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++) {
        VG_ALLOC_FAIL_LOOP (n) {
            VG_AUTO(buf) message = {0};
            int r = parse_and_resolve(texts[i], &message);
            if (vg_test_alloc_failed())
                assert_int_equal(r, -ENOMEM);
            else
                assert_int_equal(r, i == 0 ? 0 : VIGIL_E_INVALID);
        }
    }
}

/* Random terms, written with escapes, read back as they were. */
static void check_round(struct vg_rng *rng)
{
    static const char fields[] = "fgh";
    static const char alphabet[] = {'a', 'b', ',', '=', '\\', '!'};
    char bytes[8][6];
    struct vg_field_term terms[8];
    size_t n = 1 + vg_rng_below(rng, VG_ARRAY_LEN(terms));
    for (size_t i = 0; i < n; i++) {
        size_t value_n = vg_rng_below(rng, sizeof bytes[i] + 1);
        for (size_t k = 0; k < value_n; k++)
            bytes[i][k] = alphabet[vg_rng_below(rng, sizeof alphabet)];
        terms[i] = (struct vg_field_term){.field = vg_slice(&fields[vg_rng_below(rng, 3)], 1),
                                          .value = vg_slice(bytes[i], value_n),
                                          .op = (enum vg_field_op)vg_rng_below(rng, 2),
                                          .index = VG_FIELD_UNRESOLVED};
    }
    const struct vg_field_selector *made = NULL;
    VG_AUTO(buf) text = {0};
    assert_int_equal(vg_field_selector_from_terms(terms, n, &made), 0);
    assert_int_equal(vg_field_selector_append(&text, made), 0);
    const struct vg_field_selector *again = parse(vg_buf_slice(&text));
    if (!vg_field_selector_equal(made, again))
        fail_msg("%.*s reads back as another selector", VG_SLICE_ARG(vg_buf_slice(&text)));
    vg_field_selector_free(made);
    vg_field_selector_free(again);
}

static void random_terms_survive_their_text(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (int i = 0; i < (vg_test_is_long() ? 500000 : 5000); i++)
        check_round(&rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_written_back_in_canonical_form),
        cmocka_unit_test(mistakes_are_told_as_kube_apiserver_tells_them),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(fields_match_or_do_not),
        cmocka_unit_test(everything_and_nothing_are_what_they_say),
        cmocka_unit_test(a_selector_tells_which_value_it_requires),
        cmocka_unit_test(values_are_escaped_so_that_they_can_be_read_back),
        cmocka_unit_test(a_selector_is_made_of_terms),
        cmocka_unit_test(equality_does_not_ask_for_order),
        cmocka_unit_test(resolving_gives_canonical_names_and_indexes),
        cmocka_unit_test(each_kind_refuses_in_its_own_words),
        cmocka_unit_test(running_out_of_memory_leaves_nothing_behind),
        cmocka_unit_test(random_terms_survive_their_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
