/* disk_shadow.h - what a disk would still hold if the power went now, for one directory.
 * Every file has its durable bytes and, in order, the changes made since its last completed sync;
 * the directory has durable names and the changes of names since it was synced. An image is the
 * durable part plus any part of the rest, as the rules below allow:
 *   K1 an un-synced write is there, absent or torn at 512-byte sectors, whatever became of others.
 *   K2 two un-synced writes of one sector: any of them may be the one that is found.
 *   K3 what a completed sync covers is there; later un-synced writes may lie on top of it.
 *   K4 bytes below the end of a file that were never written read as zeros.
 *   K5 a name that was made, moved or removed since the directory was synced may be as before.
 *   K6 after a failed sync the writes it covered are settled at once, each there or not, and no
 *      later sync brings them back (what Linux does: the pages count as clean).
 * Thread: whoever holds the shim's lock. Nothing returns an error: out of memory ends the test. */
#ifndef VG_TESTS_DISK_SHADOW_H
#define VG_TESTS_DISK_SHADOW_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/rng.h"

struct vg_shadow;
struct vg_shadow_file;

/* The directory as it is on disk now, all of it durable; it need not exist. */
struct vg_shadow *vg_shadow_new(const char *dir);
void vg_shadow_free(struct vg_shadow *s);

/* Was it made, and is that durable? */
void vg_shadow_made_dir(struct vg_shadow *s);
void vg_shadow_sync_parent(struct vg_shadow *s);
bool vg_shadow_has_dir(const struct vg_shadow *s, dev_t dev, ino_t ino);
bool vg_shadow_has_parent(const struct vg_shadow *s, dev_t dev, ino_t ino);

/* The file behind a descriptor; NULL: none of ours. */
struct vg_shadow_file *vg_shadow_find(struct vg_shadow *s, dev_t dev, ino_t ino);

/* Names. created: harmless when the name stands for that file already. */
struct vg_shadow_file *vg_shadow_created(struct vg_shadow *s, const char *name, dev_t dev,
                                         ino_t ino);
/* to == NULL: it left the directory; from == NULL: it came from outside, with `f`. */
void vg_shadow_renamed(struct vg_shadow *s, const char *from, const char *to,
                       struct vg_shadow_file *f);
void vg_shadow_unlinked(struct vg_shadow *s, const char *name);
void vg_shadow_sync_names(struct vg_shadow *s);

/* Bytes. A mark names all changes made so far; sync makes those of a file durable. */
void vg_shadow_write(struct vg_shadow *s, struct vg_shadow_file *f, uint64_t off, const void *p,
                     size_t n);
void vg_shadow_resize(struct vg_shadow *s, struct vg_shadow_file *f, uint64_t size);
uint64_t vg_shadow_size(const struct vg_shadow_file *f); /* as the process sees it */
uint64_t vg_shadow_mark(const struct vg_shadow *s);
void vg_shadow_sync(struct vg_shadow_file *f, uint64_t mark);
/* The newest write alone, of a descriptor that is O_DSYNC; with rng, that sync failed (K6). */
void vg_shadow_sync_newest(struct vg_shadow_file *f, struct vg_rng *failed);
void vg_shadow_sync_failed(struct vg_shadow_file *f, uint64_t mark, struct vg_rng *rng);

/* Writes one possible outcome of a power cut into `to`, which must not exist. It does not exist
 * afterwards either when the directory itself is what the cut took. */
void vg_shadow_image(struct vg_shadow *s, struct vg_rng *rng, const char *to);

#endif
