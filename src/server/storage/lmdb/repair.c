/* repair.c - see server/storage/repair.h: looking for damage, deciding what is lost, and building
 * the new store. Putting it in the place of the old one is in repair_swap.c. */
#include "server/storage/repair.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/rng.h"
#include "files.h"
#include "lmdb_open.h"
#include "repair_swap.h"
#include "salvage.h"

/* Records written in one transaction. */
#define BUILD_SLICE ((size_t)4096)

/* ---- what is lost ---- */

/* The newest change of a key that is known of. */
struct newest {
    vg_rev rev;
    uint32_t sub;
    bool is_delete, is_lost;
};

struct judgement {
    struct vg_salvage *s;
    struct vg_map newest; /* key -> struct newest */
    vg_rev last;          /* the newest revision that may have been given out */
};

static bool is_above(const struct newest *n, vg_rev rev, uint32_t sub)
{
    return rev > n->rev || (rev == n->rev && sub > n->sub);
}

static int note_change(struct judgement *j, struct vg_slice key, const struct newest *change)
{
    struct newest *n = vg_map_get(&j->newest, key);
    if (!n) {
        n = vg_new(struct newest);
        int r = n ? vg_map_put(&j->newest, key, n, NULL) : -ENOMEM;
        if (r < 0) {
            vg_free(n);
            return r;
        }
    }
    if (n->rev == 0 || is_above(n, change->rev, change->sub))
        *n = *change;
    return 0;
}

