/* garbage.h - what lives only as long as its owners; for the files of this room.
 * There is no graph in memory. Who is named as an owner is kept as a hash of its uid, and which
 * kinds have objects with owners as a flag each; when an owner goes, those kinds are walked in the
 * cache, in the owner's namespace alone unless it has none. That costs nothing per dependent, and a
 * walk is cheap beside the deletes that follow it. */
#ifndef VG_CONTROL_GARBAGE_H
#define VG_CONTROL_GARBAGE_H

#include "control_int.h"
#include "json/scan.h"

#define VG_FINALIZER_ORPHAN "orphan"
#define VG_FINALIZER_FOREGROUND "foregroundDeletion"

/* One entry of metadata.ownerReferences; in an arena or in the object. */
struct vg_owner {
    struct vg_slice uid, name, kind, api_version;
    bool blocks; /* blockOwnerDeletion */
};

/* An object by its kind and storage key: what the work's keys say. */
struct vg_dependent {
    const struct vg_kind *kind;
    struct vg_slice key;
};
#define VG_GARBAGE_KEY_MAX (VG_OBJ_KEY_MAX + 8u)
void vg_garbage_add(struct vg_control *c, const struct vg_kind *kind, struct vg_slice key);
struct vg_dependent vg_garbage_of(struct vg_slice work_key);

/* The kind of an owner that a dependent names; NULL: not served. */
const struct vg_kind *vg_owner_kind(const struct vg_owner *o);
/* The owner as the cache has it: of that uid, in the dependent's namespace if its kind has them.
 * NULL: it is not there. A reference. */
struct vg_rec *vg_owner_get(struct vg_control *c, const struct vg_owner *o, struct vg_slice ns);

/* The owners of an object, one after the other; texts with escapes are put into the arena. */
struct vg_owner_iter {
    struct vg_arena *arena;
    struct vg_json_iter at;
    bool is_open;
};
void vg_owners_begin(struct vg_owner_iter *it, struct vg_arena *arena, const struct vg_rec *rec);
/* ret_raw: the entry as it stands; may be NULL. False: no more. */
bool vg_owners_next(struct vg_owner_iter *it, struct vg_owner *ret, struct vg_slice *ret_raw);

/* Is this among metadata.finalizers? */
bool vg_has_finalizer(const struct vg_rec *rec, const char *name);

/* Every object that names `uid` as an owner. ns: the owner's; empty: look in all. each() may add
 * work; false: enough. Negative: some kind could not be looked at, so that more may exist. */
VG_CHECK int vg_garbage_each(struct vg_control *c, struct vg_slice uid, struct vg_slice ns,
                             bool (*each)(void *arg, const struct vg_kind *kind,
                                          const struct vg_rec *rec, const struct vg_owner *o),
                             void *arg);
/* A uid that the API has said is gone. */
bool vg_garbage_is_absent(const struct vg_garbage *g, struct vg_slice uid);
void vg_garbage_note_absent(struct vg_garbage *g, struct vg_slice uid);

VG_CHECK int vg_garbage_new(struct vg_control *c, struct vg_garbage **ret_garbage);
void vg_garbage_free(struct vg_garbage *g);
/* garbage_run.c: work on one object. */
void vg_garbage_run(struct vg_work_item *item);

#endif
