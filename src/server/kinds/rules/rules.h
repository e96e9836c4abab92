/* rules.h - what is particular to a kind beyond its schema: what the server sets and what it
 * refuses. A kind's rules are found by its row (vg_rules_of). Objects that come here are decoded
 * and defaulted. Thread: one owner of the object. */
#ifndef VG_RULES_RULES_H
#define VG_RULES_RULES_H

#include "check.h"
#include "claims.h"
#include "server/kinds/kinds.h"
#include "server/kinds/user.h"

typedef int vg_rules_prepare_fn(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old);

/* Sets nothing: for kinds whose checks look at metadata, which is in place once they prepare. */
static inline int vg_prepare_meta(struct vg_arena *a, struct vg_json *obj,
                                  const struct vg_json *old)
{
    (void)a;
    (void)obj;
    (void)old;
    return 0;
}

/* Who asks. */
struct vg_rules_user {
    struct vg_slice name, uid;
    const struct vg_slice *groups;
    size_t n_groups;
    const struct vg_user_extra *extra;
    size_t n_extra;
};

/* A part of an object that is written through a subresource (VG_SUB_PART). */
struct vg_rules_part {
    const char *sub; /* its name */
    /* Metadata stays as it is stored, and only what `prepare` takes becomes the writer's. Else
     * resets are those of managed.c in api. */
    bool is_alone;
    vg_rules_prepare_fn *prepare; /* takes the part from obj, and all else from old */
    void (*check)(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
};

/* All may be NULL. Metadata is checked by others, before. */
struct vg_rules {
    const char *group, *kind;
    /* Why a name, or the beginning of one, will not do besides the kind's rule for names; NULL: it
     * will. Told where metadata.name is. Static, or in the errors' arena; when memory is short the
     * errors have failed. */
    const char *(*refuse_name)(struct vg_field_errors *e, const struct vg_json *obj,
                               struct vg_slice name);
    /* Finalizers need not be standard or qualified: kinds that are not checked by core's rules. */
    bool takes_plain_finalizers;
    /* What the server sets or drops in an object before it is checked; old: what is stored, NULL at
     * a create. `obj` may be changed, old not. 0, -ENOMEM. */
    vg_rules_prepare_fn *prepare;
    /* What the version shows in metadata that was not given: it counts as the writer's. 0, -ENOMEM.
     */
    int (*show)(struct vg_arena *a, struct vg_json *metadata);
    /* prepare neither reads metadata nor sets any; else it is the server's own while it runs. */
    bool ignores_meta;
    /* The same for a write of its status. */
    vg_rules_prepare_fn *prepare_status;
    const struct vg_rules_part *parts; /* ends with one without a name */
    /* At a create: who made it is part of the object. 0, -ENOMEM. */
    int (*sign)(struct vg_arena *a, struct vg_json *obj, const struct vg_rules_user *user);
    /* What it takes of which each is given once, and gives back (claims.h). obj, whose members are
     * its own, is set; NULL: it is going. old: NULL at a create. What is wrong goes to the errors.
     * 0, -ENOMEM. */
    int (*claim)(struct vg_claims *cl, struct vg_check *c, struct vg_json *obj,
                 const struct vg_json *old);
    void (*check)(struct vg_check *c, const struct vg_at *obj);
    /* All that is checked at an update; most call `check` too, at the place where the original
     * does. */
    void (*check_update)(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
    void (*check_status)(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
    /* What is taken with a warning (vg_caution): of an object that the checks found nothing wrong
     * with, its status for the latter. old: NULL at a create. */
    void (*warn)(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
    void (*warn_status)(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old);
};

/* After check_update: errors from the number `from` on that the stored object has too, and that the
 * original lets stay, are dropped (ratchet.c). */
void vg_rules_forgive(struct vg_check *c, size_t from, const struct vg_rules *rules,
                      const struct vg_json *old);

/* NULL: it has no such part. */
const struct vg_rules_part *vg_rules_part(const struct vg_rules *rules, const char *sub);

/* NULL: the kind has none. */
const struct vg_rules *vg_rules_of(const struct vg_kind *kind);
const struct vg_rules *vg_rules_find(struct vg_slice group, struct vg_slice kind);

#endif
