/* expiring.c - objects that are forgotten after a time; see vigil/store.h.
 * A map of key to object and time of the last put. Expired ones are purged by get (that one) and
 * list (all), as client-go's ExpirationCache does. */
#include "expiring.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/map.h"
#include "client/object/object_int.h"

struct item {
    const struct vigil_object *o; /* the map borrows its key */
    uint64_t put_ns;
};

struct vigil_expiring {
    const struct vg_clock *clock;
    uint64_t ttl_ns; /* 0: never */
    struct vg_mutex mu;
    struct vg_map items VG_GUARDED_BY(mu); /* struct item */
};

int vg_expiring_new(uint64_t ttl_ms, const struct vg_clock *clock, struct vigil_expiring **ret)
{
    struct vigil_expiring *x = vg_new(struct vigil_expiring);
    if (!x)
        return -ENOMEM;
    x->clock = clock;
    x->ttl_ns = ttl_ms > UINT64_MAX / VG_NS_PER_MS ? 0 : ttl_ms * VG_NS_PER_MS;
    vg_mutex_init(&x->mu, VG_RANK_CLIENT_WORK);
    *ret = x;
    return 0;
}

int vigil_expiring_new(uint64_t ttl_ms, struct vigil_expiring **ret, struct vigil_error *err)
{
    int r = vg_expiring_new(ttl_ms, vg_clock_system(), ret);
    return r < 0 ? vg_error_set(err, r, "no memory for a store") : 0;
}

static void item_free(struct item *i)
{
    if (!i)
        return;
    vigil_object_unref(i->o);
    vg_free(i);
}

static void clear(struct vg_map *items)
{
    VG_MAP_FOREACH (e, items)
        item_free(e->value);
    vg_map_done(items);
}

void vigil_expiring_free(struct vigil_expiring *x)
{
    if (!x)
        return;
    clear(&x->items);
    vg_mutex_done(&x->mu);
    vg_free(x);
}

/* ---- writing ---- */

static int put(struct vg_map *items, const struct vigil_object *o, uint64_t now)
{
    struct item *i = vg_new(struct item);
    void *old = NULL;
    if (!i)
        return -ENOMEM;
    i->put_ns = now;
    int r = vg_map_put(items, vg_object_key(o), i, &old);
    if (r < 0) {
        vg_free(i);
        return r;
    }
    i->o = vigil_object_ref(o);
    item_free(old);
    return 0;
}

int vigil_expiring_put(struct vigil_expiring *x, const struct vigil_object *o)
{
    vg_mutex_lock(&x->mu);
    int r = put(&x->items, o, vg_clock_mono_ns(x->clock));
    vg_mutex_unlock(&x->mu);
    return vg_error_code(r);
}

int vigil_expiring_replace(struct vigil_expiring *x, const struct vigil_object *const *objects,
                           size_t n)
{
    struct vg_map items = {0};
    uint64_t now = vg_clock_mono_ns(x->clock);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = put(&items, objects[i], now);
    if (r == 0) {
        vg_mutex_lock(&x->mu);
        struct vg_map before = x->items;
        x->items = items;
        vg_mutex_unlock(&x->mu);
        items = before;
    }
    clear(&items);
    return vg_error_code(r);
}

void vigil_expiring_delete(struct vigil_expiring *x, struct vigil_text key)
{
    vg_mutex_lock(&x->mu);
    struct item *i = vg_map_remove(&x->items, vg_slice_of(key));
    vg_mutex_unlock(&x->mu);
    item_free(i);
}

/* ---- reading ---- */

static bool has_expired(const struct vigil_expiring *x, const struct item *i, uint64_t now)
{
    return x->ttl_ns && now - i->put_ns > x->ttl_ns;
}

const struct vigil_object *vigil_expiring_get(struct vigil_expiring *x, struct vigil_text key)
{
    const struct vigil_object *o = NULL;
    struct item *gone = NULL;
    uint64_t now = vg_clock_mono_ns(x->clock);
    vg_mutex_lock(&x->mu);
    struct item *i = vg_map_get(&x->items, vg_slice_of(key));
    if (i && has_expired(x, i, now))
        gone = vg_map_remove(&x->items, vg_slice_of(key));
    else if (i)
        o = vigil_object_ref(i->o);
    vg_mutex_unlock(&x->mu);
    item_free(gone);
    return o;
}

/* References of all that live, and the items that do not, out of the map. */
struct sorted_out {
    const struct vigil_object **alive;
    struct item **gone;
    size_t n_alive, n_gone;
};

static void sort_out(struct vigil_expiring *x, struct sorted_out *s)
{
    uint64_t now = vg_clock_mono_ns(x->clock);
    VG_MAP_FOREACH (e, &x->items) {
        struct item *i = e->value;
        if (has_expired(x, i, now))
            s->gone[s->n_gone++] = i;
        else
            s->alive[s->n_alive++] = vigil_object_ref(i->o);
    }
    for (size_t i = 0; i < s->n_gone; i++)
        vg_map_remove(&x->items, vg_object_key(s->gone[i]->o));
}

int vigil_expiring_list(struct vigil_expiring *x,
                        bool (*each)(void *arg, const struct vigil_object *o), void *arg)
{
    struct sorted_out s = {0};
    vg_mutex_lock(&x->mu);
    size_t n = vg_map_count(&x->items);
    s.alive = vg_reallocarray(NULL, n + 1, sizeof(*s.alive));
    s.gone = vg_reallocarray(NULL, n + 1, sizeof(*s.gone));
    bool ok = s.alive && s.gone;
    if (ok)
        sort_out(x, &s);
    vg_mutex_unlock(&x->mu);
    bool go_on = true;
    for (size_t i = 0; i < s.n_alive; i++) {
        go_on = go_on && each(arg, s.alive[i]);
        vigil_object_unref(s.alive[i]);
    }
    for (size_t i = 0; i < s.n_gone; i++)
        item_free(s.gone[i]);
    vg_free((void *)s.alive);
    vg_free(s.gone);
    return ok ? 0 : VIGIL_E_MEMORY;
}

size_t vigil_expiring_count(struct vigil_expiring *x)
{
    vg_mutex_lock(&x->mu);
    size_t n = vg_map_count(&x->items);
    vg_mutex_unlock(&x->mu);
    return n;
}
