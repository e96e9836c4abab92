/* daemon.c - see daemon.h: assembling. Ending is in daemon_end.c, certificates in daemon_tls.c. */
#include "daemon_int.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "notify.h"
#include "server/api/admission.h"
#include "server/api/claims.h"
#include "system_objects.h"

/* ---- logs ---- */

static int open_logs(struct vg_daemon *d, struct vg_status *reterr_status)
{
    static const char *const names[] = {
        [VG_LOG_MAIN] = "main",       [VG_LOG_STORAGE] = "storage", [VG_LOG_CACHER] = "cacher",
        [VG_LOG_API] = "api",         [VG_LOG_GATE] = "gate",       [VG_LOG_NET] = "net",
        [VG_LOG_CONTROL] = "control",
    };
    const struct vg_config *c = d->config;
    enum vg_log_level level;
    vg_log_sink_init(&d->sink, STDERR_FILENO,
                     strcmp(c->log_format, "json") == 0 ? VG_LOG_JSON : VG_LOG_TEXT,
                     vg_clock_system());
    vg_log_root_init(&d->log_root, vg_log_sink_write, &d->sink);
    for (size_t i = 0; i < VG_LOG_COUNT; i++)
        vg_log_root_add(&d->log_root, &d->logs[i], names[i]);
    int r = vg_log_level_parse(vg_slice_str(c->log_level), &level);
    if (r == 0 && c->verbosity >= 4)
        level = VG_LOG_DEBUG;
    if (r == 0)
        r = vg_log_root_set(&d->log_root, level, c->log_components ? c->log_components : "",
                            reterr_status);
    if (r < 0)
        return vg_fail(reterr_status, r, "--log-components: %s", reterr_status->message);
    return 0;
}

/* ---- what was told ---- */

/* What is wrong with the flags is said before anything is made. */
static int look_at_flags(struct vg_daemon *d, struct vg_status *reterr_status)
{
    const struct vg_config *c = d->config;
    struct vg_status status = {0};
    int first, r = 0;
    if (vg_notify_sockets(&first) == 0)
        r = vg_listener_probe(c->bind_address, &status);
    if (r < 0)
        return vg_fail(reterr_status, r, "--bind-address: %s", status.message);
    d->ranges = vg_new(struct vg_claim_ranges);
    r = d->ranges ? vg_claim_ranges_parse(c->service_ips, c->service_ports, d->ranges, &status)
                  : -ENOMEM;
    if (r < 0)
        return vg_fail(reterr_status, r,
                       "--service-cluster-ip-range, --service-node-port-range: %s", status.message);
    r = vg_control_parse(c->controllers, &d->controller_set, &status);
    if (r < 0)
        return vg_fail(reterr_status, r, "--controllers: %s", status.message);
    r = vg_advertise_choose(c->advertise_address, c->bind_address, d->advertised, reterr_status);
    if (r < 0)
        return r;
    r = vg_admission_parse(c->plugins_on, c->plugins_off, &d->plugin_set, reterr_status);
    if (r < 0)
        return r;
    return c->token_auth_file ? vg_tokens_load(c->token_auth_file, &d->tokens, reterr_status) : 0;
}

/* ---- store and cache ---- */

/* As much as a checkpoint: it holds thousands of deletions, and what was written in the seconds
 * before the disk was full. */
#define STORE_RESERVE ((uint64_t)64 << 20)

static int open_storage(struct vg_daemon *d, struct vg_status *reterr_status)
{
    const struct vg_config *c = d->config;
    struct vg_storage_opts o = {.size = sizeof o,
                                .log = vg_daemon_logger(d, VG_LOG_STORAGE),
                                .compact_age_ms = c->compaction_ms,
                                .scrub_ms = c->scrub_ms,
                                .reserve_bytes = STORE_RESERVE,
                                .unsafe_no_fsync = c->unsafe_no_fsync};
    if (strcmp(c->storage, "mem") == 0)
        return vg_storage_open_mem(&o, &d->storage, reterr_status);
    if (strcmp(c->storage, "etcd") == 0)
        return vg_daemon_open_etcd(d, &o, reterr_status);
    int r = vg_data_dir_make(&d->dir, "store", reterr_status);
    char *dir = r < 0 ? NULL : vg_data_dir_path(&d->dir, "store");
    if (r == 0 && !dir)
        return -ENOMEM;
    o.dir = dir;
    if (r == 0)
        r = vg_storage_open_lmdb(&o, &d->storage, reterr_status);
    vg_free(dir);
    return r;
}

