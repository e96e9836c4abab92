/* api_int.h - what the files of this room share. */
#ifndef VG_API_API_INT_H
#define VG_API_API_INT_H

#include <stdatomic.h>

#include "api.h"
#include "base/list.h"
#include "base/rng.h"
#include "metrics.h"
#include "respond.h"
#include "json/json.h"

struct vg_admission;
struct vg_claim_ranges;

struct vg_api {
    struct vg_api_opts opts; /* defaults filled in */
    const struct vg_clock *clock;
    const struct vg_log *log;
    struct vg_storage *storage;
    struct vg_cacher *cacher;
    struct vg_api_metrics *counters;    /* metrics.c; NULL: not counted */
    struct vg_discovery *discovery;     /* documents, made once (discovery.c) */
    struct vg_claim_ranges *ranges;     /* what is given once (claims.h) */
    struct vg_claim_ranges *own_ranges; /* NULL: they are another's */
    struct vg_admission *admission;     /* plugins (admission.h) */
    _Atomic uint64_t namespaces_rev;    /* of our last write of a namespace: see admit.c */
};

/* The priority class that is the default of all, until a class changes (admission_priority.c). */
struct vg_priority_memo {
    vg_rev rev; /* of the classes; 0: not known */
    int64_t value;
    uint8_t name_n, policy_n; /* no name: there is none */
    char name[255], policy[32];
};

struct vg_api_loop {
    struct vg_api *api;
    struct vg_loop *loop;
    struct vg_cache_port *port;
    struct vg_rng rng;
    uint8_t random[512];            /* of uids: the kernel is asked for many at once */
    size_t n_random;                /* left */
    struct vg_json_scratch scratch; /* of parses, kept */
    struct vg_arena trial;          /* of a write's try, kept (commit.c) */
    struct vg_obj_sealed sealed;    /* of writes, kept */
    struct vg_list watches;         /* calls that are watches and run */
    struct vg_list calls;           /* all others that are under way */
    struct vg_watch_count *counts;  /* by kind (metrics.h); NULL: not counted */
    struct vg_timer tidy;           /* of OpenAPI documents (openapi_serve.c) */
    struct vg_priority_memo priority;
};

/* What the call's maker is told, and does for it. */
static inline const struct vg_api_call_ops *vg_call_ops(const struct vg_api_call *call)
{
    return call->loop->api->opts.call_ops;
}

/* What a call's verb wants to be told. Members may be NULL. */
struct vg_api_op {
    void (*drained)(struct vg_api_call *call);
    void (*progress)(struct vg_api_call *call, size_t n);
    /* The exchange is gone. The verb may still have a request at storage: call->is_closed is set,
     * and vg_call_finish is called when that has come back. NULL: finishes at once. */
    void (*closed)(struct vg_api_call *call, int err);
};

/* The verb has nothing under way any more: nothing of storage's, no timer, no wait. Whoever answers
 * through respond.h need not call it; who writes the body itself calls it after vg_http_end. The
 * call is gone once its exchange is closed too; done never comes from within. An exchange that was
 * never answered is aborted. */
void vg_call_finish(struct vg_api_call *call);
/* What a verb needs until it has answered: zeroed, in the call's arena. NULL: there is no memory,
 * and the call is answered so. */
#define vg_call_new(call, type) ((type *)vg_call_work((call), sizeof(type)))
void *vg_call_work(struct vg_api_call *call, size_t n);

/* Would a state of what matches be without something that cannot be read? Then the Status says so;
 * of a kind without a cache storage tells. */
struct vg_api_status;
bool vg_api_is_unreadable(struct vg_api_call *call, size_t kind, const struct vg_obj_predicate *p,
                          struct vg_api_status *ret_status);

/* The forms that vg_api_make_form knows; 0 is the stored JSON. */
enum {
    VG_FORM_PARTIAL = 1,
    VG_FORM_PARTIAL_V1BETA1 = 2,
    /* From here on in protobuf, in the order of enum vg_protobuf_as. */
    VG_FORM_PROTOBUF = 3,
    VG_FORMS = VG_FORM_PROTOBUF + 3,
    /* Any of these, 0 too, of the object in the other version of its kind (versions.h). */
    VG_FORM_OTHER_VERSION = VG_FORMS,
    VG_FORMS_ALL = 2 * VG_FORMS
};

/* The verbs; each takes over the call. target, media (negotiated) and user are there. */
void vg_api_get(struct vg_api_call *call);
void vg_api_list(struct vg_api_call *call);
void vg_api_watch(struct vg_api_call *call);
void vg_api_create(struct vg_api_call *call);
void vg_api_update(struct vg_api_call *call);
void vg_api_patch(struct vg_api_call *call);
void vg_api_delete(struct vg_api_call *call);
void vg_api_deletecollection(struct vg_api_call *call);
/* Every verb of a subresource that a node would answer (connect.c). */
void vg_api_connect(struct vg_api_call *call);
/* Of kinds that are not stored: POST of a review (review.c; false: it is none), and components of
 * the control plane (component.c). */
bool vg_api_review(struct vg_api_call *call);
void vg_api_get_component(struct vg_api_call *call);
void vg_api_list_components(struct vg_api_call *call);
/* VG_TARGET_API, APIS, GROUP, VERSION; negotiates itself: call->media says pretty alone. */
void vg_api_discover(struct vg_api_call *call);

/* VG_TARGET_OTHER: /version and /openapi; else 404 in text. */
void vg_api_other(struct vg_api_call *call);
void vg_api_version(struct vg_api_call *call);
void vg_api_openapi(struct vg_api_call *call);
bool vg_api_openid(struct vg_api_call *call); /* false: none of its paths (openid.c) */

/* git_version: of /version and of OpenAPI's info. */
VG_CHECK int vg_discovery_new(const char *git_version, struct vg_discovery **ret_discovery);
void vg_discovery_free(struct vg_discovery *d);

#endif
