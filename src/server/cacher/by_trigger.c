/* by_trigger.c - the records of a list, put into the index by trigger. There are far fewer values
 * of the trigger than records, so it is values that are sorted, and each record's is read once.
 * With many records a thread of its own does it, while the feed loads the tree by key: the two
 * trees share nothing but the records, which do not change. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "cacher_int.h"

static struct vg_slice trigger_of(const struct vg_rec *rec)
{
    struct vg_obj_header h;
    vg_rec_read(rec, &h);
    return vg_obj_trigger(&h);
}

/* A value of the trigger: how many records have it, and then where the next of them goes. */
struct value_group {
    struct vg_slice value;
    size_t n, at;
};

static int compare_group(const void *a, const void *b)
{
    return vg_slice_cmp((*(struct value_group *const *)a)->value,
                        (*(struct value_group *const *)b)->value);
}

struct by_value {
    struct vg_map map;            /* value -> struct value_group, in `groups` */
    struct value_group *groups;   /* room for n */
    struct value_group **ordered; /* the same */
    struct value_group **of;      /* of each record */
};

static int group_all(struct by_value *b, struct vg_rec *const *recs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i + 2 * VG_FETCH_AHEAD < n)
            vg_rec_fetch(recs[i + 2 * VG_FETCH_AHEAD]);
        if (i + VG_FETCH_AHEAD < n)
            __builtin_prefetch(trigger_of(recs[i + VG_FETCH_AHEAD]).p);
        struct vg_slice value = trigger_of(recs[i]);
        struct value_group *g = vg_map_get(&b->map, value);
        if (!g) {
            g = &b->groups[b->map.count];
            *g = (struct value_group){.value = value};
            int r = vg_map_put(&b->map, value, g, NULL);
            if (r < 0)
                return r;
        }
        g->n++;
        b->of[i] = g;
    }
    return 0;
}

static void place_all(struct by_value *b, struct vg_rec *const *recs, size_t n,
                      struct vg_rec **ret_recs)
{
    size_t at = 0;
    for (size_t i = 0; i < b->map.count; i++)
        b->ordered[i] = &b->groups[i];
    qsort(b->ordered, b->map.count, sizeof *b->ordered, compare_group);
    for (size_t i = 0; i < b->map.count; i++) {
        b->ordered[i]->at = at;
        at += b->ordered[i]->n;
    }
    for (size_t i = 0; i < n; i++)
        ret_recs[b->of[i]->at++] = recs[i];
}

/* In order of key before, of trigger value and key after: ret_recs has room for n > 0. */
static int sort_by_trigger(struct vg_rec *const *recs, size_t n, struct vg_rec **ret_recs)
{
    struct by_value b = {
        .groups = vg_reallocarray(NULL, n, sizeof *b.groups),
        .ordered = vg_reallocarray(NULL, n, sizeof(void *)),
        .of = vg_reallocarray(NULL, n, sizeof(void *)),
    };
    int r = b.groups && b.ordered && b.of ? 0 : -ENOMEM;
    if (r == 0)
        r = group_all(&b, recs, n);
    if (r == 0)
        place_all(&b, recs, n, ret_recs);
    vg_map_done(&b.map);
    vg_free(b.groups);
    vg_free(b.ordered);
    vg_free(b.of);
    return r;
}

static int load(struct vg_tree *index, struct vg_rec *const *recs, size_t n)
{
    if (n == 0)
        return vg_tree_replace(index, NULL, 0);
    struct vg_rec **sorted = vg_reallocarray(NULL, n, sizeof *sorted);
    int r = sorted ? sort_by_trigger(recs, n, sorted) : -ENOMEM;
    if (r == 0)
        r = vg_tree_replace(index, (const struct vg_rec *const *)sorted, n);
    vg_free(sorted);
    return r;
}

static void *load_main(void *arg)
{
    struct vg_index_load *l = arg;
    l->err = load(l->index, l->recs, l->n);
    return NULL;
}

void vg_index_load_begin(struct vg_index_load *l)
{
    l->has_thread =
        l->n >= VG_INDEX_LOAD_SHARED && pthread_create(&l->thread, NULL, load_main, l) == 0;
    if (l->has_thread)
        pthread_setname_np(l->thread, "vg-index");
}

int vg_index_load_finish(struct vg_index_load *l)
{
    if (l->has_thread)
        pthread_join(l->thread, NULL);
    else
        l->err = load(l->index, l->recs, l->n);
    return l->err;
}
