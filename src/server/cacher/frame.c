/* frame.c - what goes to a sink. The stored JSON needs no encoding: a frame is slices of the block.
 * Other forms are made once per change and content, and hang off the change. */
#include "cacher_int.h"

#include <stdio.h>

void vg_frame_copy(struct vg_frame *to, const struct vg_frame *from)
{
    *to = *from;
    for (uint32_t i = 0; i < to->splice.n; i++) {
        const char *p = from->splice.v[i].p;
        if (p >= from->splice.rev && p < from->splice.rev + sizeof from->splice.rev)
            to->splice.v[i].p = to->splice.rev + (p - from->splice.rev);
    }
    if (to->block)
        to->ref(to->block);
}

void vg_frame_done(struct vg_frame *f)
{
    if (f->block)
        f->unref(f->block);
    f->block = NULL;
}

const char *vg_watch_end_name(enum vg_watch_end why)
{
    static const char *const names[VG_END_REASONS] = {
        [VG_END_TIME] = "time",
        [VG_END_EXPIRED] = "expired",
        [VG_END_DRAIN] = "drain",
        [VG_END_STALLED] = "stalled",
        [VG_END_PINNED] = "pinned",
        [VG_END_CONTINUITY] = "continuity",
        [VG_END_GONE] = "gone",
        [VG_END_INTERNAL] = "internal",
        [VG_END_UNREADABLE] = "unreadable",
    };
    return why < VG_END_REASONS ? names[why] : "";
}

static void ref_rec(const void *block)
{
    vg_rec_ref(block);
}

static void unref_rec(const void *block)
{
    vg_rec_unref(block);
}

static void ref_body(const void *block)
{
    vg_form_body_ref(block);
}

static void unref_body(const void *block)
{
    vg_form_body_unref(block);
}

void vg_told_init(struct vg_told *t, const struct vg_rec *rec, const struct vg_rec *prev,
                  struct vg_change *change)
{
    t->rec = vg_rec_is_delete(rec) ? NULL : rec;
    t->prev = prev;
    t->rev = rec->rev;
    t->change = change;
    t->has_before = t->is_matching = t->keeps_trigger = false;
    memset(t->has_frame, 0, sizeof t->has_frame);
    if (t->rec)
        vg_rec_read(t->rec, &t->now);
}

const struct vg_obj_header *vg_told_before(struct vg_told *t)
{
    if (!t->prev)
        return NULL;
    if (!t->has_before)
        vg_rec_read(t->prev, &t->before);
    t->has_before = true;
    return &t->before;
}

void vg_told_init_matching(struct vg_told *t, struct vg_change *change)
{
    vg_told_init(t, change->rec, change->prev, change);
    t->is_matching = true;
}

void vg_told_init_state(struct vg_told *t, const struct vg_rec *rec)
{
    vg_told_init(t, rec, NULL, NULL);
}

enum vg_obj_change vg_told_change(struct vg_told *t, const struct vg_obj_predicate *p)
{
    if (t->is_matching || (t->keeps_trigger && vg_obj_predicate_is_trigger(p)))
        return t->prev ? VG_OBJ_MODIFIED : VG_OBJ_ADDED;
    return vg_obj_predicate_change(p, vg_told_before(t), t->rec ? &t->now : NULL);
}

/* DELETED shows what was there before, at the revision of the change. */
static void json_frame(struct vg_told *t, enum vg_obj_change change)
{
    struct vg_frame *f = &t->frames[change];
    bool is_delete = change == VG_OBJ_DELETED;
    vg_obj_splice_frame(&f->splice, change, is_delete ? vg_told_before(t) : &t->now, t->rev);
    f->block = is_delete ? t->prev : t->rec;
    f->ref = ref_rec;
    f->unref = unref_rec;
    f->change = change;
    t->has_frame[change] = true;
}

struct making {
    struct vg_cacher *c;
    const struct vg_rec *rec;
    vg_rev rev;
    uint32_t form;
};

