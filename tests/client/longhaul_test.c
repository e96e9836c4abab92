/* longhaul_test <vigild>, or <kubeconfig> [<control>] for another server (see world.h).
 * The long haul: informers of several kinds follow a real server through a proxy, under random
 * writes, while connections are reset, the way is closed until history has gone (410), and the
 * server is killed and started again. At every quiet point each store equals the server's list, and
 * what its handler was told explains it. VG_SEED repeats the choices, VG_LONG=1 takes more rounds.
 */
#include "world.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "proxy.h"

#define WRITERS 2u
#define NAMES 40u
#define NS "default"

static struct server the_server;

/* ---- writing ---- */

struct writers {
    struct server *server;
    uint64_t seed;
    _Atomic bool is_paused, is_over;
    _Atomic unsigned n_writers, n_resting;
    _Atomic size_t writes;
};

static const struct vigil_resource *const kinds[] = {&vigil_configmaps, &vigil_pods, &vigil_nodes};
static const char *const api_kinds[] = {"ConfigMap", "Pod", "Node"};

static const char *ns_of(size_t k)
{
    return kinds[k]->namespaced ? NS : NULL;
}

static void object_json(char *buf, size_t size, size_t k, const char *name, unsigned tier)
{
    snprintf(buf, size,
             "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
             "\"tier\":\"%c\"}}%s}",
             api_kinds[k], name, 'a' + (char)tier,
             k == 1 ? ",\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}" : "");
}

static void write_once(struct vigil_client *c, struct vg_rng *rng)
{
    size_t k = vg_rng_below(rng, 3);
    char name[32], json[512];
    const struct vigil_object *o = NULL;
    snprintf(name, sizeof(name), "x%u", (unsigned)vg_rng_below(rng, NAMES));
    unsigned tier = (unsigned)vg_rng_below(rng, 2), verb = (unsigned)vg_rng_below(rng, 4);
    int r;
    if (verb == 0) {
        object_json(json, sizeof(json), k, name, tier);
        r = vigil_create(c, kinds[k], ns_of(k), vigil_text(json), &o, NULL);
    } else if (verb == 1) {
        struct vigil_delete_opts d = {.size = sizeof(d), .grace_period_s = 0};
        r = vigil_delete(c, kinds[k], ns_of(k), name, &d, NULL);
    } else {
        struct vigil_patch_opts p = {.size = sizeof(p), .type = VIGIL_PATCH_MERGE};
        snprintf(json, sizeof(json), "{\"metadata\":{\"labels\":{\"tier\":\"%c\",\"n\":\"%llu\"}}}",
                 'a' + (char)tier, (unsigned long long)vg_rng_u64(rng));
        r = vigil_patch(c, kinds[k], ns_of(k), name, vigil_text(json), &p, &o, NULL);
    }
    (void)r; /* the server may be down, the object may be there or not */
    vigil_object_unref(o);
}

static void write_on(struct writers *w)
{
    struct vg_rng rng;
    struct vigil_client *c = server_client(w->server, w->server->port, VIGIL_OWN_THREAD);
    vg_rng_seed(&rng, w->seed + atomic_fetch_add(&w->n_writers, 1));
    while (!atomic_load(&w->is_over)) {
        if (atomic_load(&w->is_paused)) {
            atomic_fetch_add(&w->n_resting, 1);
            while (atomic_load(&w->is_paused))
                usleep(500);
            atomic_fetch_sub(&w->n_resting, 1);
        }
        write_once(c, &rng);
        atomic_fetch_add(&w->writes, 1);
        usleep((useconds_t)vg_rng_below(&rng, 400));
    }
    vigil_client_free(c);
}

static void rest(struct writers *w)
{
    atomic_store(&w->is_paused, true);
    while (atomic_load(&w->n_resting) < WRITERS)
        usleep(500);
}

/* ---- a client that the program turns itself ---- */

struct turner {
    struct vigil_client *c;
    struct follower *f;
    const struct follower_opts *opts;
    _Atomic int stage; /* 1: runs; 2: shall end */
};

static void turn_on(struct turner *t, const struct server *s, uint16_t port)
{
    t->c = server_client(s, port, VIGIL_OWN_LOOP);
    follower_start(t->f, t->c, t->opts);
    atomic_store(&t->stage, 1);
    while (atomic_load(&t->stage) == 1) {
        struct pollfd p = {.fd = vigil_client_fd(t->c), .events = POLLIN};
        int ms = vigil_client_timeout_ms(t->c);
        poll(&p, 1, ms < 0 || ms > 50 ? 50 : ms);
        vigil_client_step(t->c);
    }
    follower_end(t->f);
    vigil_client_free(t->c);
}

/* ---- the test ---- */

#define FOLLOWERS 5

struct haul {
    struct server server;
    struct proxy *proxy;
    struct vigil_client *direct, *shared;
    struct follower f[FOLLOWERS];
    struct turner turner;
    struct writers w;
    struct vg_rng rng;
};

static void set_up(struct haul *h)
{
    static const struct follower_opts opts[FOLLOWERS] = {
        {.queue = VIGIL_QUEUE_ORDERED},
        {.own_thread = true, .buffer_max = 16},
        {.queue = VIGIL_QUEUE_BY_KEY, .own_thread = true, .buffer_max = 4},
        {.no_watch_list = true, .page_size = 7},
        {.own_thread = true, .no_watch_list = true}};
    h->f[0] = (struct follower){.name = "configmaps", .resource = &vigil_configmaps};
    h->f[1] = (struct follower){
        .name = "pods of tier a", .resource = &vigil_pods, .ns = NS, .selector = "tier=a"};
    h->f[2] = (struct follower){.name = "nodes by key", .resource = &vigil_nodes, .merges = true};
    h->f[3] = (struct follower){.name = "configmaps by pages", .resource = &vigil_configmaps};
    h->f[4] = (struct follower){.name = "pods on a loop of ours", .resource = &vigil_pods};
    for (int i = 0; i < 4; i++)
        follower_start(&h->f[i], h->shared, &opts[i]);
    h->turner = (struct turner){.f = &h->f[4], .opts = &opts[4]};
}

