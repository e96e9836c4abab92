/* client_store_test.c - stores: writes, versions, indexes, listers, snapshots. Numbers are those of
 * the scenarios of the client's contract. */
#include "test_support.h"

#include "client/object/client_object_testing.h"
#include "store_int.h"

/* Texts that were told, joined by commas. */
struct told {
    char text[512];
    size_t n, max;
};

static bool tell(struct told *t, struct vigil_text what)
{
    t->n += (size_t)snprintf(t->text + t->n, sizeof(t->text) - t->n, "%s%.*s", t->n ? "," : "",
                             VIGIL_TEXT_ARG(what));
    return t->max == 0 || --t->max > 0;
}
static bool tell_key(void *arg, const struct vigil_object *o)
{
    return tell(arg, vigil_object_key(o));
}
static bool tell_value(void *arg, struct vigil_text value)
{
    return tell(arg, value.n ? value : vigil_text("(none)"));
}

static void by_users(void *arg, const struct vigil_object *o,
                     void (*emit)(void *emit_arg, struct vigil_text value), void *emit_arg)
{
    (void)arg;
    struct vigil_text users = vigil_object_annotation(o, "users");
    while (users.n) {
        const char *comma = memchr(users.p, ',', users.n);
        size_t n = comma ? (size_t)(comma - users.p) : users.n;
        emit(emit_arg, (struct vigil_text){users.p, n});
        users.p += n + (comma != NULL);
        users.n -= n + (comma != NULL);
    }
}
static const struct vigil_index users_index = {"byUser", by_users, NULL};

static const struct vigil_object *with_users(const char *name, const char *users)
{
    char json[256];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\",\"annotations\":{\"users\":\"%s\"}}}", name, users);
    return vigil_object_parse(vigil_text(json), NULL);
}

static void put(struct vigil_store *s, const struct vigil_object *take_o)
{
    assert_non_null(take_o);
    assert_int_equal(vigil_store_put(s, take_o), 0);
    vigil_object_unref(take_o);
}

static void assert_index(struct vigil_store *s, const char *value, const char *want)
{
    struct told t = {.n = 0};
    assert_int_equal(vigil_store_by_index(s, "byUser", vigil_text(value), tell_key, &t), 0);
    assert_string_equal(t.text, want);
}

static void assert_version(struct vigil_store *s, const char *want)
{
    char buf[64];
    assert_int_equal(vigil_store_resource_version(s, buf, sizeof(buf)), strlen(want));
    assert_string_equal(buf, want);
}

static struct vigil_store *store_new(const struct vigil_index *indexes, size_t n)
{
    struct vigil_store *s;
    assert_int_equal(vigil_store_new(indexes, n, &s, NULL), 0);
    return s;
}

/* ---- indexes ---- */

static void s53_an_index_follows_what_its_function_says(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(&users_index, 1);
    put(s, with_users("k1", "foo"));
    put(s, with_users("k2", "foo,bar"));
    assert_index(s, "foo", "k1,k2");
    assert_index(s, "bar", "k2");
    put(s, with_users("k2", "foo,foo"));
    assert_index(s, "foo", "k1,k2");
    assert_index(s, "bar", "");
    struct told t = {.n = 0};
    assert_int_equal(vigil_store_index_values(s, "byUser", tell_value, &t), 0);
    assert_string_equal(t.text, "foo"); /* an emptied value disappears */
    assert_int_equal(vigil_store_delete_key(s, vigil_text("k1")), 0);
    assert_int_equal(vigil_store_delete_key(s, vigil_text("k2")), 0);
    t = (struct told){.n = 0};
    assert_int_equal(vigil_store_index_values(s, "byUser", tell_value, &t), 0);
    assert_string_equal(t.text, "");
    assert_int_equal(s->indexes[0].tree.count, 0);
    vigil_store_free(s);
}

