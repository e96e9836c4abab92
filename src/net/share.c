/* share.c - see share.h. */
#include "share.h"

#include "conn_int.h"

/* ---- the limits ---- */

/* A whole body with its head fits, however little all requests may hold. */
static uint64_t whole_request(const struct vg_http_limits *l)
{
    return (uint64_t)l->body_bytes + l->head_bytes;
}

static uint64_t connection_max(const struct vg_http_limits *l, bool is_trusted)
{
    return is_trusted ? VG_MAX(l->request_bytes / 4, whole_request(l))
                      : 2 * (uint64_t)l->head_bytes;
}

static uint64_t address_max(const struct vg_http_limits *l, bool is_trusted)
{
    return is_trusted ? VG_MAX(l->request_bytes / 2, whole_request(l))
                      : VG_MAX(l->request_bytes / 16, 2 * (uint64_t)l->head_bytes);
}

static uint64_t strangers_max(const struct vg_http_limits *l)
{
    return VG_MAX(l->request_bytes / 4, address_max(l, false));
}

/* ---- counting ---- */

static bool take(_Atomic uint64_t *sum, uint64_t n, uint64_t max)
{
    if (atomic_fetch_add_explicit(sum, n, memory_order_relaxed) + n <= max)
        return true;
    atomic_fetch_sub_explicit(sum, n, memory_order_relaxed);
    return false;
}

static void put_back(_Atomic uint64_t *sum, uint64_t n)
{
    uint64_t was = atomic_fetch_sub_explicit(sum, n, memory_order_relaxed);
    assert(was >= n);
    (void)was;
}

static bool take_of_address(struct vg_share_sum *a, const struct vg_http_limits *l, uint64_t n,
                            bool is_trusted)
{
    if (is_trusted)
        return take(&a->held, n, address_max(l, true));
    if (!take(&a->strangers, n, address_max(l, false)))
        return false;
    atomic_fetch_add_explicit(&a->held, n, memory_order_relaxed);
    return true;
}

static bool take_of_all(struct vg_share_sum *all, const struct vg_http_limits *l, uint64_t n,
                        bool is_trusted)
{
    if (!is_trusted && !take(&all->strangers, n, strangers_max(l)))
        return false;
    if (take(&all->held, n, l->request_bytes))
        return true;
    if (!is_trusted)
        put_back(&all->strangers, n);
    return false;
}

static void put_back_to(struct vg_share_sum *sum, uint64_t n, bool is_trusted)
{
    put_back(&sum->held, n);
    if (!is_trusted)
        put_back(&sum->strangers, n);
}

static struct vg_share_sum *address_of(const struct vg_conn *conn)
{
    return conn->address ? &conn->address->share : NULL;
}

static bool charge(struct vg_conn *conn, uint64_t more)
{
    const struct vg_http_limits *l = conn->server->limits;
    struct vg_share_sum *address = address_of(conn);
    bool is_trusted = conn->share.is_trusted;
    if (conn->share.charged + more > connection_max(l, is_trusted))
        return false;
    if (address && !take_of_address(address, l, more, is_trusted))
        return false;
    if (take_of_all(&conn->server->shared->share, l, more, is_trusted)) {
        conn->share.charged += more;
        return true;
    }
    if (address)
        put_back_to(address, more, is_trusted);
    return false;
}

/* What must be charged for so many bytes (P2). */
static uint64_t charge_for(uint64_t held)
{
    return held <= VG_SHARE_FREE ? 0 : VG_ALIGN_UP(held - VG_SHARE_FREE, (uint64_t)VG_SHARE_STEP);
}

int vg_share_hold(struct vg_conn *conn, size_t n)
{
    uint64_t need = charge_for(conn->share.held + n);
    if (need > conn->share.charged && !charge(conn, need - conn->share.charged))
        return VIGIL_E_BUSY;
    conn->share.held += n;
    return 0;
}

void vg_share_give(struct vg_conn *conn, size_t n)
{
    struct vg_share *s = &conn->share;
    assert(s->held >= n);
    s->held -= n;
    uint64_t less = s->charged - VG_MIN(charge_for(s->held), s->charged);
    if (less == 0)
        return;
    s->charged -= less;
    if (conn->address)
        put_back_to(&conn->address->share, less, s->is_trusted);
    put_back_to(&conn->server->shared->share, less, s->is_trusted);
}

void vg_share_trust(struct vg_conn *conn)
{
    struct vg_share *s = &conn->share;
    if (s->is_trusted)
        return;
    s->is_trusted = true;
    vg_list_remove(&conn->strange);
    if (s->charged == 0)
        return;
    if (conn->address)
        put_back(&conn->address->share.strangers, s->charged);
    put_back(&conn->server->shared->share.strangers, s->charged);
}
