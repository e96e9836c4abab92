/* world.c - see world.h. */
#include "world.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/transport/config_int.h"

/* Only what is broken waits so long. */
#define LIMIT_MS 60000u

/* On any thread. */
static _Noreturn void give_up(const char *fmt, ...) VG_PRINTF(1, 2);
static _Noreturn void give_up(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}

/* ---- the server ---- */

static void exec_server(const struct server *s, int out)
{
    char port[16];
    snprintf(port, sizeof(port), "%u", s->port);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever becomes of the test */
    dup2(out, STDOUT_FILENO);
    /* History goes soon, so that who was away for a moment meets 410. */
    execl(s->binary, s->binary, "--data-dir", s->dir, "--secure-port", port,
          "--controllers=", "--etcd-compaction-interval", "100ms", "--watch-cache-window", "1s",
          "--unsafe-no-fsync", (char *)NULL);
    _exit(127);
}

/* ---- another server ---- */

/* https://host:port of the kubeconfig. */
static void find_server(struct server *s)
{
    struct vigil_config *config;
    struct vigil_error err;
    if (vigil_config_load(s->kubeconfig, NULL, &config, &err) < 0)
        give_up("%s", err.message);
    const char *host = strstr(vigil_config_server(config), "://") + 3;
    size_t n = strcspn(host, ":/");
    snprintf(s->host, sizeof(s->host), "%.*s", (int)n, host);
    s->port = host[n] == ':' ? (uint16_t)strtoul(host + n + 1, NULL, 10) : 443;
    vigil_config_free(config);
}

static void control(const struct server *s, const char *verb)
{
    char command[600];
    snprintf(command, sizeof(command), "%s %s", s->control, verb);
    if (s->control && system(command) != 0)
        give_up("%s failed", command);
}

/* The same server and user, by way of a port of this machine. */
static struct vigil_config *other_config(const struct server *s, uint16_t port)
{
    struct vigil_config *config;
    struct vigil_error err;
    char url[64];
    if (vigil_config_load(s->kubeconfig, NULL, &config, &err) < 0)
        give_up("%s", err.message);
    if (port == s->port)
        return config;
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", port);
    if (vg_config_copy(&config->arena, vg_slice_str(url), &config->server) < 0 ||
        (!config->tls_server_name &&
         vg_config_copy(&config->arena, vg_slice_str(s->host), &config->tls_server_name) < 0))
        give_up("no memory for a configuration");
    return config;
}

/* ---- vigild ---- */

void server_start(struct server *s)
{
    if (s->kubeconfig) {
        control(s, "start");
        find_server(s);
        return;
    }
    int fds[2];
    char line[512] = "";
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0)
        exec_server(s, fds[1]);
    close(fds[1]);
    FILE *f = fdopen(fds[0], "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    fclose(f);
    char *at = strstr(line, "127.0.0.1:");
    assert_non_null(at);
    s->port = (uint16_t)strtoul(at + strlen("127.0.0.1:"), NULL, 10);
    snprintf(s->host, sizeof(s->host), "127.0.0.1");
}

void server_kill(struct server *s)
{
    if (s->kubeconfig) {
        control(s, "kill");
        return;
    }
    kill(s->pid, SIGKILL);
    assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
}

void server_end(struct server *s)
{
    int status;
    if (s->kubeconfig)
        return;
    kill(s->pid, SIGTERM);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    assert_int_equal(status, 0);
}

const char *server_binary;

int server_set_up(void **state)
{
    static struct server s;
    s = (struct server){.binary = server_binary, .dir = vg_test_tmpdir()};
    server_start(&s);
    *state = &s;
    return 0;
}

int server_tear_down(void **state)
{
    server_end(*state);
    return 0;
}

/* ---- clients ---- */

