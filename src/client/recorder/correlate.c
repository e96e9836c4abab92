/* correlate.c - which events are counted together, and which are too many. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "recorder_int.h"

struct bucket {
    double tokens;
    uint64_t at_ns;
};

struct group {
    uint64_t since_ns;
    unsigned n; /* events that differ */
};

static void clear(struct vg_map *m)
{
    VG_MAP_FOREACH (e, m)
        vg_free(e->value);
    vg_map_done(m);
    vg_map_init(m, VG_MAP_COPIES_KEYS);
}

void vg_correlator_done(struct vg_correlator *k)
{
    clear(&k->objects);
    clear(&k->groups);
    clear(&k->events);
}

/* What is there under a key, or zeroed memory that is there from now on. */
static void *get_or_make(struct vg_map *m, struct vg_slice key, size_t size)
{
    void *v = vg_map_get(m, key);
    if (v)
        return v;
    if (vg_map_count(m) >= VG_RECORDER_KNOWN_MAX)
        clear(m);
    v = vg_calloc(1, size);
    if (v && vg_map_put(m, key, v, NULL) < 0) {
        vg_free(v);
        v = NULL;
    }
    return v;
}

static int add_key(struct vg_buf *key, struct vg_slice part)
{
    int r = vg_buf_append_slice(key, part);
    return r < 0 ? r : vg_buf_append_byte(key, 0);
}

/* A token of the object's bucket: 1, 0: none left. */
static int take_token(struct vigil_recorder *r, uint64_t now)
{
    struct bucket *b =
        get_or_make(&r->known.objects, vg_slice(r->key.p, r->key.n), sizeof(struct bucket));
    if (!b)
        return -ENOMEM;
    if (b->at_ns == 0)
        b->tokens = VG_RECORDER_BURST;
    else
        b->tokens += (double)(now - b->at_ns) / (double)VG_RECORDER_REFILL_NS;
    b->tokens = VG_MIN(b->tokens, VG_RECORDER_BURST);
    b->at_ns = now;
    if (b->tokens < 1)
        return 0;
    b->tokens -= 1;
    return 1;
}

/* Is it one of too many that differ in their message alone? */
static int is_one_of_many(struct vigil_recorder *r, uint64_t now)
{
    struct group *g =
        get_or_make(&r->known.groups, vg_slice(r->key.p, r->key.n), sizeof(struct group));
    if (!g)
        return -ENOMEM;
    if (g->n == 0 || now - g->since_ns > VG_RECORDER_SIMILAR_NS)
        *g = (struct group){.since_ns = now};
    return g->n >= VG_RECORDER_SIMILAR_MAX;
}

static void count_new(struct vigil_recorder *r, struct vg_slice group_key)
{
    struct group *g = vg_map_get(&r->known.groups, group_key);
    if (g)
        g->n++;
}

int vg_correlate(struct vigil_recorder *r)
{
    const struct vg_record *now = r->now;
    uint64_t ns = vg_clock_mono_ns(vg_loop_clock(r->loop));
    vg_buf_clear(&r->key);
    int e = add_key(&r->key, vg_slice_of(vigil_object_kind(now->about)));
    e = e < 0 ? e : add_key(&r->key, vg_object_key(now->about));
    e = e < 0 ? e : add_key(&r->key, vg_slice_of(vigil_object_uid(now->about)));
    e = e < 0 ? e : take_token(r, ns);
    if (e <= 0)
        return e;
    e = add_key(&r->key, now->type);
    e = e < 0 ? e : add_key(&r->key, now->reason);
    e = e < 0 ? e : is_one_of_many(r, ns);
    if (e < 0)
        return e;
    r->is_combined = e > 0;
    size_t group_n = r->key.n;
    if (!r->is_combined && (e = add_key(&r->key, now->message)) < 0)
        return e;
    r->event = vg_map_get(&r->known.events, vg_slice(r->key.p, r->key.n));
    if (!r->event && !r->is_combined)
        count_new(r, vg_slice(r->key.p, group_n));
    return 1;
}

void vg_correlated(struct vigil_recorder *r)
{
    size_t n = strlen(r->name);
    if (r->event) {
        r->event->count++;
        return;
    }
    struct vg_known_event *v =
        get_or_make(&r->known.events, vg_slice(r->key.p, r->key.n), sizeof(*v) + sizeof(r->name));
    if (!v)
        return; /* the next one like it is written anew */
    v->count = 1;
    v->name_n = n;
    memcpy(v->name, r->name, n + 1);
}

void vg_correlator_forget_event(struct vigil_recorder *r)
{
    vg_free(vg_map_remove(&r->known.events, vg_slice(r->key.p, r->key.n)));
    r->event = NULL;
}
