/* workload.h - what is written: keys like Kubernetes', values of one size, creates and updates.
 * Every writer owns its keys, so that it always knows their revisions and no two requests under way
 * touch the same key. Ten thousand keys are there before anything is timed; then one write in ten
 * creates a key and the others update a random one that exists: each engine sees the same mix
 * however fast it is. Thread: one per writer. */
#ifndef BENCH_STORAGE_WORKLOAD_H
#define BENCH_STORAGE_WORKLOAD_H

#include "base/rng.h"
#include "base/slice.h"

#define WL_KEY_LEN 45 /* /registry/pods/namespace-00/app-0000-00000000 */
/* 64 bytes: about what an object header of a pod takes beside its value. */
#define WL_HEADER_LEN 64
#define WL_KEYS_FIRST 10000
#define WL_CREATE_ONE_IN 10

struct wl_writer {
    struct vg_rng rng;
    uint32_t id;
    uint32_t n_keys, cap;
    uint64_t *revs; /* of each key, as the engine answered */
    const struct workload *load;
};

struct workload {
    char *pool; /* random text that headers and values are cut from */
    size_t value_len;
    uint32_t n_writers, keys_first;
    bool only_create;
    struct wl_writer *writers;
};

struct wl_op {
    char key[WL_KEY_LEN + 1];
    uint32_t slot;
    uint64_t expect; /* revision that the key has; 0 = it is a create */
    /* Header and value lie one behind the other: what SQLite stores as one blob. */
    struct vg_slice header, value;
};

/* n bytes that do not repeat; to be freed. */
char *workload_text(size_t n);

struct workload *workload_new(uint32_t n_writers, size_t value_len, bool only_create);
void workload_free(struct workload *load);
/* What the user has asked to store with one write. */
size_t workload_bytes(const struct workload *load);
uint64_t workload_keys(const struct workload *load);
/* Writes that make the first keys: so many creates, whichever writers make them. */
uint64_t workload_fill(const struct workload *load);

void wl_key(char *ret_key, uint32_t writer, uint32_t slot);
void wl_next(struct wl_writer *w, struct wl_op *ret_op);
/* The engine has answered with this revision. */
void wl_done(struct wl_writer *w, const struct wl_op *op, uint64_t rev);

#endif
