/* walk_all.c - see walk_all.h. */
#include "walk_all.h"

#include <inttypes.h>

int vg_walk_place(struct vg_walk *w, struct vg_place *place, struct vg_status *reterr_status)
{
    struct vg_range range = {.keys = {.kind = VG_KEYS_FROM}, .flags = VG_RANGE_COUNT_ONLY};
    *w = (struct vg_walk){.place = place};
    int r = vg_session_range(&place->s, &range, reterr_status);
    w->at = range.req.rev;
    w->keys = range.count;
    vg_range_done(&range);
    return r;
}

int vg_walk_backup(struct vg_walk *w, const char *path, struct vg_status *reterr_status)
{
    *w = (struct vg_walk){.path = path};
    int r = vg_backup_reader_open(&w->reader, path, reterr_status);
    w->at = w->reader.head.rev;
    w->keys = w->reader.head.keys;
    return r;
}

static void drop_page(struct vg_walk *w)
{
    while (w->next < w->n)
        vg_rec_unref(w->recs[w->next++]);
    w->n = w->next = 0;
}

int vg_walk_rewind(struct vg_walk *w, struct vg_status *reterr_status)
{
    drop_page(w);
    w->is_last_page = false;
    w->start_len = 0;
    if (w->place)
        return 0;
    vg_backup_reader_close(&w->reader);
    return vg_backup_reader_open(&w->reader, w->path, reterr_status);
}

void vg_walk_done(struct vg_walk *w)
{
    drop_page(w);
    vg_backup_reader_close(&w->reader);
}

/* ---- pages ---- */

static int page_of_backup(struct vg_walk *w, struct vg_status *reterr_status)
{
    int r = 1;
    while (r > 0 && w->n < VG_COPY_PAGE) {
        r = vg_backup_reader_next(&w->reader, &w->recs[w->n], reterr_status);
        w->n += r > 0;
    }
    w->is_last_page = r == 0;
    return VG_MIN(r, 0);
}

/* The mark of a copy is no object. */
static bool is_mark(const struct vg_rec *rec)
{
    return vg_slice_eq(vg_rec_key(rec), VG_SLICE_LIT(VG_COPY_MARK));
}

static void keep_page(struct vg_walk *w, const struct vg_range *range)
{
    for (size_t i = 0; i < range->n_recs; i++) {
        if (!is_mark(range->recs[i]))
            w->recs[w->n++] = vg_rec_ref(range->recs[i]);
    }
    w->is_last_page = !range->more;
    if (range->n_recs) {
        struct vg_slice last = vg_rec_key(range->recs[range->n_recs - 1]);
        memcpy(w->start, last.p, last.n);
        w->start[last.n] = '\0'; /* the first key that may follow it */
        w->start_len = last.n + 1;
    }
}

static int page_of_place(struct vg_walk *w, struct vg_status *reterr_status)
{
    struct vg_range range = {
        .keys = {.kind = VG_KEYS_FROM, .start = vg_slice(w->start, w->start_len)},
        .at = w->at,
        .limit = VG_COPY_PAGE,
        .flags = VG_RANGE_EXPIRES,
    };
    int r = vg_session_range(&w->place->s, &range, reterr_status);
    if (r == 0)
        keep_page(w, &range);
    vg_range_done(&range);
    if (r == VIGIL_E_COMPACTED)
        return vg_fail(reterr_status, r,
                       "revision %" PRIu64 " of %s was compacted while it was read: run it again, "
                       "with a longer --etcd-compaction-interval of those who use it",
                       w->at, w->place->text);
    return r;
}

int vg_walk_peek(struct vg_walk *w, const struct vg_rec **ret_rec, struct vg_status *reterr_status)
{
    int r = 0;
    while (r == 0 && w->next == w->n && !w->is_last_page) {
        w->n = w->next = 0;
        r = w->place ? page_of_place(w, reterr_status) : page_of_backup(w, reterr_status);
    }
    if (r == 0)
        *ret_rec = w->next < w->n ? w->recs[w->next] : NULL;
    return r;
}

void vg_walk_skip(struct vg_walk *w)
{
    if (w->next < w->n)
        vg_rec_unref(w->recs[w->next++]);
}

int vg_walk_pair(struct vg_walk *a, struct vg_walk *b, const struct vg_rec **ret_a,
                 const struct vg_rec **ret_b, struct vg_status *reterr_status)
{
    int r = vg_walk_peek(a, ret_a, reterr_status);
    if (r == 0)
        r = vg_walk_peek(b, ret_b, reterr_status);
    if (r < 0 || !*ret_a || !*ret_b)
        return r;
    int order = vg_slice_cmp(vg_rec_key(*ret_a), vg_rec_key(*ret_b));
    if (order < 0)
        *ret_b = NULL;
    else if (order > 0)
        *ret_a = NULL;
    return 0;
}
