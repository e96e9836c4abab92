/* list_test.c - both ends of the intrusive list, and removing while walking. */
#include "test_support.h"

#include "list.h"

struct item {
    int value;
    struct vg_list link;
};

static int value_of(struct vg_list *n)
{
    return VG_CONTAINER_OF(n, struct item, link)->value;
}

static void a_new_list_is_empty(void **state)
{
    (void)state;
    struct vg_list head;
    vg_list_init(&head);
    assert_true(vg_list_is_empty(&head));
    assert_null(vg_list_pop_front(&head));
    VG_LIST_FOREACH (n, &head)
        fail();
}

static void both_ends_push_and_the_front_pops(void **state)
{
    (void)state;
    struct vg_list head;
    struct item one = {.value = 1}, two = {.value = 2}, three = {.value = 3};
    vg_list_init(&head);
    vg_list_push_back(&head, &two.link);
    vg_list_push_back(&head, &three.link);
    vg_list_push_front(&head, &one.link);
    int want = 1;
    VG_LIST_FOREACH (n, &head)
        assert_int_equal(value_of(n), want++);
    assert_int_equal(want, 4);
    for (want = 1; want < 4; want++)
        assert_int_equal(value_of(vg_list_pop_front(&head)), want);
    assert_true(vg_list_is_empty(&head));
}

static void removing_twice_is_harmless(void **state)
{
    (void)state;
    struct vg_list head;
    struct item one = {.value = 1}, two = {.value = 2};
    vg_list_init(&head);
    vg_list_push_back(&head, &one.link);
    vg_list_insert_before(&one.link, &two.link);
    vg_list_remove(&one.link);
    vg_list_remove(&one.link);
    assert_int_equal(value_of(head.next), 2);
    assert_int_equal(value_of(head.prev), 2);
}

static void a_safe_walk_may_remove_what_it_visits(void **state)
{
    (void)state;
    struct vg_list head;
    struct item items[10];
    vg_list_init(&head);
    for (int i = 0; i < 10; i++) {
        items[i].value = i;
        vg_list_push_back(&head, &items[i].link);
    }
    VG_LIST_FOREACH_SAFE (n, &head) {
        if (value_of(n) % 2 == 0)
            vg_list_remove(n);
    }
    int want = 1;
    VG_LIST_FOREACH (n, &head) {
        assert_int_equal(value_of(n), want);
        want += 2;
    }
    assert_int_equal(want, 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_list_is_empty),
        cmocka_unit_test(both_ends_push_and_the_front_pops),
        cmocka_unit_test(removing_twice_is_harmless),
        cmocka_unit_test(a_safe_walk_may_remove_what_it_visits),
    };
    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
