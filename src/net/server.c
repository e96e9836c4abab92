/* server.c - the part of all loops (limits, counters) and the part of each; see server.h.
 *   S1 shared->open counts every connection from vg_net_admit to vg_net_dismiss; an address is in
 *      the map while connections of it are counted.
 *   S2 a server's memory goes with its last libuv handle. */
#include "server_int.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "base/alloc.h"
#include "conn_int.h"
#include "listener_int.h"
#include "request.h"
#include "transport.h"

/* ---- shared ---- */

static void fill_limits(struct vg_http_limits *l)
{
#define DEFAULT(field, value) l->field = l->field ? l->field : (value)
    DEFAULT(head_bytes, 64u * 1024u);
    DEFAULT(head_fields, 128);
    DEFAULT(body_bytes, 3145728);
    DEFAULT(unsent_bytes, 64u * 1024u);
    DEFAULT(connections, 100000);
    DEFAULT(request_bytes, UINT64_C(256) << 20);
    DEFAULT(handshakes, 1000);
    DEFAULT(streams, 1000);
    DEFAULT(resets_per_second, 200);
    DEFAULT(read_ahead, 16u * 1024u);
    DEFAULT(handshake_ms, 10000);
    DEFAULT(head_ms, 32000);
    DEFAULT(body_ms, 30000);
    DEFAULT(request_ms, 60000);
    DEFAULT(idle_ms, 180000);
    DEFAULT(stall_ms, 60000);
    DEFAULT(min_rate, 1024);
#undef DEFAULT
}

int vg_http_shared_new(const struct vg_http_shared_opts *opts, struct vg_http_shared **ret_shared)
{
    struct vg_http_shared *s = vg_new(struct vg_http_shared);
    if (!s)
        return -ENOMEM;
    s->limits = opts->limits;
    fill_limits(&s->limits);
    s->handler = opts->handler;
    s->log = opts->log;
    vg_mutex_init(&s->mu, VG_RANK_NET);
    vg_map_init(&s->addresses, VG_MAP_BORROWS_KEYS);
    vg_list_init(&s->servers);
    *ret_shared = s;
    return 0;
}

void vg_http_shared_free(struct vg_http_shared *s)
{
    if (!s)
        return;
    assert(vg_list_is_empty(&s->servers));
    vg_map_done(&s->addresses);
    vg_mutex_done(&s->mu);
    vg_free(s);
}

static void add_counts(struct vg_http_stats *to, const struct vg_net_counts *from)
{
#define ADD(field) to->field += atomic_load_explicit(&from->field, memory_order_relaxed)
    ADD(accepted);
    ADD(refused);
    ADD(open_tls);
    ADD(open_h2);
    ADD(handshakes_failed);
    ADD(requests);
    ADD(malformed);
    ADD(timeouts);
    ADD(floods);
    ADD(bytes_in);
    ADD(bytes_out);
#undef ADD
}

void vg_http_stats(struct vg_http_shared *s, struct vg_http_stats *ret_stats)
{
    vg_mutex_lock(&s->mu);
    *ret_stats = s->past;
    VG_LIST_FOREACH (n, &s->servers)
        add_counts(ret_stats, &VG_CONTAINER_OF(n, struct vg_http_server, link)->counts);
    vg_mutex_unlock(&s->mu);
    ret_stats->open = atomic_load_explicit(&s->open, memory_order_relaxed);
}

/* ---- who may connect ---- */

/* What counts as one address: an IPv4 address, or the 64 bits of an IPv6 network, of which one
 * customer has at least one. */
static struct vg_slice address_key(const struct sockaddr *from, bool *ret_is_loopback)
{
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)from;
        *ret_is_loopback = ntohl(in->sin_addr.s_addr) >> 24 == 127;
        return vg_slice(&in->sin_addr, 4);
    }
    const struct sockaddr_in6 *in6 = (const void *)from;
    const unsigned char *bytes = in6->sin6_addr.s6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        *ret_is_loopback = bytes[12] == 127;
        return vg_slice(bytes + 12, 4);
    }
    *ret_is_loopback = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    return vg_slice(bytes, *ret_is_loopback ? 16 : 8);
}

