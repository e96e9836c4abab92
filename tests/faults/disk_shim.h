/* disk_shim.h - a disk that fails on demand and remembers what a power cut would leave.
 * A test that links disk_shim.c has its own pwrite, fdatasync, open, rename ...; the store and
 * liblmdb call those. For the files of one directory they count, fail and record; everything else
 * goes straight to the kernel. A sync of a recorded file reaches the shadow (disk_shadow.h) but not
 * the kernel: nothing here depends on the real disk, and tests stay fast.
 * What is written through a shared mapping is not seen: LMDB without MDB_WRITEMAP writes only its
 * lock file that way. Thread: any; one directory at a time. */
#ifndef VG_TESTS_DISK_SHIM_H
#define VG_TESTS_DISK_SHIM_H

#include <stdbool.h>
#include <stdint.h>

enum vg_disk_class {
    VG_DISK_WRITE = 0, /* pwrite and kin, ftruncate, fallocate */
    VG_DISK_SYNC = 1,  /* fsync, fdatasync, of files and of directories; the sync in O_DSYNC and
                        * RWF_DSYNC */
    VG_DISK_NAME = 2,  /* a file made, renamed, removed; the directory made */
    VG_DISK_CLASSES = 3,
};

/* Record what happens in `dir` (which need not exist yet); what it holds now counts as durable. */
void vg_disk_attach(const char *dir, uint64_t seed);
void vg_disk_detach(void);

/* Calls of a class since attach; those that failed included. */
uint64_t vg_disk_count(enum vg_disk_class class);

/* ---- faults ---- */

struct vg_disk_fault {
    enum vg_disk_class class;
    uint64_t at;    /* the first call that fails: 1 = the next */
    uint64_t times; /* how many fail from there on; UINT64_MAX: until vg_disk_heal */
    int err;        /* errno */
    bool part;      /* a write puts part of its bytes there and returns short; the next call fails,
                     * or goes on when err is 0 */
    bool growing;   /* WRITE: only calls that make a file longer fail (and count) */
    bool dead;      /* from the first failure on every call of any class fails; times: UINT64_MAX */
};
void vg_disk_fail(const struct vg_disk_fault *fault);
void vg_disk_heal(void);
/* How many calls the fault has struck. */
uint64_t vg_disk_struck(void);

/* What the file system cannot do: any of these. */
#define VG_DISK_NO_DIRECT_OPEN 1u  /* O_DIRECT is refused when a file is opened */
#define VG_DISK_NO_DIRECT_WRITE 2u /* or when it is written to */
#define VG_DISK_NO_DSYNC 4u        /* RWF_DSYNC is not known */
void vg_disk_lacks(unsigned what);
/* How many writes went past the page cache, and how many were durable by themselves (RWF_DSYNC). */
uint64_t vg_disk_count_direct(void);
uint64_t vg_disk_count_dsync(void);

/* Syncs succeed and do nothing: what a disk does that lies. */
void vg_disk_lie(bool lie);

/* ---- power cuts ---- */

/* Called before, inside and after writes, syncs and changes of names, on the thread that makes
 * them, with the shim's lock held: the callee must not touch the directory. It may take an image.
 * Returns how many such points to let pass before the next call; 0: no more. */
typedef uint64_t vg_disk_point_fn(void *arg);
void vg_disk_on_point(uint64_t first, vg_disk_point_fn *fn, void *arg);

/* One outcome of a power cut at this moment, written into `to`, which must not exist; it does not
 * exist afterwards when the cut took the directory itself. */
void vg_disk_image(const char *to);

#endif
