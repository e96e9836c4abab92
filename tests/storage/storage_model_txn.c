/* storage_model_txn.c - see storage_model_run.h: random transactions, alone and in pipelines, and
 * the hunger that strikes requests. */
#include "storage_model_run.h"

#include <errno.h>
#include <stdio.h>

enum { OPS_MAX = 6, PIPELINE_MAX = 12, VALUE_MAX = 20000 };

/* In byte order. Few, so that operations meet; odd, so that encodings of keys are tried. */
const struct vg_slice run_keys[RUN_KEYS] = {
    {"\0", 1},    {"\0\xff", 2}, {"a", 1},        {"a\0", 2}, {"a\0\0", 3}, {"a\xff", 2},
    {"b/1", 3},   {"b/10", 4},   {"b/2", 3},      {"b/3", 3}, {"b/3\0", 4}, {"c/a/x", 5},
    {"c/a/y", 5}, {"c/b/x", 5},  {"c/b/y", 5},    {"d", 1},   {"dd", 2},    {"ddd", 3},
    {"\x80", 1},  {"\xff", 1},   {"\xff\xff", 2},
};
/* ---- lack of memory ---- */

void starve(struct run *r)
{
    if (r->is_starved && below(r, 3) == 0)
        vg_alloc_fail_at(1 + below(r, 25), 1);
}

void feed(struct run *r)
{
    if (r->is_starved)
        vg_alloc_fail_at(0, 0);
}

bool has_starved(struct run *r, int err)
{
    bool has = r->is_starved && err == -ENOMEM;
    r->n_starved += has;
    return has;
}

/* ---- transactions ---- */

struct random_txn {
    struct vg_txn txn;
    struct vg_op ops[OPS_MAX];
    struct model_op wanted[OPS_MAX];
};

/* Never the same twice, of all lengths, most of them short. */
static struct vg_slice random_value(struct run *r)
{
    static char bytes[VALUE_MAX + 32];
    int n = snprintf(bytes, sizeof bytes, "%llu:", (unsigned long long)r->next_value++);
    size_t length = (size_t)n + below(r, below(r, 50) == 0 ? VALUE_MAX : 100);
    memset(bytes + n, 'a' + (int)below(r, 26), length - (size_t)n);
    return vg_slice(bytes, length);
}

static vg_rev random_expectation(struct run *r, unsigned key)
{
    switch (below(r, 10)) {
    case 0:
        return below(r, r->m.rev + 2);
    case 1:
        return 0;
    case 2:
    case 3:
    case 4:
        return VG_EXPECT_ANY;
    default:
        return model_key_rev(&r->m, key);
    }
}

static struct vg_op random_put(struct run *r, struct model_op *w)
{
    struct vg_slice value = random_value(r);
    size_t cut = below(r, 3) == 0 ? below(r, value.n + 1) : 0;
    w->ttl_ms = r->is_timed && below(r, 5) == 0 ? 1 + below(r, 30000) : 0;
    struct vg_op op = vg_drv_op_put(run_keys[w->key], vg_slice(value.p, cut),
                                    vg_slice(value.p + cut, value.n - cut), w->expect);
    op.ttl_ms = w->ttl_ms;
    w->header = vg_rec_header(op.rec); /* the txn keeps the record until it is done */
    w->value = vg_rec_value(op.rec);
    return op;
}

static struct vg_op random_op(struct run *r, struct model_op *w)
{
    static const enum vg_op_type types[] = {VG_OP_PUT,    VG_OP_PUT,    VG_OP_PUT,
                                            VG_OP_DELETE, VG_OP_DELETE, VG_OP_CHECK};
    w->type = types[below(r, VG_ARRAY_LEN(types))];
    w->expect = random_expectation(r, w->key);
    if (w->type == VG_OP_PUT)
        return random_put(r, w);
    if (w->type == VG_OP_DELETE)
        return vg_drv_op_delete(run_keys[w->key], w->expect);
    return vg_drv_op_check(run_keys[w->key], w->expect);
}