static int add_address(struct vg_http_shared *s, struct vg_slice key, bool is_loopback,
                       struct vg_net_address **ret_address)
{
    vg_mutex_assert_held(&s->mu);
    struct vg_net_address *a = vg_map_get(&s->addresses, key);
    if (!a) {
        a = vg_new(struct vg_net_address);
        if (!a)
            return -ENOMEM;
        memcpy(a->bytes, key.p, key.n);
        a->key = vg_slice(a->bytes, key.n);
        a->is_loopback = is_loopback;
        int r = vg_map_put(&s->addresses, a->key, a, NULL);
        if (r < 0) {
            vg_free(a);
            return r;
        }
    }
    *ret_address = a;
    return 0;
}

static int admit_address(struct vg_http_shared *s, const struct sockaddr *from,
                         struct vg_net_address **ret_address)
{
    if (!from || (from->sa_family != AF_INET && from->sa_family != AF_INET6))
        return 0;
    bool is_loopback = false;
    struct vg_slice key = address_key(from, &is_loopback);
    uint32_t max = s->limits.connections_per_address;
    if (max == 0)
        max = is_loopback ? 50000 : 5000;
    struct vg_net_address *a = NULL;
    vg_mutex_lock(&s->mu);
    int r = add_address(s, key, is_loopback, &a);
    if (r == 0 && a->n >= max)
        r = VIGIL_E_BUSY;
    if (r == 0)
        a->n++;
    vg_mutex_unlock(&s->mu);
    if (r == 0 || r == VIGIL_E_BUSY)
        *ret_address = a;
    return r;
}

int vg_net_admit(struct vg_http_shared *s, const struct sockaddr *from,
                 struct vg_net_address **ret_address)
{
    struct vg_net_address *a = NULL;
    int r = VIGIL_E_BUSY;
    if (atomic_fetch_add_explicit(&s->open, 1, memory_order_relaxed) < s->limits.connections)
        r = admit_address(s, from, &a);
    if (r < 0)
        atomic_fetch_sub_explicit(&s->open, 1, memory_order_relaxed);
    *ret_address = a;
    return r;
}

void vg_net_dismiss(struct vg_http_shared *s, struct vg_net_address *address)
{
    atomic_fetch_sub_explicit(&s->open, 1, memory_order_relaxed);
    if (!address)
        return;
    vg_mutex_lock(&s->mu);
    bool is_last = --address->n == 0;
    if (is_last)
        vg_map_remove(&s->addresses, address->key);
    vg_mutex_unlock(&s->mu);
    if (is_last)
        vg_free(address);
}

void vg_net_leave(struct vg_http_server *s, struct vg_net_address *address)
{
    atomic_fetch_sub_explicit(&s->n_load, 1, memory_order_relaxed);
    vg_net_dismiss(s->shared, address);
}

/* ---- one loop's server ---- */

/* None that can still bring a request, or has something left to say. */
static bool all_have_finished(const struct vg_http_server *s)
{
    for (const struct vg_list *n = s->conns.next; n != &s->conns; n = n->next) {
        const struct vg_conn *conn = VG_CONTAINER_OF(n, struct vg_conn, link);
        if (conn->is_handshaking || (conn->codec && !conn->is_lingering))
            return false;
    }
    return true;
}

/* Another loop has accepted for this one, which has not looked yet. */
static bool has_arrivals(struct vg_http_server *s)
{
    vg_mutex_lock(&s->shared->mu);
    bool is_called = s->is_called;
    vg_mutex_unlock(&s->shared->mu);
    return is_called;
}

static void on_turn_end(uv_prepare_t *handle)
{
    struct vg_http_server *s = VG_CONTAINER_OF(handle, struct vg_http_server, turn_end);
    vg_conn_flush_dirty(s);
    vg_trim_look(s);
    if (!s->drained || s->n_exchanges || !all_have_finished(s) || has_arrivals(s))
        return;
    void (*drained)(void *arg) = s->drained;
    s->drained = NULL;
    drained(s->drained_arg);
}

static void free_server(struct vg_http_server *s)
{
    vg_outq_pool_done(&s->pool);
    vg_free(s->in);
    vg_free(s->staging);
    vg_free(s);
}

void vg_net_handle_closed(struct vg_http_server *s)
{
    if (--s->n_handles == 0)
        free_server(s); /* S2: only vg_http_server_free closes turn_end */
}

