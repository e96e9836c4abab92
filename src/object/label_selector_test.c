/* label_selector_test.c - which labels a selector matches. */
#include "test_support.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "label_selector.h"
#include "label_selector_int.h"
#include "labels_testing.h"

static const struct vg_label_selector *parse(const char *text)
{
    const struct vg_label_selector *s = NULL;
    int r = vg_label_selector_parse(vg_slice_str(text), &s, NULL);
    if (r != 0)
        fail_msg("cannot parse %s", text);
    return s;
}

static bool matches(const char *selector, const char *labels)
{
    struct vg_test_labels t;
    const struct vg_label_selector *s = parse(selector);
    bool yes = vg_label_selector_matches(s, vg_test_labels(&t, labels));
    vg_label_selector_free(s);
    return yes;
}

static void labels_match_or_do_not(void **state)
{
    (void)state;
    static const struct {
        const char *selector, *labels;
        bool yes;
    } rows[] = {
        {"", "x=y", true},
        {"", "", true},
        {"x=y", "x=y", true},
        {"x==y", "x=y", true},
        {"x=y,z=w", "x=y,z=w", true},
        {"x!=y,z!=w", "x=z,z=a", true},
        {"notin=in", "notin=in", true},
        {"x", "x=z", true},
        {"x", "x=", true},
        {"!x", "y=z", true},
        {"!x", "", true},
        {"x>1", "x=2", true},
        {"x<1", "x=0", true},
        {"x=z", "", false},
        {"x=y", "x=z", false},
        {"x=y,z=w", "x=w,z=w", false},
        {"x!=y,z!=w", "x=z,z=w", false},
        {"x", "y=z", false},
        {"!x", "x=z", false},
        {"x>1", "x=0", false},
        {"x>1", "x=1", false},
        {"x<1", "x=2", false},
        {"x<1", "x=1", false},
        {"foo=bar", "foo=bar,baz=blah", true},
        {"baz=blah", "foo=bar,baz=blah", true},
        {"foo=bar,baz=blah", "foo=bar,baz=blah", true},
        {"foo=blah", "foo=bar,baz=blah", false},
        {"baz=bar", "foo=bar,baz=blah", false},
        {"foo=bar,foobar=bar,baz=blah", "foo=bar,baz=blah", false},
        {"x in (foo),y notin (alpha)", "x=foo,y=baz", true},
        {"x in (foo),y in (alpha)", "x=foo,y=baz", false},
        {"x notin (),y", "y=", true},
        {"!x,y", "y=", true},
        {"x notin (),!y", "y=", false},
        {"x in ()", "y=baz", false},
        {"x in ()", "x=", true},
        {"x notin ()", "x=", false},
        {"x=", "x=", true},
        {"x=", "", false},
        {"x!=", "", true},
        {"x!=", "x=", false},
        {"z>1", "z=2", true},
        {"z>1", "z=v2", false},
        {"z>1", "z=", false},
        {"z>1", "", false},
        {"z<1", "", false},
        {"z<1", "z=9223372036854775808", false},
        {"z>9223372036854775806", "z=9223372036854775807", true},
        {"z<10", "z=0009", true},
        {"z>1,z<5", "z=3", true},
        {"z>1,z<5", "z=5", false},
        {"a,!a", "a=1", false},
        {"a,!a", "", false},
        {"a=1,a=2", "a=1", false},
        {"a in (1,2),a in (2,3)", "a=2", true},
        {"x in (a,b,c,d,e,f,g)", "x=g", true},
        {"x in (a,b,c,d,e,f,g)", "x=gg", false},
        {"x notin (a,b,c,d,e,f,g)", "x=", true},
        {"x=Y", "x=y", false},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        bool yes = matches(rows[i].selector, rows[i].labels);
        if (yes != rows[i].yes)
            fail_msg("%s on %s: %d", rows[i].selector, rows[i].labels, yes);
    }
}

