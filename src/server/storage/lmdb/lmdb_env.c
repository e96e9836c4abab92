/* lmdb_env.c - opening the environment, and the form of its keys. What may be opened was verified
 * before (lmdb_verify.c). */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "files.h"
#include "lmdb_int.h"

int vg_lmdb_err(int rc)
{
    switch (rc) {
    case MDB_SUCCESS:
        return 0;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return VIGIL_E_STORE_FULL;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_BAD_VALSIZE:
        return VIGIL_E_STORE_DAMAGED;
    case MDB_READERS_FULL:
        return VIGIL_E_BUSY;
    case MDB_PANIC: /* a commit failed on the disk; the flusher is about to reopen */
        return -EIO;
    default:
        return rc > 0 ? -rc : VIGIL_E_INTERNAL;
    }
}

/* ---- keys ---- */

static void put64(char *out, uint64_t v)
{
    v = htobe64(v);
    memcpy(out, &v, sizeof v);
}

static uint64_t get64(const char *in)
{
    uint64_t v;
    memcpy(&v, in, sizeof v);
    return be64toh(v);
}

static void put32(char *out, uint32_t v)
{
    v = htobe32(v);
    memcpy(out, &v, sizeof v);
}

static uint32_t get32(const char *in)
{
    uint32_t v;
    memcpy(&v, in, sizeof v);
    return be32toh(v);
}

void vg_key_version_encode(const struct key_version *v, char out[KEY_VERSION_SIZE])
{
    put64(out, ~v->rev); /* newest first */
    put32(out + 8, v->sub);
    put32(out + 12, v->is_delete);
    put64(out + 16, v->create_rev);
    put64(out + 24, v->version);
}

int vg_key_version_decode(const MDB_val *in, struct key_version *ret)
{
    const char *p = in->mv_data;
    if (in->mv_size != KEY_VERSION_SIZE)
        return VIGIL_E_STORE_DAMAGED;
    *ret = (struct key_version){
        .rev = ~get64(p),
        .sub = get32(p + 8),
        .is_delete = get32(p + 12) != 0,
        .create_rev = get64(p + 16),
        .version = get64(p + 24),
    };
    return 0;
}

void vg_log_key_encode(vg_rev rev, uint32_t sub, char out[LOG_KEY_SIZE])
{
    put64(out, rev);
    put32(out + 8, sub);
}

struct vg_log_at vg_log_key_decode(const char *in)
{
    return (struct vg_log_at){.rev = get64(in), .sub = get32(in + 8)};
}

/* Deadlines may be negative (a clock before 1970): shift them so that bytes sort as numbers. */
void vg_ttl_key_encode(int64_t expires_ms, vg_rev rev, uint32_t sub, char out[TTL_KEY_SIZE])
{
    put64(out, (uint64_t)expires_ms ^ (UINT64_C(1) << 63));
    put64(out + 8, rev);
    put32(out + 16, sub);
}

void vg_ttl_key_decode(const char *in, int64_t *ret_expires_ms, vg_rev *ret_rev, uint32_t *ret_sub)
{
    *ret_expires_ms = (int64_t)(get64(in) ^ (UINT64_C(1) << 63));
    *ret_rev = get64(in + 8);
    *ret_sub = get32(in + 16);
}

/* ---- opening ---- */

/* Readers: the commit, reader, flusher and backup threads, with room to spare. */
#define READERS_MAX 16

static int new_env(size_t map_size, MDB_env **ret_env)
{
    MDB_env *env;
    int rc = mdb_env_create(&env);
    if (rc)
        return rc;
    rc = mdb_env_set_assert(env, vg_lmdb_on_assert);
    if (!rc)
        rc = mdb_env_set_mapsize(env, map_size);
    if (!rc)
        rc = mdb_env_set_maxdbs(env, 4);
    if (!rc)
        rc = mdb_env_set_maxreaders(env, READERS_MAX);
    if (rc)
        mdb_env_close(env);
    else
        *ret_env = env;
    return rc;
}

static int open_dbs(MDB_txn *txn, unsigned flags, struct vg_lmdb *l)
{
    int rc = mdb_dbi_open(txn, "log", flags, &l->log);
    if (!rc)
        rc = mdb_dbi_open(txn, "keys", flags | MDB_DUPSORT | MDB_DUPFIXED, &l->keys);
    if (!rc)
        rc = mdb_dbi_open(txn, "ttl", flags, &l->ttl);
    if (!rc)
        rc = mdb_dbi_open(txn, "meta", flags, &l->meta);
    return rc;
}

int vg_lmdb_put_meta(MDB_txn *txn, MDB_dbi meta, const struct store_meta *state)
{
    MDB_val key = {5, (void *)"vigil"};
    MDB_val val = {sizeof *state, (void *)state};
    return mdb_put(txn, meta, &key, &val, 0);
}

static int get_meta(MDB_txn *txn, MDB_dbi meta, struct store_meta *ret_meta)
{
    MDB_val key = {5, (void *)"vigil"}, val;
    int rc = mdb_get(txn, meta, &key, &val);
    if (rc)
        return rc;
    if (val.mv_size != sizeof *ret_meta)
        return MDB_INVALID;
    memcpy(ret_meta, val.mv_data, sizeof *ret_meta);
    return 0;
}

