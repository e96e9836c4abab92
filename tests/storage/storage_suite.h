/* storage_suite.h - what the topics of the storage suite share: a fresh store per test, and answers
 * written as text, so that a test shows what it expects at a glance.
 * The suite runs on one engine, named on the command line; nothing in it asks which. */
#ifndef VG_TESTS_STORAGE_SUITE_H
#define VG_TESTS_STORAGE_SUITE_H

#include "test_support.h"

#include "storage_driver.h"

struct vg_suite_topic {
    const char *name;
    const struct CMUnitTest *tests;
    size_t n;
};
extern const struct vg_suite_topic vg_suite_txn, vg_suite_limits, vg_suite_range, vg_suite_compact,
    vg_suite_watch, vg_suite_flow, vg_suite_ttl, vg_suite_life;

/* *state is a driver with a fresh store. */
#define VG_SUITE_TEST(fn) cmocka_unit_test_setup_teardown(fn, vg_suite_setup, vg_suite_teardown)
#define VG_SUITE_TOPIC(topic, tests)                                                               \
    const struct vg_suite_topic topic = {#topic, tests, VG_ARRAY_LEN(tests)}
int vg_suite_setup(void **state);
int vg_suite_teardown(void **state);

/* Exchange the store for a fresh one with these options. */
void vg_suite_fresh(struct vg_drv *d, const struct vg_storage_opts *opts);
/* Skips the test when the engine does not have it. */
void vg_suite_need(const struct vg_drv *d, enum vg_drv_feature feature);

/* What a watch has delivered: "2:a=1 3:a=2(1) 3.1:b=7 4:a-(2)" is a created at revision 2 with
 * value 1, updated to 2 (before: 1) at 3 together with the creation of b, deleted at 4. */
#define assert_events(w, text) vg_suite_assert_events((w), (text), __FILE__, __LINE__)
void vg_suite_assert_events(const struct vg_drv_watch *w, const char *text, const char *file,
                            int line);

/* What a range of all keys at a revision (0 = now) gives: "a=2@3 b=7@3". */
#define assert_state(d, at, text)                                                                  \
    vg_suite_assert_range((d), vg_drv_all(), at, text, __FILE__, __LINE__)
#define assert_range(d, keys, at, text)                                                            \
    vg_suite_assert_range((d), (keys), (at), (text), __FILE__, __LINE__)
void vg_suite_assert_range(struct vg_drv *d, struct vg_keys keys, vg_rev at, const char *text,
                           const char *file, int line);
/* The same of a range that was answered. */
#define assert_recs(range, text) vg_suite_assert_recs((range), (text), __FILE__, __LINE__)
void vg_suite_assert_recs(const struct vg_range *range, const char *text, const char *file,
                          int line);

/* An error with a name, and a sentence that goes with it. */
#define assert_err(got, want) vg_suite_assert_err((got), (want), __FILE__, __LINE__)
void vg_suite_assert_err(int got, int want, const char *file, int line);
#define assert_fails(req, got, want)                                                               \
    do {                                                                                           \
        assert_err((got), (want));                                                                 \
        assert_int_equal((req)->err, (want));                                                      \
        assert_true((req)->status.message[0] != '\0');                                             \
    } while (0)

/* "key0042", valid until the 8th call after it. */
const char *vg_suite_key(unsigned i);
/* Put key0000 to key<n-1>, one revision each, value "v". */
void vg_suite_put_many(struct vg_drv *d, unsigned n);

#endif
