/* room.c - what the commit thread does about a disk that fills up.
 * A change is written twice: to the log, and later to the base, which needs about as much again.
 *   R1 the log holds no more than the base will have room for: when room gets short, checkpoints
 *      come sooner, and writes wait for them.
 *   R2 when there is no room, the store is full: the reserve is released, and only transactions
 *      that are part of a deletion are taken. What it held is enough for them, for their
 *      checkpoints and for compaction, which are made in small pieces then.
 *   R3 the store is full until the reserve is held again. What the disk does not give for it is
 *      held as free pages of the base, which is where compaction leaves them: other writes do not
 *      get them. It moves to the disk when there is room.
 * The room is looked at every quarter of a second and for every MiB of the log: a write pays for a
 * comparison. */
#include "base/log.h"
#include "engine.h"

#define LOOK_NS (250 * VG_NS_PER_MS)
#define LOOK_BYTES ((uint64_t)1 << 20) /* of the log; less when the reserve is small */
/* Full for at least this long, so that a store on the brink does not come and go. */
#define FULL_NS (5 * VG_NS_PER_S)
/* Bytes that one change may take in the base: a page of every tree, and more of the log. */
#define FULL_CHANGE_BYTES ((uint64_t)64 << 10)
#define FULL_SLICE_MIN 16

bool vg_room_is_full(struct vg_engine *e)
{
    return atomic_load_explicit(&e->is_full, memory_order_relaxed);
}

/* ---- full, and not ---- */

static void set_full(struct vg_engine *e, bool is_full)
{
    if (atomic_exchange(&e->is_full, is_full) == is_full)
        return;
    e->full_until_ns = vg_clock_mono_ns(e->opts.clock) + FULL_NS;
    vg_waker_wake(&e->flusher.waker);
    if (is_full)
        vg_error(e->opts.log, "store_full",
                 "available_bytes=%llu do=\"free some space on the disk of the store, or delete "
                 "objects: deletions go on, other writes are refused until there is room\"",
                 (unsigned long long)e->available);
    else
        vg_warn(e->opts.log, "store_not_full", "available_bytes=%llu",
                (unsigned long long)e->available);
}

void vg_room_enter_full(struct vg_engine *e)
{
    if (!e->base)
        return;
    e->base->ops->release_reserve(e->base);
    e->next_freeze_ns = 0;
    set_full(e, true);
}

void vg_room_help_flusher(struct vg_engine *e)
{
    if (VG_LIKELY(
            atomic_load_explicit(&e->flusher_err, memory_order_relaxed) != VIGIL_E_STORE_FULL &&
            atomic_load_explicit(&e->compact_err, memory_order_relaxed) != VIGIL_E_STORE_FULL))
        return;
    if (e->reserve && (!vg_room_is_full(e) || atomic_load(&e->base->reserve_held)))
        vg_room_enter_full(e);
}

/* How much of the reserve is not on the disk. */
static uint64_t missing_reserve(struct vg_engine *e, const struct vg_room *room)
{
    uint64_t held = atomic_load_explicit(&e->base->reserve_held, memory_order_relaxed);
    return room->reserve > held ? room->reserve - held : 0;
}

static bool is_roomy(struct vg_engine *e, const struct vg_room *room)
{
    return room->available >= room->reserve + missing_reserve(e, room);
}

/* The whole reserve, or on a disk that has no room for it as much as there is, but for a quarter.
 */
static int hold_reserve(struct vg_engine *e, const struct vg_room *room)
{
    uint64_t missing = missing_reserve(e, room), part = room->available / 4 * 3;
    if (missing == 0)
        return 0;
    uint64_t more = is_roomy(e, room) ? missing : VG_MIN(missing, part - part % 4096);
    return more ? e->base->ops->take_reserve(e->base, room->reserve - missing + more) : 0;
}

static void leave_if_roomy(struct vg_engine *e, const struct vg_room *room)
{
    uint64_t in_base = atomic_load_explicit(&e->base->free_bytes, memory_order_relaxed);
    if (vg_clock_mono_ns(e->opts.clock) < e->full_until_ns || atomic_load(&e->flusher_err) < 0)
        return;
    if ((is_roomy(e, room) || in_base >= 2 * room->reserve) && hold_reserve(e, room) == 0)
        set_full(e, false);
}

/* ---- looking ---- */

void vg_room_look(struct vg_engine *e, uint64_t now_ns)
{
    uint64_t used = e->base->ops->log_used(e->base);
    struct vg_room room = {0};
    if (now_ns < e->next_room_ns && used - e->room_used < e->look_bytes) /* less: it wraps around */
        return;
    e->next_room_ns = now_ns + LOOK_NS;
    e->room_used = used;
    if (e->base->ops->is_removed(e->base))
        vg_commit_set_removed(e);
    if (e->base->ops->room(e->base, &room) < 0 || room.reserve == 0)
        return;
    e->available = room.available;
    uint64_t in_base = atomic_load_explicit(&e->base->free_bytes, memory_order_relaxed);
    uint64_t total = room.available + in_base, missing = missing_reserve(e, &room);
    uint64_t spare = total > missing ? total - missing : 0;
    e->log_max = VG_MAX(spare / 2, room.reserve / 4);
    /* By the disk alone: while they are not counted, free pages are only as many as there were. */
    atomic_store_explicit(&e->is_short, room.available < 8 * room.reserve, memory_order_relaxed);
    if (vg_room_is_full(e))
        leave_if_roomy(e, &room);
    else if (spare < room.reserve / 4)
        set_full(e, true); /* the reserve stays until it is needed */
    else if (missing && is_roomy(e, &room))
        (void)hold_reserve(e, &room); /* else it is tried again */
}

/* Bytes of log that make a checkpoint due. On a small disk the reserve is small too, and must do
 * for what is in the log when another program takes all the rest. */
uint64_t vg_room_checkpoint_bytes(struct vg_engine *e)
{
    uint64_t most = VG_MIN(e->opts.checkpoint_bytes, e->log_max / 2);
    if (vg_room_is_full(e) || e->reserve < e->opts.checkpoint_bytes)
        most = VG_MIN(most, e->reserve ? e->reserve / 4 : most);
    return most;
}

/* Changes that one compaction may look at; 0: no limit but its own. Thread: the flusher. */
size_t vg_room_slice(struct vg_engine *e)
{
    if (!vg_room_is_full(e))
        return 0;
    return VG_MAX((size_t)(e->reserve / 8 / FULL_CHANGE_BYTES), (size_t)FULL_SLICE_MIN);
}

/* At the start: what cannot be held now is full from the beginning. */
void vg_room_start(struct vg_engine *e)
{
    struct vg_room room = {0};
    e->log_max = UINT64_MAX;
    e->look_bytes = LOOK_BYTES;
    if (!e->base || e->opts.reserve_bytes == 0 || e->base->ops->room(e->base, &room) < 0)
        return;
    e->reserve = room.reserve;
    e->available = room.available;
    e->look_bytes = VG_MIN(LOOK_BYTES, VG_MAX(room.reserve / 8, (uint64_t)4096));
    e->base->ops->count_free(e->base);
    bool is_held = e->base->ops->take_reserve(e->base, room.reserve) != VIGIL_E_STORE_FULL;
    if (e->base->ops->room(e->base, &room) < 0 || (is_held && room.available >= room.reserve / 4))
        return;
    if (atomic_load(&e->base->free_bytes) < 2 * room.reserve)
        vg_room_enter_full(e); /* who starts us has files to write too */
    else if (!is_held)
        (void)hold_reserve(e, &room);
}
