/* codes_test.c - the codes that users see are those of our table of errors. Includes no err.h: the
 * enum is that of vigil/base.h. */
#include "test_support.h"

#include <stdio.h>

#include "vigil/base.h"

static const struct {
    const char *name;
    int code;
} ours[] = {
#define VG_ERR(name, number, http, reason, retriable, text) {#name, -100000 - (number)},
#define VG_ERRNO(name, http, reason, retriable)
#include "base/err.def"
#undef VG_ERR
#undef VG_ERRNO
};

static int our_code(const char *name)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(ours); i++)
        if (strcmp(ours[i].name, name) == 0)
            return ours[i].code;
    return 0;
}

static void public_codes_are_ours(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int code;
    } theirs[] = {{"INVALID", VIGIL_E_INVALID},         {"INTERNAL", VIGIL_E_INTERNAL},
                  {"UNSUPPORTED", VIGIL_E_UNSUPPORTED}, {"BUSY", VIGIL_E_BUSY},
                  {"CLOSED", VIGIL_E_CLOSED},           {"TIMEOUT", VIGIL_E_TIMEOUT},
                  {"TOO_LARGE", VIGIL_E_TOO_LARGE},     {"NOT_FOUND", VIGIL_E_NOT_FOUND},
                  {"EXISTS", VIGIL_E_EXISTS},           {"CANCELED", VIGIL_E_CANCELED},
                  {"CONFLICT", VIGIL_E_CONFLICT},       {"COMPACTED", VIGIL_E_EXPIRED},
                  {"FORBIDDEN", VIGIL_E_FORBIDDEN},     {"UNAUTHORIZED", VIGIL_E_UNAUTHORIZED},
                  {"NETWORK", VIGIL_E_NETWORK},         {"MEMORY", VIGIL_E_MEMORY}};
    for (size_t i = 0; i < VG_ARRAY_LEN(theirs); i++) {
        assert_int_equal(theirs[i].code, our_code(theirs[i].name));
        assert_true(vigil_code_text(theirs[i].code)[0]);
    }
    assert_string_equal(vigil_code_text(VIGIL_OK), "success");
}

static void the_version_is_that_of_the_headers(void **state)
{
    (void)state;
    char want[32];
    snprintf(want, sizeof(want), "%d.%d.0", VIGIL_VERSION_MAJOR, VIGIL_VERSION_MINOR);
    assert_string_equal(vigil_version(), want);
}

static void texts(void **state)
{
    (void)state;
    assert_int_equal(vigil_text("abc").n, 3);
    assert_int_equal(vigil_text(NULL).n, 0);
    assert_true(vigil_text_is(vigil_text("abc"), "abc"));
    assert_false(vigil_text_is(vigil_text("abc"), "abd"));
    assert_true(vigil_text_is(vigil_text(NULL), ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_codes_are_ours),
        cmocka_unit_test(the_version_is_that_of_the_headers),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
