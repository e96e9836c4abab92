/* test_support.h - what unit tests share; include it first, it brings cmocka in the right order.
 * Nothing here returns an error: a helper that cannot do its work ends the test run loudly. */
#ifndef VG_TEST_SUPPORT_H
#define VG_TEST_SUPPORT_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/slice.h"

/* The seed of this run: VG_SEED from the environment, else random. Printed as "seed=..." the first
 * time, so that a failed run can be repeated with VG_SEED=... */
uint64_t vg_test_seed(void);

/* Is the long round asked for (VG_LONG=1)? Then tests may take minutes. */
bool vg_test_is_long(void);

/* A new empty directory under TMPDIR (or /tmp). The text is valid until removed: by
 * vg_test_tmpdir_remove or, for what is left, when the process that made it exits. */
const char *vg_test_tmpdir(void);
void vg_test_tmpdir_remove(const char *path);
/* The same as cmocka fixtures: *state is the path. */
int vg_test_tmpdir_setup(void **state);
int vg_test_tmpdir_teardown(void **state);
/* Remove a file or a whole tree; what is not there is fine. */
void vg_test_remove_tree(const char *path);

/* Runs its body again and again, the n-th time with the n-th allocation of this thread failing,
 * until a run makes fewer than n allocations:
 *     VG_ALLOC_FAIL_LOOP(n)
 *     {
 *         int r = thing_under_test();
 *         if (vg_test_alloc_failed())
 *             assert_int_equal(r, -ENOMEM);
 *         ...
 *     }
 * Do not leave the body by break or return. */
#define VG_ALLOC_FAIL_LOOP(n) for (uint64_t n = 0; vg_test_fail_step(&n, 0);)
/* Counts the allocations of all threads. */
#define VG_ALLOC_FAIL_LOOP_ALL(n) for (uint64_t n = 0; vg_test_fail_step(&n, 1);)
bool vg_test_fail_step(uint64_t *n, int all_threads);
/* Switches the fault off for the rest of the body and says whether it struck. */
bool vg_test_alloc_failed(void);

/* Runs fn(index, arg) on `count` threads that start together; returns when all are done. */
typedef void vg_test_thread_fn(unsigned index, void *arg);
void vg_test_threads(unsigned count, vg_test_thread_fn *fn, void *arg);

/* Runs fn(arg) in a child process and asserts that it dies by abort() with `text` on stderr. Call
 * it while this process has one thread. */
void vg_test_dies(void (*fn)(void *arg), void *arg, const char *text);

/* Recorded answers of a real server: tests/vectors, which the build unpacks, or the folder that
 * VG_VECTORS names. Appends the file to *ret. A file that is missing ends the run as a failure. */
void vg_test_vector(const char *name, struct vg_buf *ret);
/* The path of a folder of them, to look into. */
void vg_test_vector_dir(const char *name, char *ret_path, size_t n);

/* Asserts that two runs of bytes are equal and prints both when they are not. */
#define vg_assert_slice_equal(got, want) vg_assert_slice_equal_((got), (want), __FILE__, __LINE__)
void vg_assert_slice_equal_(struct vg_slice got, struct vg_slice want, const char *file, int line);

#endif
