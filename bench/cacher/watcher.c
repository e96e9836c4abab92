/* watcher.c - bytes that a live watcher holds while nothing happens. */
#include <malloc.h>

#include "crowd.h"
#include "part.h"

static size_t heap(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Bytes for each of n watchers: its own block, its place in the index and what else came. */
static double measure(struct rig *rig, size_t n, const struct vg_obj_predicate *same)
{
    struct crowd c;
    crowd_init(&c, rig, n);
    size_t before = heap();
    crowd_open(&c, 0, same ? crowd_same : crowd_by_node, same);
    size_t after = heap();
    crowd_done(&c);
    return (double)(after - before) / (double)n;
}

/* Bytes of a node watcher's selector alone, which whoever asks for the watch has made. */
static double selector_bytes(void)
{
    const struct vg_obj_predicate *ps[1000];
    size_t before = heap();
    for (uint32_t i = 0; i < VG_ARRAY_LEN(ps); i++)
        ps[i] = pods_of_node(10000 + i);
    size_t after = heap();
    for (size_t i = 0; i < VG_ARRAY_LEN(ps); i++)
        vg_obj_predicate_unref(ps[i]);
    size_t n = VG_ARRAY_LEN(ps);
    return (double)(after - before) / (double)n;
}

void part_watcher(struct report *r)
{
    size_t n = r->settings.quick ? 20000 : 100000;
    const struct vg_obj_predicate *all = pods_predicate(NULL, NULL);
    struct rig rig;
    rig_open(&rig, NULL);
    double plain = measure(&rig, n, all);
    double node = measure(&rig, n, NULL);
    vg_obj_predicate_unref(all);
    rig_close(&rig);
    double selector = selector_bytes();
    report_one(r, "bytes", plain, "each of %zu watchers of everything", n);
    report_one(r, "bytes", node, "each of %zu node watchers, selector and index included", n);
    report_one(r, "bytes", selector, "of these, the selector");
    report_bar(r, VG_MAX(plain, node), 512, "bytes for an idle watcher, the larger of the two");
}
