/* tidy_cmocka.h - lint only: clang-tidy reads every test with this before it.
 * A failed cmocka assertion leaves the test, but nothing in cmocka.h says so, and the analyzer
 * would walk on with a call that failed and the outputs it never wrote. */
#ifndef VG_TIDY_CMOCKA_H
#define VG_TIDY_CMOCKA_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define VG_TIDY_HOLDS(x) ((x) ? (void)0 : __builtin_trap())
#undef assert_true
#define assert_true(c) VG_TIDY_HOLDS(c)
#undef assert_false
#define assert_false(c) VG_TIDY_HOLDS(!(c))
#undef assert_non_null
#define assert_non_null(p) VG_TIDY_HOLDS((p) != NULL)
#undef assert_null
#define assert_null(p) VG_TIDY_HOLDS((p) == NULL)
#undef assert_int_equal
#define assert_int_equal(a, b) VG_TIDY_HOLDS((uintmax_t)(a) == (uintmax_t)(b))
#undef assert_int_not_equal
#define assert_int_not_equal(a, b) VG_TIDY_HOLDS((uintmax_t)(a) != (uintmax_t)(b))

#endif
