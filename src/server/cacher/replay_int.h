/* replay_int.h - what the two halves of replay share: replay.c reads memory, replay_storage.c reads
 * storage. The states are in replay.c. */
#ifndef VG_CACHER_REPLAY_INT_H
#define VG_CACHER_REPLAY_INT_H

#include "cacher_int.h"

enum replay_kind { FROM_STATE, FROM_LIST, FROM_TAIL, FROM_STORAGE };

/* FROM_STATE */
struct state_source {
    struct vg_cache_snapshot snapshot;
    struct vg_cache_walk walk;
    struct vg_obj_key key_buf;
};

/* FROM_LIST and FROM_STORAGE */
struct storage_source {
    struct vg_cache_watcher *w; /* NULL: the watcher is gone, the page under way frees this */
    struct vg_obj_key_range keys;
    /* The log: changes that came and could not be told yet. */
    struct vg_watch *watch;
    bool is_paused;
    struct vg_event *pending;
    size_t n_pending, pending_at;
    vg_rev pending_rev; /* complete up to here once they are told */
    /* The state: a page, told up to list_at. */
    struct vg_range list;
    bool is_listing;
    size_t list_at;
};

/* Whoever comes back has one of these, and thousands come at once: what only some need is apart. */
struct replay {
    enum replay_kind kind;
    uint32_t sub; /* the last change that was looked at is (rev, sub) */
    vg_rev rev;
    uint64_t progress_ns; /* when the sink last took a byte */
    bool with_end_bookmark;
    bool use_links;
    bool links_decide; /* what its links lead to matches: the trigger is all that it asks for */
    struct state_source *state;     /* NULL: not FROM_STATE */
    struct storage_source *storage; /* NULL: storage has not been asked yet */
    /* FROM_TAIL: `seqs` are the changes of its links, the newest first; NULL: every change. */
    struct vg_tail_hold hold;
    uint64_t *seqs;
    size_t n_seqs, seqs_cap;
};

/* replay.c */
/* The state is told: the end bookmark, and what follows from `then`. */
enum told vg_replay_finish_state(struct vg_cache_watcher *w, enum replay_kind then);
/* replay_storage.c */
void vg_storage_source_free(struct storage_source *s); /* NULL allowed */
VG_CHECK int vg_replay_start_storage(struct vg_cache_watcher *w);
VG_CHECK int vg_replay_start_list(struct vg_cache_watcher *w);
bool vg_replay_step_storage(struct vg_cache_watcher *w);
bool vg_replay_step_list(struct vg_cache_watcher *w);

#endif
