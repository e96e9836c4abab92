/* daemon_int.h - the daemon's parts, for the files that assemble, renew and end it. */
#ifndef VG_MAIN_DAEMON_INT_H
#define VG_MAIN_DAEMON_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "advertise.h"
#include "base/log_sink.h"
#include "base/metrics.h"
#include "daemon.h"
#include "data_dir.h"
#include "net/server.h"
#include "net/tls.h"
#include "server/api/api.h"
#include "server/api/stored_form.h"
#include "server/control/control.h"
#include "server/http/gate.h"
#include "server/jwt/issuer.h"

/* A loop that serves, with what belongs to it. */
struct vg_worker {
    struct vg_daemon *daemon;
    struct vg_loop *loop;
    struct vg_api_loop *api;
    struct vg_gate_loop *gate;
    struct vg_http_server *server;
    struct vg_control *control; /* of the last worker, which listens to nobody; else NULL */
    bool is_started;
    struct vg_mail beat_mail, drain_mail;
    _Atomic bool has_beat; /* the last beat came back */
    _Atomic bool is_drained;
    bool is_idle; /* while stopping: no request is left */
};

enum vg_daemon_log {
    VG_LOG_MAIN,
    VG_LOG_STORAGE,
    VG_LOG_CACHER,
    VG_LOG_API,
    VG_LOG_GATE,
    VG_LOG_NET,
    VG_LOG_CONTROL,
    VG_LOG_COUNT
};

struct vg_daemon {
    const struct vg_config *config;
    struct vg_log_sink sink;
    struct vg_log_root log_root;
    struct vg_log logs[VG_LOG_COUNT];
    struct vg_tokens *tokens; /* until the gate has them */
    struct vg_issuer *issuer; /* of tokens of service accounts */
    struct vg_data_dir dir;
    struct vg_metrics *metrics;
    struct vg_stored_trouble unreadable; /* in a store in etcd */
    struct vg_storage *storage;
    struct vg_loop *feed;
    bool is_feeding; /* the feed's thread runs */
    bool *uncached;  /* by kind */
    struct vg_cacher *cacher;
    struct vg_claim_ranges *ranges; /* of services; the api's, too */
    struct vg_api *api;
    struct vg_health health;
    const struct vg_authz *authz[4];
    struct vg_gate *gate;
    struct vg_http_shared *shared;
    struct vg_tls *tls;
    struct vg_listener *secure, *plain;
    pthread_t tls_thread; /* prepares the above while the store opens */
    bool is_preparing;
    int tls_result;
    struct vg_status tls_status;
    char *cert_path, *key_path, *client_ca_path; /* absolute */
    char url[128];
    struct vg_worker *workers; /* those that serve, then the controllers' if there are any */
    size_t n_workers;
    unsigned controller_set;           /* of --controllers */
    char advertised[VG_ADVERTISE_MAX]; /* "": only this host reaches us */
    unsigned plugin_set; /* of --enable-admission-plugins and --disable-admission-plugins */
    char identity[128];  /* who we are among servers of one store */
    char service_ip[64]; /* of the service "kubernetes" */
    struct vg_buf root_ca, client_ca; /* what the controllers publish */
    bool has_namespaces;
    int64_t start_wall_ms;
    struct vg_stat_row *stat_rows; /* stats.c */
    _Atomic bool is_ending;
    _Atomic bool is_store_gone; /* from under us: what is written is lost at the end */
    char greeting[1024];
};

static inline const struct vg_log *vg_daemon_logger(const struct vg_daemon *d,
                                                    enum vg_daemon_log which)
{
    return &d->logs[which];
}

/* daemon_tls.c: certificates, the TLS context, the administrator's kubeconfig. */
/* Make certificates and the TLS context on a thread of their own, and wait for them. */
VG_CHECK int vg_daemon_begin_tls(struct vg_daemon *d);
VG_CHECK int vg_daemon_join_tls(struct vg_daemon *d, struct vg_status *reterr_status);
VG_CHECK int vg_daemon_write_kubeconfig(struct vg_daemon *d, struct vg_status *reterr_status);
/* What clients know this server by, and it them, into d->root_ca and d->client_ca. */
VG_CHECK int vg_daemon_read_cas(struct vg_daemon *d, struct vg_status *reterr_status);

/* daemon_issuer.c: keys and names by which tokens of service accounts are given out. */
VG_CHECK int vg_daemon_open_issuer(struct vg_daemon *d, struct vg_status *reterr_status);

/* cache_sizes.c: which kinds go without a cache. `uncached` has an entry for each kind. */
VG_CHECK int vg_cache_sizes_read(const struct vg_config *c, bool *uncached,
                                 struct vg_status *reterr_status);

/* stats.c: what others count, for /metrics. */
VG_CHECK int vg_daemon_add_metrics(struct vg_daemon *d);

/* daemon_etcd.c: as vg_storage_open_etcd, by the flags. */
VG_CHECK int vg_daemon_open_etcd(struct vg_daemon *d, const struct vg_storage_opts *o,
                                 struct vg_status *reterr_status);

#endif