static struct vigil_config *vigild_config(const struct server *s, uint16_t port)
{
    struct vigil_config_opts o = VIGIL_INIT(struct vigil_config_opts);
    char url[64], ca[256], cert[256], key[256];
    struct vigil_config *config;
    struct vigil_error err;
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", port);
    snprintf(ca, sizeof(ca), "%s/pki/ca.crt", s->dir);
    snprintf(cert, sizeof(cert), "%s/pki/admin.crt", s->dir);
    snprintf(key, sizeof(key), "%s/pki/admin.key", s->dir);
    o.server = url;
    o.ca_file = ca;
    o.cert_file = cert;
    o.key_file = key;
    if (vigil_config_new(&o, &config, &err) < 0)
        give_up("%s", err.message);
    return config;
}

static void print_log(void *arg, enum vigil_level level, const char *component, const char *event,
                      const char *fields)
{
    (void)arg;
    fprintf(stderr, "%d %s %s %s\n", (int)level, component, event, fields);
}

static struct vigil_client *make_client(const struct server *s, uint16_t port,
                                        enum vigil_loop_mode mode, const struct vg_clock *clock)
{
    struct vigil_client_opts co = VIGIL_INIT(struct vigil_client_opts);
    struct vigil_config *config = s->kubeconfig ? other_config(s, port) : vigild_config(s, port);
    struct vigil_client *c;
    struct vigil_error err;
    co.mode = mode;
    co.qps = -1;
    if (getenv("VG_LOG")) { /* to see what a run that fails did */
        co.log = print_log;
        co.log_level = VIGIL_DEBUG;
    }
    if (vg_client_new(config, &co, clock, &c, &err) < 0)
        give_up("%s", err.message);
    vigil_config_free(config);
    return c;
}

struct vigil_client *server_client(const struct server *s, uint16_t port, enum vigil_loop_mode mode)
{
    return make_client(s, port, mode, vg_clock_system());
}

struct vigil_client *server_client_on(const struct server *s, const struct vg_clock *clock)
{
    return make_client(s, s->port, VIGIL_OWN_LOOP, clock);
}

/* ---- followers ---- */

static void forget(struct follower *f, const struct vigil_object *o)
{
    vigil_object_unref(vg_map_remove(&f->model, vg_object_key(o)));
}

static void keep(struct follower *f, const struct vigil_object *o)
{
    const struct vigil_object *old = vg_map_get(&f->model, vg_object_key(o));
    vigil_object_ref(o);
    assert_true(vg_map_put(&f->model, vg_object_key(o), (void *)(uintptr_t)o, NULL) >= 0);
    vigil_object_unref(old);
    vg_cond_broadcast(&f->told);
}

static void on_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    struct follower *f = arg;
    (void)is_initial;
    vg_mutex_lock(&f->mu);
    if (vg_map_find(&f->model, vg_object_key(o)))
        give_up("%s: %.*s added twice", f->name, VG_SLICE_ARG(vg_object_key(o)));
    keep(f, o);
    f->n_added++;
    vg_mutex_unlock(&f->mu);
}

static void on_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    struct follower *f = arg;
    vg_mutex_lock(&f->mu);
    const struct vigil_object *had = vg_map_get(&f->model, vg_object_key(o));
    if (!had || (!f->merges && had != before))
        give_up("%s: %.*s updated from what it was not", f->name, VG_SLICE_ARG(vg_object_key(o)));
    keep(f, o);
    f->n_updated++;
    vg_mutex_unlock(&f->mu);
}

static void on_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    struct follower *f = arg;
    vg_mutex_lock(&f->mu);
    if (!vg_map_find(&f->model, vg_object_key(o)))
        give_up("%s: %.*s deleted and was not there", f->name, VG_SLICE_ARG(vg_object_key(o)));
    forget(f, o);
    f->n_deleted++;
    f->n_tombstones += is_tombstone;
    vg_cond_broadcast(&f->told);
    vg_mutex_unlock(&f->mu);
}

