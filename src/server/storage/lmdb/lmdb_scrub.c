/* lmdb_scrub.c - see lmdb_scrub.h.
 *   B1 pages of the snapshot do not change while its read transaction lasts, and LMDB had synced
 * them before it began. B2 the env_lock is held for reading for a pass and given back within a nap
 * when somebody wants it for writing. */
#include "lmdb_scrub.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "files.h"
#include "lmdb_verify.h"

/* 64 MiB/s in pieces of 1 MiB: a fraction of any disk, and a store of 10 GiB takes 3 minutes, in
 * which the pages that changes free are not used again. */
#define PIECE_BYTES ((uint64_t)1 << 20)
#define NAP_NS (UINT64_C(1000000000) / 64)
/* After a clean end nothing is in a hurry. */
#define FIRST_PASS_MS (UINT64_C(600) * 1000)
#define AGAIN_MS (UINT64_C(10) * 1000) /* after a pass that gave way */
#define DAMAGE_LINES_MAX 10u           /* of the log, for one pass */
#define GAVE_WAY (-ECANCELED)

struct vg_scrub {
    struct vg_lmdb *l;
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t cond;
    bool is_ending;
    uint64_t interval_ms, first_ms;
    /* The pass. */
    int fd;
    struct vg_page_walk walk;
    struct vg_fact_finder finder;
    char *pages[VG_WALK_LEVELS]; /* one buffer a level, aligned for O_DIRECT */
    size_t sizes[VG_WALK_LEVELS];
    uint64_t bytes, since_nap, n_records;
    unsigned n_damages;
};

void vg_lmdb_lock_env(struct vg_lmdb *l)
{
    atomic_fetch_add(&l->env_wanted, 1);
    pthread_rwlock_wrlock(&l->env_lock);
    atomic_fetch_sub(&l->env_wanted, 1);
}

/* True: it is time to end. */
static bool nap(struct vg_scrub *s, uint64_t ns)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t end = (uint64_t)at.tv_nsec + ns;
    at.tv_sec += (time_t)(end / VG_NS_PER_S);
    at.tv_nsec = (long)(end % VG_NS_PER_S);
    pthread_mutex_lock(&s->mu);
    while (!s->is_ending && pthread_cond_timedwait(&s->cond, &s->mu, &at) == 0)
        ;
    bool is_ending = s->is_ending;
    pthread_mutex_unlock(&s->mu);
    return is_ending;
}

/* ---- pages, from the disk ---- */

static char *buffer(struct vg_scrub *s, unsigned level, size_t n)
{
    if (s->sizes[level] >= n)
        return s->pages[level];
    free(s->pages[level]);
    s->sizes[level] = 0;
    s->pages[level] = aligned_alloc(4096, VG_ALIGN_UP(n, (size_t)4096));
    s->sizes[level] = s->pages[level] ? n : 0;
    return s->pages[level];
}

static const char *read_pages(void *arg, uint64_t pgno, uint64_t n, unsigned level)
{
    struct vg_scrub *s = arg;
    size_t size = (size_t)n * s->walk.page_size;
    char *p = buffer(s, level, size);
    s->bytes += size;
    s->since_nap += size;
    atomic_fetch_add_explicit(&s->l->base.scrub_bytes, size, memory_order_relaxed);
    if (!p || vg_read_at(s->fd, p, size, (off_t)(pgno * s->walk.page_size)) != (ssize_t)size)
        return NULL;
    return p;
}

/* 0: go on. */
static int pace(struct vg_scrub *s)
{
    if (s->since_nap >= PIECE_BYTES) {
        s->since_nap = 0;
        if (nap(s, NAP_NS))
            return GAVE_WAY;
    }
    return atomic_load(&s->l->env_wanted) ? GAVE_WAY : 0;
}

/* ---- what it finds ---- */

static int on_damage(void *arg, enum vg_tree tree, uint64_t pgno, const char *what)
{
    struct vg_scrub *s = arg;
    atomic_fetch_add_explicit(&s->l->base.scrub_damages, 1, memory_order_relaxed);
    if (s->n_damages++ < DAMAGE_LINES_MAX)
        vg_error(s->l->logger, "store_damaged",
                 "file=" VG_FILE_DATA " page=%" PRIu64
                 " tree=\"%s\" found=\"%s\" do=\"make a backup "
                 "now; then stop vigild and run vigil-store check; and look at the disk\"",
                 pgno, vg_tree_names[tree], what);
    return pace(s);
}

static int check_record(struct vg_scrub *s, struct vg_slice key, struct vg_slice data)
{
    struct vg_rec *rec;
    size_t used;
    struct vg_log_at at = vg_log_key_decode(key.p);
    s->n_records++;
    int r = vg_rec_decode(data, &used, &rec);
    if (r == -ENOMEM)
        return r;
    bool is_good = r == 0 && rec->rev == at.rev && rec->sub == at.sub && used == data.n;
    if (r == 0)
        vg_rec_unref(rec);
    if (is_good)
        return 0;
    struct vg_slice of = VG_SLICE_LIT("?");
    vg_rev said;
    (void)vg_rec_guess(data, &of, &said);
    atomic_fetch_add_explicit(&s->l->base.scrub_damages, 1, memory_order_relaxed);
    s->n_damages++;
    vg_lmdb_note_damage(s->l, of, at);
    return 0;
}

