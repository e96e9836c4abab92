/* pool.c - the endpoints of a cluster: birth and death, readiness, tokens; see grpc.h. */
#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "net/server_int.h"
#include "net/transport.h"
#include "pool_int.h"

#define MESSAGE_MAX ((size_t)512 << 20)
#define WINDOW ((size_t)4 << 20)
#define WINDOW_MAX ((size_t)256 << 20)

uint64_t vg_grpc_pool_now(const struct vg_grpc_pool *pool)
{
    return vg_clock_mono_ns(vg_loop_clock(pool->loop));
}

static struct vg_grpc_channel *channel_of(const struct vg_grpc_pool *pool, int endpoint)
{
    return endpoint < 1 || (size_t)endpoint > pool->n_channels ? NULL
                                                               : &pool->channels[endpoint - 1];
}

/* ---- readiness ---- */

int vg_grpc_pool_describe(const struct vg_grpc_pool *pool, struct vg_buf *out)
{
    size_t had = out->n;
    int r = 0;
    for (size_t i = 0; i < pool->n_channels && r == 0; i++) {
        const struct vg_grpc_channel *ch = &pool->channels[i];
        if (!ch->is_ready)
            r = vg_buf_printf(out, "%s%s: %s", out->n > had ? "; " : "", ch->url, ch->why);
    }
    return r;
}

static bool has_ready(const struct vg_grpc_pool *pool)
{
    for (size_t i = 0; i < pool->n_channels; i++)
        if (pool->channels[i].is_ready)
            return true;
    return false;
}

bool vg_grpc_pool_has_hope(const struct vg_grpc_pool *pool, int endpoint)
{
    for (size_t i = 0; i < pool->n_channels; i++) {
        const struct vg_grpc_channel *ch = &pool->channels[i];
        if ((endpoint == 0 || ch->index == endpoint) && (ch->is_ready || !ch->has_failed))
            return true;
    }
    return false;
}

/* Down is told when each endpoint has been tried, and once. */
static void tell_state(struct vg_grpc_pool *pool, const struct vg_grpc_channel *ch)
{
    bool is_ready = has_ready(pool);
    bool is_down = !is_ready && !vg_grpc_pool_has_hope(pool, 0);
    VG_AUTO(buf) why = {0};
    if (!pool->opts.on_state)
        return;
    if (is_ready && !pool->is_ready_told) {
        pool->is_ready_told = true;
        pool->is_down_told = false;
        pool->opts.on_state(pool, true, ch->url, pool->opts.arg);
    } else if (is_down && !pool->is_down_told) {
        pool->is_ready_told = false;
        pool->is_down_told = true;
        int r = vg_grpc_pool_describe(pool, &why);
        if (r == 0)
            r = vg_buf_append_byte(&why, 0);
        pool->opts.on_state(pool, false, r == 0 ? why.p : ch->why, pool->opts.arg);
    }
}

void vg_grpc_pool_changed(struct vg_grpc_pool *pool, struct vg_grpc_channel *ch)
{
    vg_grpc_pool_kick(pool);
    tell_state(pool, ch);
}

void vg_grpc_pool_avoid(struct vg_grpc_pool *pool, int endpoint, uint64_t avoid_ms)
{
    struct vg_grpc_channel *ch = channel_of(pool, endpoint);
    if (ch)
        ch->avoid_ns = VG_MAX(ch->avoid_ns, vg_grpc_pool_now(pool) + avoid_ms * VG_NS_PER_MS);
}

const char *vg_grpc_pool_endpoint(const struct vg_grpc_pool *pool, int endpoint)
{
    const struct vg_grpc_channel *ch = channel_of(pool, endpoint);
    return ch ? ch->url : "";
}

int vg_grpc_pool_current(const struct vg_grpc_pool *pool)
{
    const struct vg_grpc_channel *ch = channel_of(pool, pool->current);
    return ch && ch->is_ready ? ch->index : 0;
}

bool vg_grpc_pool_is_ready(const struct vg_grpc_pool *pool, int endpoint)
{
    const struct vg_grpc_channel *ch = channel_of(pool, endpoint);
    return ch && ch->is_ready;
}

