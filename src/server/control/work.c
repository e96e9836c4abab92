/* work.c - see work.h.
 *   W1 an item is in `items` as long as it exists; in `waiting` or `asleep` unless it runs.
 *   W2 asleep is sorted by due_ns; the timer is armed for its first, or for now if some wait. */
#include "work.h"

#include <errno.h>

#include "base/alloc.h"

#define BACKOFF_FIRST_MS 50u
#define BACKOFF_MAX_MS 60000u

static void arm(struct vg_work *w);

static void item_free(struct vg_work_item *item)
{
    vg_map_remove(&item->work->items, item->key);
    vg_list_remove(&item->link);
    vg_free(item);
}

static void to_sleep(struct vg_work_item *item, uint64_t delay_ms)
{
    struct vg_work *w = item->work;
    struct vg_list *at = w->asleep.next;
    item->is_asleep = true;
    item->due_ns = vg_clock_mono_ns(vg_loop_clock(w->loop)) + delay_ms * VG_NS_PER_MS;
    while (at != &w->asleep &&
           VG_CONTAINER_OF(at, struct vg_work_item, link)->due_ns <= item->due_ns)
        at = at->next;
    vg_list_insert_before(at, &item->link);
}

static void to_line(struct vg_work_item *item)
{
    item->is_asleep = false;
    vg_list_push_back(&item->work->waiting, &item->link);
}

static void wake_due(struct vg_work *w)
{
    uint64_t now = vg_clock_mono_ns(vg_loop_clock(w->loop));
    while (!vg_list_is_empty(&w->asleep)) {
        struct vg_work_item *item = VG_CONTAINER_OF(w->asleep.next, struct vg_work_item, link);
        if (item->due_ns > now)
            return;
        vg_list_remove(&item->link);
        to_line(item);
    }
}

static void on_timer(struct vg_timer *t)
{
    struct vg_work *w = VG_CONTAINER_OF(t, struct vg_work, timer);
    struct vg_list *n;
    wake_due(w);
    while (!w->is_closed && !w->is_paused && w->running < VG_WORK_RUNNING_MAX &&
           (n = vg_list_pop_front(&w->waiting))) {
        struct vg_work_item *item = VG_CONTAINER_OF(n, struct vg_work_item, link);
        item->is_running = true;
        item->is_again = false;
        w->running++;
        w->run(item);
    }
    arm(w);
}

static void arm(struct vg_work *w)
{
    if (w->is_closed || w->is_paused || w->running == VG_WORK_RUNNING_MAX)
        return;
    if (!vg_list_is_empty(&w->waiting)) {
        vg_timer_start(w->loop, &w->timer, 0, on_timer);
    } else if (!vg_list_is_empty(&w->asleep)) {
        uint64_t now = vg_clock_mono_ns(vg_loop_clock(w->loop));
        uint64_t due = VG_CONTAINER_OF(w->asleep.next, struct vg_work_item, link)->due_ns;
        vg_timer_start(w->loop, &w->timer, due > now ? due - now : 0, on_timer);
    }
}

void vg_work_init(struct vg_work *w, struct vg_loop *loop, void (*run)(struct vg_work_item *item),
                  void *arg)
{
    *w = (struct vg_work){.loop = loop, .run = run, .arg = arg};
    vg_map_init(&w->items, VG_MAP_BORROWS_KEYS);
    vg_list_init(&w->waiting);
    vg_list_init(&w->asleep);
}

void vg_work_pause(struct vg_work *w, bool is_paused)
{
    w->is_paused = is_paused;
    arm(w);
}

void vg_work_close(struct vg_work *w)
{
    w->is_closed = true;
    vg_timer_stop(w->loop, &w->timer);
}

void vg_work_free_all(struct vg_work *w)
{
    assert(w->running == 0);
    vg_work_close(w);
    while (!vg_list_is_empty(&w->waiting))
        item_free(VG_CONTAINER_OF(w->waiting.next, struct vg_work_item, link));
    while (!vg_list_is_empty(&w->asleep))
        item_free(VG_CONTAINER_OF(w->asleep.next, struct vg_work_item, link));
    vg_map_done(&w->items);
}

int vg_work_add(struct vg_work *w, struct vg_slice key)
{
    struct vg_work_item *item = vg_map_get(&w->items, key);
    if (item) { /* one that sleeps after a failure stays asleep: the news may be its own doing */
        item->is_again = item->is_running;
        return 0;
    }
    item = vg_malloc(sizeof *item + key.n);
    if (!item)
        return -ENOMEM;
    *item = (struct vg_work_item){.work = w};
    vg_list_init(&item->link);
    memcpy(item + 1, key.p, key.n);
    item->key = vg_slice((const char *)(item + 1), key.n);
    int r = vg_map_put(&w->items, item->key, item, NULL);
    if (r < 0) {
        vg_free(item);
        return r;
    }
    to_line(item);
    arm(w);
    return 0;
}

static void stop_running(struct vg_work_item *item)
{
    assert(item->is_running);
    item->is_running = false;
    item->work->running--;
}

void vg_work_done(struct vg_work_item *item)
{
    struct vg_work *w = item->work;
    stop_running(item);
    item->failures = 0;
    if (item->is_again)
        to_line(item);
    else
        item_free(item);
    arm(w);
}

void vg_work_later(struct vg_work_item *item, uint64_t delay_ms)
{
    struct vg_work *w = item->work;
    stop_running(item);
    to_sleep(item, delay_ms);
    arm(w);
}

void vg_work_failed(struct vg_work_item *item)
{
    uint32_t doublings = VG_MIN(item->failures, 20u);
    item->failures++;
    vg_work_later(item, VG_MIN((uint64_t)BACKOFF_FIRST_MS << doublings, (uint64_t)BACKOFF_MAX_MS));
}
