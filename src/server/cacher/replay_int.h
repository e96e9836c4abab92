/* replay_int.h - what the two halves of replay share: replay.c reads memory, replay_storage.c reads
 * storage. The states are in replay.c. */
#ifndef VG_CACHER_REPLAY_INT_H
#define VG_CACHER_REPLAY_INT_H

#include "cacher_int.h"

enum replay_kind { FROM_STATE, FROM_LIST, FROM_TAIL, FROM_STORAGE };

struct replay {
    struct vg_cache_watcher *w; /* NULL: the watcher is gone, what is under way frees this */
    enum replay_kind kind;
    bool with_end_bookmark;
    /* FROM_STATE */
    struct vg_cache_snapshot snapshot;
    struct vg_cache_walk walk;
    struct vg_obj_key key_buf;
    /* FROM_TAIL: `seqs` are the changes of its links, from at on; NULL: every change. */
    struct vg_tail_hold hold;
    uint64_t *seqs;
    bool use_links;
    bool links_decide; /* what its links lead to matches: the trigger is all that it asks for */
    size_t n_seqs, at, seqs_cap; /* FROM_LIST uses `at` too */
    /* FROM_STORAGE: changes that came and could not be told yet. */
    struct vg_watch *watch;
    bool is_paused;
    struct vg_event *pending;
    size_t n_pending, pending_at;
    vg_rev pending_rev; /* complete up to here once they are told */
    /* FROM_LIST */
    struct vg_range list;
    bool is_listing;
    struct vg_obj_key_range keys;
};

/* replay.c */
void vg_replay_really_free(struct replay *r);
/* The state is told: the end bookmark, and what follows from `then`. */
enum told vg_replay_finish_state(struct vg_cache_watcher *w, enum replay_kind then);
/* replay_storage.c */
VG_CHECK int vg_replay_start_storage(struct vg_cache_watcher *w);
VG_CHECK int vg_replay_start_list(struct vg_cache_watcher *w);
bool vg_replay_step_storage(struct vg_cache_watcher *w);
bool vg_replay_step_list(struct vg_cache_watcher *w);

#endif
