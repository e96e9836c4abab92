/* undelta_test.c - the store that pushes all it has; scenario 55. */
#include "test_support.h"

#include "client/object/client_object_testing.h"
#include "store_int.h"
#include "vigil/informer.h"

struct pushed {
    unsigned calls;
    char keys[256]; /* of the last one */
};

static void push(void *arg, const struct vigil_object *const *objects, size_t n)
{
    struct pushed *p = arg;
    size_t at = 0;
    p->calls++;
    p->keys[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(p->keys + at, sizeof(p->keys) - at, "%s%.*s", i ? "," : "",
                               VIGIL_TEXT_ARG(vigil_object_key(objects[i])));
}

static void s55_each_write_pushes_the_full_set_once_and_reads_push_nothing(void **state)
{
    (void)state;
    struct pushed p = {0};
    struct vigil_undelta *u;
    assert_int_equal(vigil_undelta_new(push, &p, &u), 0);
    struct vigil_sink sink = vigil_undelta_sink(u);
    const struct vigil_object *a = vg_test_object("ns", "a", "1");
    const struct vigil_object *b = vg_test_object("ns", "b", "2");
    assert_int_equal(sink.put(sink.arg, b), 0);
    assert_int_equal(p.calls, 1);
    assert_string_equal(p.keys, "ns/b");
    assert_int_equal(sink.put(sink.arg, a), 0);
    assert_string_equal(p.keys, "ns/a,ns/b");
    assert_int_equal(sink.put(sink.arg, a), 0); /* an update */
    assert_int_equal(p.calls, 3);
    assert_string_equal(p.keys, "ns/a,ns/b");
    assert_int_equal(sink.remove(sink.arg, b), 0);
    assert_string_equal(p.keys, "ns/a");
    assert_int_equal(sink.replace(sink.arg, &b, 1, vigil_text("9")), 0);
    assert_int_equal(p.calls, 5);
    assert_string_equal(p.keys, "ns/b");
    assert_int_equal(sink.replace(sink.arg, NULL, 0, vigil_text("10")), 0);
    assert_int_equal(p.calls, 6);
    assert_string_equal(p.keys, "");
    sink.bookmark(sink.arg, vigil_text("11"));
    struct vigil_store *s = vigil_undelta_store(u);
    assert_null(vigil_store_get(s, vigil_text("ns/a")));
    assert_int_equal(vigil_store_count(s), 0);
    char version[8];
    vigil_store_resource_version(s, version, sizeof(version));
    assert_string_equal(version, "11");
    assert_int_equal(p.calls, 6);
    vigil_undelta_free(u);
    vigil_object_unref(a);
    vigil_object_unref(b);
}

static void without_memory_nothing_is_pushed(void **state)
{
    (void)state;
    const struct vigil_object *a = vg_test_object("ns", "a", "1");
    VG_ALLOC_FAIL_LOOP (n) {
        struct pushed p = {0};
        struct vigil_undelta *u = NULL;
        int r = vigil_undelta_new(push, &p, &u);
        if (r == 0)
            r = vigil_undelta_sink(u).put(u, a);
        if (vg_test_alloc_failed()) {
            assert_int_equal(r, VIGIL_E_MEMORY);
            assert_int_equal(p.calls, 0);
        }
        vigil_undelta_free(u);
    }
    vigil_object_unref(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s55_each_write_pushes_the_full_set_once_and_reads_push_nothing),
        cmocka_unit_test(without_memory_nothing_is_pushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
