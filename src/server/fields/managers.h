/* managers.h - who set which fields: metadata.managedFields, read, changed and written.
 * A manager is known by its name, its operation, its subresource and, unless it applies, the
 * version that it writes. Thread: one owner. */
#ifndef VG_FIELDS_MANAGERS_H
#define VG_FIELDS_MANAGERS_H

#include "compare.h"

/* As the original: of managers that update, so many are kept apart. */
#define VG_MANAGERS_UPDATE_MAX 10u

struct vg_manager {
    struct vg_slice name, api_version, subresource;
    struct vg_slice time; /* RFC 3339 in seconds; empty: none */
    bool applies;
    struct vg_json fields;        /* a set */
    const struct vg_json *stored; /* the entry as it was read, if that is how it is; else NULL */
};

struct vg_managers {
    struct vg_manager *v;
    uint32_t n, room;
};

/* is_trusted: it was stored by us, so its sets are sound. 0; VIGIL_E_INVALID with the original's
 * sentence; -ENOMEM. list NULL: none. */
VG_CHECK int vg_managers_read(struct vg_arena *a, const struct vg_json *list, bool is_trusted,
                              struct vg_managers *ret, struct vg_status *reterr_status);
/* As a list of entries, in order; *ret is NULL when there are none. It is there to be written:
 * entries and sets are texts, and those that were read from `source` (empty: none were) are
 * taken from it. 0, -ENOMEM. */
VG_CHECK int vg_managers_write(struct vg_arena *a, const struct vg_managers *m,
                               struct vg_slice source, struct vg_json **ret);
/* Do the entries that were written differ from those that were read, of that source, in times
 * alone, if in anything? Both may be NULL. */
bool vg_managers_differ_in_time(const struct vg_json *written, const struct vg_json *was,
                                struct vg_slice source);
/* The manager with this identity; NULL: none. */
struct vg_manager *vg_managers_find(const struct vg_managers *m, const struct vg_manager *like);
bool vg_manager_is(const struct vg_manager *x, const struct vg_manager *y);
/* Put one in. 0, -ENOMEM. */
VG_CHECK int vg_managers_add(struct vg_arena *a, struct vg_managers *m,
                             const struct vg_manager *one);
void vg_managers_remove(struct vg_managers *m, uint32_t i);
/* A manager's set becomes another. */
void vg_manager_set(struct vg_manager *m, const struct vg_json *fields);

/* What differs between old and new in a version: 1; 0: there is no such version. -ENOMEM ... */
typedef int vg_managers_delta_fn(void *arg, struct vg_slice api_version,
                                 const struct vg_fields_delta **ret);
/* Everybody but `except` (NULL: nobody is) loses what changed and what is gone; those whose version
 * there is not, and those who own nothing any more, go. 0, -ENOMEM ... */
VG_CHECK int vg_managers_lose(struct vg_arena *a, struct vg_managers *m,
                              const struct vg_manager *except, vg_managers_delta_fn *delta,
                              void *arg);
/* An update by `who` (name, version, subresource, time): it owns what changed. 0, -ENOMEM ... */
VG_CHECK int vg_managers_update(struct vg_arena *a, struct vg_managers *m,
                                const struct vg_manager *who, vg_managers_delta_fn *delta,
                                void *arg);

#endif
