/* vigil/client.h - a connection to a Kubernetes API server, and the requests one can make.
 * A client owns its connections (HTTP/2, shared by all requests and watches), its credentials and a
 * loop. The loop runs on a thread of its own, or inside the program's event loop (VIGIL_OWN_LOOP):
 * then no thread is made and callbacks come from vigil_client_step. */
#ifndef VIGIL_CLIENT_H
#define VIGIL_CLIENT_H

#include "object.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where and who ----
 * A configuration never changes. Thread: any, but _free when nobody else uses it. */

struct vigil_config;

/* As kubectl finds it: path (NULL: KUBECONFIG, else ~/.kube/config; in a pod without either: the
 * service account), context (NULL: the current one). Credentials by certificate, token, token file,
 * basic, exec; proxies; all fields of the format. */
VIGIL_API VIGIL_CHECKED int vigil_config_load(const char *path, const char *context,
                                              struct vigil_config **ret, struct vigil_error *err);
/* From the text of a kubeconfig; relative paths count from `dir` (NULL: the working directory). */
VIGIL_API VIGIL_CHECKED int vigil_config_parse(struct vigil_text kubeconfig, const char *dir,
                                               const char *context, struct vigil_config **ret,
                                               struct vigil_error *err);
/* From a pod's service account. */
VIGIL_API VIGIL_CHECKED int vigil_config_in_cluster(struct vigil_config **ret,
                                                    struct vigil_error *err);
/* By hand; everything but server may be NULL. */
struct vigil_config_opts {
    size_t size;
    const char *server; /* https://host:port */
    const char *token, *token_file;
    const char *ca_file, *cert_file, *key_file;
    bool insecure_skip_tls_verify;
    const char *namespace_;
};
VIGIL_API VIGIL_CHECKED int vigil_config_new(const struct vigil_config_opts *opts,
                                             struct vigil_config **ret, struct vigil_error *err);
VIGIL_API void vigil_config_free(struct vigil_config *c);
VIGIL_API const char *vigil_config_server(const struct vigil_config *c);
VIGIL_API const char *vigil_config_namespace(const struct vigil_config *c); /* "default" if none */

/* ---- clients ---- */

struct vigil_client;

enum vigil_loop_mode {
    VIGIL_OWN_THREAD, /* the default */
    VIGIL_OWN_LOOP    /* the program calls vigil_client_step */
};
struct vigil_client_opts {
    size_t size;
    enum vigil_loop_mode mode;
    double qps;             /* requests a second; 0 = 5, negative = no limit */
    unsigned burst;         /* 0 = 10 */
    const char *user_agent; /* NULL: the program's name */
    uint64_t timeout_ms;    /* of a request that is not a watch; 0 = 60 s */
    vigil_log_fn *log;      /* NULL: silent */
    void *log_arg;
    enum vigil_level log_level;
};
/* The configuration is copied. opts NULL: defaults. Thread: any. */
VIGIL_API VIGIL_CHECKED int vigil_client_new(const struct vigil_config *config,
                                             const struct vigil_client_opts *opts,
                                             struct vigil_client **ret, struct vigil_error *err);
/* Requests under way end with VIGIL_E_CANCELED; one that a `done` makes meanwhile is refused with
 * VIGIL_E_CLOSED and has no `done` of its own. Everything made from the client (informers, ...) is
 * freed before. Waits for the thread. Thread: not the client's. */
VIGIL_API void vigil_client_free(struct vigil_client *c);

/* With VIGIL_OWN_LOOP: wait until the descriptor is readable or the timeout has passed (-1: no
 * timeout), then step, which never blocks. Thread: always the same one. */
VIGIL_API int vigil_client_fd(const struct vigil_client *c);
VIGIL_API int vigil_client_timeout_ms(struct vigil_client *c);
VIGIL_API void vigil_client_step(struct vigil_client *c);

/* ---- resources ---- */

/* What to talk about. Constant; the texts must outlive whatever uses it. */
struct vigil_resource {
    const char *group; /* "" is core */
    const char *version, *plural, *kind;
    bool namespaced;
};
/* The kinds that most programs need; any other is written down as above. */
VIGIL_API extern const struct vigil_resource vigil_pods, vigil_nodes, vigil_services,
    vigil_configmaps, vigil_secrets, vigil_namespaces, vigil_events, vigil_endpoints,
    vigil_serviceaccounts, vigil_persistentvolumes, vigil_persistentvolumeclaims, vigil_deployments,
    vigil_replicasets, vigil_statefulsets, vigil_daemonsets, vigil_jobs, vigil_cronjobs,
    vigil_leases, vigil_endpointslices;

