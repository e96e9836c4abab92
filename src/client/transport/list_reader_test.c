/* list_reader_test.c - lists cut at every point, in odd orders, and broken. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "list_reader.h"

struct got {
    struct vg_buf text; /* all items, a line each */
    unsigned n;
};

static int on_item(void *arg, const struct vigil_object *take_o)
{
    struct got *g = arg;
    struct vg_slice json = vg_slice_of(vigil_object_json(take_o));
    int r = vg_buf_printf(&g->text, "%.*s\n", VG_SLICE_ARG(json));
    vigil_object_unref(take_o);
    g->n++;
    return r;
}

/* Feed in pieces as `rng` says (NULL: whole); what reading came to. */
static int read_list(const char *text, struct vg_rng *rng, struct got *g, char *meta, size_t size)
{
    struct vg_list_reader r;
    struct vg_slice all = vg_slice_str(text), rv = {"", 0}, next = {"", 0};
    vg_list_reader_init(&r, VG_SLICE_LIT("v1"), VG_SLICE_LIT("Thing"), on_item, g);
    int e = 0;
    while (all.n && e >= 0) {
        size_t n = rng ? 1 + vg_rng_below(rng, VG_MIN(all.n, (size_t)30)) : all.n;
        n = VG_MIN(n, all.n);
        e = vg_list_reader_feed(&r, vg_slice(all.p, n));
        all = vg_slice(all.p + n, all.n - n);
    }
    if (e >= 0)
        e = vg_list_reader_end(&r, &rv, &next);
    snprintf(meta, size, "%.*s|%.*s", VG_SLICE_ARG(rv), VG_SLICE_ARG(next));
    vg_list_reader_done(&r);
    return e;
}

static void lists_are_the_same_however_they_are_cut(void **state)
{
    (void)state;
    static const char TEXT[] =
        " {\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"12\","
        "\"continue\":\"abc\",\"items\":[1]},\"items\" : [ {\"metadata\":{\"name\":\"a\"},\"s\":\"]"
        "}\\\"\\\\\"} ,\n{\"metadata\":{\"name\":\"b\"},\"spec\":{\"x\":[[{}],\"{\"]}}] } \n";
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    struct got whole = {0};
    char meta[64];
    assert_int_equal(read_list(TEXT, NULL, &whole, meta, sizeof(meta)), 0);
    assert_string_equal(meta, "12|abc");
    assert_int_equal(whole.n, 2);
    assert_non_null(memmem(whole.text.p, whole.text.n, "\"kind\":\"Pod\"", 12));
    for (int i = 0; i < 500; i++) {
        struct got g = {0};
        assert_int_equal(read_list(TEXT, &rng, &g, meta, sizeof(meta)), 0);
        assert_string_equal(meta, "12|abc");
        vg_assert_slice_equal(vg_buf_slice(&g.text), vg_buf_slice(&whole.text));
        vg_buf_done(&g.text);
    }
    vg_buf_done(&whole.text);
}

static void items_before_the_rest(void **state)
{
    (void)state;
    struct got g = {0};
    char meta[64];
    assert_int_equal(read_list("{\"items\":[{\"metadata\":{\"name\":\"a\"}}],\"metadata\":{"
                               "\"resourceVersion\":\"7\"},\"kind\":\"ThingList\"}",
                               NULL, &g, meta, sizeof(meta)),
                     0);
    assert_string_equal(meta, "7|");
    assert_non_null(memmem(g.text.p, g.text.n, "\"kind\":\"Thing\"", 14));
    vg_buf_done(&g.text);
}

static void empty_lists(void **state)
{
    (void)state;
    static const char *const EMPTY[] = {"{\"kind\":\"PodList\",\"items\":[]}",
                                        "{\"kind\":\"PodList\",\"items\":null}",
                                        "{\"kind\":\"PodList\",\"metadata\":{}}", "{\"items\":[]}"};
    for (size_t i = 0; i < VG_ARRAY_LEN(EMPTY); i++) {
        struct got g = {0};
        char meta[64];
        assert_int_equal(read_list(EMPTY[i], NULL, &g, meta, sizeof(meta)), 0);
        assert_string_equal(meta, "|");
        assert_int_equal(g.n, 0);
    }
}

static void broken_lists_are_refused(void **state)
{
    (void)state;
    static const char *const BROKEN[] = {
        "",
        "[]",
        "[\"kind\",\"items\",[{\"metadata\":{\"name\":\"a\"}}]]",
        "7",
        "{",
        "{\"items\":[",
        "{\"items\":[{\"metadata\":{\"name\":\"a\"}}",
        "{\"items\":[7]}",
        "{\"items\":[{}]}",
        "{\"kind\":\"Pod\"}",
        "{\"items\":[]}x",
        "}",
        "{\"items\":[{\"metadata\":{\"name\":\"a\"}]]}",
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(BROKEN); i++) {
        struct got g = {0};
        char meta[64];
        assert_true(read_list(BROKEN[i], NULL, &g, meta, sizeof(meta)) < 0);
        vg_buf_done(&g.text);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct got g = {0};
        char meta[64];
        struct vg_rng rng;
        vg_rng_seed(&rng, 1);
        int r = read_list("{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"a\"}}]}",
                          &rng, &g, meta, sizeof(meta));
        if (vg_test_alloc_failed())
            assert_int_equal(r, -ENOMEM);
        else
            assert_int_equal(r, 0);
        vg_buf_done(&g.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_the_same_however_they_are_cut),
        cmocka_unit_test(items_before_the_rest),
        cmocka_unit_test(empty_lists),
        cmocka_unit_test(broken_lists_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
