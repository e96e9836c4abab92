/* lmdb_verify.c - see lmdb_verify.h. */
#include "lmdb_verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

#define LMDB_MAGIC 0xBEEFC0DEu
#define LMDB_DATA_VERSION 1u
#define LMDB_META_FLAG 0x08u
#define LMDB_PAGE_MAX 65536u

static int fail_data(struct vg_status *status, int err, const char *path, const char *what)
{
    const char *next = err == VIGIL_E_STORE_DAMAGED
                           ? "restore from a backup, or let vigil-store repair save what can be "
                             "read and say what is lost"
                           : "restore from a backup, or give vigil an empty directory";
    return vg_fail(status, err, "%s %s; nothing was changed: %s", path, what, next);
}

/* ---- the first two pages ---- */

static bool is_meta_page(const struct vg_lmdb_meta *m, unsigned i)
{
    return m->magic == LMDB_MAGIC && m->page_flags == LMDB_META_FLAG && m->pgno == i;
}

/* Transaction n writes page n % 2. */
static bool is_txnid_of(const struct vg_lmdb_meta *m, unsigned i)
{
    return m->txnid == 0 || m->txnid % 2 == i;
}

static bool is_absurd(const struct vg_lmdb_meta *m)
{
    return m->last_pgno < 1 || m->last_pgno > (UINT64_C(1) << 48) ||
           (m->dbs[1].root != VG_LMDB_PAGE_NONE && m->dbs[1].root > m->last_pgno) ||
           (m->dbs[0].root != VG_LMDB_PAGE_NONE && m->dbs[0].root > m->last_pgno);
}

static int read_meta_pages(struct vg_data_file *f, const char *path,
                           struct vg_status *reterr_status)
{
    struct vg_lmdb_meta *m = f->meta;
    ssize_t n = vg_read_at(f->fd, &m[0], sizeof m[0], 0);
    if (n < (ssize_t)sizeof m[0] || m[0].magic != LMDB_MAGIC)
        return fail_data(reterr_status, VIGIL_E_STORE_FOREIGN, path,
                         "is not a vigil store (not an LMDB file), or its first page is damaged");
    if (m[0].version != LMDB_DATA_VERSION)
        return fail_data(reterr_status, VIGIL_E_STORE_VERSION, path,
                         "was written by another version of LMDB, or its first page is damaged");
    f->page_size = m[0].dbs[0].pad;
    if (!is_meta_page(&m[0], 0) || f->page_size < 512 || f->page_size > LMDB_PAGE_MAX ||
        (f->page_size & (f->page_size - 1)))
        return fail_data(reterr_status, VIGIL_E_STORE_DAMAGED, path, "has a damaged first page");
    n = vg_read_at(f->fd, &m[1], sizeof m[1], f->page_size);
    if (n < (ssize_t)sizeof m[1] || !is_meta_page(&m[1], 1) || m[1].version != LMDB_DATA_VERSION ||
        m[1].dbs[0].pad != f->page_size)
        return fail_data(reterr_status, VIGIL_E_STORE_DAMAGED, path, "has a damaged second page");
    f->newest = m[0].txnid < m[1].txnid;
    if (!is_txnid_of(&m[0], 0) || !is_txnid_of(&m[1], 1) || is_absurd(&m[f->newest]))
        return fail_data(reterr_status, VIGIL_E_STORE_DAMAGED, path, "has a damaged meta page");
    if (m[f->newest].last_pgno >= f->size / f->page_size)
        return fail_data(reterr_status, VIGIL_E_STORE_DAMAGED, path, "is cut off");
    return 0;
}

/* ---- the file ---- */