int vg_http_server_new(struct vg_http_shared *shared, struct vg_loop *loop,
                       struct vg_http_server **ret_server)
{
    struct vg_http_server *s = vg_new(struct vg_http_server);
    if (!s)
        return -ENOMEM;
    s->in = vg_malloc(VG_NET_READ_MAX);
    s->staging = vg_malloc(VG_TRANSPORT_STAGING);
    if (!s->in || !s->staging) {
        free_server(s);
        return -ENOMEM;
    }
    s->shared = shared;
    s->limits = &shared->limits;
    s->handler = shared->handler;
    s->log = shared->log;
    s->loop = loop;
    vg_list_init(&s->conns);
    vg_list_init(&s->dirty);
    vg_list_init(&s->shaking);
    vg_list_init(&s->unauthenticated);
    vg_list_init(&s->queued);
    vg_list_init(&s->listening);
    vg_list_init(&s->arriving);
    uv_prepare_init(vg_loop_uv(loop), &s->turn_end); /* these two cannot fail */
    uv_prepare_start(&s->turn_end, on_turn_end);
    s->n_handles = 1;
    vg_conn_queue_open(s);
    vg_mutex_lock(&shared->mu);
    vg_list_push_back(&shared->servers, &s->link);
    vg_mutex_unlock(&shared->mu);
    *ret_server = s;
    return 0;
}

static void on_turn_end_closed(uv_handle_t *handle)
{
    vg_net_handle_closed(VG_CONTAINER_OF(handle, struct vg_http_server, turn_end));
}

void vg_http_server_free(struct vg_http_server *s)
{
    if (!s)
        return;
    assert(vg_loop_is_current(s->loop) && !s->is_closing);
    vg_listening_close_all(s);
    vg_conn_close_all(s, VIGIL_E_CANCELED);
    s->is_closing = true;
    vg_net_requests_done(s);
    vg_mutex_lock(&s->shared->mu);
    add_counts(&s->shared->past, &s->counts);
    vg_list_remove(&s->link); /* nobody hands over to it any more */
    s->n_handles += s->is_called;
    vg_mutex_unlock(&s->shared->mu);
    vg_listening_drop_arrivals(s);
    vg_conn_queue_close(s);
    vg_timer_stop(s->loop, &s->trim_timer);
    uv_close((uv_handle_t *)&s->turn_end, on_turn_end_closed);
}

int vg_http_server_adopt(struct vg_http_server *s, int take_fd, struct vg_tls *tls)
{
    struct vg_net_address *address = NULL;
    int r = vg_net_admit(s->shared, NULL, &address);
    if (r < 0) {
        vg_listening_refuse(s, take_fd);
        return r;
    }
    vg_net_count(&s->counts.accepted, 1);
    atomic_fetch_add_explicit(&s->n_load, 1, memory_order_relaxed);
    return vg_conn_open(s, take_fd, tls, address);
}

static void drain_all(struct vg_http_server *s)
{
    for (struct vg_list *n = s->conns.next, *next; n != &s->conns; n = next) {
        next = n->next;
        vg_conn_drain(VG_CONTAINER_OF(n, struct vg_conn, link));
    }
}

void vg_http_server_drain(struct vg_http_server *s, void (*done)(void *arg), void *arg)
{
    s->is_draining = true;
    s->drained = done;
    s->drained_arg = arg;
    drain_all(s);
    vg_listening_drain(s);
}

size_t vg_http_server_connections(const struct vg_http_server *s)
{
    return s->n_conns;
}

/* ---- the date ---- */

struct vg_slice vg_net_date(struct vg_http_server *s)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t now = vg_clock_wall_ms(vg_loop_clock(s->loop)) / 1000;
    if (now != s->date_s) {
        struct tm tm;
        time_t t = (time_t)now;
        gmtime_r(&t, &tm);
        s->date_s = now;
        snprintf(s->date, sizeof s->date, "%s, %02u %s %04u %02u:%02u:%02u GMT", days[tm.tm_wday],
                 (unsigned)tm.tm_mday % 100u, months[tm.tm_mon],
                 (unsigned)(tm.tm_year + 1900) % 10000u, (unsigned)tm.tm_hour % 100u,
                 (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u);
    }
    return vg_slice_str(s->date);
}
