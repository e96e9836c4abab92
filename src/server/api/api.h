/* api.h - the verbs: what happens to a request once it is known who asks and that they may.
 * One vg_api for the process, one vg_api_loop for each loop that serves. A call belongs to the
 * exchange that carries it and lives on its loop.
 *
 *   server/http: on_head  -> target, authentication, authorization, limits
 *                on_request -> vg_api_serve(call) --> respond.h ... call->done
 *
 * Thread: a vg_api_loop and its calls belong to their loop. */
#ifndef VG_API_API_H
#define VG_API_API_H

#include "base/arena.h"
#include "base/list.h"
#include "loop/loop.h"
#include "negotiate.h"
#include "net/http.h"
#include "server/cacher/cacher.h"
#include "server/cacher/sink.h"
#include "server/kinds/user.h"
#include "server/storage/storage.h"
#include "status.h"
#include "target.h"

struct vg_api_access;
struct vg_issuer;
struct vg_log;
struct vg_metrics;
struct vg_api;
struct vg_api_loop;
struct vg_api_call;
struct vg_api_call_ops;
struct vg_claim_ranges;

struct vg_api_opts {
    struct vg_storage *storage;
    struct vg_cacher *cacher;
    const struct vg_clock *clock; /* NULL = the system's */
    const struct vg_log *log;
    struct vg_metrics *metrics;     /* NULL: not counted */
    uint64_t request_timeout_ms;    /* 0 = 60 s */
    uint64_t min_request_timeout_s; /* of watches without timeoutSeconds: 0 = 1800 */
    uint64_t event_ttl_ms;          /* of kinds with a time to live: 0 = what the table says */
    size_t body_max;                /* 0 = 3145728 */
    uint32_t body_depth;            /* nested containers; 0 = VG_JSON_DEPTH_DEFAULT, the most */
    uint64_t seed;                  /* of jitter and names; 0 = random */
    struct vg_claim_ranges *ranges; /* for services (claims.h), outlives it; NULL: the defaults */
    unsigned admission;             /* plugins: vg_admission_parse; 0: none */
    const char *git_version;        /* /version; NULL = "v1.36.4+vigil" */
    const struct vg_issuer *issuer; /* of accounts' tokens; NULL: there are none */
    const struct vg_api_call_ops *call_ops; /* what the maker of calls is told, and does */
};
VG_CHECK int vg_api_new(const struct vg_api_opts *opts, struct vg_api **ret_api);
void vg_api_free(struct vg_api *api); /* every loop is closed */

/* Opens the loop's cacher port. */
VG_CHECK int vg_api_loop_open(struct vg_api *api, struct vg_loop *loop,
                              struct vg_api_loop **ret_loop);
/* All calls have ended (vg_api_loop_drain, and the exchanges aborted). */
void vg_api_loop_close(struct vg_api_loop *l);
/* End every watch, bookmarks first. */
void vg_api_loop_drain(struct vg_api_loop *l);
bool vg_api_loop_is_idle(const struct vg_api_loop *l); /* no call is under way */
struct vg_cache_port *vg_api_loop_port(struct vg_api_loop *l);

/* What cacher opts need to make forms (PartialObjectMetadata, protobuf ...): give them to
 * vg_cacher_open. */
vg_cache_form_fn vg_api_make_form;
vg_cache_kept_fn vg_api_kept_form;
vg_cache_frame_fn vg_api_frame_form;
/* The kinds as the cacher wants them, by index; static storage made once. `uncached`: a bit set by
 * kind index of kinds whose cache size is 0, or NULL. */
VG_CHECK int vg_api_cache_kinds(const bool *uncached, const struct vg_cache_kind **ret_kinds,
                                size_t *ret_n);

struct vg_api_user {
    struct vg_slice name, uid;
    const struct vg_slice *groups;
    size_t n_groups;
    const struct vg_user_extra *extra;
    size_t n_extra;
};

/* What is asked for, and what finding the answer takes. Apart from the call, since a watch lives on
 * for long without it. Made by server/http, which zeroes it and fills the first part. */
/* 128 MiB: what a request may take for itself, and a write for one try. Real objects need ten times
 * their bytes; a list of a million `{}` is 3 MB, and would be half a GB with all that belongs
 * there. Beyond, memory is short, and 500 the answer. */
#define VG_API_ARENA_MAX ((size_t)128 << 20)

struct vg_api_ask {
    struct vg_target *target;
    struct vg_arena arena; /* initialised by the maker, who frees it with the ask */
    /* Lines that the head of the answer shall have beside the common ones:
     * constants, or in the arena. */
    const struct vg_http_field *extra_fields;
    size_t n_extra_fields;
    const struct vg_http_block *block; /* the same for many answers; NULL: none */

