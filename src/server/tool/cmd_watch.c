/* cmd_watch.c - watch: the changes of a prefix, one line each.
 * A store belongs to one process, so nobody else writes while this one watches: what comes after
 * the history are keys whose time runs out. */
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "cmd.h"
#include "out.h"

struct watching {
    struct vg_out out;
    uint64_t left;   /* changes still to print */
    vg_rev target;   /* the end of the history when it began */
    bool is_no_wait; /* end there */
    bool is_caught_up;
    bool is_over;
    int err;
    struct vg_status status;
    struct vg_watch *watch; /* NULL once it is over */
    uv_signal_t signals[2];
};

/* ---- printing ---- */

static const char *type_of(const struct vg_event *ev)
{
    return vg_rec_is_delete(ev->rec) ? "delete" : ev->rec->prev_rev ? "update" : "create";
}

static void print_text(struct vg_out *out, const struct vg_event *ev)
{
    vg_out_printf(out, "%" PRIu64 "\t%s\t", ev->rec->rev, type_of(ev));
    vg_out_escaped(out, vg_rec_key(ev->rec));
    if (!vg_rec_is_delete(ev->rec)) {
        vg_out_printf(out, "\t");
        vg_out_escaped(out, vg_rec_value(ev->rec));
    }
    vg_out_printf(out, "\n");
}

/* One document per line; laid out over several, it could not be read line by line. */
static int print_json(struct vg_out *out, const struct vg_event *ev,
                      struct vg_status *reterr_status)
{
    vg_out_begin(out);
    vg_json_put_member(&out->json, "type", vg_slice_str(type_of(ev)));
    vg_out_uint(out, "sub", "", ev->rec->sub);
    vg_out_json_record(out, ev->rec, true);
    vg_out_uint(out, "previousRevision", "", ev->rec->prev_rev);
    return vg_out_end(out, reterr_status);
}

static int print_event(struct watching *w, const struct vg_event *ev)
{
    if (w->out.is_json)
        return print_json(&w->out, ev, &w->status);
    print_text(&w->out, ev);
    return 0;
}

/* ---- the watch ---- */

static void end_watch(struct watching *w, int err)
{
    w->err = err;
    w->is_over = true;
    if (w->watch)
        vg_watch_cancel(vg_steal(w->watch));
}

static void say_caught_up(const struct watching *w, vg_rev rev)
{
    if (!w->is_no_wait && isatty(STDERR_FILENO))
        fprintf(stderr,
                "everything up to revision %" PRIu64 " is printed; this process has the store to "
                "itself, so only keys that expire can follow (Ctrl-C ends)\n",
                rev);
}

static void on_batch(struct vg_watch *watch, const struct vg_watch_batch *batch, void *arg)
{
    struct watching *w = arg;
    int r = 0;
    (void)watch;
    for (size_t i = 0; i < batch->n && w->left > 0 && r == 0; i++, w->left--)
        r = print_event(w, &batch->events[i]);
    if (r == 0)
        r = vg_out_flush(&w->out, &w->status);
    bool was_caught_up = w->is_caught_up;
    w->is_caught_up = batch->rev >= w->target;
    if (w->is_caught_up && !was_caught_up && w->left > 0)
        say_caught_up(w, batch->rev);
    if (r < 0 || w->left == 0 || (w->is_caught_up && w->is_no_wait))
        end_watch(w, r);
}

static void on_end(struct vg_watch *watch, int err, vg_rev compact_rev, void *arg)
{
    struct watching *w = arg;
    (void)watch;
    w->watch = NULL;
    if (err == VIGIL_E_COMPACTED)
        vg_fail(&w->status, err,
                "the history begins after revision %" PRIu64 ": watch --from %" PRIu64
                ", or leave --from out",
                compact_rev, compact_rev + 1);
    else
        vg_fail(&w->status, err, "the watch ended: %s", vg_err_text(err));
    end_watch(w, err);
}

/* ---- signals ---- */

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    end_watch(handle->data, 0);
}

static int catch_signals(struct watching *w, struct vg_loop *loop)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < VG_ARRAY_LEN(numbers); i++) {
        int r = uv_signal_init(vg_loop_uv(loop), &w->signals[i]);
        w->signals[i].data = w;
        if (r == 0)
            r = uv_signal_start(&w->signals[i], on_signal, numbers[i]);
        if (r < 0)
            return vg_fail(&w->status, r, "cannot wait for signals: %s", vg_err_text(r));
    }
    return 0;
}

static void drop_signals(struct watching *w)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(w->signals); i++) {
        if (w->signals[i].data)
            uv_close((uv_handle_t *)&w->signals[i], NULL);
    }
}

/* ---- the command ---- */

static int start(struct watching *w, struct vg_session *s, const struct vg_options *o)
{
    char end[VG_PREFIX_END_MAX];
    struct vg_watch_opts opts = {
        .loop = s->loop,
        .from = o->from ? o->from : vg_storage_compacted(s->store) + 1,
        .on_batch = on_batch,
        .on_end = on_end,
        .arg = w,
    };
    w->target = vg_storage_revision(s->store);
    if (opts.from > w->target + 1)
        return vg_fail(&w->status, VIGIL_E_FUTURE,
                       "revision %" PRIu64 " is not there yet; the newest is %" PRIu64, o->from,
                       w->target);
    int r = vg_prefix_keys(vg_slice_str(o->n_args ? o->args[0] : ""), end, &opts.keys, &w->status);
    if (r < 0)
        return r;
    r = vg_storage_watch(s->store, &opts, &w->watch);
    if (r < 0)
        return vg_fail(&w->status, r, "cannot watch: %s", vg_err_text(r));
    vg_watch_progress(w->watch); /* so that the end of the history is seen if nothing matches */
    return 0;
}

int vg_cmd_watch(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    struct watching w = {
        .left = o->count ? o->count : UINT64_MAX,
        .is_no_wait = o->is_no_wait,
    };
    vg_out_init(&w.out, o);
    w.out.is_pretty = false; /* one change, one line */
    int r = vg_cmd_open(&s, o, reterr_status);
    if (r < 0)
        return r;
    r = catch_signals(&w, s.loop);
    if (r == 0)
        r = start(&w, &s, o);
    if (r == 0) {
        vg_loop_turn_until(s.loop, &w.is_over);
        r = w.err;
    }
    drop_signals(&w);
    vg_session_close(&s); /* runs what closing the handles left to do */
    vg_out_done(&w.out);
    return r < 0 ? vg_fail(reterr_status, r, "%s", w.status.message) : 0;
}
