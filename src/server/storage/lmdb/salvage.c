/* salvage.c - see salvage.h: the base. */
#include "salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "files.h"

#define LINE_MAX_BYTES 700
#define PAGE_SIZE_USUAL 4096u

void vg_salvage_report(struct vg_salvage *s, const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    s->report->n_damages++;
    if (s->report->on_damage)
        s->report->on_damage(s->report->arg, text);
}

/* ---- what was found ---- */

static int grow(void **array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return 0;
    size_t more = VG_MAX(*cap * 2, (size_t)1024);
    void *p = vg_reallocarray(*array, more, size);
    if (!p)
        return -ENOMEM;
    *array = p;
    *cap = more;
    return 0;
}

int vg_salvage_add(struct vg_salvage *s, struct vg_slice encoded, const struct vg_rec *rec,
                   bool is_stray)
{
    int r = grow((void **)&s->items, s->n_items, &s->cap_items, sizeof *s->items);
    if (r < 0)
        return r;
    s->items[s->n_items++] = (struct vg_salvaged){
        .rev = rec->rev,
        .sub = rec->sub,
        .is_delete = vg_rec_is_delete(rec),
        .is_stray = is_stray,
        .key = vg_slice(encoded.p + VG_REC_ENCODED_HEAD, rec->key_len),
        .encoded = encoded,
    };
    return 0;
}

static int add_index(struct vg_salvage *s, struct vg_slice key, struct vg_slice data)
{
    MDB_val val = {data.n, (void *)data.p};
    int r = grow((void **)&s->index, s->n_index, &s->cap_index, sizeof *s->index);
    if (r < 0)
        return r;
    struct vg_indexed *x = &s->index[s->n_index];
    x->key = key;
    if (vg_key_version_decode(&val, &x->version) == 0)
        s->n_index++;
    return 0;
}

/* ---- the walk ---- */

static const char *pages(void *arg, uint64_t pgno, uint64_t n, unsigned level)
{
    (void)level;
    return vg_data_file_pages(&((struct vg_salvage *)arg)->file, pgno, n);
}

static int on_damage(void *arg, enum vg_tree tree, uint64_t pgno, const char *what)
{
    struct vg_salvage *s = arg;
    s->is_damaged[tree] = true;
    vg_salvage_report(s, VG_FILE_DATA ": %s (page %" PRIu64 ", tree \"%s\")", what, pgno,
                      vg_tree_names[tree]);
    return 0;
}

static void report_record(struct vg_salvage *s, struct vg_slice key, struct vg_slice data)
{
    struct vg_slice of;
    vg_rev said;
    struct vg_log_at at = vg_log_key_decode(key.p);
    s->n_bad_records++;
    if (vg_rec_guess(data, &of, &said))
        vg_salvage_report(s,
                          VG_FILE_DATA ": the record at revision %" PRIu64
                                       ", perhaps of key %.*s, does not read back",
                          at.rev, (int)VG_MIN(of.n, (size_t)VG_STORAGE_KEY_MAX), of.p);
    else
        vg_salvage_report(s, VG_FILE_DATA ": the record at revision %" PRIu64 " does not read back",
                          at.rev);
}

static int take_record(struct vg_salvage *s, struct vg_slice key, struct vg_slice data,
                       bool is_stray)
{
    struct vg_rec *rec;
    size_t used;
    struct vg_log_at at = vg_log_key_decode(key.p);
    int r = vg_rec_decode(data, &used, &rec);
    if (r == -ENOMEM)
        return r;
    bool is_in_place = r == 0 && rec->rev == at.rev && rec->sub == at.sub && used == data.n;
    if (!is_in_place && !is_stray)
        report_record(s, key, data);
    if (r < 0)
        return 0;
    /* In a leaf of the log the record is ours, and names its revision itself. */
    if (is_in_place || !is_stray)
        r = vg_salvage_add(s, vg_slice(data.p, used), rec, is_stray);
    vg_rec_unref(rec);
    return r;
}

static int on_entry(void *arg, enum vg_tree tree, struct vg_slice key, struct vg_slice data)
{
    struct vg_salvage *s = arg;
    const char *what = vg_fact_take(&s->finder, tree, key, data);
    if (what)
        return on_damage(s, tree, s->walk.dbs[tree].root, what);
    if (tree == VG_TREE_KEYS)
        return add_index(s, key, data);
    return tree == VG_TREE_LOG ? take_record(s, key, data, false) : 0;
}

