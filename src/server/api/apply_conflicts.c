/* apply_conflicts.c - how a server-side apply is refused that would take fields of others: a
 * message for people, sorted by manager, and a cause for each field. */
#include <errno.h>

#include "apply.h"
#include "server/fields/apply.h"
#include "stamp.h"
#include "status_int.h"

static int print_manager(struct vg_arena *a, const struct vg_manager *m, struct vg_slice *ret)
{
    VG_AUTO(buf) b = {0};
    int err = vg_buf_append_slice(&b, vg_api_quote(a, m->name));
    if (err == 0 && m->subresource.n)
        err = vg_buf_printf(&b, " with subresource %.*s",
                            VG_SLICE_ARG(vg_api_quote(a, m->subresource)));
    if (err == 0 && !m->applies)
        err = vg_buf_printf(&b, " using %.*s", VG_SLICE_ARG(m->api_version));
    return err < 0 ? err : vg_arena_keep(a, vg_buf_slice(&b), ret);
}

static int print_conflicts(struct vg_arena *a, const struct vg_apply *x, struct vg_cause *causes,
                           struct vg_buf *message)
{
    const char *plural = x->n_conflicts == 1 ? "" : "s";
    int err = vg_buf_printf(message, "Apply failed with %u conflict%s: ", x->n_conflicts, plural);
    for (uint32_t i = 0; i < x->n_conflicts && err == 0; i++) {
        const struct vg_conflict *k = &x->conflicts[i];
        struct vg_slice manager = {0}, text = {0};
        bool is_first = i == 0 || !vg_manager_is(&k->manager, &k[-1].manager);
        err = print_manager(a, &k->manager, &manager);
        if (err == 0)
            err = vg_arena_printf(a, &text, "conflict with %.*s", VG_SLICE_ARG(manager));
        if (err < 0)
            return err;
        causes[i] =
            (struct vg_cause){.reason = "FieldManagerConflict", .message = text, .field = k->path};
        if (x->n_conflicts == 1)
            return vg_buf_printf(message, "%.*s: %.*s", VG_SLICE_ARG(text), VG_SLICE_ARG(k->path));
        if (is_first)
            err = vg_buf_printf(message, "%sconflicts with %.*s:", i ? "\n" : "",
                                VG_SLICE_ARG(manager));
        if (err == 0)
            err = vg_buf_printf(message, "\n- %.*s", VG_SLICE_ARG(k->path));
    }
    return err;
}

enum vg_verdict vg_apply_refuse(struct vg_change *c, const struct vg_apply *x)
{
    struct vg_arena *a = &c->call->ask->arena;
    struct vg_cause *causes = vg_arena_array(a, struct vg_cause, (size_t)x->n_conflicts);
    VG_AUTO(buf) message = {0};
    int err = causes ? print_conflicts(a, x, causes, &message) : -ENOMEM;
    c->status = (struct vg_api_status){.code = 409,
                                       .reason = "Conflict",
                                       .has_details = true,
                                       .causes = causes,
                                       .n_causes = x->n_conflicts};
    if (err == 0)
        err = vg_arena_keep(a, vg_buf_slice(&message), &c->status.message);
    return err < 0 ? vg_change_refuse(c, err) : VG_CHANGE_FAIL;
}