static void everything_and_nothing_are_what_they_say(void **state)
{
    (void)state;
    struct vg_test_labels t;
    const struct vg_labels *l = vg_test_labels(&t, "x=y");
    const struct vg_label_selector *all = vg_label_selector_everything();
    const struct vg_label_selector *none = vg_label_selector_nothing();
    assert_true(vg_label_selector_matches(all, l));
    assert_false(vg_label_selector_matches(none, l));
    assert_true(vg_label_selector_is_everything(all));
    assert_false(vg_label_selector_is_everything(none));
    assert_true(vg_label_selector_is_nothing(none));
    assert_false(vg_label_selector_is_nothing(all));
    assert_false(vg_label_selector_equal(all, none));
    assert_ptr_equal(parse(""), all);
    assert_ptr_equal(parse("  "), all);
    VG_AUTO(buf) b = {0};
    assert_int_equal(vg_label_selector_append(&b, none), 0);
    assert_int_equal(b.n, 0);
    vg_label_selector_free(all);
    vg_label_selector_free(none);
    vg_label_selector_free(NULL);
}

static void a_set_of_labels_becomes_a_selector(void **state)
{
    (void)state;
    struct vg_test_labels t, t2;
    const struct vg_label_selector *s = NULL, *same = parse("baz=blah,foo=bar");
    assert_int_equal(vg_label_selector_from_labels(vg_test_labels(&t, "foo=bar,baz=blah"), &s), 0);
    assert_true(vg_label_selector_equal(s, same));
    assert_true(vg_label_selector_matches(s, vg_test_labels(&t2, "a=b,foo=bar,baz=blah")));
    assert_false(vg_label_selector_matches(s, vg_test_labels(&t2, "foo=bar")));
    vg_label_selector_free(s);
    assert_int_equal(vg_label_selector_from_labels(vg_test_labels(&t, ""), &s), 0);
    assert_true(vg_label_selector_is_everything(s));
    struct vg_labels many = {.n = VG_LABEL_SELECTOR_REQUIREMENTS_MAX + 1};
    assert_int_equal(vg_label_selector_from_labels(&many, &s), VIGIL_E_TOO_LARGE);
    vg_label_selector_free(same);
}

static void a_selector_tells_which_value_it_requires(void **state)
{
    (void)state;
    static const struct {
        const char *selector, *value; /* of x; NULL: none */
    } rows[] = {
        {"", NULL},        {"x", NULL},
        {"!x", NULL},      {"x=1", "1"},
        {"x==1", "1"},     {"x=", ""},
        {"x in (1)", "1"}, {"x in (1,2)", NULL},
        {"x!=1", NULL},    {"x notin (1)", NULL},
        {"x>1", NULL},     {"y=1", NULL},
        {"y=2,x=1", "1"},  {"x,x=1", NULL},
        {"x=1,x=2", "1"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        const struct vg_label_selector *s = parse(rows[i].selector);
        struct vg_slice v = {0};
        bool found = vg_label_selector_requires(s, VG_SLICE_LIT("x"), &v);
        assert_int_equal(found, rows[i].value != NULL);
        vg_assert_slice_equal(v, vg_slice_str(rows[i].value ? rows[i].value : ""));
        vg_label_selector_free(s);
    }
}

static void selectors_are_equal_when_their_requirements_are(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"a=1,b=2", "b=2,a=1", true},
        {"a in (1,2)", "a in (2,1,2)", true},
        {"a=1", "a==1", false},
        {"a=1", "a=2", false},
        {"a=1", "b=1", false},
        {"a in (1)", "a in (1,2)", false},
        {"a in (1)", "a=1", false},
        {"a", "a,b", false},
        {"", "a", false},
        {"a in (1,2)", "a in (1,3)", false},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        const struct vg_label_selector *a = parse(rows[i].a), *b = parse(rows[i].b);
        assert_int_equal(vg_label_selector_equal(a, b), rows[i].equal);
        vg_label_selector_free(a);
        vg_label_selector_free(b);
    }
}

static void a_selector_owes_nothing_to_its_text(void **state)
{
    (void)state;
    char text[] = "b in (y,x),a=1";
    const struct vg_label_selector *s = parse(text);
    memset(text, '#', sizeof text);
    VG_AUTO(buf) b = {0};
    assert_int_equal(vg_label_selector_append(&b, s), 0);
    vg_assert_slice_equal(vg_buf_slice(&b), VG_SLICE_LIT("a=1,b in (x,y)"));
    assert_int_equal(vg_label_selector_count(s), 2);
    assert_int_equal(vg_label_selector_at(s, 1)->op, VG_LABEL_IN);
    vg_assert_slice_equal(vg_label_selector_at(s, 1)->values[1], VG_SLICE_LIT("y"));
    assert_true(vg_label_selector_size(s) > 0);
    vg_label_selector_free(s);
}