void follower_start(struct follower *f, struct vigil_client *c, const struct follower_opts *o)
{
    static const struct vg_reflector_tuning quick = {.backoff_ns = 10 * VG_NS_PER_MS,
                                                     .backoff_cap_ns = 100 * VG_NS_PER_MS};
    struct vigil_informer_opts io = VIGIL_INIT(struct vigil_informer_opts);
    struct vigil_handler h = {.size = sizeof(h),
                              .on_add = on_add,
                              .on_update = on_update,
                              .on_delete = on_delete,
                              .arg = f,
                              .own_thread = o->own_thread,
                              .buffer_max = o->buffer_max};
    h.overflow = f->merges ? VIGIL_OVERFLOW_MERGE : VIGIL_OVERFLOW_WAIT;
    io.resource = f->resource;
    io.ns = f->ns;
    io.label_selector = f->selector;
    io.queue = o->queue;
    io.page_size = o->page_size;
    io.no_watch_list = o->no_watch_list;
    vg_mutex_init(&f->mu, VG_RANK_CLIENT_WORK);
    vg_cond_init(&f->told);
    assert_int_equal(vigil_informer_new(c, &io, &f->i, NULL), 0);
    f->i->tuning = &quick;
    assert_int_equal(vigil_informer_add_handler(f->i, &h, NULL, NULL), 0);
    assert_int_equal(vigil_informer_start(f->i), 0);
}

void follower_end(struct follower *f)
{
    vigil_informer_free(f->i);
    VG_MAP_FOREACH (e, &f->model)
        vigil_object_unref(e->value);
    vg_map_done(&f->model);
    vg_cond_done(&f->told);
    vg_mutex_done(&f->mu);
}

/* Has the handler been told of exactly what the store has? */
static bool is_told(const struct follower *f, const struct vigil_snapshot *store)
{
    struct vigil_iter at = {0};
    const struct vigil_object *o;
    while ((o = vigil_snapshot_next(store, &at))) {
        if (vg_map_get(&f->model, vg_object_key(o)) != o)
            return false;
    }
    return vg_map_count(&f->model) == vigil_snapshot_count(store);
}

/* Nobody writes any more, so the handler gets there. */
static void await_told(struct follower *f, const struct vigil_snapshot *store)
{
    uint64_t until = vg_clock_mono_ns(vg_clock_system()) + LIMIT_MS * VG_NS_PER_MS;
    vg_mutex_lock(&f->mu);
    while (!is_told(f, store)) {
        if (!vg_cond_wait_until_ns(&f->told, &f->mu, until))
            give_up("%s: the handler was not told of what the store has, %zu of %zu", f->name,
                    vg_map_count(&f->model), vigil_snapshot_count(store));
    }
    vg_mutex_unlock(&f->mu);
}

struct comparison {
    struct follower *f;
    const struct vigil_snapshot *store;
    size_t n;
};

static bool compare_one(void *arg, const struct vigil_object *o)
{
    struct comparison *c = arg;
    struct vigil_text key = vigil_object_key(o);
    const struct vigil_object *mine = vigil_snapshot_get(c->store, key);
    if (!mine)
        give_up("%s: %.*s is missing in the store", c->f->name, VIGIL_TEXT_ARG(key));
    vg_assert_slice_equal(vg_object_version(mine), vg_object_version(o));
    c->n++;
    return true;
}

void follower_compare(struct follower *f, struct vigil_client *direct, const char *mark,
                      struct vigil_text version)
{
    struct vigil_list_opts lo = VIGIL_INIT(struct vigil_list_opts);
    struct vigil_error err;
    int r = vigil_informer_wait_for(f->i, version, LIMIT_MS);
    if (r < 0)
        give_up("%s: the store does not show %s: %s", f->name, mark, vigil_code_text(r));
    lo.label_selector = f->selector;
    struct comparison c = {f, vigil_store_snapshot(vigil_informer_store(f->i)), 0};
    assert_non_null(c.store);
    await_told(f, c.store);
    if (vigil_list(direct, f->resource, f->ns, &lo, compare_one, &c, &err) < 0)
        give_up("cannot list: %s", err.message);
    assert_int_equal(vigil_snapshot_count(c.store), c.n);
    vigil_snapshot_unref(c.store);
}
