/* damage_kit.h - stores to be damaged, tools to damage them, and the check that an open which
 * refuses leaves everything as it was. */
#ifndef VG_TESTS_DAMAGE_KIT_H
#define VG_TESTS_DAMAGE_KIT_H

#include "storage_driver.h"

#define DK_KEYS 40 /* "key/000" and on; the value of each is dk_value() */

/* A store that was closed: everything is in data.mdb. Its revision is DK_KEYS + 1. */
void dk_make_closed(const char *dir);
/* A store as a killed process leaves it: half in data.mdb, the other half in the log, one group per
 * key. */
void dk_make_killed(const char *dir);
/* The files of a store that is open but does nothing, into a new directory. */
void dk_copy_files(const char *from, const char *to);
const char *dk_key(int i);
const char *dk_value(int i);

struct vg_storage_opts dk_opts(const char *dir);
/* "dir/name"; valid until the fourth call after this one. */
const char *dk_path(const char *dir, const char *name);

/* The files of a directory: names, sizes, modes, bytes; `lock` does not count. Free it. */
char *dk_fingerprint(const char *dir);

char *dk_read(const char *path, size_t *ret_size); /* all of a file; free it */
void dk_write(const char *path, const void *p, size_t n);
void dk_truncate(const char *path, size_t size);
void dk_flip(const char *path, size_t byte, unsigned bit);
size_t dk_size(const char *path);

/* Opening must fail with `err` (0: any) and a message that holds `text`, and change nothing. */
void dk_expect_refused(const char *dir, int err, const char *text);
/* Opening must succeed, with every key up to `keys` as it was written and no other. */
void dk_expect_good(const char *dir, int keys);
/* Where a test's store is, below the directory that is its state; valid until the next call. */
const char *dk_dir(void **state);
/* Run this binary again; its exit status, -1 when a signal ended it. What it says is in `said`. */
int dk_run_self(const char *what, const char *dir, char *said, size_t size);

#endif
