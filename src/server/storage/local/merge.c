/* merge.c - see merge.h. A key in a newer layer hides the same key in older ones; a delete hides
 * itself too. */
#include "merge.h"

void vg_merge_init(struct vg_merge *m, struct vg_engine *e, const struct vg_layers *layers,
                   struct vg_base_view *view, const struct vg_keys *keys, vg_rev at, bool keys_only)
{
    memset(m, 0, sizeof *m);
    m->view = view;
    m->keys = keys;
    m->at = at;
    m->keys_only = keys_only;
    m->sources[m->n_sources++].table = layers->active;
    if (layers->frozen)
        m->sources[m->n_sources++].table = layers->frozen;
    if (e->base)
        m->sources[m->n_sources++].table = NULL;
}

void vg_merge_done(struct vg_merge *m)
{
    for (size_t s = 0; s < m->n_sources; s++) {
        struct vg_merge_source *src = &m->sources[s];
        for (; src->i < src->n; src->i++)
            vg_rec_unref(src->chunk[src->i]);
        src->last = vg_rec_unref(src->last);
    }
}

/* Make sure that the source shows its next change, or is at its end. */
static int fill(struct vg_merge *m, struct vg_engine *e, struct vg_merge_source *src)
{
    if (src->i < src->n || src->is_last)
        return 0;
    struct vg_slice after = src->last ? vg_rec_key(src->last) : vg_slice(NULL, 0);
    size_t n = 0;
    if (src->table) {
        n = vg_table_collect(src->table, m->keys, after, m->at, src->chunk, VG_MERGE_CHUNK);
    } else {
        int r = e->base->ops->collect(m->view, m->keys, after, m->at, m->keys_only, m->known,
                                      src->chunk, VG_MERGE_CHUNK, &n);
        if (r < 0)
            return r;
    }
    src->i = 0;
    src->n = n;
    src->is_last = n < VG_MERGE_CHUNK;
    src->last = vg_rec_unref(src->last);
    if (n)
        src->last = vg_rec_ref(src->chunk[n - 1]);
    return 0;
}

/* The smallest key that a source shows; of equal ones that of the newest layer. */
static struct vg_merge_source *smallest(struct vg_merge *m)
{
    struct vg_merge_source *best = NULL;
    for (size_t s = 0; s < m->n_sources; s++) {
        struct vg_merge_source *src = &m->sources[s];
        if (src->i == src->n)
            continue;
        if (!best ||
            vg_slice_cmp(vg_rec_key(src->chunk[src->i]), vg_rec_key(best->chunk[best->i])) < 0)
            best = src;
    }
    return best;
}

/* Take the change that `best` shows, and drop the same key from the layers below. */
static struct vg_rec *take(struct vg_merge *m, struct vg_merge_source *best)
{
    struct vg_rec *rec = best->chunk[best->i++];
    for (struct vg_merge_source *src = best + 1; src < m->sources + m->n_sources; src++) {
        if (src->i < src->n && vg_slice_eq(vg_rec_key(src->chunk[src->i]), vg_rec_key(rec)))
            vg_rec_unref(src->chunk[src->i++]);
    }
    return rec;
}

int vg_merge_next(struct vg_merge *m, struct vg_engine *e, struct vg_rec **ret_rec)
{
    for (;;) {
        for (size_t s = 0; s < m->n_sources; s++) {
            int r = fill(m, e, &m->sources[s]);
            if (r < 0)
                return r;
        }
        struct vg_merge_source *best = smallest(m);
        if (!best)
            return 0;
        struct vg_rec *rec = take(m, best);
        if (!vg_rec_is_delete(rec)) {
            *ret_rec = rec;
            return 1;
        }
        vg_rec_unref(rec);
    }
}
