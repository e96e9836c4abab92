/* conn_queue.c - unauthenticated connections wait for their turn, and are the first to be cut.
 *
 * A connection on which nobody has authenticated does not read when its socket is ready: it is put
 * into a queue. After each poll of the loop the queue has TURN_NS of the thread's time, each
 * connection for one step of its handshake or one short read. What is left waits for the next turn,
 * and the loop does not sleep meanwhile. So a request on an authenticated connection waits for one
 * such slice at most, however much others ask for. An administrator's new connection waits in the
 * queue for its first request.
 *
 * When a limit on connections is reached, the oldest unauthenticated connection is cut if it is
 * older than UNAUTHENTICATED_SURE_MS. */
#include "conn_int.h"

/* 5 ms: a twentieth of what an administrator may have to wait. */
#define TURN_NS (5 * VG_NS_PER_MS)
/* 1 s: enough to shake hands and send a head. */
#define UNAUTHENTICATED_SURE_MS 1000u
/* 256: how many of the oldest are looked at for one of the same address. */
#define LOOKS_MAX 256u

void vg_conn_queue(struct vg_conn *conn)
{
    if (vg_list_is_empty(&conn->queued))
        vg_list_push_back(&conn->server->queued, &conn->queued);
}

static void on_idle(uv_idle_t *handle)
{
    (void)handle; /* that it is active keeps the loop from sleeping */
}

/* Those that are queued again from within wait for the next turn. */
static void on_check(uv_check_t *handle)
{
    struct vg_http_server *s = VG_CONTAINER_OF(handle, struct vg_http_server, queue_check);
    if (vg_list_is_empty(&s->queued))
        return;
    const struct vg_clock *clock = vg_loop_clock(s->loop);
    uint64_t until = vg_clock_mono_ns(clock) + TURN_NS;
    const struct vg_list *last = s->queued.prev;
    bool was_last = false;
    struct vg_list *n;
    while (!was_last && (n = vg_list_pop_front(&s->queued))) {
        was_last = n == last;
        vg_conn_go_on(VG_CONTAINER_OF(n, struct vg_conn, queued));
        if (vg_clock_mono_ns(clock) >= until)
            break;
    }
    if (vg_list_is_empty(&s->queued))
        uv_idle_stop(&s->queue_idle);
    else
        uv_idle_start(&s->queue_idle, on_idle);
}

void vg_conn_queue_open(struct vg_http_server *s)
{
    uv_check_init(vg_loop_uv(s->loop), &s->queue_check); /* none of these can fail */
    uv_check_start(&s->queue_check, on_check);
    uv_idle_init(vg_loop_uv(s->loop), &s->queue_idle);
    s->n_handles += 2;
}

static void on_check_closed(uv_handle_t *handle)
{
    vg_net_handle_closed(VG_CONTAINER_OF((uv_check_t *)handle, struct vg_http_server, queue_check));
}

static void on_idle_closed(uv_handle_t *handle)
{
    vg_net_handle_closed(VG_CONTAINER_OF((uv_idle_t *)handle, struct vg_http_server, queue_idle));
}

void vg_conn_queue_close(struct vg_http_server *s)
{
    uv_close((uv_handle_t *)&s->queue_check, on_check_closed);
    uv_close((uv_handle_t *)&s->queue_idle, on_idle_closed);
}

/* ---- giving way ---- */

static struct vg_conn *oldest_unauthenticated(const struct vg_http_server *s,
                                              const struct vg_net_address *address)
{
    unsigned looks = 0;
    for (struct vg_list *n = s->unauthenticated.next; n != &s->unauthenticated && looks < LOOKS_MAX;
         n = n->next, looks++) {
        struct vg_conn *conn = VG_CONTAINER_OF(n, struct vg_conn, unauth_link);
        if (conn->fd >= 0 && (!address || conn->address == address))
            return conn;
    }
    return NULL;
}

bool vg_conn_cut_unauthenticated(struct vg_http_server *s, const struct vg_net_address *address)
{
    struct vg_conn *conn = oldest_unauthenticated(s, address);
    if (!conn || vg_conn_now(conn) < conn->born_ns + UNAUTHENTICATED_SURE_MS * VG_NS_PER_MS)
        return false;
    vg_net_count(&s->counts.timeouts, 1);
    vg_conn_close(conn, VIGIL_E_TIMEOUT);
    vg_conn_settle(conn);
    return true;
}