/* ---- requests ----
 * Each waits for the answer (Thread: any but the client's own; with VIGIL_OWN_LOOP they step the
 * loop meanwhile). The asynchronous form is vigil_request. What is returned as an object holds a
 * reference. `ns` NULL or "": none. */

VIGIL_API VIGIL_CHECKED int vigil_read(struct vigil_client *c, const struct vigil_resource *r,
                                       const char *ns, const char *name,
                                       const struct vigil_object **ret, struct vigil_error *err);
VIGIL_API VIGIL_CHECKED int vigil_create(struct vigil_client *c, const struct vigil_resource *r,
                                         const char *ns, struct vigil_text json,
                                         const struct vigil_object **ret, struct vigil_error *err);
/* Replace; with the resourceVersion in the JSON it fails with VIGIL_E_CONFLICT when it is stale. */
VIGIL_API VIGIL_CHECKED int vigil_update(struct vigil_client *c, const struct vigil_resource *r,
                                         const char *ns, const char *name, const char *subresource,
                                         struct vigil_text json, const struct vigil_object **ret,
                                         struct vigil_error *err);
enum vigil_patch_type {
    VIGIL_PATCH_JSON,
    VIGIL_PATCH_MERGE,
    VIGIL_PATCH_STRATEGIC,
    VIGIL_PATCH_APPLY
};
struct vigil_patch_opts {
    size_t size;
    enum vigil_patch_type type;
    const char *subresource;   /* NULL: none */
    const char *field_manager; /* required by apply */
    bool force, dry_run;
};
VIGIL_API VIGIL_CHECKED int vigil_patch(struct vigil_client *c, const struct vigil_resource *r,
                                        const char *ns, const char *name, struct vigil_text patch,
                                        const struct vigil_patch_opts *opts,
                                        const struct vigil_object **ret, struct vigil_error *err);
struct vigil_delete_opts {
    size_t size;
    int64_t grace_period_s;             /* -1: the object's own */
    const char *uid, *resource_version; /* preconditions; NULL: none */
    const char *propagation;            /* "Background", "Foreground", "Orphan"; NULL */
};
VIGIL_API VIGIL_CHECKED int vigil_delete(struct vigil_client *c, const struct vigil_resource *r,
                                         const char *ns, const char *name,
                                         const struct vigil_delete_opts *opts,
                                         struct vigil_error *err);
/* POST to a subresource that is called: binding, eviction, token. ret may be NULL. */
VIGIL_API VIGIL_CHECKED int vigil_call(struct vigil_client *c, const struct vigil_resource *r,
                                       const char *ns, const char *name, const char *subresource,
                                       struct vigil_text json, const struct vigil_object **ret,
                                       struct vigil_error *err);

struct vigil_list_opts {
    size_t size;
    const char *label_selector, *field_selector;
    const char *resource_version; /* NULL or "": most recent */
    unsigned page_size;           /* 0 = 500; pages are fetched until the end */
    unsigned limit;               /* stop after so many objects; 0 = all */
};
/* Calls each(arg, object) for every object, in order; it may return false to stop. The objects are
 * borrowed for the call: take a reference of what you keep. */
VIGIL_API VIGIL_CHECKED int vigil_list(struct vigil_client *c, const struct vigil_resource *r,
                                       const char *ns, const struct vigil_list_opts *opts,
                                       bool (*each)(void *arg, const struct vigil_object *o),
                                       void *arg, struct vigil_error *err);

/* Anything else: an asynchronous request of any path. done comes on the client's loop, exactly once
 * (also after vigil_request_cancel, with VIGIL_E_CANCELED). */
struct vigil_request_opts {
    size_t size;
    const char *method, *path; /* with the query */
    const char *content_type, *accept;
    struct vigil_text body; /* copied */
    uint64_t timeout_ms;    /* 0 = the client's */
    void (*done)(void *arg, const struct vigil_error *err, struct vigil_text body);
    void *arg;
};
struct vigil_request;
/* The handle is valid until done has returned; ret may be NULL. Thread: any. */
VIGIL_API VIGIL_CHECKED int vigil_request(struct vigil_client *c,
                                          const struct vigil_request_opts *opts,
                                          struct vigil_request **ret, struct vigil_error *err);
VIGIL_API void vigil_request_cancel(struct vigil_request *r);

#ifdef __cplusplus
}
#endif

#endif
