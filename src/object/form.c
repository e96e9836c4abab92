/* form.c - see form.h. A slot's one atomic pointer is its state: NULL, the mark of "making", or the
 * body. Slots are only ever put in front of the chain and freed with it, so readers walk it without
 * a lock; a body's reference that the slot holds keeps it alive for whoever takes another. */
#include "form.h"

#include <errno.h>

#include "base/alloc.h"

struct vg_form_slot {
    struct vg_form_slot *next; /* const once in the chain */
    uint32_t id;
    _Atomic(struct vg_form_body *) body;
};

static struct vg_form_body making; /* a mark; its content is never looked at */

/* ---- bodies ---- */

static size_t body_size(size_t n)
{
    return sizeof(struct vg_form_body) + n;
}

struct vg_form_body *vg_form_body_ref(const struct vg_form_body *b)
{
    struct vg_form_body *body = (struct vg_form_body *)b; /* the count is all that changes */
    atomic_fetch_add_explicit(&body->refs, 1, memory_order_relaxed);
    return body;
}

struct vg_form_body *vg_form_body_unref(const struct vg_form_body *b)
{
    struct vg_form_body *body = (struct vg_form_body *)b;
    if (body && atomic_fetch_sub_explicit(&body->refs, 1, memory_order_release) == 1) {
        (void)atomic_load_explicit(&body->refs,
                                   memory_order_acquire); /* as a fence; TSan sees it */
        if (body->budget)
            atomic_fetch_sub_explicit(&body->budget->used, body_size(body->n),
                                      memory_order_relaxed);
        vg_free(body);
    }
    return NULL;
}

/* Never passes the cap, not even for a moment (F3). */
static bool take_budget(struct vg_form_budget *b, size_t size)
{
    size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
    do {
        if (used > b->cap || size > b->cap - used)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&b->used, &used, used + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static struct vg_form_body *body_new(struct vg_slice bytes, struct vg_form_budget *budget)
{
    struct vg_form_body *body = vg_malloc(body_size(bytes.n));
    if (!body)
        return NULL;
    bool keep = take_budget(budget, body_size(bytes.n));
    atomic_init(&body->refs, keep ? 2 : 1); /* the asker's, and the slot's */
    body->n = (uint32_t)bytes.n;
    body->budget = keep ? budget : NULL;
    if (bytes.n)
        memcpy(body->bytes, bytes.p, bytes.n);
    return body;
}

/* ---- slots ---- */

static struct vg_form_slot *find(struct vg_form_slot *from, uint32_t id)
{
    while (from && from->id != id)
        from = from->next;
    return from;
}

static struct vg_form_slot *slot_new(uint32_t id)
{
    struct vg_form_slot *slot = vg_malloc(sizeof *slot);
    if (!slot)
        return NULL;
    slot->next = NULL;
    slot->id = id;
    atomic_init(&slot->body, NULL);
    return slot;
}

/* The chain's slot for id, which is `mine` unless another thread was faster. */
static struct vg_form_slot *put_slot(struct vg_forms *f, struct vg_form_slot *mine)
{
    struct vg_form_slot *first = atomic_load_explicit(&f->first, memory_order_acquire);
    for (;;) {
        struct vg_form_slot *other = find(first, mine->id);
        if (other) {
            vg_free(mine);
            return other;
        }
        mine->next = first;
        if (atomic_compare_exchange_weak_explicit(&f->first, &first, mine, memory_order_acq_rel,
                                                  memory_order_acquire))
            return mine;
    }
}

static struct vg_form_slot *slot_of(struct vg_forms *f, uint32_t id)
{
    struct vg_form_slot *slot = find(atomic_load_explicit(&f->first, memory_order_acquire), id);
    if (slot)
        return slot;
    slot = slot_new(id);
    return slot ? put_slot(f, slot) : NULL;
}

void vg_forms_done(struct vg_forms *f)
{
    struct vg_form_slot *slot = atomic_exchange_explicit(&f->first, NULL, memory_order_acquire);
    while (slot) {
        struct vg_form_slot *next = slot->next;
        struct vg_form_body *body = atomic_load_explicit(&slot->body, memory_order_acquire);
        assert(body != &making);
        vg_form_body_unref(body);
        vg_free(slot);
        slot = next;
    }
}

/* ---- asking ---- */

static int make_body(struct vg_form_budget *budget, uint32_t id, vg_form_make_fn *make, void *arg,
                     struct vg_form_body **ret)
{
    VG_AUTO(buf) out;
    vg_buf_init(&out, VG_FORM_BODY_MAX);
    int err = make(arg, id, &out);
    if (err < 0)
        return err;
    struct vg_form_body *body = body_new(vg_buf_slice(&out), budget);
    if (!body)
        return -ENOMEM;
    atomic_fetch_add_explicit(&budget->bodies_made, 1, memory_order_relaxed);
    *ret = body;
    return 0;
}

/* The slot is marked as ours; leave it with a body, or open to the next asker. */
static int fill(struct vg_form_slot *slot, struct vg_form_budget *budget, vg_form_make_fn *make,
                void *arg, const struct vg_form_body **ret)
{
    struct vg_form_body *body = NULL;
    int err = make_body(budget, slot->id, make, arg, &body);
    bool keep = err == 0 && body->budget;
    atomic_store_explicit(&slot->body, keep ? body : NULL, memory_order_release);
    if (err < 0)
        return err;
    *ret = body;
    return 1;
}

int vg_forms_get(struct vg_forms *f, struct vg_form_budget *budget, uint32_t id,
                 vg_form_make_fn *make, void *arg, const struct vg_form_body **ret)
{
    if (id >= VG_FORM_IDS)
        return VIGIL_E_INVALID;
    struct vg_form_slot *slot = slot_of(f, id);
    if (!slot)
        return -ENOMEM;
    struct vg_form_body *body = atomic_load_explicit(&slot->body, memory_order_acquire);
    if (!body && atomic_compare_exchange_strong_explicit(
                     &slot->body, &body, &making, memory_order_acq_rel, memory_order_acquire))
        return fill(slot, budget, make, arg, ret);
    if (body == &making)
        return 0;
    atomic_fetch_add_explicit(&budget->bodies_shared, 1, memory_order_relaxed);
    *ret = vg_form_body_ref(body);
    return 1;
}
