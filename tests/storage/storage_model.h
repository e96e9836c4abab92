/* storage_model.h - what a store should be, in the simplest terms: a list of all changes, ever.
 * Nothing is forgotten, nothing is indexed; every question is answered by walking the list. It
 * shares no code with the engines: only the types of storage.h. */
#ifndef VG_TESTS_STORAGE_MODEL_H
#define VG_TESTS_STORAGE_MODEL_H

#include "server/storage/storage.h"

#define MODEL_NONE SIZE_MAX

struct model_change {
    vg_rev rev, create_rev, prev_rev;
    uint32_t sub;
    unsigned key; /* index into the model's keys */
    bool is_delete;
    uint64_t version;
    int64_t time_ms, expires_ms;
    struct vg_slice header, value; /* owned */
    size_t prev;                   /* the change that it replaces, or MODEL_NONE */
};

struct model {
    const struct vg_slice *keys; /* the only ones there are, in order; borrowed */
    unsigned n_keys;
    struct model_change *changes;
    size_t n, cap;
    vg_rev rev, compacted;
};

/* One operation; the key by number. */
struct model_op {
    enum vg_op_type type;
    unsigned key;
    vg_rev expect;
    uint64_t ttl_ms;
    struct vg_slice header, value; /* borrowed */
};

void model_init(struct model *m, const struct vg_slice *keys, unsigned n_keys);
void model_done(struct model *m);

/* What a key holds at a revision: the number of the put, or MODEL_NONE when it is absent. */
size_t model_find(const struct model *m, unsigned key, vg_rev at);
/* Its revision; 0 when it is absent. */
vg_rev model_key_rev(const struct model *m, unsigned key);

/* 0, or VIGIL_E_CONFLICT and *ret_failed. */
int model_txn(struct model *m, const struct model_op *ops, unsigned n, int64_t now_ms,
              unsigned *ret_failed);

/* Is the key there although its time is over? */
bool model_is_due(const struct model *m, unsigned key, int64_t now_ms);
/* The keys in this order expire, at one revision. */
void model_expire(struct model *m, const unsigned *keys, unsigned n, int64_t now_ms);

bool model_keys_contain(const struct vg_keys *keys, struct vg_slice key);

#endif
