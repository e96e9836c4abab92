/* history.c - see history.h. */
#include "history.h"

#include <errno.h>

#include "base/alloc.h"

/* ---- segments and views ---- */

void vg_segment_ref(struct vg_segment *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void vg_segment_unref(struct vg_segment *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_release) != 1)
        return;
    (void)atomic_load_explicit(&s->refs, memory_order_acquire); /* as a fence; TSan sees it */
    for (uint32_t i = 0; i < s->n; i++) {
        vg_rec_unref(s->changes[i].rec);
        vg_rec_unref(s->changes[i].prev);
        vg_root_unref(atomic_load_explicit(&s->changes[i].root, memory_order_relaxed));
        vg_forms_done(&s->changes[i].forms);
    }
    vg_free(s);
}

struct vg_history_view *vg_history_view_ref(struct vg_history_view *v)
{
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    return v;
}

void vg_history_view_unref(struct vg_history_view *v)
{
    if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_release) != 1)
        return;
    (void)atomic_load_explicit(&v->refs, memory_order_acquire); /* as a fence; TSan sees it */
    for (size_t i = 0; i < v->n; i++)
        vg_segment_unref(v->parts[i].segment);
    vg_free(v);
}

/* A view of `from`'s segments without the first `skip`, with room for one more. */
static struct vg_history_view *view_copy(const struct vg_history_view *from, size_t skip)
{
    size_t n = from->n - skip;
    struct vg_history_view *v = vg_malloc(sizeof *v + (n + 1) * sizeof v->parts[0]);
    if (!v)
        return NULL;
    atomic_init(&v->refs, 1);
    v->oldest = from->oldest;
    v->oldest_rev = from->oldest_rev;
    v->n = n;
    for (size_t i = 0; i < n; i++) {
        v->parts[i] = from->parts[skip + i];
        vg_segment_ref(v->parts[i].segment);
    }
    return v;
}

static struct vg_history_view *view_new(uint64_t oldest, vg_rev oldest_rev)
{
    struct vg_history_view none = {.oldest = oldest, .oldest_rev = oldest_rev};
    return view_copy(&none, 0);
}

/* ---- life ---- */

int vg_history_init(struct vg_history *h, const struct vg_history_limits *limits, vg_rev rev)
{
    memset(h, 0, sizeof *h);
    h->limits = *limits;
    vg_map_init(&h->by_trigger, VG_MAP_COPIES_KEYS);
    vg_map_init(&h->by_namespace, VG_MAP_COPIES_KEYS);
    h->view = view_new(0, rev);
    return h->view ? 0 : -ENOMEM;
}

void vg_history_done(struct vg_history *h)
{
    vg_history_view_unref(h->view);
    h->view = NULL;
    vg_map_done(&h->by_trigger);
    vg_map_done(&h->by_namespace);
}

int vg_history_restart(struct vg_history *h, vg_rev rev)
{
    struct vg_history_view *fresh = view_new(h->next, rev);
    if (!fresh)
        return -ENOMEM;
    vg_history_view_unref(h->view);
    h->view = fresh;
    h->bytes = 0;
    vg_map_clear(&h->by_trigger);
    vg_map_clear(&h->by_namespace);
    return 0;
}

/* ---- links ---- */

static vg_link newest(struct vg_map *map, struct vg_slice value)
{
    return (vg_link)(uintptr_t)vg_map_get(map, value);
}

vg_link vg_history_newest_trigger(struct vg_history *h, struct vg_slice value)
{
    return newest(&h->by_trigger, value);
}

vg_link vg_history_newest_namespace(struct vg_history *h, struct vg_slice ns)
{
    return newest(&h->by_namespace, ns);
}

/* A change of a delete is known by what it deleted. */
static const struct vg_rec *subject(const struct vg_change *c)
{
    return vg_rec_is_delete(c->rec) ? c->prev : c->rec;
}

struct values {
    struct vg_slice ns, trigger, trigger_old;
    bool has_ns, has_trigger, has_old;
};

static struct values values_of(const struct vg_history *h, const struct vg_change *c)
{
    struct values v = {0};
    const struct vg_rec *now = subject(c);
    if (!now)
        return v;
    if (h->ns) {
        v.ns = h->ns(now, h->arg);
        v.has_ns = true;
    }
    if (h->trigger) {
        v.trigger = h->trigger(now, h->arg);
        v.has_trigger = true;
    }
    if (h->trigger && c->prev && c->prev != now) {
        v.trigger_old = h->trigger(c->prev, h->arg);
        v.has_old = !vg_slice_eq(v.trigger, v.trigger_old);
    }
    return v;
}