static const struct vg_salvaged *find_item(const struct vg_salvage *s, vg_rev rev, uint32_t sub)
{
    for (size_t lo = 0, hi = s->n_items; lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        const struct vg_salvaged *x = &s->items[mid];
        if (x->rev == rev && x->sub == sub)
            return x;
        if (x->rev < rev || (x->rev == rev && x->sub < sub))
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static void lose(struct vg_repair *rep, struct vg_slice key, vg_rev from, vg_rev to)
{
    rep->has_history = false;
    if (key.n)
        rep->n_lost_keys++;
    if (rep->on_lost)
        rep->on_lost(rep->arg, key, from, to);
}

/* What the index names must be there. */
static int judge_index(struct judgement *j)
{
    struct vg_salvage *s = j->s;
    for (size_t i = 0; i < s->n_index; i++) {
        const struct vg_indexed *x = &s->index[i];
        if (find_item(s, x->version.rev, x->version.sub))
            continue;
        struct newest change = {.rev = x->version.rev,
                                .sub = x->version.sub,
                                .is_delete = x->version.is_delete,
                                .is_lost = true};
        s->report->has_history = false;
        s->report->n_lost_revs++;
        int r = note_change(j, x->key, &change);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool is_index_believed(const struct vg_salvage *s)
{
    return !s->is_damaged[VG_TREE_KEYS] && !s->is_damaged[VG_TREE_MAIN] &&
           s->walk.has_db[VG_TREE_KEYS];
}

/* The base: by the index, or else by what the log tree lacks. */
static int judge_base(struct judgement *j)
{
    struct vg_salvage *s = j->s;
    if (is_index_believed(s))
        return judge_index(j);
    bool is_whole = s->walk.has_db[VG_TREE_LOG] && !s->is_damaged[VG_TREE_LOG] && !s->n_bad_records;
    if (!is_whole) {
        s->report->n_lost_revs++;
        lose(s->report, vg_slice(NULL, 0), VG_REV_EMPTY + 1, s->applied);
    }
    return 0;
}

static void lose_revisions(struct vg_repair *rep, vg_rev from, vg_rev to)
{
    rep->n_lost_revs += to - from + 1;
    lose(rep, vg_slice(NULL, 0), from, to);
}

/* Every revision after the first of the log must be there, up to the mark. */
static void judge_log(struct judgement *j)
{
    struct vg_salvage *s = j->s;
    vg_rev at = VG_MAX(s->first, s->applied);
    for (size_t i = 0; i < s->n_items; i++) {
        vg_rev rev = s->items[i].rev;
        if (rev <= at)
            continue;
        if (at == s->skip_from && rev > s->skip_to)
            at = s->skip_to;
        if (rev > at + 1)
            lose_revisions(s->report, at + 1, rev - 1);
        at = rev;
    }
    if (at == s->skip_from)
        at = VG_MAX(at, s->skip_to);
    if (s->mark > at)
        lose_revisions(s->report, at + 1, s->mark);
    j->last = VG_MAX(at, s->mark);
    if (!s->has_mark || !s->finder.has_meta)
        s->report->has_history = false;
}

static int judge(struct judgement *j)
{
    struct vg_salvage *s = j->s;
    struct vg_repair *rep = s->report;
    rep->has_history = true;
    int r = 0;
    for (size_t i = 0; i < s->n_items && r == 0; i++) {
        const struct vg_salvaged *x = &s->items[i];
        struct newest change = {.rev = x->rev, .sub = x->sub, .is_delete = x->is_delete};
        r = note_change(j, x->key, &change);
    }
    if (r == 0)
        r = judge_base(j);
    if (r < 0)
        return r;
    judge_log(j);
    VG_MAP_FOREACH (e, &j->newest) {
        const struct newest *n = e->value;
        if (n->is_lost && !n->is_delete)
            lose(rep, e->key, n->rev, n->rev);
        else if (!n->is_delete)
            rep->n_keys++;
    }
    return 0;
}

static void judgement_done(struct judgement *j)
{
    VG_MAP_FOREACH (e, &j->newest)
        vg_free(e->value);
    vg_map_done(&j->newest);
}

/* ---- the new store ---- */

/* Without its history a store has the newest put of each key. */
static bool is_wanted(const struct judgement *j, const struct vg_salvaged *x)
{
    if (j->s->report->has_history)
        return true;
    const struct newest *n = vg_map_get(&j->newest, x->key);
    return n && !n->is_lost && !x->is_delete && n->rev == x->rev && n->sub == x->sub;
}

static int write_slice(struct vg_lmdb *l, struct vg_rec **recs, size_t n)
{
    struct vg_base_apply apply = {.recs = recs, .n = n, .applied = recs[n - 1]->rev};
    l->wal.gen = l->state.applied_gen + 2; /* the generation before it is what is applied */
    return vg_lmdb_apply(&l->base, &apply);
}

static int write_items(struct judgement *j, struct vg_lmdb *l)
{
    struct vg_salvage *s = j->s;
    struct vg_rec **recs = vg_reallocarray(NULL, BUILD_SLICE, sizeof *recs);
    if (!recs)
        return -ENOMEM;
    int r = 0;
    for (size_t i = 0; i < s->n_items && r == 0;) {
        size_t n = 0, used;
        for (; i < s->n_items && n < BUILD_SLICE && r == 0; i++) {
            if (!is_wanted(j, &s->items[i]))
                continue;
            r = vg_rec_decode(s->items[i].encoded, &used, &recs[n]);
            n += r == 0;
        }
        if (r == 0 && n)
            r = write_slice(l, recs, n);
        while (n)
            vg_rec_unref(recs[--n]);
    }
    vg_free(recs);
    return r;
}

/* What the store says of itself: as restoring does, revisions are skipped when history has a gap.
 */
static int write_meta(struct judgement *j, struct vg_lmdb *l)
{
    struct vg_repair *rep = j->s->report;
    const struct store_meta *old = &j->s->finder.facts.meta;
    MDB_txn *txn;
    struct store_meta meta = l->state;
    meta.applied_gen = 0;
    if (rep->has_history) {
        meta.applied_rev = VG_MAX(meta.applied_rev, j->s->applied);
        meta.compact_rev = old->compact_rev;
        meta.compact_done = old->compact_done;
        rep->rev = VG_MAX(j->last, meta.applied_rev);
    } else {
        meta.applied_rev = VG_MAX(j->last, VG_REV_EMPTY);
        meta.compact_done = meta.applied_rev;
        meta.compact_rev = rep->rev = meta.applied_rev + rep->bump;
    }
    int rc = mdb_txn_begin(l->env, NULL, 0, &txn);
    if (rc)
        return vg_lmdb_err(rc);
    rc = vg_lmdb_put_meta(txn, l->meta, &meta);
    if (!rc)
        rc = vg_lmdb_put_sums(txn, l->meta, &l->sums, &meta);
    if (rc)
        mdb_txn_abort(txn);
    else
        rc = mdb_txn_commit(txn);
    l->state = meta;
    return vg_lmdb_err(rc);
}

static int build_base(struct judgement *j, const char *path, struct store_meta *ret_meta)
{
    struct vg_lmdb *l;
    struct store_meta meta = {.magic = STORE_MAGIC,
                              .format = STORE_FORMAT,
                              .applied_rev = VG_REV_EMPTY,
                              .created_ms = vg_clock_wall_ms(vg_clock_system())};
    int r = vg_random_bytes(&meta.salt, sizeof meta.salt);
    if (r == 0)
        r = vg_lmdb_env_create(path, &meta);
    if (r == 0)
        r = vg_lmdb_new(path, VG_RESTORE_MAP_SIZE, &l);
    if (r < 0)
        return r;
    r = vg_lmdb_env_open(l);
    if (r == 0)
        r = write_items(j, l);
    if (r == 0)
        r = write_meta(j, l);
    *ret_meta = l->state;
    vg_lmdb_free(l);
    return r;
}

static int build(struct judgement *j, const char *dir)
{
    char path[4096];
    struct store_meta meta = {0};
    int dirfd;
    int r = vg_swap_begin(j->s->dirfd, &dirfd);
    if (r < 0)
        return r;
    int n = snprintf(path, sizeof path, "%s/" VG_SWAP_NEW "/" VG_FILE_DATA, dir);
    r = n < 0 || (size_t)n >= sizeof path ? -ENAMETOOLONG : build_base(j, path, &meta);
    if (r == 0)
        r = vg_wal_create(dirfd, meta.salt, meta.applied_rev, j->s->report->rev);
    unlinkat(dirfd, VG_FILE_DATA "-lock", 0);
    if (r == 0)
        r = vg_sync_dir(dirfd);
    close(dirfd);
    return r;
}

/* ---- the two calls ---- */

static int begin(const char *dir, int *ret_dirfd, int *ret_lockfd, struct vg_status *reterr_status)
{
    if (access(dir, F_OK) < 0)
        return vg_fail(reterr_status, VIGIL_E_NOT_FOUND, "there is no directory %s", dir);
    int r = vg_dir_open(dir, ret_dirfd, reterr_status);
    if (r < 0)
        return r;
    r = vg_dir_lock(*ret_dirfd, dir, ret_lockfd, reterr_status);
    if (r < 0)
        close(*ret_dirfd);
    return r;
}

/* What opening would say, besides what the walk of the base has found. */
static int examine_rest(struct vg_salvage *s, int base_err, const struct vg_status *base_status,
                        struct vg_status *reterr_status)
{
    const struct store_meta *meta = &s->finder.facts.meta;
    struct vg_status status = {0};
    if (base_err == VIGIL_E_STORE_VERSION && s->finder.has_meta && meta->format != STORE_FORMAT)
        return vg_fail(reterr_status, base_err, "%s", base_status->message);
    if (base_err == VIGIL_E_STORE_FOREIGN && !s->finder.has_meta && !s->n_items)
        return vg_fail(reterr_status, base_err, "%s", base_status->message);
    if (base_err < 0 && s->report->n_damages == 0)
        vg_salvage_report(s, "%s", base_status->message);
    if (!s->finder.has_meta)
        return 0;
    int r = vg_wal_check(s->dirfd, meta->salt, meta->applied_gen, meta->applied_rev, &status);
    if (r == VIGIL_E_STORE_DAMAGED)
        vg_salvage_report(s, "%s", status.message);
    else if (r < 0)
        return vg_fail(reterr_status, r, "%s", status.message);
    return 0;
}

static int examine(struct vg_salvage *s, const char *dir, int dirfd, struct vg_repair *repair,
                   struct vg_status *reterr_status)
{
    char path[4096];
    struct vg_data_facts facts;
    struct vg_status status = {0};
    *s = (struct vg_salvage){.file = {.fd = -1}, .logs = {{.fd = -1}, {.fd = -1}}};
    int n = snprintf(path, sizeof path, "%s/" VG_FILE_DATA, dir);
    if (n < 0 || (size_t)n >= sizeof path)
        return vg_fail(reterr_status, -ENAMETOOLONG, "the path %s is too long", dir);
    int base_err = vg_lmdb_inspect(path, &facts, &status);
    int r = vg_salvage_open(s, dir, dirfd, repair, reterr_status);
    if (r == 0)
        r = examine_rest(s, base_err, &status, reterr_status);
    if (r == 0 && vg_swap_is_under_way(dirfd))
        vg_salvage_report(s, "a repair was cut short: run vigil-store repair again");
    return r;
}

int vg_storage_examine_lmdb(const char *dir, struct vg_repair *repair,
                            struct vg_status *reterr_status)
{
    struct vg_salvage s;
    int dirfd, lockfd;
    int r = begin(dir, &dirfd, &lockfd, reterr_status);
    if (r < 0)
        return r;
    r = examine(&s, dir, dirfd, repair, reterr_status);
    vg_salvage_close(&s);
    close(lockfd);
    close(dirfd);
    return r;
}

static int rebuild(struct vg_salvage *s, const char *dir, struct vg_status *reterr_status)
{
    struct judgement j = {.s = s};
    vg_map_init(&j.newest, 0);
    int r = vg_salvage_log(s);
    if (r == 0)
        r = judge(&j);
    bool was_empty = s->finder.has_meta && s->walk.has_db[VG_TREE_LOG] &&
                     s->walk.dbs[VG_TREE_LOG].entries == 0 && !s->is_damaged[VG_TREE_LOG];
    if (r == 0 && s->n_items == 0 && !was_empty)
        r = vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                    "nothing of the store in %s can be read, and nothing was changed: restore from "
                    "a backup, or give vigil an empty directory",
                    dir);
    else if (r == 0 && (r = build(&j, dir)) < 0)
        vg_fail(reterr_status, r, "cannot build the repaired store in %s: %s", dir, vg_err_text(r));
    judgement_done(&j);
    return r;
}

static int repair_locked(const char *dir, int dirfd, struct vg_repair *repair,
                         struct vg_status *reterr_status)
{
    struct vg_salvage s;
    repair->is_finished = vg_swap_is_under_way(dirfd);
    int r = 0;
    if (!repair->is_finished) {
        r = examine(&s, dir, dirfd, repair, reterr_status);
        bool is_needed = r == 0 && repair->n_damages;
        if (is_needed)
            r = rebuild(&s, dir, reterr_status);
        vg_salvage_close(&s);
        if (r < 0 || !is_needed)
            return r;
    }
    r = vg_swap_finish(dirfd, repair->kept, sizeof repair->kept);
    if (r < 0)
        return vg_fail(reterr_status, r,
                       "the repaired store is built, but cannot be put into its place: %s; run "
                       "vigil-store repair again",
                       vg_err_text(r));
    return 0;
}

int vg_storage_repair_lmdb(const char *dir, struct vg_repair *repair,
                           struct vg_status *reterr_status)
{
    int dirfd, lockfd;
    int r = begin(dir, &dirfd, &lockfd, reterr_status);
    if (r < 0)
        return r;
    r = repair_locked(dir, dirfd, repair, reterr_status);
    close(lockfd);
    close(dirfd);
    return r;
}
