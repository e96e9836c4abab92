/* list.c - LIST: what its options ask for, and the life of the request.
 * The table of resourceVersion, resourceVersionMatch, limit and continue is in plan(). */
#include <errno.h>

#include "base/alloc.h"
#include "list_int.h"
#include "status_int.h"

/* ---- holding ---- */

struct vg_list_hold *vg_list_hold_new(void)
{
    struct vg_list_hold *h = vg_new(struct vg_list_hold);
    if (h)
        h->refs = 1;
    return h;
}

void vg_list_hold_unref(struct vg_list_hold *h)
{
    if (!h || --h->refs)
        return;
    if (h->snapshot.root)
        vg_cache_snapshot_done(&h->snapshot);
    for (size_t i = 0; i < h->n; i++)
        vg_rec_unref(h->recs[i]);
    vg_free(h->recs);
    vg_free(h);
}

static void pin_ref(const void *block)
{
    ((struct vg_list_hold *)(uintptr_t)block)->refs++;
}

static void pin_unref(const void *block)
{
    vg_list_hold_unref((struct vg_list_hold *)(uintptr_t)block);
}

struct vg_http_pin vg_list_hold_pin(struct vg_list_hold *h)
{
    return (struct vg_http_pin){h, pin_ref, pin_unref};
}

/* ---- the end ---- */

static void count(const struct vg_lister *l)
{
    struct vg_api_metrics *m = l->call->loop->api->counters;
    if (!l->hold || l->is_of_deleted)
        return;
    vg_api_count_list(m, l->kind_index,
                      l->is_from_storage ? VG_LISTED_STORAGE
                      : l->by_trigger    ? VG_LISTED_INDEX
                                         : VG_LISTED_CACHE,
                      l->n_visited, l->n_sent);
    if (l->is_consistent && !vg_kind_is(l->kind, VG_KIND_UNCACHED))
        vg_api_count_consistent(m, l->kind_index, l->is_from_storage);
}

void vg_list_release(struct vg_lister *l)
{
    count(l);
    if (l->is_waiting)
        vg_cache_wait_cancel(&l->wait);
    l->is_waiting = false;
    vg_list_options_done(&l->opts);
    vg_buf_done(&l->text);
    vg_buf_done(&l->item);
    vg_arena_done(&l->rows);
    vg_list_hold_unref(l->hold);
    l->hold = NULL;
}

static void released(void *arg)
{
    struct vg_lister *l = arg;
    vg_list_release(l);
    vg_call_finish(l->call);
}

/* The worker may have slices of the records in its hands. */
void vg_list_finish(struct vg_lister *l)
{
    struct vg_gzip *gzip = vg_steal(l->gzip);
    if (gzip)
        vg_gzip_free(gzip, released, l);
    else
        released(l);
}

void vg_list_refuse(struct vg_lister *l, const struct vg_api_status *status)
{
    vg_list_release(l);
    vg_respond_status(l->call, status);
}

/* What is under way comes back first: storage's answer or a posted mail, which then finish it. */
static void on_closed(struct vg_api_call *call, int err)
{
    struct vg_lister *l = call->state;
    (void)err;
    if (!l->is_reading && !l->is_posted)
        vg_list_finish(l);
}

static void on_drained(struct vg_api_call *call)
{
    struct vg_lister *l = call->state;
    if (!l->is_full)
        return;
    l->is_full = false;
    if (!l->is_posted && !l->is_reading && !l->is_in_gzip)
        l->go_on(l);
}

static const struct vg_api_op list_op = {.drained = on_drained, .closed = on_closed};

static void run_posted(struct vg_mail *mail)
{
    struct vg_lister *l = VG_CONTAINER_OF(mail, struct vg_lister, mail);
    l->is_posted = false;
    if (l->call->is_closed || l->call->is_answered != l->is_head_sent)
        vg_list_finish(l); /* nobody waits for it any more */
    else
        l->go_on(l);
}

void vg_list_post(struct vg_lister *l, void (*go_on)(struct vg_lister *l))
{
    l->go_on = go_on;
    l->is_posted = true;
    l->mail.run = run_posted;
    vg_loop_post(l->call->loop->loop, &l->mail);
}

/* ---- the plan ---- */

static int plan_continue(struct vg_lister *l, struct vg_api_status *ret_status)
{
    struct vg_arena *a = &l->call->ask->arena;
    struct vg_slice why;
    struct vg_continue c;
    int r = vg_continue_decode(a, l->opts.continue_token, vg_obj_key_slice(&l->root), &c, &why);
    if (r == VIGIL_E_INVALID) {
        vg_status_bad_request(a, ret_status, "invalid continue token: %.*s", VG_SLICE_ARG(why));
        return r;
    }
    if (r < 0) {
        vg_status_no_memory(ret_status);
        return r;
    }
    if (!vg_rev_is_unset(l->opts.rev) && !vg_rev_is_zero(l->opts.rev)) {
        vg_status_bad_request(a, ret_status,
                              "specifying resource version is not allowed when using continue");
        return VIGIL_E_INVALID;
    }
    l->has_continue = true;
    l->start = c.start;
    l->want = c.rev > 0 ? VG_LIST_EXACTLY : VG_LIST_AT_LEAST;
    l->is_consistent = c.rev < 0;
    l->rev = c.rev > 0 ? (vg_rev)c.rev : 0;
    return 0;
}