static int map_file(struct vg_data_file *f, const char *path, struct vg_status *reterr_status)
{
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return vg_fail(reterr_status, -errno, "cannot read %s: %s", path, vg_err_text(-errno));
    if (!S_ISREG(st.st_mode))
        return fail_data(reterr_status, VIGIL_E_STORE_FOREIGN, path, "is not a regular file");
    if (st.st_size == 0)
        return fail_data(reterr_status, VIGIL_E_STORE_DAMAGED, path, "is empty");
    f->size = (size_t)st.st_size;
    void *p = mmap(NULL, f->size, PROT_READ, MAP_SHARED, f->fd, 0);
    if (p == MAP_FAILED)
        return vg_fail(reterr_status, -errno, "cannot map %s: %s", path, vg_err_text(-errno));
    f->map = p;
    return 0;
}

int vg_data_file_open(struct vg_data_file *f, const char *path, struct vg_status *reterr_status)
{
    *f = (struct vg_data_file){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (f->fd < 0)
        return vg_fail(reterr_status, -errno, "cannot open %s: %s", path, vg_err_text(-errno));
    int r = map_file(f, path, reterr_status);
    if (r == 0)
        r = read_meta_pages(f, path, reterr_status);
    if (r < 0)
        vg_data_file_close(f);
    return r;
}

void vg_data_file_close(struct vg_data_file *f)
{
    if (f->map)
        munmap((void *)f->map, f->size);
    if (f->fd >= 0)
        close(f->fd);
    f->map = NULL;
    f->fd = -1;
}

const char *vg_data_file_pages(const struct vg_data_file *f, uint64_t pgno, uint64_t n)
{
    uint64_t pages = f->size / f->page_size;
    return pgno < pages && n <= pages - pgno ? f->map + pgno * f->page_size : NULL;
}

/* ---- the entries ---- */

static const char *take_meta(struct vg_fact_finder *f, struct vg_slice key, struct vg_slice data)
{
    if (vg_slice_eq(key, VG_SLICE_LIT("vigil"))) {
        if (data.n != sizeof f->facts.meta)
            return "the store's meta record has a wrong length";
        memcpy(&f->facts.meta, data.p, data.n);
        f->has_meta = true;
    } else if (vg_slice_eq(key, VG_SLICE_LIT(VG_SUMS_KEY))) {
        if (data.n != sizeof f->stored)
            return "the record of the sums has a wrong length";
        memcpy(&f->stored, data.p, data.n);
        f->has_stored = true;
    } else {
        return "a record of the store's meta data is not known";
    }
    return NULL;
}

const char *vg_fact_take(struct vg_fact_finder *f, enum vg_tree tree, struct vg_slice key,
                         struct vg_slice data)
{
    static const unsigned sums[VG_TREES] = {
        [VG_TREE_LOG] = VG_SUM_LOG, [VG_TREE_KEYS] = VG_SUM_KEYS, [VG_TREE_TTL] = VG_SUM_TTL};
    if (tree == VG_TREE_META)
        return take_meta(f, key, data);
    if (tree == VG_TREE_LOG && key.n != LOG_KEY_SIZE)
        return "a key of the log has a wrong length";
    if (tree == VG_TREE_KEYS && data.n != KEY_VERSION_SIZE)
        return "an entry of the index has a wrong length";
    if (tree == VG_TREE_TTL && key.n != TTL_KEY_SIZE)
        return "a deadline has a wrong length";
    vg_sums_add(&f->facts.sums, sums[tree], key, data);
    return NULL;
}

const char *vg_fact_compare(struct vg_fact_finder *f, uint64_t txnid, enum vg_tree *ret_tree)
{
    static const struct {
        const char *what;
        enum vg_tree tree;
    } sums[VG_SUMS] = {{"the revisions of the log do not add up", VG_TREE_LOG},
                       {"the index of keys does not add up", VG_TREE_KEYS},
                       {"the deadlines do not add up", VG_TREE_TTL}};
    struct vg_sums stored;
    *ret_tree = VG_TREE_META;
    if (!f->has_meta)
        return "the store's meta record is missing";
    if (!f->has_stored)
        return NULL;
    struct vg_slice record = vg_slice((const char *)&f->stored, sizeof f->stored);
    int r = vg_sums_record_read(record, txnid, &f->facts.meta, &stored);
    if (r < 0)
        return "the store's meta record does not read back";
    f->facts.is_marked = r > 0;
    for (unsigned i = 0; r > 0 && i < VG_SUMS; i++) {
        *ret_tree = sums[i].tree;
        if (stored.n[i] != f->facts.sums.n[i] || stored.sum[i] != f->facts.sums.sum[i])
            return sums[i].what;
    }
    return NULL;
}

/* ---- the whole ---- */

struct inspection {
    struct vg_data_file file;
    struct vg_page_walk walk;
    struct vg_fact_finder finder;
    const char *path;
    struct vg_status *status;
};

static const char *pages(void *arg, uint64_t pgno, uint64_t n, unsigned level)
{
    (void)level;
    return vg_data_file_pages(&((struct inspection *)arg)->file, pgno, n);
}

static int on_damage(void *arg, enum vg_tree tree, uint64_t pgno, const char *what)
{
    struct inspection *in = arg;
    char text[200];
    snprintf(text, sizeof text, "is damaged: %s (page %" PRIu64 ", tree \"%s\")", what, pgno,
             vg_tree_names[tree]);
    return fail_data(in->status, VIGIL_E_STORE_DAMAGED, in->path, text);
}

static int on_entry(void *arg, enum vg_tree tree, struct vg_slice key, struct vg_slice data)
{
    struct inspection *in = arg;
    const char *what = vg_fact_take(&in->finder, tree, key, data);
    return what ? on_damage(in, tree, in->walk.dbs[tree].root, what) : 0;
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

static int walk_trees(struct inspection *in)
{
    static const enum vg_tree order[] = {VG_TREE_META, VG_TREE_KEYS, VG_TREE_LOG, VG_TREE_TTL,
                                         VG_TREE_FREE};
    struct vg_page_walk *w = &in->walk;
    int r = vg_walk_begin(w);
    if ((r == 0 || r == VIGIL_E_STORE_DAMAGED) && !w->has_db[VG_TREE_META] &&
        !w->has_db[VG_TREE_KEYS] && !w->has_db[VG_TREE_LOG])
        return fail_data(in->status, VIGIL_E_STORE_FOREIGN, in->path,
                         "is an LMDB file, but not a vigil store, or its root is damaged");
    for (size_t i = 0; r == 0 && i < VG_ARRAY_LEN(order); i++) {
        if (order[i] != VG_TREE_FREE && !w->has_db[order[i]])
            return on_damage(in, VG_TREE_MAIN, w->dbs[VG_TREE_MAIN].root, "a tree is missing");
        r = vg_walk_tree(w, order[i]);
        if (r == 0 && order[i] == VG_TREE_META && in->finder.has_meta)
            r = check_meta(&in->finder.facts.meta, in->path, in->status);
    }
    enum vg_tree tree = VG_TREE_META;
    const char *what = r == 0 ? vg_fact_compare(&in->finder, w->meta.txnid, &tree) : NULL;
    return what ? on_damage(in, tree, w->dbs[tree].root, what) : r;
}

int vg_lmdb_inspect(const char *path, struct vg_data_facts *ret_facts,
                    struct vg_status *reterr_status)
{
    struct vg_status status = {0};
    struct inspection in = {.path = path, .status = &status};
    int r = vg_data_file_open(&in.file, path, reterr_status);
    if (r < 0)
        return r;
    in.walk = (struct vg_page_walk){
        .pages = pages,
        .on_entry = on_entry,
        .on_damage = on_damage,
        .arg = &in,
        .page_size = in.file.page_size,
        .meta = in.file.meta[in.file.newest],
    };
    r = walk_trees(&in);
    vg_walk_end(&in.walk);
    vg_data_file_close(&in.file);
    if (r < 0)
        return vg_fail(reterr_status, r, "%s", status.err == r ? status.message : vg_err_text(r));
    *ret_facts = in.finder.facts;
    return 0;
}