static void integers_are_those_of_go(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_int;
        int64_t value;
    } rows[] = {
        {"0", true, 0},
        {"+7", true, 7},
        {"-7", true, -7},
        {"00012", true, 12},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999", false, 0},
        {"", false, 0},
        {"+", false, 0},
        {"-", false, 0},
        {"1_0", false, 0},
        {"0x1", false, 0},
        {" 1", false, 0},
        {"1.0", false, 0},
        {"--1", false, 0},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        int64_t v = 0;
        assert_int_equal(vg_label_parse_int(vg_slice_str(rows[i].text), &v), rows[i].is_int);
        assert_true(v == rows[i].value);
    }
}

static void running_out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    struct vg_test_labels t;
    const struct vg_labels *l = vg_test_labels(&t, "a=1,b=2");
    VG_ALLOC_FAIL_LOOP (n) {
        const struct vg_label_selector *s = NULL;
        VG_AUTO(buf) b = {0};
        int r = vg_label_selector_from_labels(l, &s);
        if (r == 0)
            r = vg_label_selector_append(&b, s);
        if (vg_test_alloc_failed())
            assert_int_equal(r, -ENOMEM);
        else
            assert_int_equal(r, 0);
        vg_label_selector_free(s);
    }
}

/* ---- against a model ---- */

/* A requirement as the model sees it: plain words, looked up one by one. */
struct want {
    char key[4];
    enum vg_label_op op;
    char values[5][4];
    uint32_t values_n;
};

static void random_word(struct vg_rng *rng, char word[4])
{
    static const char *const words[] = {"a", "b", "c", "ab", "0", "1", "2", "10", "in"};
    snprintf(word, 4, "%s", words[vg_rng_below(rng, VG_ARRAY_LEN(words))]);
}

static struct want random_want(struct vg_rng *rng)
{
    struct want w = {.op = (enum vg_label_op)vg_rng_below(rng, VG_LABEL_LESS + 1)};
    random_word(rng, w.key);
    bool is_list = w.op == VG_LABEL_IN || w.op == VG_LABEL_NOT_IN;
    bool is_number = w.op == VG_LABEL_GREATER || w.op == VG_LABEL_LESS;
    if (w.op > VG_LABEL_NOT_EXISTS)
        w.values_n = is_list ? 1 + (uint32_t)vg_rng_below(rng, 5) : 1;
    for (uint32_t i = 0; i < w.values_n; i++) {
        random_word(rng, w.values[i]);
        if (is_number)
            snprintf(w.values[i], 4, "%u", (unsigned)vg_rng_below(rng, 12));
        else if (vg_rng_below(rng, 8) == 0)
            w.values[i][0] = '\0';
    }
    return w;
}

static void write_want(struct vg_buf *b, const struct want *w, struct vg_rng *rng)
{
    static const char *const operators[] = {"", "", "=", "==", "!=", " in (", " notin (", ">", "<"};
    const char *space = vg_rng_below(rng, 3) == 0 ? " " : "";
    bool is_list = w->op == VG_LABEL_IN || w->op == VG_LABEL_NOT_IN;
    assert_int_equal(vg_buf_printf(b, "%s%s%s%s%s%s", b->n ? "," : "", space,
                                   w->op == VG_LABEL_NOT_EXISTS ? "!" : "", w->key,
                                   operators[w->op], space),
                     0);
    for (uint32_t i = 0; i < w->values_n; i++)
        assert_int_equal(vg_buf_printf(b, "%s%s%s", i ? "," : "", space, w->values[i]), 0);
    if (is_list)
        assert_int_equal(vg_buf_append_byte(b, ')'), 0);
}

/* The value of key in a text of distinct labels, each "k=v,"; NULL when it is not there. */
static const char *model_lookup(const char *labels, const char *key, char value[8])
{
    for (const char *at = labels; *at; at = strchr(at, ',') + 1) {
        size_t n = strcspn(at, "=");
        if (n == strlen(key) && strncmp(at, key, n) == 0) {
            snprintf(value, 8, "%.*s", (int)strcspn(at + n + 1, ","), at + n + 1);
            return value;
        }
    }
    return NULL;
}

