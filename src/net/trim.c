/* trim.c - memory goes back to the system after a crowd has left.
 * malloc keeps what is freed below the top of its heap: after thousands of connections one that is
 * left holds it all. So each turn's estimate of what connections and requests take is compared with
 * the most since the last trim; when much less is needed for TRIM_AFTER_NS, malloc gives back the
 * pages that are free. Churn at a steady level does not cause it. */
#include <malloc.h>

#include "server_int.h"

/* 16 KiB and 4 KiB: about what a TLS connection and a request take. */
#define CONNECTION_BYTES (UINT64_C(16) * 1024)
#define EXCHANGE_BYTES (UINT64_C(4) * 1024)
/* 4 MiB: less is not worth the page faults. */
#define TRIM_BYTES (UINT64_C(4) << 20)
#define TRIM_AFTER_NS (2 * VG_NS_PER_S)

static uint64_t estimate(const struct vg_http_server *s)
{
    return s->n_conns * CONNECTION_BYTES + s->n_exchanges * EXCHANGE_BYTES;
}

static void on_timer(struct vg_timer *t)
{
    struct vg_http_server *s = VG_CONTAINER_OF(t, struct vg_http_server, trim_timer);
    uint64_t now = estimate(s);
    if (s->trim_peak < now + TRIM_BYTES)
        return;
    s->trim_peak = now;
    vg_net_count(&s->counts.trims, 1);
    malloc_trim(0);
}

void vg_trim_look(struct vg_http_server *s)
{
    uint64_t now = estimate(s);
    if (now >= s->trim_peak)
        s->trim_peak = now;
    else if (s->trim_peak >= now + TRIM_BYTES && !s->trim_timer.armed)
        vg_timer_start(s->loop, &s->trim_timer, TRIM_AFTER_NS, on_timer);
}
