/* share.c - see share.h. */
#include "share.h"

#include "conn_int.h"

/* ---- the limits ---- */

/* A whole body with its head fits, however little all requests may hold. */
static uint64_t whole_request(const struct vg_http_limits *l)
{
    return (uint64_t)l->body_bytes + l->head_bytes;
}

static uint64_t connection_max(const struct vg_http_limits *l, bool is_authenticated)
{
    return is_authenticated ? VG_MAX(l->request_bytes / 4, whole_request(l))
                            : 2 * (uint64_t)l->head_bytes;
}

static uint64_t address_max(const struct vg_http_limits *l, bool is_authenticated)
{
    return is_authenticated ? VG_MAX(l->request_bytes / 2, whole_request(l))
                            : VG_MAX(l->request_bytes / 16, 2 * (uint64_t)l->head_bytes);
}

static uint64_t unauthenticated_max(const struct vg_http_limits *l)
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
                            bool is_authenticated)
{
    if (is_authenticated)
        return take(&a->held, n, address_max(l, true));
    if (!take(&a->unauthenticated, n, address_max(l, false)))
        return false;
    atomic_fetch_add_explicit(&a->held, n, memory_order_relaxed);
    return true;
}

static bool take_of_all(struct vg_share_sum *all, const struct vg_http_limits *l, uint64_t n,
                        bool is_authenticated)
{
    if (!is_authenticated && !take(&all->unauthenticated, n, unauthenticated_max(l)))
        return false;
    if (take(&all->held, n, l->request_bytes))
        return true;
    if (!is_authenticated)
        put_back(&all->unauthenticated, n);
    return false;
}

static void put_back_to(struct vg_share_sum *sum, uint64_t n, bool is_authenticated)
{
    put_back(&sum->held, n);
    if (!is_authenticated)
        put_back(&sum->unauthenticated, n);
}

static struct vg_share_sum *address_of(const struct vg_conn *conn)
{
    return conn->address ? &conn->address->share : NULL;
}

static bool charge(struct vg_conn *conn, uint64_t more)
{
    const struct vg_http_limits *l = conn->server->limits;
    struct vg_share_sum *address = address_of(conn);
    bool is_authenticated = conn->share.is_authenticated;
    if (conn->share.charged + more > connection_max(l, is_authenticated))
        return false;
    if (address && !take_of_address(address, l, more, is_authenticated))
        return false;
    if (take_of_all(&conn->server->shared->share, l, more, is_authenticated)) {
        conn->share.charged += more;
        return true;
    }
    if (address)
        put_back_to(address, more, is_authenticated);
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
        put_back_to(&conn->address->share, less, s->is_authenticated);
    put_back_to(&conn->server->shared->share, less, s->is_authenticated);
}

void vg_share_authenticated(struct vg_conn *conn)
{
    struct vg_share *s = &conn->share;
    if (s->is_authenticated)
        return;
    s->is_authenticated = true;
    vg_list_remove(&conn->unauth_link);
    if (s->charged == 0)
        return;
    if (conn->address)
        put_back(&conn->address->share.unauthenticated, s->charged);
    put_back(&conn->server->shared->share.unauthenticated, s->charged);
}
