/* control_int.h - what the files of this room share. */
#ifndef VG_CONTROL_CONTROL_INT_H
#define VG_CONTROL_CONTROL_INT_H

#include "base/hash.h"
#include "base/log.h"
#include "control.h"
#include "server/kinds/kinds.h"
#include "work.h"
#include "json/json.h"
#include "json/scan.h"
#include "json/write.h"

/* An event of the cache. rec: what is there now, or was before a delete; h: its header. */
struct vg_control_event {
    enum vg_obj_change change;
    const struct vg_kind *kind;
    const struct vg_rec *rec;
    struct vg_obj_header h;
};

struct vg_controller_ops {
    const char *name;           /* of kube-controller-manager */
    bool follows_all;           /* every cached kind; else namespaces and the kinds of `follows` */
    const char *const *follows; /* resources, ends with NULL; NULL: none */
    void (*event)(struct vg_control *c, const struct vg_control_event *e);
    void (*run)(struct vg_work_item *item); /* its work's; work->arg is the struct vg_control */
    /* The whole state has been told: at the start, and again after a watch was lost or leading
     * began anew. No work runs before it. NULL: no matter. */
    void (*synced)(struct vg_control *c);
};
extern const struct vg_controller_ops vg_bootstrap_controller, vg_namespace_controller,
    vg_account_controller, vg_root_ca_controller, vg_garbage_controller, vg_quota_controller,
    vg_flow_controller;

/* One watch of the cache, opened again whenever it ends. */
struct vg_follow {
    struct vg_sink sink; /* first */
    struct vg_control *c;
    const struct vg_kind *kind;
    struct vg_obj_predicate *all;
    struct vg_cache_watcher *watcher; /* NULL: the timer will try again */
    struct vg_timer retry;
    bool is_told; /* the whole state, by the watch that runs */
};

struct vg_garbage;

/* Who runs them, of several servers; lead.c. */
struct vg_lead {
    struct vg_timer timer;    /* the next look */
    struct vg_timer deadline; /* leading ends then, if nothing is renewed */
    struct vg_hash_key hash_key;
    uint64_t seen;     /* the revision of the lease that we saw last, hashed */
    uint64_t seen_ns;  /* when we first saw it */
    uint64_t asked_ns; /* our last write was sent */
    bool is_leading;
};

struct vg_control {
    struct vg_control_opts opts;
    struct vg_loop *loop;
    struct vg_cacher *cacher;
    const struct vg_log *log;
    struct vg_inside *inside;
    const struct vg_kind *namespaces, *pods, *accounts, *config_maps, *leases, *quotas, *services,
        *claims;
    struct vg_follow *follows;
    size_t n_follows, n_told;
    bool is_stopped;
    struct vg_work work[VG_CONTROLLERS];
    struct vg_garbage *garbage; /* garbage.c */
    struct vg_lead lead;
};

/* Follow the kinds, or stop following; what runs ends by itself (control.c). */
void vg_control_follow(struct vg_control *c, bool is_wanted);
VG_CHECK int vg_lead_start(struct vg_control *c);
void vg_lead_stop(struct vg_control *c);

/* ---- looking (control.c) ---- */

/* What the cache has under this name; a reference, NULL: nothing, or no cache. */
struct vg_rec *vg_control_get(struct vg_control *c, const struct vg_kind *kind, struct vg_slice ns,
                              struct vg_slice name);
struct vg_rec *vg_control_get_key(struct vg_control *c, const struct vg_kind *kind,
                                  struct vg_slice key);
/* Each object of a kind in a namespace, or with an empty one in all, as the cache has them now;
 * each says whether to go on. 0: those were all; 1: it said no; VIGIL_E_STORE_DAMAGED: something
 * lies there that cannot be read, nothing was shown; -ENOMEM; as vg_cache_newest. */
typedef bool vg_control_each_fn(void *arg, const struct vg_kind *kind, const struct vg_rec *rec);
int vg_control_each(struct vg_control *c, const struct vg_kind *kind, struct vg_slice ns,
                    vg_control_each_fn *each, void *arg);
/* A walk over the names in metadata.finalizers, as JSON; false: there are none. */
bool vg_control_finalizers(const struct vg_rec *rec, struct vg_json_iter *ret);
/* This key needs work. Memory that lacks is logged: the next event, or the next start, tells again.
 */
void vg_control_add(struct vg_control *c, enum vg_controller which, struct vg_slice key);

/* ---- asking (errand.c) ---- */

/* One request, and what it is for. */
struct vg_errand {
    struct vg_inside_call call; /* first */
    struct vg_control *c;
    struct vg_work_item *item;
    struct vg_buf target, body;
    void (*done)(struct vg_errand *e); /* then it is freed */
    void *state;
};
/* NULL: out of memory. */
struct vg_errand *vg_errand_new(struct vg_control *c, const char *method, struct vg_work_item *item,
                                void (*done)(struct vg_errand *e));
/* /api/v1/namespaces/NS/pods/NAME/SUB; parts that are empty are left out. 0, -ENOMEM. */
VG_CHECK int vg_errand_path(struct vg_errand *e, const struct vg_kind *kind, struct vg_slice ns,
                            struct vg_slice name, const char *sub);
/* With the content type of the body, or NULL when there is none. Consumes it. False: it could not
 * be asked, done does not come, and the item has been told that it failed. */
bool vg_errand_send(struct vg_errand *take_e, const char *content_type);
void vg_errand_free(struct vg_errand *e);
/* It was answered so, by class: 200 to 299. */
static inline bool vg_errand_ok(const struct vg_errand *e)
{
    return e->call.err == 0 && e->call.status / 100 == 2;
}
/* The usual end: done when the status is 2xx or `also`, else failed, and logged. */
void vg_errand_settle(struct vg_errand *e, int also);

#define VG_TYPE_JSON "application/json"
#define VG_TYPE_MERGE "application/merge-patch+json"

#endif