/* 10,000: so many etcd replays at once (storage/etcd/legs.c); more would be a second round. */
#define ETCD_REFILL_MAX 10000

static int open_cacher(struct vg_daemon *d, struct vg_status *reterr_status)
{
    size_t n;
    (void)vg_kinds(&n);
    d->uncached = vg_calloc(n, sizeof *d->uncached);
    if (!d->uncached)
        return -ENOMEM;
    struct vg_cacher_opts o = {.storage = d->storage,
                               .log = vg_daemon_logger(d, VG_LOG_CACHER),
                               .make_form = vg_api_make_form,
                               .kept_form = vg_api_kept_form,
                               .frame_form = vg_api_frame_form,
                               .window_ms = d->config->watch_cache_window_ms,
                               .refill_max = d->config->etcd_servers ? ETCD_REFILL_MAX : 0,
                               .stall_ms = d->config->stall_ms};
    int r = vg_cache_sizes_read(d->config, d->uncached, reterr_status);
    if (r == 0)
        r = vg_api_cache_kinds(d->uncached, &o.kinds, &o.n_kinds);
    if (r == 0)
        r = vg_loop_new(vg_clock_system(), &d->feed);
    if (r == 0)
        r = vg_cacher_open(&o, d->feed, &d->cacher);
    if (r == 0)
        r = vg_loop_start(d->feed, "vg-feed");
    d->is_feeding = r == 0;
    return r;
}

/* ---- health ---- */

static const char *check_store(void *arg)
{
    struct vg_daemon *d = arg;
    struct vg_storage_stats stats;
    if (atomic_load(&d->is_store_gone))
        return "the data directory has been removed";
    static _Thread_local struct vg_status status;
    if (vg_storage_health(d->storage, &status) < 0)
        return status.message;
    vg_storage_stats(d->storage, &stats);
    return stats.read_only ? "the store takes no writes" : NULL;
}

static const char *check_cache(void *arg)
{
    return vg_daemon_is_ready(arg) ? NULL : "the cache is being filled";
}

static const char *check_namespaces(void *arg)
{
    return ((struct vg_daemon *)arg)->has_namespaces ? NULL : "system namespaces are missing";
}

static const char *check_space(void *arg)
{
    return vg_storage_is_full(((struct vg_daemon *)arg)->storage)
               ? "the disk of the store is full: deletions go on, other writes are refused"
               : NULL;
}

static const char *check_ending(void *arg)
{
    return atomic_load(&((struct vg_daemon *)arg)->is_ending) ? "process is shutting down" : NULL;
}

/* In the order and by the names that kube-apiserver has for the same things. */
static int add_checks(struct vg_daemon *d)
{
    const unsigned all = VG_LIVEZ | VG_READYZ | VG_HEALTHZ;
    const struct vg_health_check checks[] = {
        {"etcd", all, check_store, d, false},
        {"etcd-readiness", VG_READYZ, check_store, d, false},
        {"storage-space", VG_READYZ, check_space, d, true},
        {"informer-sync", VG_READYZ, check_cache, d, false},
        {"poststarthook/start-system-namespaces-controller", all, check_namespaces, d, false},
        {"poststarthook/storage-readiness", VG_READYZ | VG_HEALTHZ, check_cache, d, false},
        {"shutdown", VG_READYZ, check_ending, d, false},
    };
    vg_health_init(&d->health);
    for (size_t i = 0; i < VG_ARRAY_LEN(checks); i++) {
        if (VG_NEVER(!vg_health_add(&d->health, &checks[i])))
            return VIGIL_E_INTERNAL;
    }
    return 0;
}

