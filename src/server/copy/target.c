/* target.c - see target.h. */
#include "target.h"

#include "cluster.h"

/* Revisions above the source's at which a new directory begins: a source that is not locked may
 * have given out some while it was read, and nobody runs out of 2^63. */
#define DIR_BUMP ((vg_rev)10000)

int64_t vg_ttl_left_ms(const struct vg_rec *rec)
{
    if (!rec->expires_ms)
        return 0;
    int64_t left = rec->expires_ms - vg_clock_wall_ms(vg_clock_system());
    return left > 0 ? left : -1;
}

static vg_rev bump_of(const struct vg_copy_opts *opts)
{
    if (opts->bump != VG_COPY_BUMP_DEFAULT)
        return opts->bump;
    /* A backup may be old: what was given out since is not known. */
    return opts->is_from_file ? VG_RESTORE_BUMP_DEFAULT : DIR_BUMP;
}

int vg_target_open(struct vg_target *t, const struct vg_copy_opts *opts, const struct vg_walk *from,
                   struct vg_status *reterr_status)
{
    *t = (struct vg_target){.opts = opts};
    t->writes.s = &t->place.s;
    if (opts->is_to_file) {
        struct vg_backup_head head = {
            .rev = from->at,
            .made_ms = vg_clock_wall_ms(vg_clock_system()),
            .keys = from->keys,
        };
        return vg_backup_writer_open(&t->file, opts->to, &head, reterr_status);
    }
    if (!vg_place_is_etcd(opts->to))
        return vg_place_make(&t->place, opts->to, from->at + bump_of(opts), reterr_status);
    int r = vg_place_open(&t->place, opts->to, &opts->etcd, reterr_status);
    return r < 0 ? r : vg_cluster_begin(&t->place, opts, from, reterr_status);
}

/* ---- filling ---- */

static int fill_file(struct vg_target *t, struct vg_walk *from, struct vg_progress *progress,
                     struct vg_copy_result *result, struct vg_status *reterr_status)
{
    const struct vg_rec *rec = NULL;
    int r;
    while ((r = vg_walk_peek(from, &rec, reterr_status)) == 0 && rec) {
        r = vg_backup_writer_add(&t->file, rec, reterr_status);
        if (r < 0)
            return r;
        result->written++;
        result->with_ttl += rec->expires_ms != 0;
        vg_progress_add(progress, 1, rec->value_len);
        vg_walk_skip(from);
    }
    return r < 0 ? r : vg_backup_writer_end(&t->file, reterr_status);
}

/* One key: what the source has (NULL: nothing) becomes what the target has. */
static int settle(struct vg_target *t, const struct vg_rec *want, const struct vg_rec *has,
                  struct vg_copy_result *result, struct vg_status *reterr_status)
{
    int64_t left = want ? vg_ttl_left_ms(want) : 0;
    if (left < 0)
        want = NULL;
    if (!want && !has)
        return 0;
    if (!want) {
        result->removed++;
        return vg_writes_delete(&t->writes, vg_rec_key(has), has->rev, reterr_status);
    }
    if (has && vg_slice_eq(vg_rec_value(want), vg_rec_value(has)))
        return 0;
    result->written++;
    return vg_writes_put(&t->writes, want, has ? has->rev : 0, (uint64_t)left, reterr_status);
}

static int fill_store(struct vg_target *t, struct vg_walk *from, struct vg_progress *progress,
                      struct vg_copy_result *result, struct vg_status *reterr_status)
{
    VG_AUTO(walk) there = {0};
    const struct vg_rec *want = NULL, *has = NULL;
    int r = vg_walk_place(&there, &t->place, reterr_status);
    while (r == 0 && (r = vg_walk_pair(from, &there, &want, &has, reterr_status)) == 0 &&
           (want || has)) {
        r = settle(t, want, has, result, reterr_status);
        if (want) {
            result->with_ttl += want->expires_ms != 0;
            vg_progress_add(progress, 1, want->value_len);
            vg_walk_skip(from);
        }
        if (has)
            vg_walk_skip(&there);
    }
    if (r == 0)
        r = vg_writes_send(&t->writes, reterr_status);
    if (r == 0 && t->place.is_etcd)
        r = vg_cluster_raise(&t->place, t->opts, from->at, reterr_status);
    return r;
}

int vg_target_fill(struct vg_target *t, struct vg_walk *from, struct vg_progress *progress,
                   struct vg_copy_result *result, struct vg_status *reterr_status)
{
    return t->opts->is_to_file ? fill_file(t, from, progress, result, reterr_status)
                               : fill_store(t, from, progress, result, reterr_status);
}

/* ---- the end ---- */

int vg_target_walk(struct vg_target *t, struct vg_walk *ret_walk, struct vg_status *reterr_status)
{
    return t->opts->is_to_file ? vg_walk_backup(ret_walk, t->file.beside, reterr_status)
                               : vg_walk_place(ret_walk, &t->place, reterr_status);
}

int vg_target_finish(struct vg_target *t, struct vg_copy_result *result,
                     struct vg_status *reterr_status)
{
    if (t->opts->is_to_file) {
        result->bytes = t->file.bytes;
        result->to_rev = result->from_rev;
        return vg_backup_writer_publish(&t->file, reterr_status);
    }
    if (t->place.is_etcd)
        return vg_cluster_end(&t->place, &result->to_rev, reterr_status);
    result->to_rev = vg_storage_revision(t->place.s.store);
    return vg_place_finish(&t->place, reterr_status);
}

void vg_target_close(struct vg_target *t)
{
    vg_writes_done(&t->writes);
    vg_backup_writer_close(&t->file);
    vg_place_close(&t->place);
}
