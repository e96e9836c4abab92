/* contact.c - the first contact: is there a cluster, is it etcd, new enough, and does it let us in?
 * Opening waits for it, for as long as open_ms: servers and their etcd are often started together.
 * What does not get better by waiting is said at once. */
#include <errno.h>
#include <inttypes.h>

#include "engine.h"

struct contact {
    struct vg_etcd_engine *e;
    struct vg_grpc_call call;
    bool is_over;
};

static void on_end(struct vg_grpc_call *call)
{
    VG_CONTAINER_OF(call, struct contact, call)->is_over = true;
}

/* Turn the loop until the call has ended. */
static int ask(struct contact *c, const struct vg_etcd_method *method,
               const ProtobufCMessage *request, uint64_t timeout_ms, struct vg_status *status)
{
    vg_buf_done(&c->call.answer);
    c->call = (struct vg_grpc_call){.on_end = on_end, .timeout_ms = timeout_ms};
    c->is_over = false;
    int r = vg_etcd_start(c->e, method, request, &c->call);
    if (r < 0)
        return r;
    vg_loop_turn_until(c->e->loop, &c->is_over);
    return vg_etcd_error(&c->call.status, false, status);
}

/* What the pool has to say of each endpoint, and what can be done. */
static int explain(struct contact *c, int err, uint64_t waited_ms, const struct vg_status *said,
                   struct vg_status *reterr_status)
{
    struct vg_etcd_engine *e = c->e;
    VG_AUTO(buf) each = {0};
    const char *advice = "is etcd running there, and are --etcd-servers, --etcd-cafile, "
                         "--etcd-certfile and --etcd-keyfile right?";
    const char *login = vg_etcd_client_login_trouble(e->client);
    if (vg_grpc_pool_describe(vg_etcd_client_pool(e->client), &each) < 0 ||
        vg_buf_append_byte(&each, '\0') < 0)
        vg_buf_clear(&each);
    if (login || err == VIGIL_E_UNAUTHORIZED || err == VIGIL_E_FORBIDDEN)
        advice = "check --etcd-username and its password, and that its role may read and write "
                 "the prefix";
    else if (err == VIGIL_E_UNSUPPORTED)
        advice = "vigild needs etcd 3.4 or newer there";
    const char *text = login ? login : each.n > 1 ? each.p : said->message;
    return vg_fail(reterr_status, err, "no etcd after %" PRIu64 " s: %s; %s", waited_ms / 1000,
                   text, advice);
}

static int ask_revision(struct contact *c, struct vg_status *reterr_status)
{
    Etcd__RangeRequest req = ETCD__RANGE_REQUEST__INIT;
    Etcd__RangeResponse *res = NULL;
    VG_AUTO(arena) arena = {0};
    struct vg_status status = {0};
    struct vg_etcd_engine *e = c->e;
    uint64_t before = vg_clock_mono_ns(vg_clock_system());
    req.key = vg_etcd_data(e->space.prefix_s);
    req.count_only = true;
    int err = ask(c, &vg_etcd_range, &req.base, e->eo.open_ms, &status);
    if (err == 0)
        err = vg_etcd_answer(&c->call, &vg_etcd_range, &arena, &res);
    if (err == 0 && res->header) {
        vg_etcd_saw_rev(e, res->header->revision);
        return 0;
    }
    if (err == -ENOMEM)
        return err;
    uint64_t waited = vg_clock_mono_ns(vg_clock_system()) - before;
    return explain(c, err < 0 ? err : VIGIL_E_UNSUPPORTED, waited / VG_NS_PER_MS, &status,
                   reterr_status);
}

static int check_version(struct contact *c, struct vg_status *reterr_status)
{
    Etcd__StatusRequest req = ETCD__STATUS_REQUEST__INIT;
    Etcd__StatusResponse *res = NULL;
    VG_AUTO(arena) arena = {0};
    struct vg_status status = {0};
    struct vg_grpc_pool *pool = vg_etcd_client_pool(c->e->client);
    int err = ask(c, &vg_etcd_status, &req.base, 0, &status);
    if (err == 0)
        err = vg_etcd_answer(&c->call, &vg_etcd_status, &arena, &res);
    if (err == -ENOMEM)
        return err;
    if (err < 0 || !res)
        return explain(c, err, 0, &status, reterr_status);
    if (vg_etcd_is_too_old(res->version))
        return vg_fail(reterr_status, VIGIL_E_UNSUPPORTED,
                       "the etcd at %s has version %s; vigild needs 3.4 or newer",
                       vg_grpc_pool_endpoint(pool, c->call.used), res->version);
    c->e->feed.with_barrier = !vg_etcd_orders_progress(res->version);
    return 0;
}

/* A copy into the cluster that was interrupted left its mark. */
static int check_unfinished(struct contact *c, struct vg_status *reterr_status)
{
    Etcd__RangeRequest req = ETCD__RANGE_REQUEST__INIT;
    Etcd__RangeResponse *res = NULL;
    VG_AUTO(arena) arena = {0};
    struct vg_etcd_engine *e = c->e;
    struct vg_etcd_key key;
    struct vg_status status = {0};
    if (!e->eo.unfinished_key)
        return 0;
    int err = vg_etcd_key_make(&e->space, vg_slice_str(e->eo.unfinished_key), &key);
    req.key = vg_etcd_data(vg_etcd_key_slice(&key));
    req.count_only = true;
    if (err == 0)
        err = ask(c, &vg_etcd_range, &req.base, 0, &status);
    if (err == 0)
        err = vg_etcd_answer(&c->call, &vg_etcd_range, &arena, &res);
    if (err < 0 || !res)
        return err == -ENOMEM ? err : explain(c, err, 0, &status, reterr_status);
    if (res->count == 0)
        return 0;
    return vg_fail(reterr_status, VIGIL_E_STORE_DAMAGED,
                   "a copy into this etcd was interrupted, or is under way: run vigil restore or "
                   "vigil migrate again; or delete the key %.*s to take what is there",
                   VG_SLICE_ARG(vg_etcd_key_slice(&key)));
}

int vg_etcd_first_contact(struct vg_etcd_engine *e, struct vg_status *reterr_status)
{
    struct contact c = {.e = e};
    int r = ask_revision(&c, reterr_status);
    if (r == 0)
        r = check_version(&c, reterr_status);
    if (r == 0)
        r = check_unfinished(&c, reterr_status);
    vg_buf_done(&c.call.answer);
    if (r < 0)
        return r;
    vg_etcd_find_compacted(e);
    while (e->compactor.is_searching)
        vg_loop_turn(e->loop, true);
    return 0;
}