/* ---- the api and the gate ---- */

static int open_api(struct vg_daemon *d)
{
    const struct vg_config *c = d->config;
    struct vg_api_opts o = {.storage = d->storage,
                            .cacher = d->cacher,
                            .log = vg_daemon_logger(d, VG_LOG_API),
                            .metrics = d->metrics,
                            .request_timeout_ms = c->request_timeout_ms,
                            .min_request_timeout_s = c->min_request_timeout_s,
                            .event_ttl_ms = c->event_ttl_ms,
                            .ranges = d->ranges,
                            .admission = d->plugin_set,
                            .body_max = c->max_body_bytes,
                            .body_depth = (uint32_t)c->max_body_depth,
                            .issuer = d->issuer,
                            .call_ops = &vg_gate_call_ops};
    return vg_api_new(&o, &d->api);
}

static int open_gate(struct vg_daemon *d)
{
    const struct vg_config *c = d->config;
    d->authz[0] = &vg_authz_basic;
    d->authz[1] = &vg_authz_public;
    d->authz[2] = strcmp(c->authorization_mode, "AlwaysAllow") == 0 ? &vg_authz_always_allow
                                                                    : &vg_authz_masters;
    int r = add_checks(d);
    struct vg_gate_opts o = {.log = vg_daemon_logger(d, VG_LOG_GATE),
                             .metrics = d->metrics,
                             .authz = d->authz,
                             .health = &d->health,
                             .tokens = d->tokens,
                             .issuer = d->issuer,
                             .cacher = d->cacher,
                             .max_inflight = (uint32_t)c->max_inflight,
                             .max_mutating = (uint32_t)c->max_mutating,
                             .has_fairness = c->has_fairness,
                             .request_timeout_ms = c->request_timeout_ms,
                             .request_bytes = c->max_request_bytes,
                             .max_watches_per_user = (uint32_t)c->max_watches_per_user,
                             .body_max = c->max_body_bytes,
                             .slow_ms = c->slow_ms};
    if (r == 0)
        r = vg_gate_new(&o, &d->gate);
    d->tokens = vg_tokens_unref(d->tokens);
    return r;
}

/* 256 descriptors: for files of the store, etcd, listening sockets and loops. Connections leave
 * them alone, or a crowd of clients would keep the store from opening its files. */
#define DESCRIPTORS_KEPT 256u

static uint32_t connections_max(const struct vg_config *c)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur == RLIM_INFINITY)
        return (uint32_t)c->max_connections;
    uint64_t room =
        l.rlim_cur > 2 * DESCRIPTORS_KEPT ? l.rlim_cur - DESCRIPTORS_KEPT : l.rlim_cur / 2;
    return (uint32_t)VG_MIN(c->max_connections, room);
}

static int open_shared(struct vg_daemon *d)
{
    const struct vg_config *c = d->config;
    struct vg_http_shared_opts o = {
        .limits = {.head_bytes = c->max_header_bytes,
                   .body_bytes = c->max_body_bytes,
                   .unsent_bytes = c->unsent_bytes,
                   .connections = connections_max(c),
                   .connections_per_address = (uint32_t)c->max_connections_per_address,
                   .request_bytes = c->max_request_bytes,
                   .handshakes = (uint32_t)c->max_handshakes,
                   .handshakes_per_address = (uint32_t)c->max_handshakes_per_address,
                   .streams = (uint32_t)c->max_streams,
                   .resets_per_second = (uint32_t)c->max_resets,
                   .handshake_ms = c->handshake_ms,
                   .head_ms = c->header_ms,
                   .request_ms = c->request_timeout_ms,
                   .idle_ms = c->idle_ms,
                   .stall_ms = c->stall_ms,
                   .min_rate = c->min_rate},
        .handler = vg_gate_handler(d->gate),
        .log = vg_daemon_logger(d, VG_LOG_NET)};
    return vg_http_shared_new(&o, &d->shared);
}

/* ---- sockets ---- */

