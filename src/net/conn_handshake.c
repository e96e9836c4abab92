/* conn_handshake.c - a TLS handshake on a connection: it is counted, per server and per address, as
 * long as it lasts, and gives way when there is room for no more. See conn_int.h. */
#include "conn_int.h"

#include "tls.h"
#include "tls_int.h"

/* 1 s: what a handshake has before it gives way to a new one, when there is room for no more. Who
 * holds the room with silence then keeps the others out for no longer than that. */
#define HANDSHAKE_SURE_MS 1000u
/* 64: how many of the oldest are looked at for the address that has most of them. */
#define LOOKS_MAX 64u
/* 4: so many more than the newcomer's an address must have to give way at once. When all clients
 * come back after a restart, none has so many, and what has begun is not cut for what comes. */
#define MANY_MORE 4u

void vg_handshake_begin(struct vg_conn *conn)
{
    conn->is_handshaking = true;
    vg_list_push_back(&conn->server->shaking, &conn->shaking);
    atomic_fetch_add_explicit(&conn->server->shared->handshakes, 1, memory_order_relaxed);
    if (conn->address)
        atomic_fetch_add_explicit(&conn->address->handshakes, 1, memory_order_relaxed);
}

void vg_handshake_end(struct vg_conn *conn, bool is_ok)
{
    conn->is_handshaking = false;
    vg_list_remove(&conn->shaking);
    atomic_fetch_sub_explicit(&conn->server->shared->handshakes, 1, memory_order_relaxed);
    if (conn->address)
        atomic_fetch_sub_explicit(&conn->address->handshakes, 1, memory_order_relaxed);
    if (!is_ok)
        vg_net_count(&conn->server->counts.handshakes_failed, 1);
}

static struct vg_conn *oldest_handshake(const struct vg_http_server *s,
                                        const struct vg_net_address *address)
{
    for (struct vg_list *n = s->shaking.next; n != &s->shaking; n = n->next) {
        struct vg_conn *conn = VG_CONTAINER_OF(n, struct vg_conn, shaking);
        if (!address || conn->address == address)
            return conn;
    }
    return NULL;
}

static uint32_t handshakes_of(const struct vg_net_address *address)
{
    return address ? atomic_load_explicit(&address->handshakes, memory_order_relaxed) : 0;
}

/* The oldest of the address that has most under way, if that is many more than this one has. */
static struct vg_conn *handshake_of_more(const struct vg_http_server *s,
                                         const struct vg_net_address *address)
{
    struct vg_conn *found = NULL;
    uint32_t most = handshakes_of(address) + MANY_MORE;
    unsigned looks = 0;
    for (struct vg_list *n = s->shaking.next; n != &s->shaking && looks < LOOKS_MAX;
         n = n->next, looks++) {
        struct vg_conn *conn = VG_CONTAINER_OF(n, struct vg_conn, shaking);
        if (handshakes_of(conn->address) <= most)
            continue;
        most = handshakes_of(conn->address);
        found = conn;
    }
    return found;
}

static void cut(struct vg_conn *conn)
{
    vg_net_count(&conn->server->counts.timeouts, 1);
    vg_conn_close(conn, VIGIL_E_TIMEOUT);
    vg_conn_settle(conn);
}

bool vg_conn_cut_handshake_of_more(struct vg_http_server *s, const struct vg_net_address *address)
{
    struct vg_conn *conn = handshake_of_more(s, address);
    if (!conn)
        return false;
    cut(conn);
    return true;
}

bool vg_conn_cut_handshake(struct vg_http_server *s, const struct vg_net_address *address)
{
    struct vg_conn *conn = oldest_handshake(s, address);
    if (!conn)
        return false;
    uint64_t most = s->limits->handshake_ms, sure = VG_MIN(most, HANDSHAKE_SURE_MS);
    if (conn->timer.due_ns > vg_conn_now(conn) + (most - sure) * VG_NS_PER_MS)
        return false;
    cut(conn);
    return true;
}

/* A client whose certificate is refused learns why from the alert; with the connection cut at once
 * it would see no more than a reset. */
static void turn_away(struct vg_conn *conn)
{
    vg_handshake_end(conn, false);
    vg_net_count(&conn->server->counts.open_tls, UINT64_MAX); /* -1 */
    vg_tls_session_free(vg_steal(conn->tls));                 /* what comes is dropped unread */
    conn->is_finishing = true;
    vg_conn_say_bye(conn);
}

void vg_handshake_step(struct vg_conn *conn)
{
    bool wants_write = false;
    int r = vg_tls_session_handshake(conn->tls, &wants_write);
    conn->is_blocked = wants_write;
    if (r == 1) {
        vg_handshake_end(conn, true);
        vg_timer_stop(conn->server->loop, &conn->timer);
        conn->peer.identity = vg_tls_session_identity(conn->tls);
        if (conn->peer.identity && conn->peer.identity->name.n)
            vg_share_authenticated(conn);
        r = vg_conn_begin(conn);
    }
    if (r < 0) {
        vg_debug(conn->server->log, "handshake_failed", "peer=%s reason=%s", conn->peer.address,
                 vg_tls_session_why(conn->tls));
        if (conn->is_handshaking && vg_tls_session_has_refused(conn->tls))
            turn_away(conn);
        else
            vg_conn_close(conn, r);
    }
}
