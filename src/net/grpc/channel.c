/* channel.c - one endpoint: which connection takes its calls, and when the next is tried; see
 * pool_int.h.
 *
 *   waiting --timer--> connecting --up--> ready --down, going--> waiting or connecting
 *        ^                  | down
 *        +---- backoff -----+ */
#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "pool_int.h"

#define HOST_MAX 255
#define PORT_DEFAULT "2379"
/* 1 s: a connection that served for so long is replaced at once; others count as failures, so that
 * a server which greets and closes is not run at in circles. */
#define SERVED_NS VG_NS_PER_S

static void on_timer(struct vg_timer *t);

/* ---- connecting ---- */

/* A little before or after, so that clients of one server do not come together. */
static uint64_t jittered(struct vg_grpc_channel *ch, uint64_t ms)
{
    uint64_t quarter = ms / 4;
    return ms - quarter + vg_rng_below(&ch->pool->rng, 2 * quarter + 1);
}

static void wait_to_connect(struct vg_grpc_channel *ch, const struct vg_grpc_link *lost)
{
    const struct vg_grpc_pool_opts *o = &ch->pool->opts;
    if (lost && lost->up_ns && vg_grpc_pool_now(ch->pool) - lost->up_ns >= SERVED_NS)
        ch->backoff_ms = 0;
    uint64_t ms = ch->backoff_ms;
    ch->backoff_ms = VG_MIN(VG_MAX(ms * 2, o->backoff_min_ms), o->backoff_max_ms);
    vg_timer_start(ch->pool->loop, &ch->timer, jittered(ch, ms) * VG_NS_PER_MS, on_timer);
}

static void on_timer(struct vg_timer *t)
{
    struct vg_grpc_channel *ch = VG_CONTAINER_OF(t, struct vg_grpc_channel, timer);
    if (vg_grpc_link_new(ch, &ch->current) == 0)
        return;
    snprintf(ch->why, sizeof ch->why, "out of memory");
    wait_to_connect(ch, NULL);
}

void vg_grpc_channel_open(struct vg_grpc_channel *ch)
{
    vg_timer_start(ch->pool->loop, &ch->timer, 0, on_timer);
}

void vg_grpc_channel_up(struct vg_grpc_channel *ch, struct vg_grpc_link *l)
{
    if (l != ch->current)
        return;
    ch->is_ready = true;
    ch->has_failed = false;
    ch->why[0] = 0;
    ch->pool->counts.connects++;
    vg_info(ch->pool->log, "endpoint_ready", "endpoint=%s", ch->url);
    vg_grpc_pool_changed(ch->pool, ch);
}

/* It takes no more calls: the next connection is made at once, unless it comes to nothing. */
void vg_grpc_channel_going(struct vg_grpc_channel *ch, struct vg_grpc_link *l, const char *why)
{
    if (l != ch->current)
        return;
    vg_info(ch->pool->log, "endpoint_going", "endpoint=%s why=%s", ch->url, why);
    snprintf(ch->why, sizeof ch->why, "%s", why);
    ch->current = NULL;
    ch->is_ready = false;
    wait_to_connect(ch, l);
    vg_grpc_pool_changed(ch->pool, ch);
}

void vg_grpc_channel_down(struct vg_grpc_channel *ch, struct vg_grpc_link *l, const char *why)
{
    if (l != ch->current)
        return;
    bool is_news = !ch->has_failed || strcmp(ch->why, why) != 0;
    if (ch->is_ready)
        ch->pool->counts.disconnects++;
    ch->current = NULL;
    ch->is_ready = false;
    ch->has_failed = true;
    snprintf(ch->why, sizeof ch->why, "%s", why);
    if (is_news)
        vg_warn(ch->pool->log, "endpoint_down", "endpoint=%s why=%s", ch->url, why);
    wait_to_connect(ch, l);
    vg_grpc_pool_changed(ch->pool, ch);
}

/* ---- the endpoint's text ---- */

static int bad(struct vg_status *status, const char *url, const char *why)
{
    return vg_fail(status, VIGIL_E_INVALID,
                   "endpoint \"%s\": %s; it is written as https://host:2379 or http://host:2379",
                   url, why);
}

static bool cut_prefix(struct vg_slice *s, const char *prefix)
{
    struct vg_slice p = vg_slice_str(prefix);
    if (!vg_slice_has_prefix(*s, p))
        return false;
    s->p += p.n;
    s->n -= p.n;
    return true;
}