static int on_stray_entry(void *arg, enum vg_tree tree, struct vg_slice key, struct vg_slice data)
{
    (void)tree;
    return key.n == LOG_KEY_SIZE ? take_record(arg, key, data, true) : 0;
}

/* Leaves of the log whose way down is broken: pages that no tree has led to and that are not free.
 * What they hold counts only if the index names it. */
static int walk_strays(struct vg_salvage *s)
{
    if (!s->is_damaged[VG_TREE_LOG] || s->is_damaged[VG_TREE_KEYS] || s->is_damaged[VG_TREE_FREE] ||
        s->is_damaged[VG_TREE_MAIN])
        return 0;
    int r = 0;
    s->walk.on_entry = on_stray_entry;
    for (uint64_t pgno = 2; pgno <= s->walk.meta.last_pgno && r == 0; pgno++) {
        if (!vg_walk_has_seen(&s->walk, pgno))
            r = vg_walk_stray_leaf(&s->walk, VG_TREE_LOG, pgno);
    }
    return r;
}

static int walk_from(struct vg_salvage *s, const struct vg_lmdb_meta *meta)
{
    static const enum vg_tree order[] = {VG_TREE_META, VG_TREE_LOG, VG_TREE_KEYS, VG_TREE_TTL,
                                         VG_TREE_FREE};
    s->n_items = s->n_index = 0;
    s->finder = (struct vg_fact_finder){0};
    vg_walk_end(&s->walk);
    s->walk = (struct vg_page_walk){.pages = pages,
                                    .on_entry = on_entry,
                                    .on_damage = on_damage,
                                    .arg = s,
                                    .page_size = s->file.page_size,
                                    .meta = *meta};
    uint64_t in_file = s->file.size / s->file.page_size;
    s->walk.meta.last_pgno = VG_MIN(meta->last_pgno, in_file ? in_file - 1 : 0);
    int r = vg_walk_begin(&s->walk);
    for (size_t i = 0; r == 0 && i < VG_ARRAY_LEN(order); i++) {
        if (order[i] != VG_TREE_FREE && !s->walk.has_db[order[i]])
            r = on_damage(s, order[i], s->walk.dbs[VG_TREE_MAIN].root, "a tree is missing");
        else
            r = vg_walk_tree(&s->walk, order[i]);
    }
    return r < 0 ? r : walk_strays(s);
}

/* ---- the file ---- */

static bool is_candidate(const struct vg_salvage *s, unsigned i)
{
    const struct vg_lmdb_meta *m = &s->file.meta[i];
    return m->magic == 0xBEEFC0DEu && m->version == 1 && m->page_flags == 0x08 && m->pgno == i &&
           m->dbs[0].pad == s->file.page_size && (m->txnid == 0 || m->txnid % 2 == i) && m->txnid;
}

/* Whatever the first two pages look like. */
static int map_anyway(struct vg_salvage *s, const char *path)
{
    struct vg_data_file *f = &s->file;
    struct stat st;
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0)
        return -errno;
    if (fstat(f->fd, &st) < 0)
        return -errno;
    f->size = (size_t)st.st_size;
    f->page_size = PAGE_SIZE_USUAL;
    if (f->size == 0)
        return 0;
    void *p = mmap(NULL, f->size, PROT_READ, MAP_SHARED, f->fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    f->map = p;
    for (unsigned i = 0; i < 2; i++) {
        if (f->size >= (size_t)i * f->page_size + sizeof f->meta[0])
            memcpy(&f->meta[i], f->map + (size_t)i * f->page_size, sizeof f->meta[0]);
    }
    return 0;
}

/* From the newer of the two pages; from the other one if that leads to nothing. The log still has
 * what the older one lacks. */
static int walk_base(struct vg_salvage *s)
{
    unsigned newer = s->file.meta[0].txnid < s->file.meta[1].txnid;
    if (!is_candidate(s, newer))
        newer = !newer;
    for (unsigned i = 0; i < 2; i++) {
        unsigned which = i ? !newer : newer;
        if (!is_candidate(s, which))
            continue;
        memset(s->is_damaged, 0, sizeof s->is_damaged);
        s->n_bad_records = 0;
        int r = walk_from(s, &s->file.meta[which]);
        if (r < 0 || s->n_items || s->finder.has_meta)
            return r;
    }
    return 0;
}

