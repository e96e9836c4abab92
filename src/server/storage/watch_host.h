/* watch_host.h - what a watch (watch.c) needs of its engine: a tail of batches to pull from while
 * it is live, and pieces of the log while it is behind. */
#ifndef VG_STORAGE_WATCH_HOST_H
#define VG_STORAGE_WATCH_HOST_H

#include "loop/tail.h"
#include "storage_int.h"

/* What an engine publishes: whole revisions, in order. Owns its references. */
struct vg_commit_batch {
    struct vg_tail_batch tail;
    vg_rev last; /* newest revision that it completes */
    size_t n;
    size_t bytes;    /* of its records, for the limit on a group */
    bool lacks_prev; /* of some event it was not read: nobody wanted it when it was staged */
    bool is_gap;     /* what happened since the batch before is not in the tail: ask the log */
    struct vg_event events[];
};
void vg_commit_batch_free(struct vg_tail_batch *batch);

/* A watch asks for a piece of the log. */
struct vg_log_read {
    struct vg_store_req req;
    vg_rev from, to; /* to: at the most */
    size_t max;
    struct vg_keys keys;
    struct vg_event *events; /* result; owns references */
    size_t n;
    vg_rev upto; /* result: complete up to here */
    bool no_prev;
    bool unreadable;   /* as in vg_watch_opts */
    vg_rev prev_below; /* as in vg_watch_opts */
};
void vg_log_read_done(struct vg_log_read *read);

/* Embedded in an engine, const once the first watch is opened. */
struct vg_watch_host {
    struct vg_tail *tail; /* of struct vg_commit_batch */
    _Atomic vg_rev *rev;  /* newest visible; the tail reaches it by and by */
    _Atomic bool *closing;
    _Atomic uint32_t *prev_watches; /* watches that want prev */
    /* 0, and read->req is answered later; VIGIL_E_BUSY, VIGIL_E_CLOSED. */
    int (*read)(struct vg_watch_host *h, struct vg_log_read *read);
    /* Somebody waits for the tail to reach *rev. NULL: it does so by itself. Thread: any. */
    void (*hurry)(struct vg_watch_host *h);
    void (*ref)(struct vg_watch_host *h);
    void (*unref)(struct vg_watch_host *h);
};

VG_CHECK int vg_watch_open(struct vg_watch_host *h, const struct vg_watch_opts *opts,
                           struct vg_watch **ret_watch);
/* Wake all watches: they see that the engine is closing and end on their loops. */
void vg_watch_wake_all(struct vg_watch_host *h);

#endif