    /* api's own from here on. */
    struct vg_media media; /* what the answer shall look like */
    const char **warnings; /* texts to warn with; in the arena, as the array is */
    size_t n_warnings;
    struct vg_timer *deadline; /* in the arena; NULL: none */
};

/* What the maker of calls is told. */
struct vg_api_call_ops {
    /* Exactly once: nothing of the call is under way any more, and its exchange is closed
     * (vg_api_on_closed has come). After it the call is the caller's again. Never from within
     * vg_api_serve; may come from within vg_api_on_closed. */
    void (*done)(struct vg_api_call *call);
    /* At most once, before done: the verb has nothing under way any more, and its answer is net's
     * to send. May come from within vg_api_serve. May be NULL. */
    void (*finished)(struct vg_api_call *call);
    /* For a watch, at most once: the initial phase is over (in-flight limits end here), the request
     * has been released, and call->ask is not looked at any more: it may be freed, and call->ask
     * set to NULL. May be NULL. */
    void (*settled)(struct vg_api_call *call);
    /* What reviews ask (access.h); NULL: there are none. */
    const struct vg_api_access *access;
};

/* A watch that runs. Its watcher is the call's state, and knows where it is, what its sink holds
 * and what it selects by. */
struct vg_api_watch {
    struct vg_sink sink;
    const struct vg_kind *kind;
    uint32_t events;
    uint8_t form;
    uint8_t scope; /* enum vg_watch_scope */
    bool is_full : 1;
    bool is_settled : 1;
    bool is_without_length : 1; /* protobuf in messages of a WebSocket */
    bool is_list : 1;           /* begins with a state whose end is marked */
    bool is_table : 1;          /* each event is a Table of one row */
    bool is_v1beta1 : 1;        /* such a Table */
    bool is_headed : 1;         /* the first one has left: definitions are told once */
    uint8_t include;            /* enum vg_table_include */
};

/* One request. Made by server/http, which embeds it, zeroes it, and fills the first part. Every
 * running watch has one, a block of memory for all that it is to this room and server/http: what is
 * not needed to the end is in the ask. */
struct vg_api_call {
    struct vg_http_exchange *x;
    struct vg_api_loop *loop;
    struct vg_api_ask *ask;         /* not looked at after settled or done */
    const struct vg_api_user *user; /* outlives the call */
    uint64_t started_ns;            /* clock's monotonic time */
    union {
        uint8_t uuid[16];  /* the audit id, unless the client chose one: */
        const char *given; /* outlives the call */
    } audit;
    bool has_given_id : 1;

    /* api's own from here on; zeroed by the maker. */
    bool is_closed : 1;         /* the exchange is gone: finish what runs, answer nothing */
    bool is_answered : 1;       /* a head has left; what is said later is dropped */
    bool is_finished : 1;       /* the verb has nothing under way any more */
    uint16_t status_code;       /* answered, for the log and metrics; 0: not yet */
    const struct vg_api_op *op; /* the verb's state machine: what to do when storage answers,
                                 * the socket drains, the exchange closes */
    void *state;
    uint64_t bytes_out;
    struct vg_api_watch watch;
    union {
        struct vg_list link; /* in the loop's calls or watches, until it is finished */
        struct vg_mail mail; /* brings done, then */
    };
};

/* Its audit id, which is at most this long with the NUL; in the room if it has to be written. */
#define VG_AUDIT_ID_SIZE 37u
const char *vg_api_audit_id(const struct vg_api_call *call, char room[VG_AUDIT_ID_SIZE]);

/* Serve a call whose target is a resource, discovery, /version or below /openapi. Thread: the
 * call's loop. */
void vg_api_serve(struct vg_api_call *call);
/* server/http passes these on from its handler. */
void vg_api_on_drained(struct vg_api_call *call);
void vg_api_on_progress(struct vg_api_call *call, size_t n);
void vg_api_on_closed(struct vg_api_call *call, int err);

/* A watch that runs, for the debug endpoint. Thread: the loop's. */
struct vg_api_watch_info {
    const struct vg_api_call *call;
    const struct vg_kind *kind;
    const struct vg_obj_predicate *predicate; /* namespace and selectors */
    uint64_t events;
    size_t unsent;
    vg_rev rev; /* of the last event sent */
};
void vg_api_each_watch(struct vg_api_loop *l,
                       void (*each)(void *arg, const struct vg_api_watch_info *info), void *arg);

#endif