void vg_grpc_pool_counts(const struct vg_grpc_pool *pool, struct vg_grpc_counts *ret_counts)
{
    *ret_counts = pool->counts;
    for (size_t i = 0; i < pool->n_channels; i++)
        VG_LIST_FOREACH (n, &pool->channels[i].links) {
            const struct vg_grpc_link *l = VG_CONTAINER_OF(n, struct vg_grpc_link, link);
            ret_counts->bytes_in += l->session.bytes_in;
            ret_counts->bytes_out += l->session.n_sent;
        }
}

/* ---- tokens ---- */

int vg_grpc_pool_set_token(struct vg_grpc_pool *pool, const char *name, struct vg_slice value)
{
    char *n = value.p ? vg_strdup(name) : NULL;
    char *v = value.p ? vg_strndup(value.p, value.n) : NULL;
    if (value.p && (!n || !v)) {
        vg_free(n);
        vg_free(v);
        return -ENOMEM;
    }
    vg_free(pool->token_name);
    vg_free(pool->token_value);
    pool->token_name = n;
    pool->token_value = v;
    pool->token_size = value.p ? value.n : 0;
    pool->token_age++;
    pool->token_failed_ns = 0;
    pool->token_state = VG_GRPC_TOKEN_THERE;
    vg_grpc_pool_kick(pool);
    return 0;
}

void vg_grpc_pool_no_token(struct vg_grpc_pool *pool, const struct vg_grpc_status *status)
{
    pool->token_state = VG_GRPC_TOKEN_WANTED;
    pool->token_trouble = *status;
    pool->token_trouble.fate = VG_GRPC_NOT_SENT;
    pool->token_failed_ns = vg_grpc_pool_now(pool);
    vg_grpc_pool_kick(pool);
}

void vg_grpc_pool_renew_token(struct vg_grpc_pool *pool)
{
    if (pool->token_state != VG_GRPC_TOKEN_THERE || !pool->opts.is_refused)
        return;
    pool->token_state = VG_GRPC_TOKEN_WANTED;
    vg_grpc_pool_kick(pool);
}

/* ---- birth and death ---- */

static void on_turn_end(uv_prepare_t *handle)
{
    struct vg_grpc_pool *pool = VG_CONTAINER_OF(handle, struct vg_grpc_pool, turn_end);
    struct vg_list *n;
    while ((n = vg_list_pop_front(&pool->dirty)))
        vg_grpc_link_flush(VG_CONTAINER_OF(n, struct vg_grpc_link, dirty));
}

static void fill_in(struct vg_grpc_pool_opts *o)
{
    o->message_max = o->message_max ? o->message_max : MESSAGE_MAX;
    o->window = VG_MIN(o->window ? o->window : WINDOW, WINDOW_MAX);
    o->connect_ms = o->connect_ms ? o->connect_ms : 5000;
    o->keepalive_ms = o->keepalive_ms ? o->keepalive_ms : 6000;
    o->keepalive_timeout_ms = o->keepalive_timeout_ms ? o->keepalive_timeout_ms : 4000;
    o->backoff_min_ms = o->backoff_min_ms ? o->backoff_min_ms : 100;
    o->backoff_max_ms = o->backoff_max_ms ? o->backoff_max_ms : 5000;
}

static int copy_tls(struct vg_grpc_pool *pool, const struct vg_grpc_tls *from)
{
    struct vg_grpc_tls *t = &pool->opts.tls;
    *t = (struct vg_grpc_tls){0};
    const struct {
        const char *from, **to;
    } texts[] = {{from->ca_file, &t->ca_file},
                 {from->cert_file, &t->cert_file},
                 {from->key_file, &t->key_file},
                 {from->server_name, &t->server_name}};
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        if (texts[i].from && !(*texts[i].to = vg_strdup(texts[i].from)))
            return -ENOMEM;
    return 0;
}

static int check_tls(const struct vg_grpc_pool *pool, struct vg_status *status)
{
    const struct vg_grpc_tls *t = &pool->opts.tls;
    struct vg_tls_client_opts opts = {t->ca_file, t->cert_file, t->key_file, "localhost"};
    if (!t->cert_file != !t->key_file)
        return vg_fail(status, VIGIL_E_INVALID,
                       "a client certificate and its key are given together or not at all");
    return vg_tls_client_check(&opts, status);
}