static void s53_a_late_index_is_usable_at_once(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(NULL, 0);
    struct vigil_error err;
    put(s, with_users("k1", "ernie,bert"));
    put(s, with_users("k2", "bert,oscar"));
    put(s, with_users("k3", ""));
    assert_int_equal(vigil_store_by_index(s, "byUser", vigil_text("bert"), tell_key, NULL),
                     VIGIL_E_NOT_FOUND);
    assert_int_equal(vigil_store_index_values(s, "byUser", tell_value, NULL), VIGIL_E_NOT_FOUND);
    assert_int_equal(vigil_store_add_indexes(s, &users_index, 1, &err), 0);
    assert_index(s, "bert", "k1,k2");
    assert_index(s, "ernie", "k1");
    struct told t = {.n = 0};
    assert_int_equal(vigil_store_index_values(s, "byUser", tell_value, &t), 0);
    assert_string_equal(t.text, "bert,ernie,oscar");
    t = (struct told){.max = 2};
    assert_int_equal(vigil_store_index_values(s, "byUser", tell_value, &t), 0);
    assert_string_equal(t.text, "bert,ernie"); /* told to stop */
    assert_int_equal(vigil_store_add_indexes(s, &users_index, 1, &err), VIGIL_E_EXISTS);
    struct vigil_index taken = {VIGIL_BY_NAMESPACE, by_users, NULL};
    assert_int_equal(vigil_store_add_indexes(s, &taken, 1, &err), VIGIL_E_EXISTS);
    struct vigil_index twice[] = {{"x", by_users, NULL}, {"x", by_users, NULL}};
    assert_int_equal(vigil_store_add_indexes(s, twice, 2, &err), VIGIL_E_EXISTS);
    vigil_store_free(s);
}

/* Distinct values cost a text each; equal ones share it. */
static void equal_values_share_their_text(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(&users_index, 1);
    put(s, with_users("a", "x"));
    put(s, with_users("b", "x"));
    put(s, with_users("a", "x"));
    assert_ptr_equal(vg_ctree_at(&s->indexes[0].tree, 0)->value,
                     vg_ctree_at(&s->indexes[0].tree, 1)->value);
    const struct vigil_object *v[] = {with_users("a", "y,x"), with_users("b", "x,y")};
    assert_int_equal(vigil_store_replace(s, v, 2, vigil_text("1")), 0);
    for (size_t i = 0; i < 4; i += 2)
        assert_ptr_equal(vg_ctree_at(&s->indexes[0].tree, i)->value,
                         vg_ctree_at(&s->indexes[0].tree, i + 1)->value);
    vigil_object_unref(v[0]);
    vigil_object_unref(v[1]);
    vigil_store_free(s);
}

static void the_namespace_index_is_a_range_of_keys(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(NULL, 0);
    static const char *const names[][2] = {{"a", "x"},   {"a-b", "x"}, {"a", "y"},
                                           {"a.b", "x"}, {"ab", "x"},  {NULL, "a"},
                                           {NULL, "z"},  {"a0", "q"},  {"b", "one"}};
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        put(s, vg_test_object(names[i][0], names[i][1], NULL));
    static const char *const want[][2] = {{"a", "a/x,a/y"}, {"a-b", "a-b/x"}, {"ab", "ab/x"},
                                          {"", "a,z"},      {"none", ""},     {"b", "b/one"}};
    for (size_t i = 0; i < VG_ARRAY_LEN(want); i++) {
        struct told t = {.n = 0};
        assert_int_equal(
            vigil_store_by_index(s, VIGIL_BY_NAMESPACE, vigil_text(want[i][0]), tell_key, &t), 0);
        assert_string_equal(t.text, want[i][1]);
    }
    struct told t = {.n = 0};
    assert_int_equal(vigil_store_index_values(s, VIGIL_BY_NAMESPACE, tell_value, &t), 0);
    assert_string_equal(t.text, "(none),a-b,a.b,a,a0,ab,b");
    vigil_store_free(s);
}

