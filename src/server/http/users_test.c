/* Tests of users.c. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>

#include "users.h"

static void equal_users_share_an_entry(void **state)
{
    (void)state;
    struct vg_users users;
    const struct vg_slice ab[] = {{"a", 1}, {"b", 1}}, just_ab[] = {{"ab", 2}};
    struct vg_api_user one = {{"u", 1}, {"id", 2}, ab, 2, NULL, 0},
                       other = {{"u", 1}, {"id", 2}, just_ab, 1, NULL, 0};
    struct vg_user *x, *y, *z, *w;
    vg_users_init(&users, NULL);
    assert_int_equal(vg_users_get(&users, &one, "extra", &x), 0);
    assert_int_equal(vg_users_get(&users, &one, "extra", &y), 0);
    assert_int_equal(vg_users_get(&users, &other, "extra", &z), 0);
    assert_int_equal(vg_users_get(&users, &one, "b", &w), 0);
    assert_ptr_equal(x, y);
    assert_ptr_not_equal(x, z);
    assert_ptr_not_equal(x, w);
    assert_int_equal(x->api.n_groups, 3);
    vg_assert_slice_equal(x->api.groups[2], VG_SLICE_LIT("extra"));
    vg_assert_slice_equal(x->api.name, VG_SLICE_LIT("u"));
    vg_assert_slice_equal(x->api.uid, VG_SLICE_LIT("id"));
    assert_int_equal(w->api.n_groups, 2);
    vg_users_put(&users, x);
    vg_users_put(&users, y);
    vg_users_put(&users, z);
    vg_users_put(&users, w);
    vg_users_done(&users);
}

static void extras_tell_users_apart(void **state)
{
    (void)state;
    struct vg_users users;
    const struct vg_user_extra ab[] = {{{"a", 1}, {"b", 1}}}, ac[] = {{{"a", 1}, {"c", 1}}};
    const struct vg_slice groups[] = {{"a", 1}, {"b", 1}};
    struct vg_api_user one = {.name = {"u", 1}, .extra = ab, .n_extra = 1}, two = one, three = one;
    struct vg_user *x, *y, *z;
    two.extra = ac;
    three.groups = groups; /* groups with the texts of extras are none */
    three.n_groups = 2;
    three.n_extra = 0;
    vg_users_init(&users, NULL);
    assert_int_equal(vg_users_get(&users, &one, NULL, &x), 0);
    assert_int_equal(vg_users_get(&users, &two, NULL, &y), 0);
    assert_int_equal(vg_users_get(&users, &three, NULL, &z), 0);
    assert_true(x != y && x != z && y != z);
    assert_int_equal(x->api.n_extra, 1);
    vg_assert_slice_equal(x->api.extra[0].key, VG_SLICE_LIT("a"));
    vg_assert_slice_equal(y->api.extra[0].value, VG_SLICE_LIT("c"));
    assert_int_equal(z->api.n_groups, 2);
    vg_users_put(&users, x);
    vg_users_put(&users, y);
    vg_users_put(&users, z);
    vg_users_done(&users);
}

static void idle_users_are_forgotten_in_time(void **state)
{
    (void)state;
    struct vg_users users;
    struct vg_user *kept, *u;
    vg_users_init(&users, NULL);
    struct vg_api_user first = {{"kept", 4}, {0}, NULL, 0, NULL, 0};
    assert_int_equal(vg_users_get(&users, &first, NULL, &kept), 0);
    for (int i = 0; i < 3000; i++) {
        char name[32];
        int n = snprintf(name, sizeof name, "user-%d", i);
        struct vg_api_user user = {{name, (size_t)n}, {0}, NULL, 0, NULL, 0};
        assert_int_equal(vg_users_get(&users, &user, NULL, &u), 0);
        vg_users_put(&users, u);
    }
    assert_true(vg_map_count(&users.map) <= VG_USERS_IDLE_MAX + 1);
    assert_int_equal(vg_users_get(&users, &first, NULL, &u), 0);
    assert_ptr_equal(u, kept);
    vg_users_put(&users, u);
    vg_users_put(&users, kept);
    vg_users_done(&users);
}