static int add_channels(struct vg_grpc_pool *pool, const struct vg_grpc_pool_opts *o,
                        struct vg_status *status)
{
    bool has_tls = false;
    if (o->n_endpoints == 0 || o->n_endpoints > VG_GRPC_ENDPOINTS_MAX)
        return vg_fail(status, VIGIL_E_INVALID, "%zu endpoints: 1 to %d are possible",
                       o->n_endpoints, VG_GRPC_ENDPOINTS_MAX);
    pool->channels = vg_calloc(o->n_endpoints, sizeof *pool->channels);
    if (!pool->channels)
        return vg_fail(status, -ENOMEM, "out of memory");
    for (size_t i = 0; i < o->n_endpoints; i++) {
        struct vg_grpc_channel *ch = &pool->channels[pool->n_channels++];
        int r = vg_grpc_channel_init(ch, pool, (int)i + 1, o->endpoints[i], status);
        if (r < 0)
            return r;
        has_tls |= ch->is_tls;
    }
    return has_tls ? check_tls(pool, status) : 0;
}

static int set_up(struct vg_grpc_pool *pool, const struct vg_grpc_pool_opts *o,
                  struct vg_status *status)
{
    pool->in = vg_malloc(VG_NET_READ_MAX);
    pool->staging = vg_malloc(VG_TRANSPORT_STAGING);
    if (!pool->in || !pool->staging || copy_tls(pool, &o->tls) < 0)
        return vg_fail(status, -ENOMEM, "out of memory");
    return add_channels(pool, o, status);
}

static void on_closed(uv_handle_t *handle)
{
    vg_free(VG_CONTAINER_OF(handle, struct vg_grpc_pool, turn_end));
}

static void forget_all(struct vg_list *calls)
{
    while (!vg_list_is_empty(calls))
        vg_grpc_cancel(VG_CONTAINER_OF(calls->next, struct vg_grpc_call, link));
}

static void free_tls(struct vg_grpc_tls *t)
{
    const char *texts[] = {t->ca_file, t->cert_file, t->key_file, t->server_name};
    for (size_t i = 0; i < VG_ARRAY_LEN(texts); i++)
        vg_free((void *)(uintptr_t)texts[i]);
}

void vg_grpc_pool_free(struct vg_grpc_pool *pool)
{
    if (!pool)
        return;
    pool->is_closing = true;
    forget_all(&pool->waiting);
    forget_all(&pool->active);
    vg_timer_stop(pool->loop, &pool->kick);
    for (size_t i = 0; i < pool->n_channels; i++)
        vg_grpc_channel_done(&pool->channels[i]);
    vg_free(pool->channels);
    vg_outq_pool_done(&pool->outq);
    vg_free(pool->in);
    vg_free(pool->staging);
    vg_free(pool->token_name);
    vg_free(pool->token_value);
    free_tls(&pool->opts.tls);
    uv_close((uv_handle_t *)&pool->turn_end, on_closed);
}

int vg_grpc_pool_new(const struct vg_grpc_pool_opts *opts, struct vg_grpc_pool **ret_pool,
                     struct vg_status *reterr_status)
{
    struct vg_grpc_pool *pool = vg_new(struct vg_grpc_pool);
    if (!pool)
        return vg_fail(reterr_status, -ENOMEM, "out of memory");
    pool->opts = *opts;
    pool->opts.tls = (struct vg_grpc_tls){0};
    pool->opts.endpoints = NULL;
    fill_in(&pool->opts);
    pool->loop = opts->loop;
    pool->log = opts->log;
    pool->token_state = opts->is_refused ? VG_GRPC_TOKEN_WANTED : VG_GRPC_TOKEN_NONE;
    uint64_t seed = (uintptr_t)pool;
    if (vg_random_bytes(&seed, sizeof seed) < 0)
        seed += vg_grpc_pool_now(pool); /* jitter needs no better */
    vg_rng_seed(&pool->rng, seed);
    vg_list_init(&pool->waiting);
    vg_list_init(&pool->active);
    vg_list_init(&pool->dirty);
    uv_prepare_init(vg_loop_uv(pool->loop), &pool->turn_end); /* neither can fail */
    uv_prepare_start(&pool->turn_end, on_turn_end);
    int r = set_up(pool, opts, reterr_status);
    if (r < 0) {
        vg_grpc_pool_free(pool);
        return r;
    }
    for (size_t i = 0; i < pool->n_channels; i++)
        vg_grpc_channel_open(&pool->channels[i]);
    *ret_pool = pool;
    return 0;
}
