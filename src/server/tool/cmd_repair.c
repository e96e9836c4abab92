/* cmd_repair.c - repair: make a store again of what can be read of a damaged one, and say what is
 * lost. Also the first part of check: what opening would refuse, all of it at once. */
#include <inttypes.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmd.h"
#include "out.h"
#include "safe_text.h"
#include "server/storage/repair.h"

/* A damaged page may make thousands of lines: the rest is counted. */
#define DAMAGE_LINES_MAX 50

struct printing {
    struct vg_out out;
    uint64_t damage_lines;
};

/* Messages may name keys, which may hold anything. */
static void print_damage(void *arg, const char *text)
{
    struct printing *p = arg;
    VG_AUTO(buf) safe = {0};
    if (p->damage_lines++ >= DAMAGE_LINES_MAX)
        return;
    if (vg_safe_append(&safe, vg_slice_str(text), VG_SAFE_LINE) == 0)
        fprintf(stderr, "vigil-store: damage: %.*s\n", VG_SLICE_ARG(safe));
}

static void print_more(const struct printing *p)
{
    if (p->damage_lines > DAMAGE_LINES_MAX)
        fprintf(stderr, "vigil-store: damage: and %" PRIu64 " more\n",
                p->damage_lines - DAMAGE_LINES_MAX);
}

static bool has_data(const char *dir)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/data.mdb", dir);
    return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

int vg_cmd_examine(const struct vg_options *o, struct vg_status *reterr_status)
{
    const char *dir = vg_options_dir(o);
    struct printing p = {0};
    struct vg_repair repair = {.on_damage = print_damage, .arg = &p};
    if (!has_data(dir))
        return 0; /* opening says what is there instead */
    int r = vg_storage_examine_lmdb(dir, &repair, reterr_status);
    print_more(&p);
    if (r < 0 || repair.n_damages == 0)
        return r;
    return vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                   "the store in %s is damaged in %" PRIu64
                   " places: restore from a backup, or let vigil-store --dir %s repair save what "
                   "can be read and say what is lost",
                   dir, repair.n_damages, dir);
}

/* ---- repair ---- */

static void print_lost(void *arg, struct vg_slice key, vg_rev from, vg_rev to)
{
    struct vg_out *out = &((struct printing *)arg)->out;
    if (out->is_json) {
        vg_json_put_begin_object(&out->json);
        if (key.n)
            vg_out_json_bytes(out, "key", key);
        vg_out_uint(out, "fromRevision", "", from);
        vg_out_uint(out, "toRevision", "", to);
        vg_json_put_end_object(&out->json);
        return;
    }
    if (key.n) {
        vg_out_printf(out, "lost: key ");
        vg_out_escaped(out, key);
        vg_out_printf(out, ", whose newest change was at revision %" PRIu64 "\n", from);
    } else if (from == to) {
        vg_out_printf(out, "lost: the change at revision %" PRIu64 ", of a key that is not known\n",
                      from);
    } else {
        vg_out_printf(out,
                      "lost: changes between revision %" PRIu64 " and %" PRIu64
                      ", of keys that are not known\n",
                      from, to);
    }
}

static const char *result_of(const struct vg_repair *r)
{
    if (r->is_finished)
        return "a repair that was cut short is finished";
    if (r->n_damages == 0)
        return "nothing was wrong, nothing was done";
    if (r->has_history)
        return "repaired; nothing is lost, revisions and history go on";
    return r->n_lost_keys || r->n_lost_revs ? "repaired; what is lost is named above"
                                            : "repaired; every key is there, the history is not";
}

static int print_result(struct printing *p, const struct vg_options *o, const struct vg_repair *r,
                        struct vg_status *reterr_status)
{
    struct vg_out *out = &p->out;
    vg_out_string(out, "dir", "store", vg_slice_str(vg_options_dir(o)));
    vg_out_uint(out, "damages", "damages", r->n_damages);
    if (r->n_damages) {
        vg_out_uint(out, "keys", "keys saved", r->n_keys);
        vg_out_uint(out, "lostKeys", "keys lost", r->n_lost_keys);
        vg_out_uint(out, "lostRevisions", "revisions lost", r->n_lost_revs);
        vg_out_uint(out, "revision", "revision", r->rev);
    }
    if (r->kept[0])
        vg_out_string(out, "kept", "old files are in", vg_slice_str(r->kept));
    vg_out_string(out, "result", "result", vg_slice_str(result_of(r)));
    return vg_out_end(out, reterr_status);
}

int vg_cmd_repair(const struct vg_options *o, struct vg_status *reterr_status)
{
    struct printing p = {0};
    struct vg_repair repair = {
        .on_damage = print_damage, .on_lost = print_lost, .arg = &p, .bump = o->bump};
    vg_out_init(&p.out, o);
    vg_out_begin(&p.out);
    if (p.out.is_json) {
        vg_json_put_key(&p.out.json, VG_SLICE_LIT("lost"));
        vg_json_put_begin_array(&p.out.json);
    }
    int r = vg_storage_repair_lmdb(vg_options_dir(o), &repair, reterr_status);
    print_more(&p);
    if (p.out.is_json)
        vg_json_put_end_array(&p.out.json);
    if (r == 0)
        r = print_result(&p, o, &repair, reterr_status);
    vg_out_done(&p.out);
    return r;
}