/* Idle ones lie between others in the map: just they go, however many there are. */
static void the_busy_ones_stay(void **state)
{
    (void)state;
    enum { USERS = 4 * VG_USERS_IDLE_MAX };
    struct vg_users users;
    static struct vg_user *u[USERS];
    vg_users_init(&users, NULL);
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < USERS; i++) {
            char name[32];
            int n = snprintf(name, sizeof name, "user-%zu", i);
            struct vg_api_user user = {{name, (size_t)n}, {0}, NULL, 0, NULL, 0};
            struct vg_user *got;
            assert_int_equal(vg_users_get(&users, &user, NULL, &got), 0);
            if (round == 0)
                u[i] = got;
            else if (i % 2)
                assert_ptr_equal(got, u[i]); /* a second reference */
            if (round == 1)
                vg_users_put(&users, got);
        }
        for (size_t i = 0; round == 0 && i < USERS; i += 2)
            vg_users_put(&users, u[i]);
        assert_true(vg_map_count(&users.map) <= USERS / 2 + VG_USERS_IDLE_MAX);
        vg_map_check(&users.map);
    }
    for (size_t i = 1; i < USERS; i += 2)
        vg_users_put(&users, u[i]);
    vg_users_done(&users);
}

static void too_many_groups_are_refused(void **state)
{
    (void)state;
    struct vg_users users;
    struct vg_user *u;
    static const struct vg_slice groups[VG_USER_GROUPS_MAX + 1];
    struct vg_api_user user = {{"u", 1}, {0}, groups, VG_USER_GROUPS_MAX + 1, NULL, 0};
    vg_users_init(&users, NULL);
    assert_int_equal(vg_users_get(&users, &user, NULL, &u), VIGIL_E_TOO_LARGE);
    vg_users_done(&users);
}

static void a_user_has_so_many_watches_and_no_more(void **state)
{
    (void)state;
    struct vg_watch_caps caps;
    vg_watch_caps_init(&caps, 2);
    struct vg_slice a = VG_SLICE_LIT("a"), b = VG_SLICE_LIT("b");
    assert_int_equal(vg_watch_caps_take(&caps, a), 0);
    assert_int_equal(vg_watch_caps_take(&caps, a), 0);
    assert_int_equal(vg_watch_caps_take(&caps, a), VIGIL_E_BUSY);
    assert_int_equal(vg_watch_caps_take(&caps, b), 0);
    vg_watch_caps_give(&caps, a);
    assert_int_equal(vg_watch_caps_take(&caps, a), 0);
    assert_int_equal(vg_watch_caps_take(&caps, a), VIGIL_E_BUSY);
    vg_watch_caps_give(&caps, a);
    vg_watch_caps_give(&caps, a);
    vg_watch_caps_give(&caps, b);
    assert_int_equal(vg_map_count(&caps.map), 0);
    vg_watch_caps_done(&caps);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_users users;
        struct vg_user *u;
        struct vg_api_user user = {{"u", 1}, {0}, NULL, 0, NULL, 0};
        vg_users_init(&users, NULL);
        int r = vg_users_get(&users, &user, "extra", &u);
        if (vg_test_alloc_failed())
            assert_int_equal(r, -ENOMEM);
        else
            assert_int_equal(r, 0);
        if (r == 0)
            vg_users_put(&users, u);
        vg_users_done(&users);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_users_share_an_entry),
        cmocka_unit_test(extras_tell_users_apart),
        cmocka_unit_test(idle_users_are_forgotten_in_time),
        cmocka_unit_test(the_busy_ones_stay),
        cmocka_unit_test(too_many_groups_are_refused),
        cmocka_unit_test(a_user_has_so_many_watches_and_no_more),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
