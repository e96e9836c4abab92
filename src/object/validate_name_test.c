/* validate_name_test.c - which names, keys and values are valid, and why others are not. */
#include "test_support.h"

#include <stdio.h>

#include "validate_name.h"
#include "validate_name_testing.h"

typedef bool validator(struct vg_slice s, struct vg_name_reasons *ret_why);

static bool dns_label(struct vg_slice s, struct vg_name_reasons *ret_why)
{
    return vg_validate_dns1123_label(s, VG_NAME_CHARACTERS, ret_why);
}

static bool dns_subdomain(struct vg_slice s, struct vg_name_reasons *ret_why)
{
    return vg_validate_dns1123_subdomain(s, VG_NAME_CHARACTERS, ret_why);
}

/* A NULL message: valid. */
static void check(validator *validate, const char *text, const char *message)
{
    struct vg_name_reasons why = {.n = 0};
    VG_AUTO(buf) b = {0};
    bool valid = validate(vg_slice_str(text), &why);
    assert_int_equal(validate(vg_slice_str(text), NULL), valid);
    assert_int_equal(vg_name_reasons_append(&b, &why), 0);
    if (valid != !message)
        printf("\"%s\" is %s\n", text, valid ? "valid" : "invalid");
    assert_int_equal(valid, !message);
    vg_assert_slice_equal(vg_buf_slice(&b), vg_slice_str(message ? message : ""));
}

static void check_all(validator *validate, const char *const *texts, size_t n, const char *message)
{
    for (size_t i = 0; i < n; i++)
        check(validate, texts[i], message);
}

static void label_keys_have_an_optional_domain(void **state)
{
    (void)state;
    static const char *const good[] = {
        "simple",
        "now-with-dashes",
        "1-starts-with-num",
        "1234",
        "simple/simple",
        "now-with-dashes/simple",
        "now-with-dashes/now-with-dashes",
        "now.with.dots/simple",
        "now-with.dashes-and.dots/simple",
        "1-num.2-num/3-num",
        "1234/5678",
        "1.2.3.4/5678",
        "Uppercase_Is_OK_123",
        "example.com/Uppercase_Is_OK_123",
        "requests.storage-foo",
        X63("a"),
        X253("a") "/" X63("b"),
    };
    check_all(vg_validate_label_key, good, VG_ARRAY_LEN(good), NULL);
}