static int make_form(void *arg, uint32_t id, struct vg_buf *out)
{
    struct making *m = arg;
    (void)id;
    return m->c->opts.make_form(m->c->opts.form_arg, m->form, m->rec, m->rev, out);
}

/* Around a body that lies in `block`. */
static int frame_body(struct vg_cacher *c, enum vg_obj_change change, uint32_t form,
                      struct vg_slice body, struct vg_frame *own)
{
    if (c->opts.frame_form)
        return c->opts.frame_form(c->opts.form_arg, form, change, body, &own->splice);
    vg_obj_splice_frame_of(&own->splice, change, body);
    return 0;
}

/* What is there now, if it is kept with its record. */
static bool has_kept(struct vg_cacher *c, const struct vg_told *t, enum vg_obj_change change,
                     uint32_t form, struct vg_slice *ret)
{
    if (!c->opts.kept_form || change == VG_OBJ_DELETED)
        return false;
    *ret = c->opts.kept_form(c->opts.form_arg, form, t->rec, t->change == NULL);
    return ret->n > 0;
}

/* A change has two contents: what is there now, and what was there before. */
static int form_frame(struct vg_cacher *c, struct vg_told *t, enum vg_obj_change change,
                      uint32_t form, struct vg_frame *own)
{
    bool is_delete = change == VG_OBJ_DELETED;
    struct making m = {c, is_delete ? t->prev : t->rec, t->rev, form};
    struct vg_forms alone = {NULL};
    const struct vg_form_body *body;
    struct vg_slice kept;
    int r;
    if (!c->opts.make_form)
        return VIGIL_E_UNSUPPORTED;
    if (has_kept(c, t, change, form, &kept)) {
        r = frame_body(c, change, form, kept, own);
        own->block = r < 0 ? NULL : vg_rec_ref(t->rec);
        own->ref = ref_rec;
        own->unref = unref_rec;
        return r < 0 ? r : 1;
    }
    r = vg_forms_get(t->change ? &t->change->forms : &alone, &c->forms, form * 2 + is_delete,
                     make_form, &m, &body);
    vg_forms_done(&alone);
    if (r <= 0)
        return r;
    own->block = body;
    own->ref = ref_body;
    own->unref = unref_body;
    r = frame_body(c, change, form, vg_form_body_slice(body), own);
    if (r < 0)
        vg_frame_done(own);
    return r < 0 ? r : 1;
}

int vg_told_frame(struct vg_cacher *c, struct vg_told *t, enum vg_obj_change change, uint32_t form,
                  struct vg_frame *own, const struct vg_frame **ret_frame)
{
    own->block = NULL;
    own->change = VG_OBJ_NONE;
    if (form != 0) {
        *ret_frame = own;
        return form_frame(c, t, change, form, own);
    }
    if (!t->has_frame[change])
        json_frame(t, change);
    *ret_frame = &t->frames[change];
    return 1;
}

/* Slices of a block, so that a sink may keep a copy of it as of any other, however long. */
void vg_frame_bookmark(struct vg_frame *f, const struct vg_watch_cache *wc, vg_rev rev, bool is_end)
{
    static const char plain[] = "\"}";
    static const char end[] = "\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}";
    memset(f, 0, sizeof *f);
    int n = snprintf(f->splice.rev, sizeof f->splice.rev, "%llu", (unsigned long long)rev);
    const char *text = wc->bookmark->bytes;
    size_t head = wc->bookmark_head;
    f->splice.v[0] = vg_slice(text, head);
    f->splice.v[1] = vg_slice(f->splice.rev, (size_t)n);
    f->splice.v[2] = vg_slice_str(is_end ? end : plain);
    f->splice.v[3] = vg_slice(text + head, wc->bookmark->n - head);
    f->splice.n = 4;
    f->block = wc->bookmark;
    f->ref = ref_body;
    f->unref = unref_body;
}
