/* interest.c - for which batches a loop is woken.
 * Most changes concern a watcher of one loop, if any; the others would be woken to find that out.
 * So the feed looks into the index of each port before it wakes it. What is not told at once is
 * pulled with the next batch that is, or at the next tick: a port may lag, its watchers may not.
 * Invariants:
 *   I1 the index changes under port->mu, on the port's loop; the feed looks under it.
 *   I2 the feed links a batch before it looks; who becomes interested looks at the tail afterwards
 *      (vg_watcher_go_live, vg_port_await): one of them sees the other, so nothing is missed. */
#include "cacher_int.h"

/* A batch of more is worth a wake without a look. */
#define LOOK_MAX 16u
/* How many batches a port may be spared: what it has then to go through is little. */
#define SPARED_MAX 64u

static bool has(const struct vg_map *map, struct vg_slice value)
{
    return vg_map_count(map) && vg_map_get(map, value);
}

/* Would `dispatch` find anybody? */
static bool concerns(const struct vg_port_kind *pk, const struct vg_change *change)
{
    const struct vg_rec *rec = vg_rec_is_delete(change->rec) ? change->prev : change->rec;
    struct vg_obj_header h;
    if (pk->all)
        return true;
    if (!vg_map_count(&pk->by_name) && !vg_map_count(&pk->by_namespace) &&
        !vg_map_count(&pk->by_trigger))
        return false;
    if (!rec)
        return true;
    vg_rec_read(rec, &h);
    if (has(&pk->by_name, vg_obj_name(&h)) || has(&pk->by_namespace, vg_obj_namespace(&h)) ||
        has(&pk->by_trigger, vg_obj_trigger(&h)))
        return true;
    if (change->keeps_trigger || !change->prev || !vg_map_count(&pk->by_trigger))
        return false;
    vg_rec_read(change->prev, &h);
    return has(&pk->by_trigger, vg_obj_trigger(&h));
}

bool vg_port_is_concerned(struct vg_cache_port *p, const struct vg_cache_batch *b)
{
    bool is = b->is_reset || b->has_unreadable || b->n > LOOK_MAX || ++p->spared == SPARED_MAX;
    if (!is) {
        vg_mutex_lock(&p->mu);
        is = p->awaits;
        for (size_t i = 0; i < b->n && !is; i++)
            is = concerns(&p->kinds[b->events[i].wc->index], b->events[i].change);
        vg_mutex_unlock(&p->mu);
    }
    if (is)
        p->spared = 0;
    return is;
}

static void set_awaits(struct vg_cache_port *p, bool awaits)
{
    vg_mutex_lock(&p->mu);
    p->awaits = awaits;
    vg_mutex_unlock(&p->mu);
}

void vg_port_await(struct vg_cache_port *p)
{
    if (!p->awaits)
        set_awaits(p, true);
    vg_port_hurry(p);
}

void vg_port_awaited(struct vg_cache_port *p)
{
    if (p->awaits && vg_list_is_empty(&p->waits))
        set_awaits(p, false);
}
