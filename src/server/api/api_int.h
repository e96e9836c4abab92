/* api_int.h - what the files of this room share. */
#ifndef VG_API_API_INT_H
#define VG_API_API_INT_H

#include "api.h"
#include "base/list.h"
#include "base/rng.h"
#include "respond.h"
#include "json/json.h"

struct vg_api {
    struct vg_api_opts opts; /* defaults filled in */
    const struct vg_clock *clock;
    const struct vg_log *log;
    struct vg_storage *storage;
    struct vg_cacher *cacher;
    struct vg_api_metrics *counters; /* metrics.c; NULL: not counted */
    struct vg_discovery *discovery;  /* documents, made once (discovery.c) */
};

struct vg_api_loop {
    struct vg_api *api;
    struct vg_loop *loop;
    struct vg_cache_port *port;
    struct vg_rng rng;
    struct vg_json_scratch scratch; /* of parses, kept */
    struct vg_obj_sealed sealed;    /* of writes, kept */
    struct vg_list watches;         /* running ones */
    struct vg_list calls;           /* all that are under way */
};

/* What a call's verb wants to be told. Members may be NULL. */
struct vg_api_op {
    void (*drained)(struct vg_api_call *call);
    void (*progress)(struct vg_api_call *call, size_t n);
    /* The exchange is gone. The verb may still have a request at storage: call->is_closed is set,
     * and vg_call_finish is called when that has come back. NULL: finishes at once. */
    void (*closed)(struct vg_api_call *call, int err);
};

/* The call is over: state is freed, done comes (by mail, never from within). */
void vg_call_finish(struct vg_api_call *call);

/* The verbs; each takes over the call. target, media (negotiated) and user are there. */
void vg_api_get(struct vg_api_call *call);
void vg_api_list(struct vg_api_call *call);
void vg_api_watch(struct vg_api_call *call);
void vg_api_create(struct vg_api_call *call);
void vg_api_update(struct vg_api_call *call);
void vg_api_patch(struct vg_api_call *call);
void vg_api_delete(struct vg_api_call *call);
void vg_api_deletecollection(struct vg_api_call *call);
/* VG_TARGET_API, APIS, GROUP, VERSION; negotiates itself. */
void vg_api_discover(struct vg_api_call *call);

VG_CHECK int vg_discovery_new(struct vg_discovery **ret_discovery);
void vg_discovery_free(struct vg_discovery *d);

#endif
