/* history_check.c - the invariants of history.h, checked by plain loops. For tests. */
#include <stdio.h>
#include <stdlib.h>

#include "history.h"

static void must(bool is_so, const char *what, uint64_t seq)
{
    if (is_so)
        return;
    fprintf(stderr, "history: %s at %llu\n", what, (unsigned long long)seq);
    abort();
}

static bool is_before(const struct vg_change *a, const struct vg_change *b)
{
    return a->rec->rev < b->rec->rev || (a->rec->rev == b->rec->rev && a->rec->sub < b->rec->sub);
}

static const struct vg_rec *subject(const struct vg_change *c)
{
    return vg_rec_is_delete(c->rec) ? c->prev : c->rec;
}

static bool has_trigger(const struct vg_history *h, const struct vg_change *c,
                        struct vg_slice value)
{
    return vg_slice_eq(h->trigger(subject(c), h->arg), value) ||
           (c->prev && vg_slice_eq(h->trigger(c->prev, h->arg), value));
}

static bool has_namespace(const struct vg_history *h, const struct vg_change *c,
                          struct vg_slice value)
{
    return vg_slice_eq(h->ns(subject(c), h->arg), value);
}

typedef bool has_fn(const struct vg_history *h, const struct vg_change *c, struct vg_slice value);

/* The newest change below `seq` with this value, as a link; 0: none that is still here. */
static vg_link search(const struct vg_history *h, uint64_t seq, has_fn *has, struct vg_slice value)
{
    while (seq-- > h->view->oldest)
        if (has(h, vg_history_at(h->view, seq), value))
            return seq + 1;
    return 0;
}

/* What has been evicted may still be pointed to. */
static void check_link(const struct vg_history *h, vg_link link, uint64_t seq, has_fn *has,
                       struct vg_slice value)
{
    vg_link found = search(h, seq, has, value);
    must(found ? link == found : link <= h->view->oldest, "H2 is broken", seq);
}

static void check_links(struct vg_history *h, const struct vg_change *c, uint64_t seq)
{
    if (h->ns)
        check_link(h, c->same_namespace, seq, has_namespace, h->ns(subject(c), h->arg));
    if (!h->trigger)
        return;
    struct vg_slice now = h->trigger(subject(c), h->arg);
    check_link(h, c->same_trigger, seq, has_trigger, now);
    bool keeps = !c->prev || vg_slice_eq(now, h->trigger(c->prev, h->arg));
    must(c->keeps_trigger == keeps, "H5 is broken", seq);
    if (!keeps)
        check_link(h, c->same_trigger_old, seq, has_trigger, h->trigger(c->prev, h->arg));
    must(vg_history_newest_trigger(h, now) == search(h, h->next, has_trigger, now),
         "the newest with a value is not", seq);
}

static void check_segments(const struct vg_history *h)
{
    size_t bytes = 0;
    uint64_t seq = h->view->oldest;
    for (size_t i = 0; i < h->view->n; i++) {
        const struct vg_view_part *part = &h->view->parts[i];
        const struct vg_segment *s = part->segment;
        bool is_newest = i + 1 == h->view->n;
        bool is_at_end =
            s->n == VG_SEGMENT_CHANGES || (s->n && s->bytes >= vg_segment_share(&h->limits));
        must(s->first == seq && part->first == seq, "H6 is broken: a gap", seq);
        must(is_newest || is_at_end, "H6 is broken: a segment ends early", seq);
        for (uint32_t k = 0; k < s->n; k++)
            must(vg_history_at(h->view, seq + k) == &s->changes[k], "found elsewhere", seq + k);
        seq += s->n;
        bytes += s->bytes;
    }
    must(seq == h->next, "the view ends elsewhere", seq);
    must(bytes == h->bytes, "bytes are counted wrong", seq);
}

void vg_history_check(struct vg_history *h)
{
    check_segments(h);
    for (uint64_t seq = h->view->oldest; seq < h->next; seq++) {
        const struct vg_change *c = vg_history_at(h->view, seq);
        if (seq > h->view->oldest)
            must(is_before(vg_history_at(h->view, seq - 1), c), "H1 is broken", seq);
        must(c->rec->rev >= h->view->oldest_rev, "H4 is broken", seq);
        must(c->rev == c->rec->rev, "H5 is broken", seq);
        check_links(h, c, seq);
    }
}