static void random_txn(struct run *r, struct random_txn *t)
{
    bool is_used[RUN_KEYS] = {false};
    *t = (struct random_txn){.txn.ops = t->ops};
    unsigned wish = below(r, 2) ? 1 : 1 + (unsigned)below(r, OPS_MAX);
    for (unsigned i = 0; i < wish; i++) {
        unsigned key = (unsigned)below(r, RUN_KEYS);
        if (is_used[key])
            continue;
        is_used[key] = true;
        unsigned at = t->txn.n_ops++;
        t->wanted[at].key = key;
        t->ops[at] = random_op(r, &t->wanted[at]);
    }
}

/* Apply to the model what the engine has answered, and compare. */
static void settle_txn(struct run *r, struct random_txn *t)
{
    size_t before[OPS_MAX];
    unsigned failed = 0;
    if (has_starved(r, t->txn.req.err)) {
        vg_txn_done(&t->txn);
        return;
    }
    for (unsigned i = 0; i < t->txn.n_ops; i++)
        before[i] = model_find(&r->m, t->wanted[i].key, r->m.rev);
    int want = model_txn(&r->m, t->wanted, t->txn.n_ops, vg_drv_wall_ms(&r->d), &failed);
    check_err(r, "a transaction", t->txn.req.err, want);
    if (want == VIGIL_E_CONFLICT) {
        check_number(r, "failed_op", t->txn.failed_op, failed);
        check_rec(r, "what a conflict shows", t->ops[failed].prev, before[failed], false);
    } else {
        check_number(r, "the revision of a transaction", t->txn.req.rev, r->m.rev);
        for (unsigned i = 0; i < t->txn.n_ops; i++)
            check_rec(r, "what a key held before", t->ops[i].prev, before[i], false);
    }
    vg_txn_done(&t->txn);
}

void step_txn(struct run *r)
{
    struct random_txn t;
    random_txn(r, &t);
    starve(r);
    (void)vg_drv_txn(&r->d, &t.txn);
    feed(r);
    settle_txn(r, &t);
    check_number(r, "the store's revision", vg_storage_revision(r->d.store), r->m.rev);
}

static bool has_changed(const struct random_txn *t)
{
    for (unsigned i = 0; i < t->txn.n_ops && t->txn.req.err == 0; i++) {
        if (t->ops[i].type == VG_OP_PUT || (t->ops[i].type == VG_OP_DELETE && t->ops[i].prev))
            return true;
    }
    return false;
}

/* Does a happen after b? What changes nothing saw the state that its revision names. */
static bool is_after(const struct random_txn *a, const struct random_txn *b)
{
    if (a->txn.req.rev != b->txn.req.rev)
        return a->txn.req.rev > b->txn.req.rev;
    return has_changed(b) && !has_changed(a);
}

/* In the order in which they happened, which their revisions tell. */
static void settle_unordered(struct run *r, struct random_txn *t, unsigned n)
{
    bool is_settled[PIPELINE_MAX] = {false};
    for (unsigned left = n; left > 0; left--) {
        unsigned first = n;
        for (unsigned i = 0; i < n; i++) {
            if (!is_settled[i] && (first == n || is_after(&t[first], &t[i])))
                first = i;
        }
        is_settled[first] = true;
        settle_txn(r, &t[first]);
    }
}

/* Many in the queue at once: they share a commit and must still see each other in order. */
void step_pipeline(struct run *r)
{
    struct random_txn t[PIPELINE_MAX];
    unsigned n = 1 + (unsigned)below(r, PIPELINE_MAX);
    for (unsigned i = 0; i < n; i++)
        random_txn(r, &t[i]);
    starve(r);
    for (unsigned i = 0; i < n; i++)
        check_err(r, "submitting", vg_drv_submit_txn(&r->d, &t[i].txn), 0);
    for (unsigned i = 0; i < n; i++)
        (void)vg_drv_wait(&r->d, &t[i].txn.req);
    feed(r);
    if (!r->is_ordered)
        settle_unordered(r, t, n);
    for (unsigned i = 0; i < n && r->is_ordered; i++)
        settle_txn(r, &t[i]);
}
