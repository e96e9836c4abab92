/* cacher_unreadable_test.c - something lies in storage that cannot be read: who watches it is ended
 * and not left behind, and it is known by its key for as long as it lies there. */
#include "test_support.h"

#include <stdio.h>

#include "cacher_driver.h"

static struct vg_cdrv d;
static struct vg_csink s, other;
static const struct vg_pod a1 = {.ns = "a", .name = "p1", .n = 1},
                           b1 = {.ns = "b", .name = "p1", .n = 1};
#define BAD "/registry/pods/a/p1"

static int open_driver(void **state)
{
    (void)state;
    vg_cdrv_open(&d, &(struct vg_cdrv_opts){0});
    vg_csink_init(&s);
    vg_csink_init(&other);
    return 0;
}

static int close_driver(void **state)
{
    (void)state;
    vg_csink_done(&s);
    vg_csink_done(&other);
    vg_cdrv_close(&d);
    return 0;
}

static void spoil(const char *key)
{
    vg_drv_put(&d.store, key, "k8s:enc:aescbc:v1:key1:secret");
    vg_cdrv_sync(&d);
}

static struct vg_obj_predicate *pods_of(const char *ns, const char *name)
{
    return vg_cdrv_predicate(KIND_PODS, ns, name, NULL, NULL);
}

/* What is told of a place: the key, or "". */
static const char *unreadable_in(const char *ns, const char *name)
{
    static char text[512];
    struct vg_obj_key key = {.n = 0};
    struct vg_obj_predicate *p = pods_of(ns, name);
    bool has = vg_cache_unreadable(d.c, KIND_PODS, p, &key);
    vg_obj_predicate_unref(p);
    snprintf(text, sizeof text, "%.*s", has ? (int)key.n : 0, key.bytes);
    return text;
}

static void it_is_known_by_its_key_until_it_goes(void **state)
{
    (void)state;
    assert_string_equal(unreadable_in(NULL, NULL), "");
    spoil("/registry/pods/b/z");
    spoil(BAD);
    assert_string_equal(unreadable_in(NULL, NULL), BAD); /* the first */
    assert_string_equal(unreadable_in("a", NULL), BAD);
    assert_string_equal(unreadable_in("b", NULL), "/registry/pods/b/z");
    assert_string_equal(unreadable_in("a", "p1"), BAD);
    assert_string_equal(unreadable_in(NULL, "z"), "/registry/pods/b/z");
    assert_string_equal(unreadable_in("a", "p"), "");
    assert_string_equal(unreadable_in("c", NULL), "");
    vg_drv_delete(&d.store, BAD);
    vg_cdrv_sync(&d);
    assert_string_equal(unreadable_in("a", NULL), "");
    static const struct vg_pod z = {.ns = "b", .name = "z"};
    vg_cdrv_put(&d, KIND_PODS, &z); /* it can be read again */
    vg_cdrv_sync(&d);
    assert_string_equal(unreadable_in(NULL, NULL), "");
}

static void a_start_finds_it(void **state)
{
    (void)state;
    spoil(BAD);
    vg_cdrv_close_cacher(&d);
    vg_cdrv_open_again(&d);
    assert_string_equal(unreadable_in("a", NULL), BAD);
}

/* Also when it is gone again before the loop looks. */
static void who_watches_is_ended(void **state)
{
    (void)state;
    struct vg_cache_watch_opts now = {.start = VG_WATCH_NOW};
    vg_cdrv_put(&d, KIND_PODS, &a1);
    vg_cdrv_sync(&d);
    vg_cdrv_watch(&d, &s, pods_of("a", NULL), now);
    vg_cdrv_watch(&d, &other, pods_of("b", NULL), now);
    vg_cdrv_sync(&d);
    spoil(BAD);
    vg_cdrv_wait_end(&d, &s);
    vg_cdrv_wait_end(&d, &other);
    assert_int_equal(s.why, VG_END_UNREADABLE);
    assert_int_equal(other.why, VG_END_CONTINUITY); /* it may go on from where it was */
    vg_csink_done(&s);
    vg_csink_init(&s);
    vg_drv_delete(&d.store, BAD);
    vg_cdrv_sync(&d);
    vg_cdrv_watch(&d, &s, pods_of("a", NULL), now);
    vg_cdrv_sync(&d);
    vg_drv_put(&d.store, BAD, "no header");
    vg_drv_delete(&d.store, BAD);
    vg_cdrv_sync(&d);
    vg_cdrv_wait_end(&d, &s);
    assert_int_equal(s.why, VG_END_CONTINUITY);
}

/* Its object was replaced by what it cannot be told, and then deleted. */
static void who_comes_again_must_list_anew(void **state)
{
    (void)state;
    vg_rev from = vg_cdrv_put(&d, KIND_PODS, &a1);
    spoil(BAD);
    vg_drv_delete(&d.store, BAD);
    vg_cdrv_put(&d, KIND_PODS, &b1);
    vg_cdrv_sync(&d);
    struct vg_cache_watch_opts after = {.start = VG_WATCH_AFTER, .rev = from};
    vg_cdrv_watch(&d, &s, pods_of("a", NULL), after);
    vg_cdrv_watch(&d, &other, pods_of("b", NULL), after);
    vg_cdrv_wait_end(&d, &s);
    assert_int_equal(s.why, VG_END_EXPIRED);
    vg_cdrv_wait_frames(&d, &other, 1);
    vg_csink_expect(&other, "ADDED b/p1@5", NULL);
    assert_false(other.is_ended);
}

static void a_state_of_a_kind_without_a_cache_ends_there(void **state)
{
    (void)state;
    spoil("/registry/events/a/e");
    vg_cdrv_watch(&d, &s, vg_cdrv_predicate(KIND_EVENTS, NULL, NULL, NULL, NULL),
                  (struct vg_cache_watch_opts){.kind = KIND_EVENTS, .start = VG_WATCH_STATE});
    vg_cdrv_wait_end(&d, &s);
    assert_int_equal(s.why, VG_END_UNREADABLE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_driver, close_driver)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_known_by_its_key_until_it_goes),
        TEST(a_start_finds_it),
        TEST(who_watches_is_ended),
        TEST(who_comes_again_must_list_anew),
        TEST(a_state_of_a_kind_without_a_cache_ends_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