static int on_entry(void *arg, enum vg_tree tree, struct vg_slice key, struct vg_slice data)
{
    struct vg_scrub *s = arg;
    const char *what = vg_fact_take(&s->finder, tree, key, data);
    if (what)
        return on_damage(s, tree, s->walk.dbs[tree].root, what);
    int r = tree == VG_TREE_LOG ? check_record(s, key, data) : 0;
    return r < 0 ? r : pace(s);
}

/* ---- a pass ---- */

/* The page that the snapshot's transaction wrote; the second one after it writes it again. */
static int read_meta(struct vg_scrub *s, uint64_t txnid, uint32_t page_size)
{
    s->walk.page_size = page_size;
    const char *p = read_pages(s, txnid % 2, 1, 0);
    if (!p)
        return -EIO;
    memcpy(&s->walk.meta, p, sizeof s->walk.meta);
    return s->walk.meta.txnid == txnid ? 0 : GAVE_WAY;
}

static int walk_snapshot(struct vg_scrub *s, uint64_t txnid, uint32_t page_size)
{
    static const enum vg_tree order[] = {VG_TREE_META, VG_TREE_KEYS, VG_TREE_LOG, VG_TREE_TTL,
                                         VG_TREE_FREE};
    s->finder = (struct vg_fact_finder){0};
    s->bytes = s->n_records = 0;
    s->n_damages = 0;
    s->walk = (struct vg_page_walk){
        .pages = read_pages, .on_entry = on_entry, .on_damage = on_damage, .arg = s};
    int r = read_meta(s, txnid, page_size);
    if (r == 0)
        r = vg_walk_begin(&s->walk);
    for (size_t i = 0; r == 0 && i < VG_ARRAY_LEN(order); i++)
        r = vg_walk_tree(&s->walk, order[i]);
    enum vg_tree tree = VG_TREE_META;
    const char *what =
        r == 0 && s->n_damages == 0 ? vg_fact_compare(&s->finder, txnid, &tree) : NULL;
    if (what)
        (void)on_damage(s, tree, s->walk.dbs[tree].root, what);
    vg_walk_end(&s->walk);
    return r;
}

/* 0, GAVE_WAY, or an error. */
static int run_pass(struct vg_scrub *s)
{
    struct vg_lmdb *l = s->l;
    MDB_txn *txn = NULL;
    MDB_stat stat;
    s->fd = open(l->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (s->fd < 0)
        s->fd = open(l->path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0)
        return -errno;
    pthread_rwlock_rdlock(&l->env_lock);
    int rc = l->env ? mdb_txn_begin(l->env, NULL, MDB_RDONLY, &txn) : EIO;
    if (!rc)
        rc = mdb_env_stat(l->env, &stat);
    int r = rc ? vg_lmdb_err(rc) : walk_snapshot(s, mdb_txn_id(txn), stat.ms_psize);
    if (txn)
        mdb_txn_abort(txn);
    pthread_rwlock_unlock(&l->env_lock);
    close(s->fd);
    return r;
}

static void note_pass(struct vg_scrub *s, uint64_t took_ns)
{
    struct vg_base *b = &s->l->base;
    atomic_fetch_add_explicit(&b->scrub_passes, 1, memory_order_relaxed);
    vg_info(s->l->logger, "scrubbed",
            "bytes=%" PRIu64 " records=%" PRIu64 " damages=%u seconds=%.1f", s->bytes, s->n_records,
            s->n_damages, (double)took_ns / 1e9);
}

static void *scrub_main(void *arg)
{
    struct vg_scrub *s = arg;
    uint64_t wait_ms = s->first_ms;
    while (!nap(s, wait_ms * VG_NS_PER_MS)) {
        uint64_t start = vg_clock_mono_ns(vg_clock_system());
        int r = run_pass(s);
        wait_ms = r ? VG_MIN(AGAIN_MS, s->interval_ms) : s->interval_ms;
        if (r == 0)
            note_pass(s, vg_clock_mono_ns(vg_clock_system()) - start);
        else if (r != GAVE_WAY)
            vg_warn(s->l->logger, "scrub_failed", "err=%s", vg_err_name(r));
    }
    return NULL;
}

/* ---- life ---- */

static void free_scrub(struct vg_scrub *s)
{
    for (unsigned i = 0; i < VG_WALK_LEVELS; i++)
        free(s->pages[i]);
    pthread_cond_destroy(&s->cond);
    pthread_mutex_destroy(&s->mu);
    vg_free(s);
}

int vg_scrub_start(struct vg_lmdb *l, uint64_t interval_ms, bool is_clean)
{
    struct vg_scrub *s = vg_new(struct vg_scrub);
    if (!s)
        return -ENOMEM;
    s->l = l;
    s->interval_ms = interval_ms;
    s->first_ms = is_clean ? VG_MIN(interval_ms, FIRST_PASS_MS) : 0;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->cond, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&s->mu, NULL);
    int r = pthread_create(&s->thread, NULL, scrub_main, s);
    if (r != 0) {
        free_scrub(s);
        return -r;
    }
    pthread_setname_np(s->thread, "vg-scrub");
    l->scrub = s;
    return 0;
}

void vg_scrub_stop(struct vg_lmdb *l)
{
    struct vg_scrub *s = l->scrub;
    if (!s)
        return;
    pthread_mutex_lock(&s->mu);
    s->is_ending = true;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mu);
    pthread_join(s->thread, NULL);
    l->scrub = NULL;
    free_scrub(s);
}