int vg_lmdb_put_sums(MDB_txn *txn, MDB_dbi meta, const struct vg_sums *sums,
                     const struct store_meta *state)
{
    struct vg_sums_record record;
    vg_sums_record_make(&record, sums, mdb_txn_id(txn), state);
    MDB_val key = {sizeof VG_SUMS_KEY - 1, (void *)VG_SUMS_KEY};
    MDB_val val = {sizeof record, &record};
    return mdb_put(txn, meta, &key, &val, 0);
}

int vg_lmdb_put_state(MDB_txn *txn, struct vg_lmdb *l, const struct store_meta *state,
                      const struct vg_sums *sums)
{
    int rc = vg_lmdb_put_meta(txn, l->meta, state);
    return rc || !l->has_sums ? rc : vg_lmdb_put_sums(txn, l->meta, sums, state);
}

/* Those of the last transaction. After a commit that failed halfway they are what counts; before
 * the first commit to an older store there are none, and what opening added up stays. */
static int get_sums(MDB_txn *txn, struct vg_lmdb *l)
{
    MDB_val key = {sizeof VG_SUMS_KEY - 1, (void *)VG_SUMS_KEY}, val;
    int rc = mdb_get(txn, l->meta, &key, &val);
    if (rc)
        return rc == MDB_NOTFOUND ? 0 : rc;
    int r = vg_sums_record_read(vg_slice(val.mv_data, val.mv_size), mdb_txn_id(txn), &l->state,
                                &l->sums);
    l->has_sums |= r > 0;
    return r < 0 ? MDB_CORRUPTED : 0;
}

int vg_lmdb_env_create(const char *path, const struct store_meta *meta)
{
    MDB_env *env;
    MDB_txn *txn = NULL;
    struct vg_lmdb dbs = {0};
    int rc = new_env((size_t)1 << 20, &env);
    if (rc)
        return vg_lmdb_err(rc);
    rc = mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK, 0600);
    if (!rc)
        rc = mdb_txn_begin(env, NULL, 0, &txn);
    if (!rc)
        rc = open_dbs(txn, MDB_CREATE, &dbs);
    if (!rc)
        rc = vg_lmdb_put_meta(txn, dbs.meta, meta);
    if (!rc)
        rc = vg_lmdb_put_sums(txn, dbs.meta, &dbs.sums, meta);
    if (!rc) {
        rc = mdb_txn_commit(txn);
        txn = NULL;
    }
    if (txn)
        mdb_txn_abort(txn);
    if (!rc)
        rc = mdb_env_sync(env, 1);
    mdb_env_close(env);
    return vg_lmdb_err(rc);
}

/* What is in the file may have been written by a process that was killed before its sync came back,
 * or whose sync failed: before anything is built on it, it must be on the disk. After a failed sync
 * the kernel calls pages clean that it could not write. That does no harm to pages of a commit that
 * failed, since nothing leads to them; but the meta pages, which say what counts, are written
 * again. That needs no room. */
static int settle(MDB_env *env)
{
    MDB_stat stat;
    char *pages;
    int fd;
    int rc = mdb_env_stat(env, &stat);
    if (!rc)
        rc = mdb_env_get_fd(env, &fd);
    if (rc)
        return rc;
    size_t n = 2 * (size_t)stat.ms_psize;
    if (!(pages = vg_malloc(n)))
        return ENOMEM;
    ssize_t got = vg_read_at(fd, pages, n, 0);
    int r = got < 0 ? (int)got : got < (ssize_t)n ? -EIO : vg_write_at(fd, pages, n, 0);
    vg_free(pages);
    return r < 0 ? -r : mdb_env_sync(env, 1);
}

int vg_lmdb_env_open(struct vg_lmdb *l)
{
    MDB_txn *txn = NULL;
    unsigned flags = MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD | (l->no_sync ? MDB_NOSYNC : 0);
    int rc = new_env(l->map_size, &l->env);
    if (rc)
        return vg_lmdb_err(rc);
    rc = mdb_env_open(l->env, l->path, flags, 0600);
    if (!rc)
        rc = settle(l->env);
    if (!rc)
        rc = mdb_txn_begin(l->env, NULL, MDB_RDONLY, &txn);
    if (!rc)
        rc = open_dbs(txn, 0, l);
    if (!rc)
        rc = get_meta(txn, l->meta, &l->state);
    if (!rc)
        rc = get_sums(txn, l);
    if (!rc) {
        rc = mdb_txn_commit(txn); /* keeps the handles */
        txn = NULL;
    }
    if (txn)
        mdb_txn_abort(txn);
    if (rc)
        vg_lmdb_env_close(l);
    return vg_lmdb_err(rc);
}

void vg_lmdb_env_close(struct vg_lmdb *l)
{
    vg_lmdb_drop_views(l);
    if (l->env)
        mdb_env_close(l->env);
    l->env = NULL;
}