static bool model_matches(const struct want *w, const char *labels)
{
    char buffer[8];
    const char *v = model_lookup(labels, w->key, buffer);
    bool listed = false;
    for (uint32_t i = 0; v && i < w->values_n; i++)
        listed = listed || strcmp(v, w->values[i]) == 0;
    bool is_number = v && *v && strspn(v, "0123456789") == strlen(v);
    switch (w->op) {
    case VG_LABEL_EXISTS:
        return v != NULL;
    case VG_LABEL_NOT_EXISTS:
        return v == NULL;
    case VG_LABEL_NOT_EQUALS:
    case VG_LABEL_NOT_IN:
        return !listed;
    case VG_LABEL_GREATER:
        return is_number && strtol(v, NULL, 10) > strtol(w->values[0], NULL, 10);
    case VG_LABEL_LESS:
        return is_number && strtol(v, NULL, 10) < strtol(w->values[0], NULL, 10);
    default:
        return listed;
    }
}

static void random_labels(struct vg_rng *rng, struct vg_buf *b)
{
    char key[4], value[4], seen[8];
    assert_int_equal(vg_buf_append(b, "", 1), 0);
    for (uint64_t i = vg_rng_below(rng, 7); i > 0; i--) {
        random_word(rng, key);
        random_word(rng, value);
        if (model_lookup(b->p, key, seen))
            continue;
        b->n--; /* the NUL */
        assert_int_equal(vg_buf_printf(b, "%s=%s,", key, value), 0);
        assert_int_equal(vg_buf_append(b, "", 1), 0);
    }
}

static void check_round(struct vg_rng *rng)
{
    struct want wants[6];
    size_t n = vg_rng_below(rng, VG_ARRAY_LEN(wants) + 1);
    VG_AUTO(buf) text = {0};
    VG_AUTO(buf) again = {0};
    for (size_t i = 0; i < n; i++) {
        wants[i] = random_want(rng);
        write_want(&text, &wants[i], rng);
    }
    assert_int_equal(vg_buf_append(&text, "", 1), 0);
    const struct vg_label_selector *s = parse(text.p);
    assert_true(vg_label_selector_is_sound(s));
    assert_int_equal(vg_label_selector_append(&again, s), 0);
    assert_int_equal(vg_buf_append(&again, "", 1), 0);
    const struct vg_label_selector *copy = parse(again.p);
    assert_true(vg_label_selector_equal(s, copy));
    for (int i = 0; i < 20; i++) {
        VG_AUTO(buf) labels = {0};
        struct vg_test_labels t;
        random_labels(rng, &labels);
        bool yes = true;
        for (size_t k = 0; k < n; k++)
            yes = yes && model_matches(&wants[k], labels.p);
        const struct vg_labels *l = vg_test_labels(&t, labels.p);
        if (vg_label_selector_matches(s, l) != yes || vg_label_selector_matches(copy, l) != yes)
            fail_msg("%s on %s should be %d", text.p, labels.p, yes);
    }
    vg_label_selector_free(s);
    vg_label_selector_free(copy);
}

static void random_selectors_match_as_the_model_does(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (int i = 0; i < (vg_test_is_long() ? 500000 : 5000); i++)
        check_round(&rng);
}

/* ---- many readers ---- */

struct shared {
    const struct vg_label_selector *selector;
    atomic_uint wrong;
};

static void match_often(unsigned index, void *arg)
{
    struct shared *shared = arg;
    struct vg_test_labels t;
    const struct vg_labels *l = vg_test_labels(&t, index % 2 ? "a=1,b=x" : "a=1,b=z");
    for (int i = 0; i < 2000; i++)
        shared->wrong += vg_label_selector_matches(shared->selector, l) != (index % 2 == 1);
}

static void threads_share_a_selector(void **state)
{
    (void)state;
    struct shared shared = {.selector = parse("a>0,b in (x,y)")};
    vg_test_threads(4, match_often, &shared);
    assert_int_equal(shared.wrong, 0);
    vg_label_selector_free(shared.selector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_match_or_do_not),
        cmocka_unit_test(everything_and_nothing_are_what_they_say),
        cmocka_unit_test(a_set_of_labels_becomes_a_selector),
        cmocka_unit_test(a_selector_tells_which_value_it_requires),
        cmocka_unit_test(selectors_are_equal_when_their_requirements_are),
        cmocka_unit_test(a_selector_owes_nothing_to_its_text),
        cmocka_unit_test(integers_are_those_of_go),
        cmocka_unit_test(running_out_of_memory_leaves_nothing_behind),
        cmocka_unit_test(random_selectors_match_as_the_model_does),
        cmocka_unit_test(threads_share_a_selector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
