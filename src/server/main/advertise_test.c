/* advertise_test.c - which address is told to others. */
#include "advertise.h"

#include <string.h>

#include "test_support.h"

static void test_what_is_said_counts(void **state)
{
    char a[VG_ADVERTISE_MAX];
    struct vg_status status;
    (void)state;
    assert_int_equal(vg_advertise_choose("10.1.2.3", "127.0.0.1", a, &status), 0);
    assert_string_equal(a, "10.1.2.3");
    assert_int_equal(vg_advertise_choose("fd00::1", "0.0.0.0", a, &status), 0);
    assert_string_equal(a, "fd00::1");
    assert_int_equal(vg_advertise_choose(NULL, "192.0.2.7", a, &status), 0);
    assert_string_equal(a, "192.0.2.7");
}

static void test_what_nobody_reaches_is_refused(void **state)
{
    static const char *const wrong[] = {"127.0.0.1",   "127.9.9.9", "0.0.0.0", "::1",
                                        "::",          "224.0.0.1", "ff02::1", "fe80::1",
                                        "169.254.1.1", "host",      ""};
    char a[VG_ADVERTISE_MAX];
    struct vg_status status;
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(wrong); i++)
        assert_int_equal(vg_advertise_choose(wrong[i], "0.0.0.0", a, &status), VIGIL_E_INVALID);
}

static void test_of_this_host_alone(void **state)
{
    char a[VG_ADVERTISE_MAX];
    struct vg_status status;
    (void)state;
    assert_int_equal(vg_advertise_choose(NULL, "127.0.0.1", a, &status), 0);
    assert_string_equal(a, "");
    assert_int_equal(vg_advertise_choose(NULL, "::1", a, &status), 0);
    assert_string_equal(a, "");
}

static void test_every_interface(void **state)
{
    char a[VG_ADVERTISE_MAX];
    struct vg_status status;
    (void)state;
    /* Of a machine without a network there is none. */
    assert_int_equal(vg_advertise_choose(NULL, "0.0.0.0", a, &status), 0);
    assert_string_not_equal(a, "127.0.0.1");
    assert_string_not_equal(a, "0.0.0.0");
    assert_int_equal(vg_advertise_choose(NULL, "::", a, &status), 0);
    assert_string_not_equal(a, "::");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_counts),
        cmocka_unit_test(test_what_nobody_reaches_is_refused),
        cmocka_unit_test(test_of_this_host_alone),
        cmocka_unit_test(test_every_interface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