/* Note that `link` is the newest change with these values. On failure, what is noted already points
 * to a change that is not there: the caller takes it back. */
static int note_links(struct vg_history *h, const struct values *v, vg_link link)
{
    void *as = (void *)(uintptr_t)link;
    int r = 0;
    if (v->has_ns)
        r = vg_map_put(&h->by_namespace, v->ns, as, NULL);
    if (r >= 0 && v->has_trigger)
        r = vg_map_put(&h->by_trigger, v->trigger, as, NULL);
    if (r >= 0 && v->has_old)
        r = vg_map_put(&h->by_trigger, v->trigger_old, as, NULL);
    return r < 0 ? r : 0;
}

static void set_link(struct vg_map *map, struct vg_slice value, vg_link link)
{
    if (!vg_map_get(map, value))
        return;
    if (!link) {
        vg_map_remove(map, value);
        return;
    }
    /* The key is there: replacing its value takes no memory. */
    int r = vg_map_put(map, value, (void *)(uintptr_t)link, NULL);
    assert(r == 1);
    (void)r;
}

static void take_back_links(struct vg_history *h, const struct values *v, const struct vg_change *c)
{
    if (v->has_ns)
        set_link(&h->by_namespace, v->ns, c->same_namespace);
    if (v->has_trigger)
        set_link(&h->by_trigger, v->trigger, c->same_trigger);
    if (v->has_old)
        set_link(&h->by_trigger, v->trigger_old, c->same_trigger_old);
}

/* ---- appending ---- */

static struct vg_segment *last_segment(const struct vg_history *h)
{
    return h->view->n ? h->view->parts[h->view->n - 1].segment : NULL;
}

static bool is_at_end(const struct vg_history *h, const struct vg_segment *s)
{
    return s->n == VG_SEGMENT_CHANGES || s->bytes >= vg_segment_share(&h->limits);
}

static int add_segment(struct vg_history *h)
{
    struct vg_segment *s = vg_malloc(sizeof *s);
    struct vg_history_view *v = s ? view_copy(h->view, 0) : NULL;
    if (!v) {
        vg_free(s);
        return -ENOMEM;
    }
    atomic_init(&s->refs, 1);
    s->n = 0;
    s->first = h->next;
    s->bytes = 0;
    v->parts[v->n++] = (struct vg_view_part){.first = s->first, .segment = s};
    vg_history_view_unref(h->view);
    h->view = v;
    h->grown++;
    return 0;
}

/* What the history makes stay in memory: the old version, and a delete's own record. The new
 * version is in the tree anyway. */
static size_t held_bytes(const struct vg_rec *rec, const struct vg_rec *prev)
{
    return (prev ? vg_rec_size(prev) : 0) + (vg_rec_is_delete(rec) ? vg_rec_size(rec) : 0);
}

int vg_history_append(struct vg_history *h, const struct vg_rec *rec, const struct vg_rec *prev,
                      int64_t now_ms, struct vg_change **ret_change,
                      struct vg_segment **ret_segment)
{
    struct vg_segment *s = last_segment(h);
    if (!s || is_at_end(h, s)) {
        int r = add_segment(h);
        if (r < 0)
            return r;
        s = last_segment(h);
    }
    struct vg_change *c = &s->changes[s->n];
    *c = (struct vg_change){.rec = rec, .prev = prev, .rev = rec->rev, .at_ms = now_ms};
    struct values v = values_of(h, c);
    c->same_namespace = v.has_ns ? newest(&h->by_namespace, v.ns) : 0;
    c->same_trigger = v.has_trigger ? newest(&h->by_trigger, v.trigger) : 0;
    c->same_trigger_old = v.has_old ? newest(&h->by_trigger, v.trigger_old) : 0;
    c->keeps_trigger = !v.has_old;
    int r = note_links(h, &v, h->next + 1);
    if (r < 0) {
        take_back_links(h, &v, c);
        return r;
    }
    c->rec = vg_rec_ref(rec);
    c->prev = prev ? vg_rec_ref(prev) : NULL;
    s->n++;
    s->bytes += held_bytes(rec, prev);
    h->bytes += held_bytes(rec, prev);
    h->next++;
    *ret_change = c;
    *ret_segment = s;
    return 0;
}