static bool is_port(struct vg_slice s)
{
    unsigned n = 0;
    for (size_t i = 0; i < s.n && n <= 65535; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        n = n * 10 + (unsigned)(s.p[i] - '0');
    }
    return s.n > 0 && n > 0 && n <= 65535;
}

/* "host", "host:port", "[v6]", "[v6]:port". */
static const char *split(struct vg_slice in, struct vg_slice *ret_host, struct vg_slice *ret_port)
{
    const char *end = in.p + in.n, *colon;
    if (in.n && in.p[0] == '[') {
        const char *close = memchr(in.p, ']', in.n);
        if (!close || (close + 1 < end && close[1] != ':'))
            return "an IPv6 address ends with ]";
        *ret_host = vg_slice(in.p + 1, (size_t)(close - in.p - 1));
        colon = close + 1 < end ? close + 1 : NULL;
    } else {
        colon = memchr(in.p, ':', in.n);
        *ret_host = vg_slice(in.p, colon ? (size_t)(colon - in.p) : in.n);
    }
    *ret_port = colon ? vg_slice(colon + 1, (size_t)(end - colon - 1)) : vg_slice_str(PORT_DEFAULT);
    if (ret_host->n == 0 || ret_host->n > HOST_MAX)
        return "the host is missing or too long";
    return is_port(*ret_port) ? NULL : "the port is not a number from 1 to 65535";
}

static char *join(struct vg_slice host, struct vg_slice port)
{
    bool is_v6 = memchr(host.p, ':', host.n) != NULL;
    size_t n = host.n + port.n + 4;
    char *text = vg_malloc(n);
    if (text)
        snprintf(text, n, "%s%.*s%s:%.*s", is_v6 ? "[" : "", VG_SLICE_ARG(host), is_v6 ? "]" : "",
                 VG_SLICE_ARG(port));
    return text;
}

static int parse(struct vg_grpc_channel *ch, struct vg_status *status)
{
    struct vg_slice rest = vg_slice_str(ch->url), host, port;
    if (cut_prefix(&rest, "unix://")) {
        if (rest.n == 0 || rest.n >= 108) /* sun_path */
            return bad(status, ch->url, "the path is missing or too long");
        ch->host = vg_strndup(rest.p, rest.n);
        ch->authority = vg_strdup("localhost");
        return ch->host && ch->authority ? 0 : vg_fail(status, -ENOMEM, "out of memory");
    }
    ch->is_tls = cut_prefix(&rest, "https://");
    if (!ch->is_tls && !cut_prefix(&rest, "http://") && memmem(rest.p, rest.n, "://", 3))
        return bad(status, ch->url, "this scheme is not known");
    if (rest.n && rest.p[rest.n - 1] == '/')
        rest.n--;
    if (memchr(rest.p, '/', rest.n) || memchr(rest.p, '@', rest.n))
        return bad(status, ch->url, "nothing but host and port belongs there");
    const char *why = split(rest, &host, &port);
    if (why)
        return bad(status, ch->url, why);
    ch->host = vg_strndup(host.p, host.n);
    ch->port = vg_strndup(port.p, port.n);
    ch->authority = join(host, port);
    bool is_ok = ch->host && ch->port && ch->authority;
    return is_ok ? 0 : vg_fail(status, -ENOMEM, "out of memory");
}

int vg_grpc_channel_init(struct vg_grpc_channel *ch, struct vg_grpc_pool *pool, int index,
                         const char *url, struct vg_status *reterr_status)
{
    ch->pool = pool;
    ch->index = index;
    vg_list_init(&ch->links);
    ch->url = vg_strdup(url);
    int r = ch->url ? parse(ch, reterr_status) : vg_fail(reterr_status, -ENOMEM, "out of memory");
    if (r == 0)
        ch->tls_host = pool->opts.tls.server_name ? pool->opts.tls.server_name : ch->host;
    snprintf(ch->why, sizeof ch->why, "not connected yet");
    return r;
}

void vg_grpc_channel_done(struct vg_grpc_channel *ch)
{
    if (!ch->pool)
        return;
    vg_timer_stop(ch->pool->loop, &ch->timer);
    while (!vg_list_is_empty(&ch->links))
        vg_grpc_link_kill(VG_CONTAINER_OF(ch->links.next, struct vg_grpc_link, link), "closed");
    vg_free(ch->url);
    vg_free(ch->host);
    vg_free(ch->port);
    vg_free(ch->authority);
}
