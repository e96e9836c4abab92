/* demo_backup.c - a backup of the running store, restored elsewhere and compared record by record.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "demo.h"
#include "out.h"

/* All records of a store, in key order. */
struct copy {
    struct vg_rec **recs;
    size_t n, cap;
};

static int add(void *arg, const struct vg_rec *rec, struct vg_status *reterr_status)
{
    struct copy *c = arg;
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 1024;
        struct vg_rec **recs = vg_reallocarray(c->recs, cap, sizeof *recs);
        if (!recs)
            return vg_fail(reterr_status, -ENOMEM, "%s", vg_err_text(-ENOMEM));
        c->recs = recs;
        c->cap = cap;
    }
    c->recs[c->n++] = vg_rec_ref(rec);
    return 0;
}

static int read_all(struct vg_session *s, struct copy *c, struct vg_status *reterr_status)
{
    struct vg_each each = {.fn = add, .arg = c};
    return vg_session_each(s, &each, reterr_status);
}

static void drop(struct copy *c)
{
    for (size_t i = 0; i < c->n; i++)
        vg_rec_unref(c->recs[i]);
    vg_free(c->recs);
}

static bool is_same(const struct vg_rec *a, const struct vg_rec *b)
{
    return a->rev == b->rev && a->create_rev == b->create_rev && a->version == b->version &&
           vg_slice_eq(vg_rec_key(a), vg_rec_key(b)) &&
           vg_slice_eq(vg_rec_header(a), vg_rec_header(b)) &&
           vg_slice_eq(vg_rec_value(a), vg_rec_value(b));
}

static int compare(const struct copy *a, const struct copy *b, struct vg_status *reterr_status)
{
    bool is_equal = a->n == b->n;
    for (size_t i = 0; i < a->n && is_equal; i++)
        is_equal = is_same(a->recs[i], b->recs[i]);
    return is_equal ? 0
                    : vg_fail(reterr_status, VIGIL_E_INTERNAL,
                              "the restored store differs from the one that was backed up");
}

/* Both are open at once: two stores in two directories. */
static int compare_stores(struct vg_demo *d, size_t *ret_n, struct vg_status *reterr_status)
{
    VG_AUTO(session) other = {0};
    struct copy a = {0}, b = {0};
    struct vg_session_opts opts = {.dir = d->restored};
    int r = vg_session_open(&other, &opts, reterr_status);
    if (r == 0)
        r = read_all(&d->s, &a, reterr_status);
    if (r == 0)
        r = read_all(&other, &b, reterr_status);
    if (r == 0)
        r = compare(&a, &b, reterr_status);
    *ret_n = a.n;
    drop(&a);
    drop(&b);
    return r;
}

int vg_demo_backup(struct vg_demo *d, struct vg_status *reterr_status)
{
    struct vg_backup b = {.path = d->backup};
    char size[VG_SIZE_TEXT_SIZE], count[VG_DEMO_NUMBER_SIZE];
    size_t n = 0;
    uint64_t start = vg_clock_mono_ns(vg_clock_system());
    int r = vg_session_backup(&d->s, &b, reterr_status);
    uint64_t middle = vg_clock_mono_ns(vg_clock_system());
    if (r == 0)
        r = vg_storage_restore_lmdb(d->backup, d->restored, VG_RESTORE_BUMP_DEFAULT, reterr_status);
    uint64_t end = vg_clock_mono_ns(vg_clock_system());
    if (r == 0)
        r = compare_stores(d, &n, reterr_status);
    if (r < 0)
        return r;
    vg_demo_say(d, "backup", "%s while it runs in %.0f ms; restored elsewhere in %.0f ms:",
                vg_size_text(b.bytes, size), (double)(middle - start) / 1e6,
                (double)(end - middle) / 1e6);
    vg_demo_say(d, "", "all %s records are the same", vg_demo_number(n, count));
    return 0;
}