static void a_namespace_of_any_length_is_a_range_of_keys(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(NULL, 0);
    char ns[301], other[303], want[340];
    memset(ns, 'n', sizeof(ns) - 1);
    ns[sizeof(ns) - 1] = '\0';
    snprintf(other, sizeof(other), "%s-", ns);
    put(s, vg_test_object(NULL, ns, NULL));
    put(s, vg_test_object(other, "x", NULL));
    put(s, vg_test_object(ns, "x", NULL));
    put(s, vg_test_object(ns, "y", NULL));
    struct told t = {.max = 1};
    assert_int_equal(vigil_store_by_index(s, VIGIL_BY_NAMESPACE, vigil_text(ns), tell_key, &t), 0);
    snprintf(want, sizeof(want), "%s/x", ns);
    assert_string_equal(t.text, want);
    vigil_store_free(s);
}

/* ---- versions ---- */

static void s54_the_version_is_that_of_the_last_write(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(NULL, 0);
    assert_version(s, "");
    put(s, vg_test_object("ns", "a", "10"));
    assert_version(s, "10");
    put(s, vg_test_object("ns", "b", "20"));
    assert_version(s, "20");
    const struct vigil_object *o = vg_test_object("ns", "a", "30");
    assert_int_equal(vigil_store_delete(s, o), 0);
    vigil_object_unref(o);
    assert_version(s, "30");
    put(s, vg_test_object("ns", "c", NULL));
    assert_version(s, "30");
    assert_int_equal(vigil_store_delete_key(s, vigil_text("ns/b")), 0);
    assert_version(s, "30");
    static const char *const versions[] = {"40", "30", "50"};
    struct vg_store_op ops[3];
    for (size_t i = 0; i < 3; i++)
        ops[i] = (struct vg_store_op){.o = vg_test_object("ns", "d", versions[i])};
    assert_int_equal(vg_store_transaction(s, ops, 2), 0);
    assert_version(s, "30"); /* no comparison */
    assert_int_equal(vg_store_transaction(s, ops + 2, 1), 0);
    assert_version(s, "50");
    assert_ptr_equal(ops[1].ret_old, ops[0].o);
    assert_ptr_equal(ops[2].ret_old, ops[1].o);
    for (size_t i = 0; i < 3; i++) {
        vigil_object_unref(ops[i].ret_old);
        vigil_object_unref(ops[i].o);
    }
    assert_int_equal(vigil_store_replace(s, NULL, 0, vigil_text("60")), 0);
    assert_version(s, "60");
    vg_store_bookmark(s, VG_SLICE_LIT("7"));
    assert_version(s, "7");
    char small[2];
    vg_store_bookmark(s, VG_SLICE_LIT("123"));
    assert_int_equal(vigil_store_resource_version(s, small, sizeof(small)), 3);
    assert_string_equal(small, "1");
    vigil_store_free(s);
}

static void a_tombstone_leaves_the_version(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(NULL, 0);
    put(s, vg_test_object("ns", "a", "10"));
    const struct vigil_object *o = vg_test_object("ns", "a", "5");
    struct vg_store_op op = {.verb = VG_STORE_DELETE, .is_tombstone = true, .o = o};
    assert_int_equal(vg_store_transaction(s, &op, 1), 0);
    assert_non_null(op.ret_old);
    vigil_object_unref(op.ret_old);
    vigil_object_unref(o);
    assert_version(s, "10");
    assert_int_equal(vigil_store_count(s), 0);
    vigil_store_free(s);
}

/* ---- reading ---- */

static void a_replacement_is_sorted_and_the_later_of_two_counts(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(NULL, 0);
    put(s, vg_test_object("ns", "gone", "1"));
    const struct vigil_object *v[] = {
        vg_test_object("ns", "b", "1"), vg_test_object("ns", "a", "2"),
        vg_test_object("ns", "b", "3"), vg_test_object("ns", "c", "4")};
    struct vg_ctree before;
    assert_int_equal(vg_store_replace(s, v, 4, VG_SLICE_LIT("9"), &before), 0);
    assert_int_equal(before.count, 1);
    vg_ctree_done(&before);
    assert_int_equal(vigil_store_count(s), 3);
    const struct vigil_object *o = vigil_store_get(s, vigil_text("ns/b"));
    assert_ptr_equal(o, v[2]);
    vigil_object_unref(o);
    assert_null(vigil_store_get(s, vigil_text("ns/gone")));
    vg_ctree_check(&s->by_key);
    char long_version[VG_OBJECT_VERSION_MAX + 2];
    memset(long_version, '1', sizeof(long_version));
    assert_int_equal(
        vigil_store_replace(s, v, 4, (struct vigil_text){long_version, sizeof(long_version)}),
        VIGIL_E_TOO_LARGE);
    for (size_t i = 0; i < 4; i++)
        vigil_object_unref(v[i]);
    vigil_store_free(s);
}