static int open_secure(struct vg_daemon *d, struct vg_status *reterr_status)
{
    const struct vg_config *c = d->config;
    int first, n = vg_notify_sockets(&first);
    if (n > 1)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "%d sockets were passed on start, and there is use for one: give the unit a "
                       "single ListenStream=",
                       n);
    if (n == 1)
        return vg_listener_adopt(first, &d->secure, reterr_status);
    return vg_listener_open(c->bind_address, (uint16_t)c->secure_port, &d->secure, reterr_status);
}

static int open_sockets(struct vg_daemon *d, struct vg_status *reterr_status)
{
    const struct vg_config *c = d->config;
    const char *host = strcmp(c->bind_address, "0.0.0.0") == 0 ? "127.0.0.1"
                       : strcmp(c->bind_address, "::") == 0    ? "::1"
                                                               : c->bind_address;
    const char *open = strchr(host, ':') ? "[" : "", *close = *open ? "]" : "";
    int r = open_secure(d, reterr_status);
    if (r == 0 && c->insecure_port)
        r = vg_listener_open("127.0.0.1", (uint16_t)c->insecure_port, &d->plain, reterr_status);
    if (r < 0)
        return r;
    snprintf(d->url, sizeof d->url, "https://%s%s%s:%u", open, host, close,
             vg_listener_port(d->secure));
    return 0;
}

/* ---- loops ---- */

/* One is left for the controllers. */
#define SERVE_LOOPS_MAX (VG_GATE_LOOPS_MAX - 1)

static size_t count_loops(const struct vg_config *c)
{
    cpu_set_t set;
    if (c->loops)
        return c->loops;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : VG_MIN((size_t)n, (size_t)SERVE_LOOPS_MAX);
}

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

/* Where others may serve the same store, one of all runs the controllers. */
static int name_ourselves(struct vg_daemon *d)
{
    char host[64] = "vigild";
    uint64_t id;
    if (strcmp(d->config->storage, "etcd") != 0)
        return 0;
    int r = vg_random_bytes(&id, sizeof id);
    if (gethostname(host, sizeof host - 1) < 0 || strspn(host, NAME_BYTES) != strlen(host))
        snprintf(host, sizeof host, "vigild");
    snprintf(d->identity, sizeof d->identity, "%s_%016llx", host, (unsigned long long)id);
    return r;
}

static int open_control(struct vg_daemon *d, struct vg_worker *w)
{
    int r = name_ourselves(d);
    if (r < 0)
        return r;
    struct vg_control_opts o = {.set = d->controller_set,
                                .loop = w->loop,
                                .cacher = d->cacher,
                                .port = vg_api_loop_port(w->api),
                                .storage = d->storage,
                                .server = w->server,
                                .log = vg_daemon_logger(d, VG_LOG_CONTROL),
                                .root_ca = vg_buf_slice(&d->root_ca),
                                .client_ca = vg_buf_slice(&d->client_ca),
                                .service_ip = d->service_ip,
                                .advertised = *d->advertised ? d->advertised : NULL,
                                .secure_port = vg_listener_port(d->secure),
                                .identity = *d->identity ? d->identity : NULL,
                                .lease_ms = d->config->lease_ms};
    vg_claim_ranges_of(d->api, o.service_ranges, d->service_ip);
    r = vg_control_open(&o, &w->control);
    return r == 0 ? vg_control_start(w->control) : r;
}

static bool is_controllers(const struct vg_daemon *d, const struct vg_worker *w)
{
    return d->controller_set && w == &d->workers[d->n_workers - 1];
}

static int open_worker(struct vg_daemon *d, struct vg_worker *w)
{
    int r = vg_api_loop_open(d->api, w->loop, &w->api);
    if (r == 0)
        r = vg_gate_loop_open(d->gate, w->loop, w->api, &w->gate);
    if (r == 0)
        r = vg_http_server_new(d->shared, w->loop, &w->server);
    if (r < 0 || is_controllers(d, w))
        return r < 0 ? r : open_control(d, w);
    r = vg_http_server_listen(w->server, d->secure, d->tls);
    if (r == 0 && d->plain)
        r = vg_http_server_listen(w->server, d->plain, NULL);
    return r;
}

