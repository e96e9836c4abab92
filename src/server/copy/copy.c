/* copy.c - see copy.h. */
#include "copy.h"

#include <errno.h>

#include "target.h"

struct copying {
    struct vg_place source;
    struct vg_walk from;
    struct vg_target target;
    struct vg_copy_result result;
};

/* ---- comparing ---- */

struct comparing {
    struct vg_digest *from, *to;
    uint64_t keys;
};

static int fail_differs(const struct vg_rec *rec, const char *what, struct vg_status *reterr_status)
{
    return vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                   "the copy is not what was copied: '%.*s' %s; run it again",
                   VG_SLICE_ARG(vg_rec_key(rec)), what);
}

static int compare_one(struct comparing *c, const struct vg_rec *want, const struct vg_rec *has,
                       struct vg_status *reterr_status)
{
    if (!want)
        return fail_differs(has, "is only in the copy", reterr_status);
    if (!has && vg_ttl_left_ms(want) < 0)
        return 0; /* its time was over meanwhile */
    if (!has)
        return fail_differs(want, "is missing in the copy", reterr_status);
    c->keys++;
    int r = vg_digest_add(c->from, want);
    return r < 0 ? r : vg_digest_add(c->to, has);
}

static int compare_all(struct copying *c, struct comparing *cmp, struct vg_walk *there,
                       struct vg_progress *progress, struct vg_status *reterr_status)
{
    const struct vg_rec *want = NULL, *has = NULL;
    int r;
    while ((r = vg_walk_pair(&c->from, there, &want, &has, reterr_status)) == 0 && (want || has)) {
        r = compare_one(cmp, want, has, reterr_status);
        if (r < 0)
            return r;
        vg_progress_add(progress, 1, has ? has->value_len : 0);
        if (want)
            vg_walk_skip(&c->from);
        if (has)
            vg_walk_skip(there);
    }
    return r;
}

static int compare_digests(const struct comparing *cmp, struct vg_copy_result *result,
                           struct vg_status *reterr_status)
{
    unsigned char from[VG_DIGEST_SIZE], to[VG_DIGEST_SIZE];
    int r = vg_digest_get(cmp->from, from);
    if (r == 0)
        r = vg_digest_get(cmp->to, to);
    if (r < 0)
        return vg_fail(reterr_status, r, "%s", vg_err_text(r));
    if (memcmp(from, to, sizeof from) != 0)
        return vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                       "the copy has another checksum than what was copied; run it again");
    vg_digest_text(to, result->digest);
    result->keys = cmp->keys;
    return 0;
}

static int verify(struct copying *c, bool is_quiet, struct vg_status *reterr_status)
{
    VG_AUTO(walk) there = {0};
    struct comparing cmp = {0};
    struct vg_progress progress;
    vg_progress_begin(&progress, "comparing", c->from.keys, is_quiet);
    int r = vg_walk_rewind(&c->from, reterr_status);
    if (r == 0)
        r = vg_target_walk(&c->target, &there, reterr_status);
    if (r == 0 && (vg_digest_new(&cmp.from) < 0 || vg_digest_new(&cmp.to) < 0))
        r = vg_fail(reterr_status, -ENOMEM, "%s", vg_err_text(-ENOMEM));
    if (r == 0)
        r = compare_all(c, &cmp, &there, &progress, reterr_status);
    if (r == 0)
        r = compare_digests(&cmp, &c->result, reterr_status);
    vg_progress_end(&progress);
    vg_digest_free(cmp.from);
    vg_digest_free(cmp.to);
    return r;
}

/* ---- all of it ---- */

static int open_source(struct copying *c, const struct vg_copy_opts *opts,
                       struct vg_status *reterr_status)
{
    if (opts->is_from_file)
        return vg_walk_backup(&c->from, opts->from, reterr_status);
    int r = vg_place_open(&c->source, opts->from, &opts->etcd, reterr_status);
    return r < 0 ? r : vg_walk_place(&c->from, &c->source, reterr_status);
}