static void cause_trouble(struct haul *h)
{
    useconds_t pause = (useconds_t)vg_rng_below(&h->rng, 200) * 1000;
    bool can_kill = !h->server.kubeconfig || h->server.control;
    switch (vg_rng_below(&h->rng, can_kill ? 4 : 3)) {
    case 0:
        usleep(pause);
        break;
    case 1:
        for (int i = 0; i < 5; i++) {
            usleep(pause / 5);
            proxy_cut(h->proxy);
        }
        break;
    case 2: /* until what they knew last has gone */
        proxy_close(h->proxy);
        usleep(300000 + pause);
        proxy_open(h->proxy);
        break;
    default:
        server_kill(&h->server);
        usleep(pause / 4);
        server_start(&h->server);
        break;
    }
}

/* A last write of each kind, then everybody must show it and nothing else than the server does. */
static void compare_all(struct haul *h)
{
    for (size_t k = 0; k < 3; k++) {
        char json[512];
        const struct vigil_object *o = NULL;
        struct vigil_error err = {0};
        struct vigil_delete_opts d = {.size = sizeof(d), .grace_period_s = 0};
        int gone = vigil_delete(h->direct, kinds[k], ns_of(k), "mark", &d, NULL);
        (void)gone;
        object_json(json, sizeof(json), k, "mark", 0);
        if (vigil_create(h->direct, kinds[k], ns_of(k), vigil_text(json), &o, &err) < 0)
            fail_msg("cannot write: %s", err.message);
        char mark[64];
        snprintf(mark, sizeof(mark), "%s%smark", ns_of(k) ? NS : "", ns_of(k) ? "/" : "");
        for (int i = 0; i < FOLLOWERS; i++) {
            if (h->f[i].resource == kinds[k])
                follower_compare(&h->f[i], h->direct, mark, vigil_object_resource_version(o));
        }
        vigil_object_unref(o);
    }
}

static void run_rounds(struct haul *h)
{
    unsigned rounds = !vg_test_is_long() ? 12 : h->server.kubeconfig ? 60 : 300;
    for (unsigned n = 0; n < rounds; n++) {
        unsigned troubles = 1 + (unsigned)vg_rng_below(&h->rng, 3);
        for (unsigned t = 0; t < troubles; t++)
            cause_trouble(h);
        rest(&h->w);
        compare_all(h);
        atomic_store(&h->w.is_paused, false);
    }
}

static void *turn_thread(void *arg)
{
    struct haul *h = arg;
    turn_on(&h->turner, &h->server, proxy_port(h->proxy));
    return NULL;
}

static void *write_thread(void *arg)
{
    write_on(arg);
    return NULL;
}

/* The test's own thread makes the troubles and the comparisons: it alone may fail assertions. */
static void play(struct haul *h)
{
    pthread_t t[1 + WRITERS];
    assert_int_equal(pthread_create(&t[0], NULL, turn_thread, h), 0);
    for (unsigned i = 1; i <= WRITERS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, write_thread, &h->w), 0);
    /* Until everybody has a client: to restart the server is to write where they look for it. */
    while (atomic_load(&h->turner.stage) == 0 || atomic_load(&h->w.n_writers) < WRITERS)
        usleep(500);
    run_rounds(h);
    atomic_store(&h->w.is_over, true);
    atomic_store(&h->turner.stage, 2);
    for (unsigned i = 0; i <= WRITERS; i++)
        pthread_join(t[i], NULL);
}

static void every_informer_equals_the_server_at_every_quiet_point(void **state)
{
    static struct haul h;
    (void)state;
    h.server = the_server;
    h.server.dir = vg_test_tmpdir();
    vg_rng_seed(&h.rng, vg_test_seed());
    server_start(&h.server);
    h.proxy = proxy_new(h.server.host, h.server.port);
    h.direct = server_client(&h.server, h.server.port, VIGIL_OWN_THREAD);
    h.shared = server_client(&h.server, proxy_port(h.proxy), VIGIL_OWN_THREAD);
    h.w = (struct writers){.server = &h.server, .seed = vg_test_seed()};
    set_up(&h);
    play(&h);
    for (int i = 0; i < 4; i++)
        follower_end(&h.f[i]);
    size_t tombstones = 0;
    for (int i = 0; i < FOLLOWERS; i++) {
        struct follower *f = &h.f[i];
        printf("%-24s added=%zu updated=%zu deleted=%zu of those unseen=%zu\n", f->name, f->n_added,
               f->n_updated, f->n_deleted, f->n_tombstones);
        tombstones += f->n_tombstones;
    }
    printf("writes=%zu\n", atomic_load(&h.w.writes));
    assert_true(!vg_test_is_long() || tombstones > 0 || h.server.kubeconfig);
    vigil_client_free(h.shared);
    vigil_client_free(h.direct);
    proxy_free(h.proxy);
    server_end(&h.server);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_informer_equals_the_server_at_every_quiet_point),
    };
    if (argc < 2)
        return 2;
    if (access(argv[1], X_OK) == 0)
        the_server.binary = argv[1];
    else
        the_server.kubeconfig = argv[1];
    the_server.control = argc > 2 ? argv[2] : NULL;
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
