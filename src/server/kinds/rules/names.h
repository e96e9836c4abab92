/* names.h - texts that were seen while an object is checked, and what had them.
 * The few that lists mostly have lie side by side on the stack; many go to a map, so that a list
 * that a client made long is not looked through for each of its items. Texts are borrowed from the
 * object. Zero to start. Thread: one owner. */
#ifndef VG_RULES_NAMES_H
#define VG_RULES_NAMES_H

#include "base/map.h"
#include "check.h"

/* 64: the variables of a container, say; a byte of each tells most of them apart. */
#define VG_NAMES_FEW 64u

struct vg_names {
    uint8_t tags[VG_NAMES_FEW];
    struct {
        struct vg_slice text;
        const struct vg_json *v;
    } few[VG_NAMES_FEW];
    uint32_t n; /* in few; when it is full, others are in many */
    struct vg_map many;
};

void vg_names_done(struct vg_names *s);
static inline void vg_names_cleanup(struct vg_names *s)
{
    vg_names_done(s);
}

/* true: it was not there, and is now. Without memory the check fails. */
bool vg_names_add(struct vg_check *c, struct vg_names *s, struct vg_slice text,
                  const struct vg_json *v);
/* true: it is there; *ret (NULL allowed) is what was added with it. */
bool vg_names_find(const struct vg_names *s, struct vg_slice text, const struct vg_json **ret);
static inline bool vg_names_has(const struct vg_names *s, struct vg_slice text)
{
    return vg_names_find(s, text, NULL);
}

#endif
