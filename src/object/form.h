/* form.h - other forms of an event's object: made once, shared by all who ask (design D2).
 * A form is a served version, a media type and a transform, named by a small integer that the
 * caller gives out; content counts too: an event shows its new object to some watchers and its
 * previous one to others, so the caller uses an id for each. A struct vg_forms hangs off one event
 * and is a single pointer until somebody asks.
 *
 *     NULL --first asker--> making --> body        kept, shared from then on
 *       ^______________________|                   it failed, or the budget is used up
 *
 * Promises:
 *   F1 of one form at most one thread is making a body; the others are told to come again and do
 *      not wait: a loop looks again on its next turn, when it is there.
 *   F2 a body that is kept is never made again and never changes.
 *   F3 kept bodies together never hold more than the budget's cap; what does not fit is made for
 *      the asker alone.
 *   F4 a body lives until its last reference goes, even when the event is gone before.
 * Thread: any number of askers at once; vg_forms_done when nobody asks any more. */
#ifndef VG_OBJECT_FORM_H
#define VG_OBJECT_FORM_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/err.h"

/* Ids are below this, which bounds the chain that an event carries. A kind with five versions, four
 * media types, five transforms and two contents has 200. */
#define VG_FORM_IDS 256u

/* One for all events. */
struct vg_form_budget {
    size_t cap;          /* set before the first use */
    _Atomic size_t used; /* bytes of kept bodies that still live, their bookkeeping included */
    _Atomic uint64_t bodies_made, bodies_shared; /* calls of make that succeeded; bodies handed out
                                                  * without one */
};
static inline void vg_form_budget_init(struct vg_form_budget *b, size_t cap)
{
    b->cap = cap;
    atomic_init(&b->used, 0);
    atomic_init(&b->bodies_made, 0);
    atomic_init(&b->bodies_shared, 0);
}

/* An encoded body, immutable. */
struct vg_form_body {
    _Atomic uint32_t refs;
    uint32_t n;
    struct vg_form_budget *budget; /* whose bytes it counts in; NULL: not kept */
    char bytes[];
};
static inline struct vg_slice vg_form_body_slice(const struct vg_form_body *b)
{
    return vg_slice(b->bytes, b->n);
}
struct vg_form_body *vg_form_body_ref(const struct vg_form_body *b);
/* Takes NULL; returns NULL. */
struct vg_form_body *vg_form_body_unref(const struct vg_form_body *b);

struct vg_form_slot;
/* Zeroed is empty. */
struct vg_forms {
    _Atomic(struct vg_form_slot *) first;
};
/* Drops the event's references. NULL members and a zeroed struct are fine. */
void vg_forms_done(struct vg_forms *f);

/* Writes the body of form `id` to `out`. 0, or an error that is handed to the asker. */
typedef int vg_form_make_fn(void *arg, uint32_t id, struct vg_buf *out);

/* The body of form `id`, made by this call if nobody made it before.
 * 1: *ret holds a reference to it. 0: another thread is making it; come again. VIGIL_E_INVALID: no
 * such id; VIGIL_E_TOO_LARGE: longer than VG_FORM_BODY_MAX; -ENOMEM; the error of make. After a
 * failure the next asker tries anew. */
VG_CHECK int vg_forms_get(struct vg_forms *f, struct vg_form_budget *budget, uint32_t id,
                          vg_form_make_fn *make, void *arg, const struct vg_form_body **ret);

/* The largest body: a sealed value grown by another encoding or by a Table's cells. */
#define VG_FORM_BODY_MAX ((size_t)16 << 20)

#endif