static int make_loops(struct vg_daemon *d)
{
    d->n_workers = count_loops(d->config) + (d->controller_set != 0);
    d->workers = vg_calloc(d->n_workers, sizeof *d->workers);
    if (!d->workers)
        return -ENOMEM;
    for (size_t i = 0; i < d->n_workers; i++) {
        d->workers[i].daemon = d;
        atomic_init(&d->workers[i].has_beat, true);
        int r = vg_loop_new(vg_clock_system(), &d->workers[i].loop);
        if (r < 0)
            return r;
    }
    return 0;
}

static int start_loops(struct vg_daemon *d)
{
    for (size_t i = 0; i < d->n_workers; i++) {
        int r = open_worker(d, &d->workers[i]);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < d->n_workers; i++) {
        char name[32];
        snprintf(name, sizeof name, d->workers[i].control ? "vg-control" : "vg-serve-%zu", i);
        int r = vg_loop_start(d->workers[i].loop, name);
        if (r < 0)
            return r;
        d->workers[i].is_started = true;
    }
    return 0;
}

/* ---- all of it ---- */

static void write_greeting(struct vg_daemon *d)
{
    char plain[64] = "";
    if (d->plain)
        snprintf(plain, sizeof plain, " and http://127.0.0.1:%u", vg_listener_port(d->plain));
    snprintf(d->greeting, sizeof d->greeting,
             "vigild ready on %s%s  try: kubectl --kubeconfig %s/admin.kubeconfig get namespaces",
             d->url, plain, d->config->data_dir);
}

static int assemble(struct vg_daemon *d, struct vg_status *reterr_status)
{
    int r = open_logs(d, reterr_status);
    if (r == 0)
        r = look_at_flags(d, reterr_status);
    if (r == 0)
        r = vg_data_dir_open(d->config->data_dir, &d->dir, reterr_status);
    if (r == 0)
        r = vg_daemon_begin_tls(d);
    if (r == 0)
        r = open_storage(d, reterr_status);
    if (r == 0)
        r = (d->metrics = vg_metrics_new()) ? make_loops(d) : -ENOMEM;
    if (r == 0)
        r = open_cacher(d, reterr_status);
    if (r == 0)
        r = vg_system_objects_ensure(d->storage, d->workers[0].loop, vg_clock_system(),
                                     reterr_status);
    d->has_namespaces = r == 0;
    if (r == 0)
        r = vg_daemon_join_tls(d, reterr_status);
    if (r == 0)
        r = open_sockets(d, reterr_status);
    if (r == 0)
        r = vg_daemon_write_kubeconfig(d, reterr_status);
    if (r == 0)
        r = vg_daemon_read_cas(d, reterr_status);
    if (r == 0)
        r = vg_daemon_open_issuer(d, reterr_status);
    if (r == 0)
        r = open_api(d);
    if (r == 0)
        r = open_gate(d);
    if (r == 0)
        r = open_shared(d);
    if (r == 0)
        r = vg_daemon_add_metrics(d);
    return r < 0 ? r : start_loops(d);
}

int vg_daemon_start(const struct vg_config *config, struct vg_daemon **ret_daemon,
                    struct vg_status *reterr_status)
{
    struct vg_daemon *d = vg_new(struct vg_daemon);
    if (!d)
        return -ENOMEM;
    d->config = config;
    d->start_wall_ms = vg_clock_wall_ms(vg_clock_system());
    d->dir.fd = d->dir.lock_fd = -1;
    int r = assemble(d, reterr_status);
    if (r < 0) {
        vg_daemon_stop(d);
        return r;
    }
    write_greeting(d);
    *ret_daemon = d;
    return 0;
}

bool vg_daemon_is_ready(struct vg_daemon *d)
{
    return vg_cacher_is_ready(d->cacher);
}

const char *vg_daemon_greeting(struct vg_daemon *d)
{
    return d->greeting;
}
