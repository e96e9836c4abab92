/* stamp.h - pieces of stamping that the verbs share; see stamp.c. */
#ifndef VG_API_STAMP_H
#define VG_API_STAMP_H

#include "write.h"

struct vg_rules_part;

/* FAIL for good, by the table of errors. */
enum vg_verdict vg_change_refuse(struct vg_change *c, int err);
/* FAIL with a 422 about the kind. */
enum vg_verdict vg_change_invalid(struct vg_change *c, struct vg_slice name,
                                  const struct vg_field_errors *e);
/* Which part of an object is written; NULL: none of those that rules know. */
const struct vg_rules_part *vg_change_part(const struct vg_change *c);
/* Arrange the object, note in m->managed who set what of it, and let the kind's rules set what they
 * want in it and in *m; given: as the client sent it; old: what is stored, or NULL. root is a top
 * copy. -ENOMEM; VIGIL_E_FORBIDDEN: a plugin refuses it, and c->status says why. */
VG_CHECK int vg_change_prepare(struct vg_change *c, struct vg_json *root,
                               const struct vg_body *given, const struct vg_body *old,
                               struct vg_meta *m);
/* Who owns which fields once `now` (arranged, as the client wants it) is written over old, NULL:
 * nothing. given: what the client sent. *ret is NULL: nobody (managed.c). -ENOMEM. */
VG_CHECK int vg_change_manage(struct vg_change *c, const struct vg_json *now,
                              const struct vg_body *given, const struct vg_body *old,
                              struct vg_json **ret);
/* The same for a write of scale, whose own fields are those of a Scale (managed_scale.c). who:
 * name, time. -ENOMEM. */
struct vg_managers;
struct vg_manager;
VG_CHECK int vg_change_manage_scale(struct vg_change *c, const struct vg_json *now,
                                    const struct vg_json *old, const struct vg_managers *was,
                                    const struct vg_manager *who, struct vg_json **ret);
/* The text of what is stored; empty: nothing is. */
static inline struct vg_slice vg_change_source(const struct vg_change *c)
{
    return c->cur ? vg_rec_value(c->cur) : vg_slice(NULL, 0);
}
/* Set the label that says a namespace's name, at its place. -ENOMEM. */
VG_CHECK int vg_stamp_name_label(struct vg_arena *a, struct vg_meta *m);
/* A uid of its own, in scratch. -ENOMEM, or the random source's error. */
VG_CHECK int vg_stamp_uid(struct vg_change *c, struct vg_slice *ret);
/* What they refuse; likewise. */
void vg_change_check(struct vg_change *c, struct vg_field_errors *e, const struct vg_json *root,
                     const struct vg_json *old);
/* Members of an object that are as they were become the old ones, so that whoever compares again
 * sees it at once. 0, -ENOMEM. */
VG_CHECK int vg_change_share(struct vg_json *v, const struct vg_json *old);
/* An object whose members may be set, added and removed without touching v; it is of no source any
 * more, its members still are. -ENOMEM. */
VG_CHECK int vg_json_top_copy(struct vg_arena *a, const struct vg_json *v, struct vg_json *ret);
/* Set a member and put it last, where kube-apiserver prints status; NULL: remove it. root is a top
 * copy, v may be of another source: the member is of none. -ENOMEM. */
VG_CHECK int vg_stamp_last(struct vg_arena *a, struct vg_json *root, const char *name,
                           const struct vg_json *v);
/* What stringData says goes into data, in base64, and stringData goes away. root is a top copy.
 * -ENOMEM. */
VG_CHECK int vg_stamp_string_data(struct vg_arena *a, struct vg_json *root);
/* The time in so many seconds, in scratch. -ENOMEM. */
VG_CHECK int vg_stamp_time(struct vg_change *c, int64_t plus_s, struct vg_slice *ret);
/* The label and the spec of a namespace: with these finalizers, or NULL: with the body's and
 * "kubernetes". root is a top copy. -ENOMEM. */
VG_CHECK int vg_stamp_namespace(struct vg_arena *a, struct vg_json *root, struct vg_meta *m,
                                const struct vg_json *finalizers);

#endif
