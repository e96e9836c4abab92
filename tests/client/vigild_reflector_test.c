/* vigild_reflector_test.c - transport and reflector against the real vigild: TLS with client
 * certificates, HTTP/2, writes, restarts. Called with the path of vigild. */
#include "world.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/lock.h"
#include "base/map.h"
#include "base/rng.h"
#include "client/object/object_int.h"
#include "client/reflector/reflector.h"
#include "client/transport/transport.h"

static const char *binary;

/* ---- a sink that mirrors ---- */

struct mirror {
    pthread_mutex_t mu;
    struct vg_map objects; /* keys are those of the objects, which are held */
    unsigned replaces, errors;
};

static void drop_all(struct mirror *m)
{
    VG_MAP_FOREACH (e, &m->objects)
        vigil_object_unref(e->value);
    vg_map_clear(&m->objects);
}

static int put_locked(struct mirror *m, const struct vigil_object *o)
{
    void *old = NULL;
    int r = vg_map_put(&m->objects, vg_object_key(o), (void *)(uintptr_t)vigil_object_ref(o), &old);
    vigil_object_unref(old);
    return r < 0 ? r : 0;
}

static int mirror_put(void *arg, const struct vigil_object *o)
{
    struct mirror *m = arg;
    pthread_mutex_lock(&m->mu);
    int r = put_locked(m, o);
    pthread_mutex_unlock(&m->mu);
    return r;
}

static int mirror_remove(void *arg, const struct vigil_object *o)
{
    struct mirror *m = arg;
    pthread_mutex_lock(&m->mu);
    vigil_object_unref(vg_map_remove(&m->objects, vg_object_key(o)));
    pthread_mutex_unlock(&m->mu);
    return 0;
}

static int mirror_replace(void *arg, const struct vigil_object *const *objects, size_t n,
                          struct vigil_text version)
{
    (void)version;
    struct mirror *m = arg;
    int r = 0;
    pthread_mutex_lock(&m->mu);
    drop_all(m);
    for (size_t i = 0; i < n && r == 0; i++)
        r = put_locked(m, objects[i]);
    m->replaces++;
    pthread_mutex_unlock(&m->mu);
    return r;
}

static void mirror_error(void *arg, const struct vigil_error *err)
{
    struct mirror *m = arg;
    (void)err;
    pthread_mutex_lock(&m->mu);
    m->errors++;
    pthread_mutex_unlock(&m->mu);
}

static struct vigil_reflector *reflect(struct vigil_client *c, struct mirror *m, bool by_list)
{
    *m = (struct mirror){.mu = PTHREAD_MUTEX_INITIALIZER};
    struct vigil_informer_opts o = VIGIL_INIT(struct vigil_informer_opts);
    o.resource = &vigil_configmaps;
    o.ns = "default";
    o.no_watch_list = by_list;
    o.on_error = mirror_error;
    o.arg = m;
    const struct vigil_sink sink = {
        .put = mirror_put, .remove = mirror_remove, .replace = mirror_replace, .arg = m};
    struct vigil_reflector *r = NULL;
    const struct vg_reflector_tuning fast = {.backoff_ns = 20 * VG_NS_PER_MS,
                                             .backoff_cap_ns = 200 * VG_NS_PER_MS};
    assert_int_equal(vg_reflector_new(c, &o, &sink, &fast, &r, NULL), 0);
    assert_int_equal(vigil_reflector_start(r), 0);
    return r;
}

/* ---- the server's side ---- */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Create, change or delete one of 20 configmaps; connections that break are the test's point. */
static void write_something(struct vigil_client *c, struct vg_rng *rng)
{
    char name[16], json[256];
    struct vigil_error err = {0};
    snprintf(name, sizeof(name), "cm-%llu", (unsigned long long)vg_rng_below(rng, 20));
    snprintf(json, sizeof(json),
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"},"
             "\"data\":{\"n\":\"%llu\"}}",
             name, (unsigned long long)vg_rng_u64(rng));
    int r = vigil_create(c, &vigil_configmaps, "default", vigil_text(json), NULL, &err);
    if (r == VIGIL_E_EXISTS && vg_rng_below(rng, 3) == 0)
        r = vigil_delete(c, &vigil_configmaps, "default", name, NULL, &err);
    else if (r == VIGIL_E_EXISTS)
        r = vigil_update(c, &vigil_configmaps, "default", name, NULL, vigil_text(json), NULL, &err);
    if (r < 0 && r != VIGIL_E_NETWORK && r != VIGIL_E_NOT_FOUND)
        fail_msg("%d: %s", r, err.message);
}

struct compare {
    struct mirror *m;
    size_t seen;
    bool is_same;
};

static bool compare_one(void *arg, const struct vigil_object *o)
{
    struct compare *cmp = arg;
    const struct vigil_object *mine = vg_map_get(&cmp->m->objects, vg_object_key(o));
    cmp->seen++;
    cmp->is_same =
        cmp->is_same && mine && vg_slice_eq(vg_object_version(mine), vg_object_version(o));
    return true;
}

static bool is_same(struct vigil_client *c, struct mirror *m)
{
    struct compare cmp = {.m = m, .is_same = true};
    pthread_mutex_lock(&m->mu);
    int r = vigil_list(c, &vigil_configmaps, "default", NULL, compare_one, &cmp, NULL);
    bool same = r == 0 && cmp.is_same && cmp.seen == vg_map_count(&m->objects);
    pthread_mutex_unlock(&m->mu);
    return same;
}

static void wait_same(struct vigil_client *c, struct mirror *m)
{
    for (int i = 0; !is_same(c, m); i++) {
        assert_true(i < 15000);
        nap();
    }
}

static void mirror_done(struct mirror *m)
{
    drop_all(m);
    vg_map_done(&m->objects);
}

