/* cmd_upkeep.c - compact, backup, restore and stat. */
#include <inttypes.h>

#include "cmd.h"
#include "out.h"

/* ---- compact ---- */

/* The store's own words name neither revision. */
static int fail_compact(const struct vg_compact *c, int err, struct vg_status *reterr_status)
{
    if (err == VIGIL_E_COMPACTED)
        return vg_fail(reterr_status, err,
                       "the history up to revision %" PRIu64 " is gone already: give a later one, "
                       "up to %" PRIu64,
                       c->req.compact_rev, c->req.rev);
    if (err == VIGIL_E_FUTURE)
        return vg_fail(reterr_status, err,
                       "revision %" PRIu64 " is not there yet; the newest is %" PRIu64, c->at,
                       c->req.rev);
    return err;
}

int vg_cmd_compact(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    VG_AUTO(out) out;
    struct vg_compact c = {0};
    vg_out_init(&out, o);
    int r = vg_parse_rev(o->args[0], 1, &c.at, reterr_status);
    if (r == 0)
        r = vg_cmd_open(&s, o, reterr_status);
    if (r < 0)
        return r;
    r = vg_session_compact(&s, &c, reterr_status);
    if (r < 0)
        return fail_compact(&c, r, reterr_status);
    vg_out_begin(&out);
    if (out.is_json) {
        vg_out_uint(&out, "compactedRevision", "", c.at);
        vg_out_uint(&out, "revision", "", c.req.rev);
    } else {
        vg_out_printf(
            &out, "history up to revision %" PRIu64 " is forgotten; the store is at %" PRIu64 "\n",
            c.at, c.req.rev);
    }
    return vg_out_end(&out, reterr_status);
}

/* ---- backup and restore ---- */

static uint64_t now_ns(void)
{
    return vg_clock_mono_ns(vg_clock_system());
}

int vg_cmd_backup(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    VG_AUTO(out) out;
    struct vg_backup b = {.path = o->args[0]};
    vg_out_init(&out, o);
    int r = vg_cmd_open(&s, o, reterr_status);
    if (r < 0)
        return r;
    uint64_t start = now_ns();
    r = vg_session_backup(&s, &b, reterr_status);
    if (r < 0)
        return r;
    vg_out_begin(&out);
    vg_out_string(&out, "file", "file", vg_slice_str(o->args[0]));
    vg_out_uint(&out, "revision", "revision", b.req.rev);
    vg_out_bytes(&out, "bytes", "size", b.bytes);
    vg_out_seconds(&out, "seconds", "took", now_ns() - start);
    return vg_out_end(&out, reterr_status);
}

int vg_cmd_restore(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    VG_AUTO(out) out;
    vg_out_init(&out, o);
    uint64_t start = now_ns();
    int r = vg_storage_restore_lmdb(o->args[0], o->args[1], o->bump, reterr_status);
    if (r < 0)
        return r;
    uint64_t took = now_ns() - start;
    r = vg_session_open(&s, &(struct vg_session_opts){.dir = o->args[1]}, reterr_status);
    if (r < 0)
        return r;
    vg_out_begin(&out);
    vg_out_string(&out, "dir", "store", vg_slice_str(o->args[1]));
    vg_out_uint(&out, "revision", "revision", vg_storage_revision(s.store));
    vg_out_seconds(&out, "seconds", "took", took);
    return vg_out_end(&out, reterr_status);
}

/* ---- stat ---- */

static int count_keys(struct vg_session *s, uint64_t *ret_count, struct vg_status *reterr_status)
{
    struct vg_range range = {.keys = {.kind = VG_KEYS_FROM}, .flags = VG_RANGE_COUNT_ONLY};
    int r = vg_session_range(s, &range, reterr_status);
    if (r == 0)
        *ret_count = range.count;
    vg_range_done(&range);
    return r;
}

static void print_stats(struct vg_out *out, const struct vg_options *o, struct vg_session *s,
                        uint64_t keys)
{
    struct vg_storage_stats stats;
    vg_storage_stats(s->store, &stats);
    vg_out_string(out, "dir", "store", vg_slice_str(vg_options_dir(o)));
    vg_out_uint(out, "keys", "keys", keys);
    vg_out_uint(out, "revision", "revision", vg_storage_revision(s->store));
    vg_out_uint(out, "compactedRevision", "compacted up to", vg_storage_compacted(s->store));
    vg_out_bytes(out, "diskBytes", "on disk", stats.disk_bytes);
    vg_out_bytes(out, "overlayBytes", "in the log only", stats.overlay_bytes);
    vg_out_uint(out, "expired", "expired just now", stats.expired);
    vg_out_seconds(out, "openSeconds", "opened in", s->open_ns);
}

int vg_cmd_stat(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    VG_AUTO(out) out;
    uint64_t keys = 0;
    vg_out_init(&out, o);
    int r = vg_cmd_open(&s, o, reterr_status);
    if (r == 0)
        r = count_keys(&s, &keys, reterr_status);
    if (r < 0)
        return r;
    vg_out_begin(&out);
    print_stats(&out, o, &s, keys);
    return vg_out_end(&out, reterr_status);
}
