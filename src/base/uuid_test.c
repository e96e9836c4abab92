/* uuid_test.c - the text of a uuid, and its version. */
#include "uuid.h"

#include "test_support.h"

static void test_text_and_version(void **state)
{
    (void)state;
    unsigned char b[16];
    char text[VG_UUID_TEXT + 1] = {0};
    for (int i = 0; i < 16; i++)
        b[i] = (unsigned char)(0xf0 + i);
    vg_uuid_mark(b);
    vg_uuid_write(b, text);
    assert_string_equal(text, "f0f1f2f3-f4f5-46f7-b8f9-fafbfcfdfeff");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text_and_version)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