/* ---- tests ---- */

static void the_verbs_work(void **state)
{
    struct server v = {.binary = binary, .dir = *state};
    server_start(&v);
    struct vigil_client *c = server_client(&v, v.port, VIGIL_OWN_LOOP);
    const struct vigil_object *o = NULL;
    struct vigil_error err = {0};
    static const char JSON[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
        "\"a\"},\"data\":{\"x\":\"1\"}}";
    assert_int_equal(vigil_create(c, &vigil_configmaps, "default", vigil_text(JSON), &o, &err), 0);
    assert_true(vigil_text_is(vigil_object_key(o), "default/a"));
    vigil_object_unref(o);
    assert_int_equal(vigil_create(c, &vigil_configmaps, "default", vigil_text(JSON), &o, &err),
                     VIGIL_E_EXISTS);
    assert_string_equal(err.reason, "AlreadyExists");
    struct vigil_patch_opts po = VIGIL_INIT(struct vigil_patch_opts);
    po.type = VIGIL_PATCH_MERGE;
    assert_int_equal(vigil_patch(c, &vigil_configmaps, "default", "a",
                                 vigil_text("{\"data\":{\"x\":\"2\"}}"), &po, &o, &err),
                     0);
    assert_true(vigil_text_is(vigil_get_string(o, "data.x"), "2"));
    vigil_object_unref(o);
    assert_int_equal(vigil_delete(c, &vigil_configmaps, "default", "a", NULL, &err), 0);
    assert_int_equal(vigil_read(c, &vigil_configmaps, "default", "a", &o, &err), VIGIL_E_NOT_FOUND);
    vigil_client_free(c);
    server_end(&v);
}

static void strangers_and_wrong_authorities_are_told_why(void **state)
{
    struct server v = {.binary = binary, .dir = *state};
    server_start(&v);
    char url[64];
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", v.port);
    struct vigil_config_opts o = VIGIL_INIT(struct vigil_config_opts);
    o.server = url;
    for (int i = 0; i < 2; i++) {
        struct vigil_config *config = NULL;
        struct vigil_client *c = NULL;
        struct vigil_error err = {0};
        const struct vigil_object *obj = NULL;
        o.insecure_skip_tls_verify = i == 1;
        o.token = i == 1 ? "nonsense" : NULL;
        assert_int_equal(vigil_config_new(&o, &config, &err), 0);
        assert_int_equal(vigil_client_new(config, NULL, &c, &err), 0);
        int r = vigil_read(c, &vigil_namespaces, NULL, "default", &obj, &err);
        assert_int_equal(r, i == 0 ? VIGIL_E_NETWORK : VIGIL_E_UNAUTHORIZED);
        if (i == 0)
            assert_non_null(strstr(err.message, "certificate-authority"));
        vigil_client_free(c);
        vigil_config_free(config);
    }
    server_end(&v);
}

static void reflectors_follow_writes_and_restarts(void **state)
{
    struct server v = {.binary = binary, .dir = *state};
    server_start(&v);
    struct vigil_client *c = server_client(&v, v.port, VIGIL_OWN_THREAD);
    /* The mirrors' locks are held while lists are compared: not on the loop that fills them. */
    struct vigil_client *watcher = server_client(&v, v.port, VIGIL_OWN_THREAD);
    struct mirror streamed, listed;
    struct vigil_reflector *a = reflect(watcher, &streamed, false);
    struct vigil_reflector *b = reflect(watcher, &listed, true);
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    int rounds = vg_test_is_long() ? 50 : 4;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 60; i++)
            write_something(c, &rng);
        if (round % 2 == 1) {
            if (vg_rng_below(&rng, 2))
                server_kill(&v);
            else
                server_end(&v);
            server_start(&v);
            continue; /* writes go on at once */
        }
        wait_same(c, &streamed);
        wait_same(c, &listed);
    }
    wait_same(c, &streamed);
    wait_same(c, &listed);
    vigil_reflector_free(a);
    vigil_reflector_free(b);
    vigil_client_free(watcher);
    vigil_client_free(c);
    mirror_done(&streamed);
    mirror_done(&listed);
    server_end(&v);
}

static void many_reflectors_share_a_connection(void **state)
{
    enum { N = 150 };
    struct server v = {.binary = binary, .dir = *state};
    server_start(&v);
    struct vigil_client *c = server_client(&v, v.port, VIGIL_OWN_THREAD);
    struct vigil_client *watcher = server_client(&v, v.port, VIGIL_OWN_THREAD);
    struct mirror *m = calloc(N, sizeof(*m));
    struct vigil_reflector *r[N];
    struct vg_rng rng;
    assert_non_null(m);
    vg_rng_seed(&rng, vg_test_seed());
    for (int i = 0; i < N; i++)
        r[i] = reflect(watcher, &m[i], i % 2);
    for (int i = 0; i < 100; i++)
        write_something(c, &rng);
    for (int i = 0; i < N; i++)
        wait_same(c, &m[i]);
    for (int i = 0; i < N; i++) {
        vigil_reflector_free(r[i]);
        assert_int_equal(m[i].errors, 0);
        mirror_done(&m[i]);
    }
    free(m);
    vigil_client_free(watcher);
    vigil_client_free(c);
    server_end(&v);
}

#define WITH_DIR(name)                                                                             \
    cmocka_unit_test_setup_teardown(name, vg_test_tmpdir_setup, vg_test_tmpdir_teardown)

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    binary = argv[1];
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        WITH_DIR(the_verbs_work),
        WITH_DIR(strangers_and_wrong_authorities_are_told_why),
        WITH_DIR(reflectors_follow_writes_and_restarts),
        WITH_DIR(many_reflectors_share_a_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