static void bad_label_keys_are_told_why(void **state)
{
    (void)state;
    static const char *const bad_names[] = {
        "nospecialchars%^=@", "cantendwithadash-", "-cantstartwithadash-", "a b", ".a", "a."};
    check_all(vg_validate_label_key, bad_names, VG_ARRAY_LEN(bad_names), "name part " KEY_RULE);
    static const char *const bad_prefixes[] = {"Example.com/abc", "example_com/abc", "a..b/c",
                                               "-a/b", "a./b"};
    check_all(vg_validate_label_key, bad_prefixes, VG_ARRAY_LEN(bad_prefixes),
              "prefix part " SUBDOMAIN_RULE);
    check(vg_validate_label_key, "", "name part must be non-empty; name part " KEY_RULE);
    check(vg_validate_label_key, "example.com/",
          "name part must be non-empty; name part " KEY_RULE);
    check(vg_validate_label_key, "/simple", "prefix part must be non-empty");
    check(vg_validate_label_key, X63("a") "a", "name part must be no more than 63 bytes");
    check(vg_validate_label_key, X253("a") "a/abc", "prefix part must be no more than 253 bytes");
    check(vg_validate_label_key, X253("a") "-/" X63("b") "-",
          "prefix part must be no more than 253 bytes; prefix part " SUBDOMAIN_RULE
          "; name part must be no more than 63 bytes; name part " KEY_RULE);
    static const char *const slashes[] = {"only/one/slash", "//", "a//b"};
    check_all(vg_validate_label_key, slashes, VG_ARRAY_LEN(slashes),
              "a valid label key " KEY_RULE
              " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
}

static void label_values_may_be_empty(void **state)
{
    (void)state;
    static const char *const good[] = {
        "", "simple", "now-with-dashes", "1-starts-with-num", "end-with-num-1", "1234", X63("a")};
    check_all(vg_validate_label_value, good, VG_ARRAY_LEN(good), NULL);
    static const char *const bad[] = {
        "nospecialchars%^=@",      "Tama-nui-te-r\xc4\x81.is.M\xc4\x81ori.sun",
        "\\backslashes\\are\\bad", "-starts-with-dash",
        "ends-with-dash-",         ".starts.with.dot",
        "ends.with.dot."};
    check_all(vg_validate_label_value, bad, VG_ARRAY_LEN(bad), VALUE_RULE);
    check(vg_validate_label_value, X63("a") "a", "must be no more than 63 bytes");
    check(vg_validate_label_value, X63("a") ".", "must be no more than 63 bytes; " VALUE_RULE);
}

static void dns_labels_are_lower_case_without_dots(void **state)
{
    (void)state;
    static const char *const good[] = {"a",  "ab",  "abc", "a1",  "a-1",        "a--1--2--b", "0",
                                       "01", "012", "1a",  "1-a", "1--a--b--2", X63("a")};
    check_all(dns_label, good, VG_ARRAY_LEN(good), NULL);
    static const char *const bad[] = {"",   "A",  "ABC", "aBc", "A1", "A-1", "1-A", "-",
                                      "a-", "-a", "1-",  "-1",  "_",  "a_",  "_a",  "a_b",
                                      "1_", "_1", "1_2", ".",   "a.", ".a",  "1.",  ".1",
                                      " ",  "a ", " a",  "a b", "1 ", " 1",  "1 2"};
    check_all(dns_label, bad, VG_ARRAY_LEN(bad), DNS_LABEL_RULE);
    check(dns_label, "a.b", "must not contain dots");
    check(dns_label, "1.2", "must not contain dots");
    check(dns_label, X63("a") "a", "must be no more than 63 characters");
    struct vg_name_reasons why = {.n = 0};
    assert_false(vg_validate_dns1123_label(VG_SLICE_LIT(X63("a") "a"), VG_NAME_BYTES, &why));
    assert_string_equal(why.v[0], "must be no more than 63 bytes");
}

static void dns_subdomains_are_labels_between_dots(void **state)
{
    (void)state;
    static const char *const good[] = {"a",
                                       "a1",
                                       "a-1",
                                       "a--1--2--b",
                                       "0",
                                       "012",
                                       "1-a",
                                       "a.a",
                                       "ab.a",
                                       "a1.a",
                                       "a--1--2--b.a",
                                       "a.1",
                                       "a-1.1",
                                       "0.a",
                                       "1--a--b--2",
                                       "0.1",
                                       "1-a.1",
                                       "a.b.c.d.e",
                                       "11.22.33.44.55",
                                       X253("a")};
    check_all(dns_subdomain, good, VG_ARRAY_LEN(good), NULL);
    static const char *const bad[] = {"",    "A",   "aBc",  "A-1", "-",    "a-",   "-a",
                                      "_",   "a_b", "1_2",  ".",   "a.",   ".a",   "a..b",
                                      "1.",  ".1",  "1..2", " ",   "a b",  "A.a",  "ab.A",
                                      "A.1", "0.A", "1a.A", "a@b", "a,b",  "a;b",  "A.B.C.D.E",
                                      "a:b", "a%b", "a?b",  "a$b", "a.-b", "a-.b", "a.b-"};
    check_all(dns_subdomain, bad, VG_ARRAY_LEN(bad), SUBDOMAIN_RULE);
    check(dns_subdomain, X253("a") "a", "must be no more than 253 characters");
    struct vg_name_reasons why = {.n = 0};
    assert_false(vg_validate_dns1123_subdomain(VG_SLICE_LIT(X253("a") "a"), VG_NAME_BYTES, &why));
    assert_string_equal(why.v[0], "must be no more than 253 bytes");
}

static void dns_1035_labels_begin_with_a_letter(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "ab", "abc", "a1", "a-1", "a--1--2--b", X63("a")};
    check_all(vg_validate_dns1035_label, good, VG_ARRAY_LEN(good), NULL);
    static const char *const bad[] = {"0",   "01", "1a", "1-a", "1--a--b--2", "",   "A",   "ABC",
                                      "aBc", "A1", "-",  "a-",  "-a",         "1-", "_",   "a_b",
                                      ".",   "a.", ".a", "a.b", "1.2",        " ",  "a b", "1 2"};
    check_all(vg_validate_dns1035_label, bad, VG_ARRAY_LEN(bad), DNS1035_RULE);
    check(vg_validate_dns1035_label, X63("a") "a", "must be no more than 63 characters");
}

static void path_segments_are_neither_dots_nor_paths(void **state)
{
    (void)state;
    static const char *const good[] = {"", "a", "...", ".a", "sys:tem", "A b", "\xc3\xa9"};
    check_all(vg_validate_path_segment, good, VG_ARRAY_LEN(good), NULL);
    check(vg_validate_path_segment, ".", "may not be '.'");
    check(vg_validate_path_segment, "..", "may not be '..'");
    check(vg_validate_path_segment, "a/b", "may not contain '/'");
    check(vg_validate_path_segment, "a%b", "may not contain '%'");
    check(vg_validate_path_segment, "a%/b", "may not contain '/'; may not contain '%'");
}

static void a_nul_byte_is_never_valid(void **state)
{
    (void)state;
    struct vg_slice s = VG_SLICE_LIT("a\0b");
    assert_false(vg_validate_label_key(s, NULL));
    assert_false(vg_validate_label_value(s, NULL));
    assert_false(dns_label(s, NULL));
    assert_false(dns_subdomain(s, NULL));
    assert_false(vg_validate_dns1035_label(s, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_keys_have_an_optional_domain),
        cmocka_unit_test(bad_label_keys_are_told_why),
        cmocka_unit_test(label_values_may_be_empty),
        cmocka_unit_test(dns_labels_are_lower_case_without_dots),
        cmocka_unit_test(dns_subdomains_are_labels_between_dots),
        cmocka_unit_test(dns_1035_labels_begin_with_a_letter),
        cmocka_unit_test(path_segments_are_neither_dots_nor_paths),
        cmocka_unit_test(a_nul_byte_is_never_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
