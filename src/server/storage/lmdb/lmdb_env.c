/* lmdb_env.c - opening and inspecting the environment, and the form of its keys. */
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

/* ---- inspecting ---- */

/* What the first page of an LMDB 0.9 file says, as far as we need it. LMDB itself checks little and
 * maps whatever is there; a file that is too short would end the process with SIGBUS. */
struct lmdb_meta_page {
    uint64_t pgno;
    uint16_t pad, flags;
    uint32_t free;
    uint32_t magic, version;
    uint64_t address, map_size;
    struct {
        uint32_t psize; /* in the first of the two */
        uint16_t flags, depth;
        uint64_t pages[3], entries, root;
    } dbs[2];
    uint64_t last_pgno, txnid;
};
#define LMDB_MAGIC 0xBEEFC0DEu
#define LMDB_DATA_VERSION 1u
#define LMDB_META_FLAG 0x08u

static int fail_data(struct vg_status *status, int err, const char *path, const char *what)
{
    return vg_fail(status, err,
                   "%s %s; nothing was changed: restore from a backup, or give vigil an empty "
                   "directory",
                   path, what);
}

static bool is_meta_page(const struct lmdb_meta_page *m)
{
    return m->magic == LMDB_MAGIC && (m->flags & LMDB_META_FLAG);
}

static int inspect_pages(int fd, const char *path, struct vg_status *reterr_status)
{
    struct lmdb_meta_page m[2];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return vg_fail(reterr_status, -errno, "cannot read %s: %s", path, vg_err_text(-errno));
    if (!S_ISREG(st.st_mode))
        return fail_data(reterr_status, VIGIL_E_STORE_FOREIGN, path, "is not a regular file");
    if (st.st_size == 0)
        return fail_data(reterr_status, VIGIL_E_STORE_DAMAGED, path, "is empty");
    ssize_t n = vg_read_at(fd, &m[0], sizeof m[0], 0);
    if (n < (ssize_t)sizeof m[0] || m[0].magic != LMDB_MAGIC)
        return fail_data(reterr_status, VIGIL_E_STORE_FOREIGN, path,
                         "is not a vigil store (not an LMDB file)");
    if (m[0].version != LMDB_DATA_VERSION)
        return fail_data(reterr_status, VIGIL_E_STORE_VERSION, path,
                         "was written by another version of LMDB");
    uint32_t psize = m[0].dbs[0].psize;
    if (!is_meta_page(&m[0]) || psize < 512 || psize > 65536 || (psize & (psize - 1)))
        return fail_data(reterr_status, VIGIL_E_STORE_DAMAGED, path, "has a damaged first page");
    n = vg_read_at(fd, &m[1], sizeof m[1], psize);
    if (n < (ssize_t)sizeof m[1] || !is_meta_page(&m[1]) || m[1].version != LMDB_DATA_VERSION ||
        m[1].dbs[0].psize != psize)
        return fail_data(reterr_status, VIGIL_E_STORE_DAMAGED, path, "has a damaged second page");
    const struct lmdb_meta_page *newest = m[0].txnid > m[1].txnid ? &m[0] : &m[1];
    bool is_absurd =
        newest->last_pgno > (UINT64_C(1) << 48) ||
        (newest->dbs[1].root != UINT64_MAX && newest->dbs[1].root > newest->last_pgno) ||
        (newest->dbs[0].root != UINT64_MAX && newest->dbs[0].root > newest->last_pgno);
    if (is_absurd)
        return fail_data(reterr_status, VIGIL_E_STORE_DAMAGED, path, "has a damaged meta page");
    if ((uint64_t)st.st_size < (newest->last_pgno + 1) * psize)
        return fail_data(reterr_status, VIGIL_E_STORE_DAMAGED, path, "is cut off");
    return 0;
}

static int check_meta(const struct store_meta *m, const char *path, struct vg_status *reterr_status)
{
    if (memcmp(m->magic, STORE_MAGIC, sizeof m->magic) != 0)
        return fail_data(reterr_status, VIGIL_E_STORE_FOREIGN, path, "is not a vigil store");
    if (m->format != STORE_FORMAT)
        return vg_fail(reterr_status, VIGIL_E_STORE_VERSION,
                       "%s has format %u, this vigil reads format %u; nothing was changed: use the "
                       "vigil that wrote it",
                       path, m->format, STORE_FORMAT);
    return 0;
}

static int inspect_env(const char *path, size_t map_size, struct store_meta *ret_meta)
{
    MDB_env *env;
    MDB_txn *txn = NULL;
    MDB_dbi meta;
    int rc = new_env(map_size, &env);
    if (rc)
        return rc;
    rc = mdb_env_open(env, path, MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK, 0600);
    if (!rc)
        rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
    if (!rc)
        rc = mdb_dbi_open(txn, "meta", 0, &meta);
    if (!rc)
        rc = get_meta(txn, meta, ret_meta);
    if (txn)
        mdb_txn_abort(txn);
    mdb_env_close(env);
    return rc;
}

int vg_lmdb_inspect(const char *path, struct store_meta *ret_meta, struct vg_status *reterr_status)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return vg_fail(reterr_status, -errno, "cannot open %s: %s", path, vg_err_text(-errno));
    int r = inspect_pages(fd, path, reterr_status);
    struct stat st = {0};
    if (r == 0 && fstat(fd, &st) < 0)
        r = -errno;
    close(fd);
    if (r < 0)
        return r;
    int rc = inspect_env(path, VG_ALIGN_UP((size_t)st.st_size, (size_t)1 << 20), ret_meta);
    if (rc == MDB_NOTFOUND || rc == MDB_INCOMPATIBLE)
        return fail_data(reterr_status, VIGIL_E_STORE_FOREIGN, path,
                         "is an LMDB file, but not a vigil store");
    if (rc)
        return vg_fail(reterr_status, vg_lmdb_err(rc), "cannot read %s: %s", path,
                       mdb_strerror(rc));
    return check_meta(ret_meta, path, reterr_status);
}