static void a_snapshot_stays_as_it_is(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(NULL, 0);
    for (unsigned i = 0; i < 200; i++)
        put(s, vg_test_pod(i, 1));
    const struct vigil_snapshot *snap = vigil_store_snapshot(s);
    assert_non_null(snap);
    for (unsigned i = 0; i < 200; i += 2)
        put(s, vg_test_pod(i, 2));
    assert_int_equal(vigil_store_delete_key(s, vigil_text("ns-01/web-000001")), 0);
    struct vigil_iter at = {0};
    const struct vigil_object *o;
    size_t n = 0;
    for (; (o = vigil_snapshot_next(snap, &at)); n++)
        assert_true(vigil_text_is(vigil_object_resource_version(o), "1"));
    assert_int_equal(n, 200);
    assert_int_equal(vigil_snapshot_count(snap), 200);
    assert_non_null(vigil_snapshot_get(snap, vigil_text("ns-01/web-000001")));
    assert_null(vigil_snapshot_get(snap, vigil_text("none")));
    assert_int_equal(vigil_store_count(s), 199);
    vigil_store_free(s); /* a snapshot outlives its store */
    vigil_snapshot_ref(snap);
    vigil_snapshot_unref(snap);
    vigil_snapshot_unref(snap);
}

static const struct vigil_object *labelled(const char *ns, const char *name, const char *app)
{
    char json[256];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"labels\":{\"app\":\"%s\"}}}",
             name, ns, app);
    return vigil_object_parse(vigil_text(json), NULL);
}

static void a_lister_reads_by_namespace_and_selector(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(NULL, 0);
    put(s, labelled("a", "1", "web"));
    put(s, labelled("a", "2", "db"));
    put(s, labelled("b", "3", "web"));
    static const struct {
        const char *ns, *selector, *want;
    } cases[] = {{NULL, NULL, "a/1,a/2,b/3"},
                 {"", "", "a/1,a/2,b/3"},
                 {"a", NULL, "a/1,a/2"},
                 {"a", "app=web", "a/1"},
                 {NULL, "app", "a/1,a/2,b/3"},
                 {NULL, "app=web", "a/1,b/3"},
                 {"c", NULL, ""},
                 {NULL, "!app", ""}};
    struct vigil_error err;
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        struct vigil_lister l = {s, cases[i].ns};
        struct told t = {.n = 0};
        assert_int_equal(vigil_lister_list(&l, cases[i].selector, tell_key, &t, &err), 0);
        assert_string_equal(t.text, cases[i].want);
    }
    struct vigil_lister l = {s, "a"};
    assert_int_equal(vigil_lister_list(&l, "app in", tell_key, NULL, &err), VIGIL_E_INVALID);
    assert_true(err.message[0]);
    const struct vigil_object *o = vigil_lister_get(&l, "2");
    assert_true(o && vigil_text_is(vigil_object_key(o), "a/2"));
    vigil_object_unref(o);
    assert_null(vigil_lister_get(&l, "3"));
    l.ns = NULL;
    o = vigil_lister_get(&l, "a/1");
    assert_non_null(o);
    vigil_object_unref(o);
    vigil_store_free(s);
}

static bool write_from_within(void *arg, const struct vigil_object *o)
{
    struct vigil_store *s = arg;
    assert_int_equal(vigil_store_delete(s, o), 0);
    return true;
}

static void a_callback_may_write_to_the_store(void **state)
{
    (void)state;
    struct vigil_store *s = store_new(&users_index, 1);
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%u", i);
        put(s, with_users(name, "u"));
    }
    assert_int_equal(vigil_store_by_index(s, "byUser", vigil_text("u"), write_from_within, s), 0);
    assert_int_equal(vigil_store_count(s), 0);
    vigil_store_free(s);
}