static int plan_rev(struct vg_lister *l, struct vg_api_status *ret_status)
{
    struct vg_arena *a = &l->call->ask->arena;
    struct vg_slice why;
    uint64_t rev;
    int r = vg_rev_parse(a, l->opts.rev, &rev, &why);
    if (r == VIGIL_E_INVALID)
        vg_status_bad_request(a, ret_status, "invalid resource version: %.*s", VG_SLICE_ARG(why));
    else if (r < 0)
        vg_status_no_memory(ret_status);
    if (r < 0)
        return r;
    bool is_exact =
        l->opts.match == VG_MATCH_EXACT || (l->opts.match == VG_MATCH_UNSET && l->limit && rev > 0);
    l->rev = rev;
    l->want = rev == 0 ? VG_LIST_ANY : is_exact ? VG_LIST_EXACTLY : VG_LIST_AT_LEAST;
    if (rev == 0)
        l->limit = 0;
    return 0;
}

/* What the selectors pin spares looking at the rest: kubelets list by name, one by one. */
static void narrow(struct vg_lister *l)
{
    struct vg_slice prefix = vg_slice_str(l->kind->prefix), ns = {"", 0}, name = {"", 0};
    bool is_namespaced = vg_kind_is(l->kind, VG_KIND_NAMESPACED);
    bool has_ns = vg_obj_predicate_namespace(l->opts.predicate, &ns) && ns.n;
    bool has_name = vg_obj_predicate_name(l->opts.predicate, &name) && name.n;
    struct vg_obj_key_range range;
    l->walk = l->root;
    if (has_ns != is_namespaced)
        return;
    if (has_name)
        l->is_one = vg_obj_key_make(prefix, ns, name, &l->walk) == 0;
    else if (has_ns && vg_obj_key_range(prefix, ns, &range) == 0) {
        l->walk = range.start;
        l->range_end = range.end;
    }
}

static int plan(struct vg_lister *l, struct vg_api_status *ret_status)
{
    const struct vg_target *t = l->call->ask->target;
    struct vg_obj_key_range range;
    /* A namespace that cannot be one holds nothing; the predicate sees to that. */
    if (vg_obj_key_range(vg_slice_str(l->kind->prefix), t->ns, &range) < 0 &&
        vg_obj_key_range(vg_slice_str(l->kind->prefix), vg_slice("", 0), &range) < 0) {
        vg_status_internal(&l->call->ask->arena, ret_status, "the prefix of %s is no prefix",
                           l->kind->resource);
        return VIGIL_E_INTERNAL;
    }
    l->root = range.start;
    l->range_end = range.end;
    narrow(l);
    /* One object has no pages. */
    l->limit = l->opts.limit > 0 && !l->is_one ? (uint64_t)l->opts.limit : 0;
    if (l->opts.continue_token.n && !l->is_one)
        return plan_continue(l, ret_status);
    if (!vg_rev_is_unset(l->opts.rev))
        return plan_rev(l, ret_status);
    l->want = VG_LIST_AT_LEAST;
    l->is_consistent = true;
    return 0;
}

/* NULL: out of memory, and answered so. */
static struct vg_lister *lister_new(struct vg_api_call *call)
{
    struct vg_lister *l = vg_call_new(call, struct vg_lister);
    if (!l)
        return NULL;
    l->call = call;
    l->kind = call->ask->target->kind;
    l->kind_index = vg_kind_index(l->kind);
    return l;
}

void vg_list_answer(struct vg_api_call *call, struct vg_list_hold *take_hold, vg_rev rev,
                    struct vg_list_options *take_opts)
{
    struct vg_lister *l = lister_new(call);
    if (!l) {
        vg_list_hold_unref(take_hold);
        vg_list_options_done(take_opts);
        return;
    }
    l->opts = *take_opts;
    l->hold = take_hold;
    l->list_rev = rev;
    l->is_from_storage = l->is_of_deleted = true;
    call->state = l;
    call->op = &list_op;
    struct vg_api_status status;
    if (vg_list_is_table(l) &&
        vg_table_include(call->ask->target, &call->ask->arena, &l->include, &status) < 0)
        vg_list_refuse(l, &status);
    else
        vg_list_size(l);
}

void vg_api_list(struct vg_api_call *call)
{
    struct vg_api_status status;
    if (vg_kind_is(call->ask->target->kind, VG_KIND_NOT_STORED)) {
        vg_api_list_components(call);
        return;
    }
    struct vg_lister *l = lister_new(call);
    if (!l)
        return;
    int r = vg_list_options_parse(call->ask->target, &call->ask->arena, &l->opts, &status);
    if (r == 0)
        r = plan(l, &status);
    if (r == 0 && vg_list_is_table(l))
        r = vg_table_include(call->ask->target, &call->ask->arena, &l->include, &status);
    if (r < 0) {
        vg_list_refuse(l, &status);
        return;
    }
    call->state = l;
    call->op = &list_op;
    vg_list_find(l);
}