static int fill(struct copying *c, bool is_quiet, struct vg_status *reterr_status)
{
    struct vg_progress progress;
    vg_progress_begin(&progress, "copying", c->from.keys, is_quiet);
    int r = vg_target_fill(&c->target, &c->from, &progress, &c->result, reterr_status);
    c->result.bytes = progress.bytes;
    vg_progress_end(&progress);
    return r;
}

/* What vigil-store's backup wrote: the embedded store itself, with its history. It is restored as
 * it is, and then read as a whole. */
static int restore_embedded(const struct vg_copy_opts *opts, struct vg_copy_result *result,
                            struct vg_status *reterr_status)
{
    VG_AUTO(walk) all = {0};
    char dir[VG_PLACE_PATH_MAX];
    struct vg_place place = {0};
    struct comparing cmp = {0};
    const struct vg_rec *rec = NULL;
    vg_rev bump = opts->bump == VG_COPY_BUMP_DEFAULT ? VG_RESTORE_BUMP_DEFAULT : opts->bump;
    int r = vg_place_prepare(opts->to, dir, reterr_status);
    if (r == 0)
        r = vg_storage_restore_lmdb(opts->from, dir, bump, reterr_status);
    if (r == 0)
        r = vg_place_open(&place, opts->to, &opts->etcd, reterr_status);
    if (r == 0)
        r = vg_walk_place(&all, &place, reterr_status);
    if (r == 0)
        r = vg_digest_new(&cmp.from);
    while (r == 0 && (r = vg_walk_peek(&all, &rec, reterr_status)) == 0 && rec) {
        r = vg_digest_add(cmp.from, rec);
        cmp.keys++;
        result->bytes += rec->value_len;
        result->with_ttl += rec->expires_ms != 0;
        vg_walk_skip(&all);
    }
    cmp.to = cmp.from;
    if (r == 0)
        r = compare_digests(&cmp, result, reterr_status);
    result->to_rev = all.at;
    result->from_rev = all.at - bump;
    vg_digest_free(cmp.from);
    vg_place_close(&place);
    return r;
}

/* Was the source changed meanwhile? A directory is locked; a cluster is not. */
static int look_again(struct copying *c, struct vg_status *reterr_status)
{
    VG_AUTO(walk) now = {0};
    if (!c->source.is_etcd)
        return 0;
    int r = vg_walk_place(&now, &c->source, reterr_status);
    c->result.source_now = now.at;
    return r;
}

static int copy_records(const struct vg_copy_opts *opts, struct vg_copy_result *result,
                        struct vg_status *reterr_status)
{
    struct copying c = {0};
    int r = open_source(&c, opts, reterr_status);
    c.result.from_rev = c.from.at;
    if (r == 0)
        r = vg_target_open(&c.target, opts, &c.from, reterr_status);
    if (r == 0)
        r = fill(&c, opts->is_quiet, reterr_status);
    if (r == 0)
        r = verify(&c, opts->is_quiet, reterr_status);
    if (r == 0)
        r = look_again(&c, reterr_status);
    if (r == 0)
        r = vg_target_finish(&c.target, &c.result, reterr_status);
    vg_target_close(&c.target);
    vg_walk_done(&c.from);
    vg_place_close(&c.source);
    *result = c.result;
    return r;
}

int vg_copy_run(const struct vg_copy_opts *opts, struct vg_copy_result *ret_result,
                struct vg_status *reterr_status)
{
    struct vg_copy_result result = {0};
    uint64_t began = vg_clock_mono_ns(vg_clock_system());
    bool is_embedded = opts->is_from_file && vg_backup_is_embedded(opts->from);
    if (is_embedded && vg_place_is_etcd(opts->to))
        return vg_fail(reterr_status, VIGIL_E_UNSUPPORTED,
                       "%s is a copy of an embedded store: restore it into a directory, and then "
                       "migrate that to etcd",
                       opts->from);
    int r = is_embedded ? restore_embedded(opts, &result, reterr_status)
                        : copy_records(opts, &result, reterr_status);
    result.took_ns = vg_clock_mono_ns(vg_clock_system()) - began;
    if (r == 0)
        *ret_result = result;
    return r;
}
