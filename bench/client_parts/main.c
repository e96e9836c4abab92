/* main.c - bench_client_parts: what an object of 4 KB costs on its way from the receive buffer into
 * a store. Times are medians of CPU time over rounds, over 10,000 different pods that do not fit
 * the inner caches. Fails when a bar is missed: 3 us to make an object, 100 bytes of a store for it
 * beside its block. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/fifo/consume.h"
#include "client/object/client_object_testing.h"
#include "timing.h"
#include "vigil/store.h"

#define PODS 10000u
#define ROUNDS 15u

struct bench {
    char *json;              /* all pods, one after the other: the receive buffer */
    struct vg_slice v[PODS]; /* each of them */
    const struct vigil_object *objects[PODS];
    struct vigil_store *store;
};

static void must(int r)
{
    if (r < 0)
        abort();
}

static void make_texts(struct bench *b)
{
    size_t n = 0;
    b->json = malloc((size_t)PODS * 8192);
    must(b->json ? 0 : -1);
    for (unsigned i = 0; i < PODS; i++) {
        size_t got = vg_test_pod_json(b->json + n, 8192, i, i, false);
        b->v[i] = vg_slice(b->json + n, got);
        n += got;
    }
    printf("pods                     %u of %zu bytes\n", PODS, n / PODS);
}

static void drop(struct bench *b)
{
    for (unsigned i = 0; i < PODS; i++)
        vigil_object_unref(b->objects[i]);
}

static void make_objects(struct bench *b)
{
    struct vg_object_type type = {VG_SLICE_LIT("v1"), VG_SLICE_LIT("Pod")};
    for (unsigned i = 0; i < PODS; i++)
        must(vg_object_make(b->v[i], &type, &b->objects[i]));
}

/* The median over rounds, in ns per pod. `after` is not measured. */
static double measure(struct bench *b, void (*fn)(struct bench *b), void (*after)(struct bench *b))
{
    double t[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        double start = bench_thread_ns();
        fn(b);
        t[i] = (bench_thread_ns() - start) / PODS;
        if (after)
            after(b);
    }
    return bench_median(t, ROUNDS);
}

static void look(struct bench *b)
{
    size_t n = 0;
    for (unsigned i = 0; i < PODS; i++)
        n += vigil_get_string(b->objects[i], "spec.nodeName").n;
    must(n ? 0 : -1);
}

/* ---- the store ---- */

static void by_node(void *arg, const struct vigil_object *o,
                    void (*emit)(void *emit_arg, struct vigil_text value), void *emit_arg)
{
    (void)arg;
    emit(emit_arg, vigil_get_string(o, "spec.nodeName"));
}

static void replace(struct bench *b)
{
    must(vigil_store_replace(b->store, b->objects, PODS, vigil_text("1")));
}

static void put(struct bench *b)
{
    for (unsigned i = 0; i < PODS; i++)
        must(vigil_store_put(b->store, b->objects[(i * 7919) % PODS]));
}

/* The worst a reader can do: take a snapshot after every write. */
static void put_under_snapshots(struct bench *b)
{
    for (unsigned i = 0; i < PODS; i++) {
        const struct vigil_snapshot *s = vigil_store_snapshot(b->store);
        must(vigil_store_put(b->store, b->objects[(i * 7919) % PODS]));
        vigil_snapshot_unref(s);
    }
}

static void get(struct bench *b)
{
    for (unsigned i = 0; i < PODS; i++)
        vigil_object_unref(
            vigil_store_get(b->store, vigil_object_key(b->objects[(i * 7919) % PODS])));
}

static void walk(struct bench *b)
{
    const struct vigil_snapshot *s = vigil_store_snapshot(b->store);
    struct vigil_iter at = {0};
    while (vigil_snapshot_next(s, &at))
        continue;
    vigil_snapshot_unref(s);
}

static double measure_store(struct bench *b, const struct vigil_index *indexes, size_t n)
{
    printf("store, indexes beside the namespace's: %zu\n", n);
    size_t before = mallinfo2().uordblks;
    must(vigil_store_new(indexes, n, &b->store, NULL));
    replace(b);
    double bytes = (double)(mallinfo2().uordblks - before) / PODS;
    printf("  memory, replaced       %.0f bytes\n", bytes);
    printf("  replace                %.0f ns\n", measure(b, replace, NULL));
    printf("  put                    %.0f ns\n", measure(b, put, NULL));
    printf("  put under snapshots    %.0f ns\n", measure(b, put_under_snapshots, NULL));
    printf("  get                    %.0f ns\n", measure(b, get, NULL));
    printf("  next of a snapshot     %.0f ns\n", measure(b, walk, NULL));
    vigil_store_free(b->store);
    must(vigil_store_new(indexes, n, &b->store, NULL));
    put(b);
    bytes = (double)(mallinfo2().uordblks - before) / PODS;
    printf("  memory, one by one     %.0f bytes\n", bytes);
    vigil_store_free(b->store);
    return bytes;
}

/* ---- from the queue into the store, with callbacks ---- */

struct told {
    size_t adds, updates, deletes;
};

static void on_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    (void)o, (void)is_initial;
    ((struct told *)arg)->adds++;
}
static void on_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    (void)before, (void)o;
    ((struct told *)arg)->updates++;
}
static void on_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    (void)o, (void)is_tombstone;
    ((struct told *)arg)->deletes++;
}

static struct vg_fifo *queue;
static struct vg_consumer consumer;

static void pass_list(struct bench *b)
{
    must(vg_fifo_replace(queue, b->objects, PODS, VG_SLICE_LIT("1")));
    while (vg_fifo_pop(queue, false, vg_consume, &consumer) > 0)
        continue;
}

static void pass_events(struct bench *b)
{
    for (unsigned i = 0; i < PODS; i++) {
        must(vg_fifo_put(queue, VG_DELTA_UPDATED, b->objects[(i * 7919) % PODS]));
        if (vg_fifo_pop(queue, false, vg_consume, &consumer) != 1)
            abort();
    }
}

static void measure_queue(struct bench *b)
{
    struct told told = {0};
    struct vg_consumer_calls calls = {on_add, on_update, on_delete, &told};
    must(vigil_store_new(NULL, 0, &b->store, NULL));
    must(vg_fifo_new(&(struct vg_fifo_opts){0}, &queue));
    vg_consumer_init(&consumer, b->store, &calls);
    pass_list(b);
    printf("queue, store, callback\n");
    printf("  a list                 %.0f ns\n", measure(b, pass_list, NULL));
    printf("  an event               %.0f ns\n", measure(b, pass_events, NULL));
    must(told.adds == PODS && told.deletes == 0 ? 0 : -1);
    vg_fifo_free(queue);
    vg_consumer_done(&consumer);
    vigil_store_free(b->store);
}

int main(void)
{
    static struct bench b;
    /* Keep what was freed: fresh pages cost the kernel more than the object costs us. */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    make_texts(&b);
    double start = bench_thread_ns();
    make_objects(&b);
    printf("make an object, in fresh memory %.0f ns\n", (bench_thread_ns() - start) / PODS);
    drop(&b);
    double make = measure(&b, make_objects, drop);
    make_objects(&b);
    printf("make an object           %.0f ns\n", make);
    printf("vigil_get spec.nodeName  %.0f ns\n", measure(&b, look, NULL));
    struct vigil_index index = {"node", by_node, NULL};
    double bytes = measure_store(&b, NULL, 0);
    bytes = bytes > 100 ? bytes : measure_store(&b, &index, 1);
    measure_queue(&b);
    drop(&b);
    free(b.json);
    return make < 3000 && bytes <= 100 ? 0 : 1;
}
