/* cmd_check.c - check: is the store whole?
 * First the files are examined before anything opens them (cmd_repair.c): pages, records, log. Then
 * everything is read again as a server reads it: the history by a watch, then every key.
 * The two must agree:
 *   K1 the history has every revision after the compacted one, in order, without a gap.
 *   K2 a change names the one before it of its key, as far as the history goes back.
 *   K3 a key whose newest change is in the history has that revision now; one that the history
 *      deleted last is not there. */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/map.h"
#include "cmd.h"
#include "out.h"

/* The newest change of a key in the history. */
struct newest {
    vg_rev rev;
    bool is_delete, is_found;
};

struct checking {
    vg_rev compacted, target;
    vg_rev rev; /* newest seen in the history */
    uint64_t changes, keys, bytes;
    struct vg_map newest; /* key -> struct newest */
    struct vg_watch *watch;
    bool is_over;
    int err;
    struct vg_status status;
};

/* ---- the history ---- */

static int fail_rec(struct vg_status *status, const struct vg_rec *rec, const char *what)
{
    return vg_fail(status, VIGIL_E_STORE_DAMAGED,
                   "the change of '%.*s' at revision %" PRIu64 " %s: restore from a backup",
                   VG_SLICE_ARG(vg_rec_key(rec)), rec->rev, what);
}

/* The entry of a key, made when there is none. */
static int find_newest(struct checking *c, struct vg_slice key, struct newest **ret_newest)
{
    struct newest *n = vg_map_get(&c->newest, key);
    if (!n) {
        n = vg_new(struct newest);
        if (!n)
            return -ENOMEM;
        int r = vg_map_put(&c->newest, key, n, NULL);
        if (r < 0) {
            vg_free(n);
            return r;
        }
    }
    *ret_newest = n;
    return 0;
}

static int check_event(struct checking *c, const struct vg_event *ev)
{
    const struct vg_rec *rec = ev->rec;
    struct newest *n;
    if (rec->rev > c->target) /* a key that expired meanwhile: what is checked ends before it */
        return 0;
    if (rec->rev != c->rev && rec->rev != c->rev + 1)
        return fail_rec(&c->status, rec, "does not follow the one before it");
    int r = find_newest(c, vg_rec_key(rec), &n);
    if (r < 0)
        return vg_fail(&c->status, r, "%s", vg_err_text(r));
    bool was_there = n->rev && !n->is_delete;
    if (n->rev && rec->prev_rev != (was_there ? n->rev : 0))
        return fail_rec(&c->status, rec, "names another revision as the one before it");
    *n = (struct newest){.rev = rec->rev, .is_delete = vg_rec_is_delete(rec)};
    c->rev = rec->rev;
    c->changes++;
    return 0;
}

static void end_watch(struct checking *c, int err)
{
    c->err = err;
    c->is_over = true;
    if (c->watch)
        vg_watch_cancel(vg_steal(c->watch));
}

static void on_batch(struct vg_watch *watch, const struct vg_watch_batch *batch, void *arg)
{
    struct checking *c = arg;
    int r = 0;
    (void)watch;
    for (size_t i = 0; i < batch->n && r == 0; i++)
        r = check_event(c, &batch->events[i]);
    if (r < 0 || batch->rev >= c->target)
        end_watch(c, r);
}

static void on_end(struct vg_watch *watch, int err, vg_rev compact_rev, void *arg)
{
    struct checking *c = arg;
    (void)watch;
    (void)compact_rev;
    c->watch = NULL;
    vg_fail(&c->status, err, "the history does not read back: %s; restore from a backup",
            vg_err_text(err));
    end_watch(c, err);
}

static int check_history(struct vg_session *s, struct checking *c)
{
    struct vg_watch_opts opts = {
        .loop = s->loop,
        .keys = {.kind = VG_KEYS_FROM},
        .from = c->compacted + 1,
        .on_batch = on_batch,
        .on_end = on_end,
        .arg = c,
    };
    int r = vg_storage_watch(s->store, &opts, &c->watch);
    if (r < 0)
        return vg_fail(&c->status, r, "cannot read the history: %s", vg_err_text(r));
    vg_watch_progress(c->watch);
    vg_loop_turn_until(s->loop, &c->is_over);
    if (c->err == 0 && c->rev < c->target)
        return vg_fail(&c->status, VIGIL_E_STORE_DAMAGED,
                       "the history ends at revision %" PRIu64 ", the store is at %" PRIu64
                       ": restore from a backup",
                       c->rev, c->target);
    return c->err;
}

/* ---- the keys ---- */

static int check_key(void *arg, const struct vg_rec *rec, struct vg_status *reterr_status)
{
    struct checking *c = arg;
    struct newest *n = vg_map_get(&c->newest, vg_rec_key(rec));
    c->keys++;
    c->bytes += (uint64_t)rec->key_len + rec->header_len + rec->value_len;
    if (n)
        n->is_found = true;
    if (n ? n->is_delete || n->rev != rec->rev : rec->rev > c->compacted)
        return fail_rec(reterr_status, rec, "is not what the history says of its key");
    return 0;
}

/* K3, the other way round. */
static int check_missing(struct checking *c)
{
    VG_MAP_FOREACH (e, &c->newest) {
        const struct newest *n = e->value;
        if (!n->is_delete && !n->is_found)
            return vg_fail(&c->status, VIGIL_E_STORE_DAMAGED,
                           "key '%.*s' is missing: the history puts it at revision %" PRIu64
                           "; restore from a backup",
                           VG_SLICE_ARG(e->key), n->rev);
    }
    return 0;
}

static int check_keys(struct vg_session *s, struct checking *c)
{
    struct vg_each each = {.at = c->target, .fn = check_key, .arg = c};
    int r = vg_session_each(s, &each, &c->status);
    return r < 0 ? r : check_missing(c);
}

/* ---- the command ---- */

static void free_newest(struct vg_map *map)
{
    VG_MAP_FOREACH (e, map)
        vg_free(e->value);
    vg_map_done(map);
}

static int print_counts(const struct vg_options *o, const struct checking *c,
                        struct vg_status *reterr_status)
{
    VG_AUTO(out) out;
    vg_out_init(&out, o);
    vg_out_begin(&out);
    vg_out_string(&out, "dir", "store", vg_slice_str(vg_options_dir(o)));
    vg_out_uint(&out, "keys", "keys", c->keys);
    vg_out_bytes(&out, "bytes", "keys and values", c->bytes);
    vg_out_uint(&out, "changes", "changes in history", c->changes);
    vg_out_uint(&out, "compactedRevision", "compacted up to", c->compacted);
    vg_out_uint(&out, "revision", "revision", c->target);
    vg_out_string(&out, "result", "result", VG_SLICE_LIT("whole"));
    return vg_out_end(&out, reterr_status);
}

int vg_cmd_check(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    struct checking c = {0};
    int r = vg_cmd_examine(o, reterr_status);
    if (r < 0)
        return r;
    r = vg_cmd_open(&s, o, reterr_status);
    if (r < 0)
        return r;
    vg_map_init(&c.newest, VG_MAP_COPIES_KEYS);
    c.compacted = vg_storage_compacted(s.store);
    c.target = vg_storage_revision(s.store);
    /* A fresh store is at revision 1, which has no change. */
    c.rev = VG_MAX(c.compacted, VG_REV_EMPTY);
    r = check_history(&s, &c);
    if (r == 0)
        r = check_keys(&s, &c);
    free_newest(&c.newest);
    return r < 0 ? vg_fail(reterr_status, r, "%s", c.status.message)
                 : print_counts(o, &c, reterr_status);
}