/* ---- memory ---- */

static void a_write_without_memory_changes_nothing(void **state)
{
    (void)state;
    const struct vigil_object *before = with_users("k", "x,y"), *after = with_users("k", "y,z");
    VG_ALLOC_FAIL_LOOP (n) {
        struct vigil_store *s = NULL;
        int r = vigil_store_new(&users_index, 1, &s, NULL);
        int w = r == 0 ? vigil_store_put(s, before) : r;
        int u = w == 0 ? vigil_store_put(s, after) : w;
        int d = u == 0 ? vigil_store_delete(s, after) : u;
        if (vg_test_alloc_failed()) {
            assert_int_equal(d, VIGIL_E_MEMORY);
            if (s && w == 0)
                assert_index(s, "y", "k");
            if (s && w == 0)
                assert_index(s, "x", u == 0 ? "" : "k");
            if (s && w < 0)
                assert_index(s, "y", "");
        }
        vigil_store_free(s);
    }
    vigil_object_unref(before);
    vigil_object_unref(after);
}

static void a_replacement_without_memory_changes_nothing(void **state)
{
    (void)state;
    const struct vigil_object *v[] = {with_users("b", "x"), with_users("a", "x,y")};
    VG_ALLOC_FAIL_LOOP (n) {
        struct vigil_store *s = NULL;
        int r = vigil_store_new(&users_index, 1, &s, NULL);
        int w = r == 0 ? vigil_store_replace(s, v, 2, vigil_text("5")) : r;
        struct vigil_index other = {"other", by_users, NULL};
        int a = w == 0 ? vigil_store_add_indexes(s, &other, 1, NULL) : w;
        if (vg_test_alloc_failed()) {
            assert_int_equal(a, VIGIL_E_MEMORY);
            if (s)
                assert_version(s, w == 0 ? "5" : "");
            if (s)
                assert_index(s, "x", w == 0 ? "a,b" : "");
        }
        vigil_store_free(s);
    }
    vigil_object_unref(v[0]);
    vigil_object_unref(v[1]);
}

static void an_object_costs_little_beside_its_block(void **state)
{
    (void)state;
    enum { N = 3000 };
    static const struct vigil_object *v[N];
    for (unsigned i = 0; i < N; i++)
        v[i] = vg_test_pod(i, 1);
    struct vigil_store *s = store_new(NULL, 0);
    assert_int_equal(vigil_store_replace(s, v, N, vigil_text("1")), 0);
    assert_true(vg_ctree_bytes(&s->by_key) / N < 20);
    for (unsigned i = 0; i < N; i++) /* one by one, in an order that splits often */
        assert_int_equal(vigil_store_delete(s, v[i]), 0);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(vigil_store_put(s, v[(i * 7) % N]), 0);
    assert_true(vg_ctree_bytes(&s->by_key) / N < 50);
    vigil_store_free(s);
    for (unsigned i = 0; i < N; i++)
        vigil_object_unref(v[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s53_an_index_follows_what_its_function_says),
        cmocka_unit_test(s53_a_late_index_is_usable_at_once),
        cmocka_unit_test(equal_values_share_their_text),
        cmocka_unit_test(the_namespace_index_is_a_range_of_keys),
        cmocka_unit_test(a_namespace_of_any_length_is_a_range_of_keys),
        cmocka_unit_test(s54_the_version_is_that_of_the_last_write),
        cmocka_unit_test(a_tombstone_leaves_the_version),
        cmocka_unit_test(a_replacement_is_sorted_and_the_later_of_two_counts),
        cmocka_unit_test(a_snapshot_stays_as_it_is),
        cmocka_unit_test(a_lister_reads_by_namespace_and_selector),
        cmocka_unit_test(a_callback_may_write_to_the_store),
        cmocka_unit_test(a_write_without_memory_changes_nothing),
        cmocka_unit_test(a_replacement_without_memory_changes_nothing),
        cmocka_unit_test(an_object_costs_little_beside_its_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