void vg_history_set_root(struct vg_history *h, struct vg_root *take_root)
{
    struct vg_segment *s = last_segment(h);
    _Atomic(struct vg_root *) *root = s && s->n ? &s->changes[s->n - 1].root : NULL;
    if (root && !atomic_load_explicit(root, memory_order_relaxed))
        atomic_store_explicit(root, take_root, memory_order_release);
    else
        vg_root_unref(take_root);
}

/* ---- evicting ---- */

/* Values whose newest change goes away have none. */
static void forget_values(struct vg_history *h, const struct vg_segment *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        vg_link link = s->first + i + 1;
        struct values v = values_of(h, &s->changes[i]);
        if (v.has_ns && newest(&h->by_namespace, v.ns) == link)
            vg_map_remove(&h->by_namespace, v.ns);
        if (v.has_trigger && newest(&h->by_trigger, v.trigger) == link)
            vg_map_remove(&h->by_trigger, v.trigger);
        if (v.has_old && newest(&h->by_trigger, v.trigger_old) == link)
            vg_map_remove(&h->by_trigger, v.trigger_old);
    }
}

/* How many segments from the front the limits do not keep. The last one always stays. Bytes win
 * over the least number of events: a hundred of the largest objects are 300 MiB. */
static size_t count_evictable(const struct vg_history *h, int64_t now_ms)
{
    size_t events = (size_t)(h->next - h->view->oldest);
    size_t bytes = h->bytes;
    size_t n = 0;
    while (n + 1 < h->view->n) {
        const struct vg_segment *s = h->view->parts[n].segment;
        bool is_old = now_ms - s->changes[s->n - 1].at_ms > h->limits.window_ms;
        bool is_heavy = bytes > h->limits.bytes_max;
        bool is_over = is_heavy || events > h->limits.events_max;
        size_t least = h->limits.events_min;
        if (is_heavy && least > VG_HISTORY_FLOOR)
            least = VG_HISTORY_FLOOR;
        if (events - s->n < least || (!is_old && !is_over))
            break;
        events -= s->n;
        bytes -= s->bytes;
        n++;
    }
    return n;
}

void vg_history_evict(struct vg_history *h, int64_t now_ms)
{
    size_t n = count_evictable(h, now_ms);
    if (!n)
        return;
    struct vg_history_view *v = view_copy(h->view, n);
    if (!v)
        return; /* out of memory: keeping is no error; the next call tries again */
    const struct vg_segment *last = h->view->parts[n - 1].segment;
    v->oldest = last->first + last->n;
    v->oldest_rev = last->changes[last->n - 1].rev;
    for (size_t i = 0; i < n; i++) {
        forget_values(h, h->view->parts[i].segment);
        h->bytes -= h->view->parts[i].segment->bytes;
    }
    vg_history_view_unref(h->view);
    h->view = v;
    h->shrunk += n;
}

/* ---- readers ---- */

/* The part with `seq`, which is not in one before `lo`. */
static size_t search_part(const struct vg_history_view *v, size_t lo, uint64_t seq)
{
    size_t hi = v->n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (v->parts[mid].first <= seq)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

struct vg_change *vg_history_at(const struct vg_history_view *v, uint64_t seq)
{
    /* Segments are full as a rule, and the first may begin anywhere: count from it. Where some are
     * short it is a later one. */
    size_t i = (size_t)((seq - v->parts[0].first) / VG_SEGMENT_CHANGES);
    if (i + 1 < v->n && v->parts[i + 1].first <= seq)
        i = search_part(v, i + 1, seq);
    struct vg_segment *s = v->parts[i].segment;
    assert(seq >= s->first && seq - s->first < VG_SEGMENT_CHANGES);
    return &s->changes[seq - s->first];
}

uint64_t vg_history_after(const struct vg_history_view *v, uint64_t end, vg_rev rev)
{
    uint64_t lo = v->oldest, hi = end;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (vg_history_at(v, mid)->rev <= rev)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct vg_root *vg_history_root_at(const struct vg_history_view *v, uint64_t end, vg_rev rev)
{
    uint64_t after = vg_history_after(v, end, rev);
    if (after == v->oldest)
        return NULL;
    struct vg_root *root =
        atomic_load_explicit(&vg_history_at(v, after - 1)->root, memory_order_acquire);
    return root ? vg_root_ref(root) : NULL;
}
