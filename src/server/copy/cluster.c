/* cluster.c - see cluster.h. etcd cannot skip revisions: each is a write. They are made on the
 * mark's key, many at once. */
#include "cluster.h"

#include <errno.h>
#include <inttypes.h>

#include "progress.h"
#include "writes.h"

#define MARK VG_SLICE_LIT(VG_COPY_MARK)

static vg_rev bump_of(const struct vg_copy_opts *opts)
{
    if (opts->bump != VG_COPY_BUMP_DEFAULT)
        return opts->bump;
    return opts->is_from_file ? VG_CLUSTER_RESTORE_BUMP : 1;
}

/* The revision now, from the cluster itself. */
static int revision_of(struct vg_place *p, vg_rev *ret_rev, struct vg_status *reterr_status)
{
    struct vg_range range = {.keys = {.kind = VG_KEYS_ONE, .start = MARK}};
    int r = vg_session_range(&p->s, &range, reterr_status);
    *ret_rev = range.req.rev;
    vg_range_done(&range);
    return r;
}

/* ---- may it be written to? ---- */

/* The mark names the source, so that another one does not go on with half of this. */
static int read_mark(struct vg_place *p, const char *from, bool *ret_has, bool *ret_is_same,
                     struct vg_status *reterr_status)
{
    struct vg_rec *rec = NULL;
    int r = vg_session_get(&p->s, MARK, 0, &rec, reterr_status);
    *ret_has = r == 0;
    *ret_is_same = r == 0 && vg_slice_eq(vg_rec_value(rec), vg_slice_str(from));
    vg_rec_unref(rec);
    return r == VIGIL_E_NOT_FOUND ? 0 : r;
}

static int check_free(struct vg_place *p, const struct vg_copy_opts *opts,
                      struct vg_status *reterr_status)
{
    bool has_mark, is_same;
    VG_AUTO(walk) there = {0};
    const struct vg_rec *first = NULL;
    int r = read_mark(p, opts->from, &has_mark, &is_same, reterr_status);
    if (r < 0 || is_same || opts->is_forced)
        return r;
    if (has_mark)
        return vg_fail(reterr_status, VIGIL_E_EXISTS,
                       "%s has what an interrupted copy of something else left there: finish that "
                       "one, or replace it with --force",
                       p->text);
    r = vg_walk_place(&there, p, reterr_status);
    if (r == 0)
        r = vg_walk_peek(&there, &first, reterr_status);
    if (r == 0 && first)
        return vg_fail(reterr_status, VIGIL_E_EXISTS,
                       "%s is in use: it has %" PRIu64 " keys, '%.*s' among them; --force replaces "
                       "all of them",
                       p->text, there.keys, VG_SLICE_ARG(vg_rec_key(first)));
    return r;
}

static int check_distance(struct vg_place *p, const struct vg_copy_opts *opts,
                          const struct vg_walk *from, struct vg_status *reterr_status)
{
    vg_rev now, want = from->at + bump_of(opts);
    int r = revision_of(p, &now, reterr_status);
    if (r < 0 || opts->keeps_clock || want <= now + from->keys + VG_CLUSTER_RAISE_MAX)
        return r;
    return vg_fail(
        reterr_status, VIGIL_E_INVALID,
        "%s is at revision %" PRIu64 " and must get above %" PRIu64 ", which takes as many writes: "
        "start the cluster from a snapshot with etcdutl snapshot restore --bump-revision %" PRIu64
        " --mark-compacted; or say --keep-clock, and restart every client that watches",
        p->text, now, want, want - now);
}

static int put_mark(struct vg_place *p, const char *from, struct vg_status *reterr_status)
{
    struct vg_change c = {
        .type = VG_OP_PUT, .key = MARK, .value = vg_slice_str(from), .expect = VG_EXPECT_ANY};
    return vg_session_change(&p->s, &c, reterr_status);
}

int vg_cluster_begin(struct vg_place *p, const struct vg_copy_opts *opts,
                     const struct vg_walk *from, struct vg_status *reterr_status)
{
    int r = check_free(p, opts, reterr_status);
    if (r == 0)
        r = check_distance(p, opts, from, reterr_status);
    return r < 0 ? r : put_mark(p, opts->from, reterr_status);
}

/* ---- revisions ---- */

static int raise_by(struct vg_place *p, const char *from, vg_rev n, bool is_quiet,
                    struct vg_status *reterr_status)
{
    static struct vg_writes writes;
    struct vg_progress progress;
    struct vg_rec *mark;
    int r = vg_rec_new(VG_REC_PUT, MARK, vg_slice(NULL, 0), vg_slice_str(from), &mark);
    if (r < 0)
        return vg_fail(reterr_status, r, "%s", vg_err_text(r));
    writes = (struct vg_writes){.s = &p->s};
    vg_progress_begin(&progress, "revisions", n, is_quiet);
    for (vg_rev i = 0; i < n && r == 0; i++) {
        r = vg_writes_put(&writes, mark, VG_EXPECT_ANY, 0, reterr_status);
        vg_progress_add(&progress, 1, 0);
    }
    if (r == 0)
        r = vg_writes_send(&writes, reterr_status);
    vg_writes_done(&writes);
    vg_progress_end(&progress);
    vg_rec_unref(mark);
    return r;
}

int vg_cluster_raise(struct vg_place *p, const struct vg_copy_opts *opts, vg_rev from,
                     struct vg_status *reterr_status)
{
    vg_rev now, want = from + bump_of(opts);
    int r = revision_of(p, &now, reterr_status);
    if (r < 0 || now >= want || opts->keeps_clock)
        return r;
    return raise_by(p, opts->from, want - now, opts->is_quiet, reterr_status);
}

int vg_cluster_end(struct vg_place *p, vg_rev *ret_rev, struct vg_status *reterr_status)
{
    struct vg_compact compact = {0};
    struct vg_change gone = {.type = VG_OP_DELETE, .key = MARK, .expect = VG_EXPECT_ANY};
    int r = vg_session_change(&p->s, &gone, reterr_status);
    if (r < 0)
        return r;
    compact.at = *ret_rev = gone.rev;
    r = vg_session_compact(&p->s, &compact, reterr_status);
    return r == VIGIL_E_COMPACTED ? 0 : r; /* somebody was faster */
}