static int by_rev(const void *a, const void *b)
{
    const struct vg_salvaged *x = a, *y = b;
    if (x->rev != y->rev)
        return x->rev < y->rev ? -1 : 1;
    if (x->sub != y->sub)
        return x->sub < y->sub ? -1 : 1;
    return (int)x->is_stray - (int)y->is_stray;
}

static const struct vg_indexed *find_indexed(const struct vg_salvage *s,
                                             const struct vg_salvaged *item)
{
    for (size_t lo = 0, hi = s->n_index; lo < hi;) { /* by key; versions newest first */
        size_t mid = lo + (hi - lo) / 2;
        const struct vg_indexed *x = &s->index[mid];
        int c = vg_slice_cmp(x->key, item->key);
        if (c == 0)
            c = (x->version.rev < item->rev) - (x->version.rev > item->rev);
        if (c == 0)
            c = (x->version.sub > item->sub) - (x->version.sub < item->sub);
        if (c == 0)
            return x;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* Strays that the index does not name are nobody's. Of two that claim the same place neither can be
 * believed, unless one was found where it belongs. */
void vg_salvage_sort(struct vg_salvage *s)
{
    size_t n = 0;
    if (s->n_items)
        qsort(s->items, s->n_items, sizeof *s->items, by_rev);
    for (size_t i = 0; i < s->n_items;) {
        size_t same = i + 1;
        while (same < s->n_items && s->items[same].rev == s->items[i].rev &&
               s->items[same].sub == s->items[i].sub)
            same++;
        const struct vg_salvaged *item = &s->items[i];
        if (!item->is_stray || (same == i + 1 && find_indexed(s, item)))
            s->items[n++] = *item;
        i = same;
    }
    s->n_items = n;
}

/* Which of the trees can be believed, and what the store says of itself. */
static void judge_base(struct vg_salvage *s)
{
    bool is_damaged = false;
    enum vg_tree tree = VG_TREE_META;
    const struct store_meta *meta = &s->finder.facts.meta;
    for (unsigned i = 0; i < VG_TREES; i++)
        is_damaged |= s->is_damaged[i];
    const char *what = is_damaged ? NULL : vg_fact_compare(&s->finder, s->walk.meta.txnid, &tree);
    if (what)
        (void)on_damage(s, tree, s->walk.dbs[tree].root, what);
    if (what && tree == VG_TREE_META)
        s->finder.has_meta = false;
    if (s->finder.has_meta && memcmp(meta->magic, STORE_MAGIC, sizeof meta->magic) != 0)
        s->finder.has_meta = false;
    s->applied = s->n_items ? s->items[s->n_items - 1].rev : VG_REV_EMPTY;
    if (s->finder.has_meta) {
        s->salt = meta->salt;
        s->has_salt = true;
        s->applied = meta->applied_rev;
    }
}

int vg_salvage_open(struct vg_salvage *s, const char *dir, int dirfd, struct vg_repair *report,
                    struct vg_status *reterr_status)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", dir, VG_FILE_DATA);
    *s = (struct vg_salvage){.report = report, .dirfd = dirfd};
    s->file.fd = s->logs[0].fd = s->logs[1].fd = -1;
    int r = n < 0 || (size_t)n >= sizeof path ? -ENAMETOOLONG : map_anyway(s, path);
    if (r == 0)
        r = walk_base(s);
    if (r == 0) {
        report->n_records = s->n_items;
        vg_salvage_sort(s);
        judge_base(s);
    }
    return r < 0 ? vg_fail(reterr_status, r, "cannot read the store in %s: %s", dir, vg_err_text(r))
                 : 0;
}

void vg_salvage_close(struct vg_salvage *s)
{
    vg_walk_end(&s->walk);
    vg_data_file_close(&s->file);
    for (unsigned i = 0; i < 2; i++) {
        vg_wal_unmap(&s->logs[i]);
        if (s->logs[i].fd >= 0)
            close(s->logs[i].fd);
        s->logs[i].fd = -1;
    }
    vg_free(s->items);
    vg_free(s->index);
    s->items = NULL;
    s->index = NULL;
}
