/* world_testing.h - a scripted server, a client on a fake clock that the test turns by hand, a
 * reflector and a sink that remembers. Waits of the reflector are shortened by moving the clock to
 * their ends. */
#ifndef VG_CLIENT_REFLECTOR_WORLD_TESTING_H
#define VG_CLIENT_REFLECTOR_WORLD_TESTING_H

#include "client/transport/script_server_testing.h"

#include "client/object/object_int.h"
#include "reflector_int.h"

#define POD(name, rv)                                                                              \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name                       \
    "\",\"resourceVersion\":\"" rv "\"}}"
#define ITEM(name, rv) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" rv "\"}}"
#define LIST(rv, items)                                                                            \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv          \
    "\"},\"items\":[" items "]}"
#define PAGE(rv, next, items)                                                                      \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv          \
    "\",\"continue\":\"" next "\"},\"items\":[" items "]}\n"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define MARK(rv)                                                                                   \
    EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"                     \
                      "\"resourceVersion\":\"" rv "\"}}")
#define END_MARK(rv, value)                                                                        \
    EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"                     \
                      "\"resourceVersion\":\"" rv                                                  \
                      "\",\"annotations\":{\"k8s.io/initial-events-end\":\"" value "\"}}}")
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"" message     \
    "\",\"reason\":\"" reason "\",\"code\":" #code "}"
#define STREAM(text, how)                                                                          \
    {                                                                                              \
        .body = (text), .is_chunked = true, .is_cut = true, .end = (how)                           \
    }
#define ANSWER(text)                                                                               \
    {                                                                                              \
        .body = (text), .is_cut = true                                                             \
    }
#define REFUSAL(code, reason)                                                                      \
    {                                                                                              \
        .status = (code), .body = STATUS(code, reason, "no")                                       \
    }

#define LISTED ANSWER(LIST("1", ITEM("foo", "1")))
#define LISTED_10 ANSWER(LIST("10", ITEM("foo", "10")))
#define EXPIRED_EVENT EVENT("ERROR", STATUS(410, "Expired", "too old"))
/* Ends a watch in a way that begins a new round. */
#define ENDS_ROUND STREAM(EXPIRED_EVENT, STEP_WHOLE)

#define WORLD(w, ...)                                                                              \
    struct world w;                                                                                \
    const struct step w##_steps[] = {__VA_ARGS__};                                                 \
    world_init(&w, w##_steps, VG_ARRAY_LEN(w##_steps))

struct world {
    struct script_server *server;
    struct vg_fake_clock clock;
    struct vigil_client *client;
    struct vigil_reflector *reflector;
    struct vigil_informer_opts opts;
    struct vg_reflector_tuning tuning;
    const struct vigil_object *objects[256];
    size_t n;
    struct vg_buf calls; /* "put foo@2;" ... */
    unsigned replaces, resyncs, resync_fails_at, errors, waits, transforms, lost, backs;
    struct vigil_error last_error;
    uint64_t waited_ns, drift_ns;
    bool is_full;
    unsigned puts;
    bool frees_itself; /* at the next put */
};

static inline void world_note(struct world *w, const char *what, const struct vigil_object *o)
{
    struct vg_slice v = vg_object_version(o), k = vg_object_key(o);
    assert_int_equal(
        vg_buf_printf(&w->calls, "%s %.*s@%.*s;", what, VG_SLICE_ARG(k), VG_SLICE_ARG(v)), 0);
}

static inline size_t world_find(struct world *w, const struct vigil_object *o)
{
    for (size_t i = 0; i < w->n; i++)
        if (vg_slice_eq(vg_object_key(w->objects[i]), vg_object_key(o)))
            return i;
    return w->n;
}

static inline int world_put(void *arg, const struct vigil_object *o)
{
    struct world *w = arg;
    size_t i = world_find(w, o);
    world_note(w, "put", o);
    w->puts++;
    if (w->opts.transform) /* as the queue does */
        vigil_object_unref(w->opts.transform(w, o));
    if (i < w->n)
        vigil_object_unref(w->objects[i]);
    else
        w->n++;
    assert_true(w->n <= VG_ARRAY_LEN(w->objects));
    w->objects[i] = vigil_object_ref(o);
    if (w->frees_itself)
        vigil_reflector_free(vg_steal(w->reflector));
    return w->is_full ? VG_SINK_FULL : 0;
}

static inline int world_remove(void *arg, const struct vigil_object *o)
{
    struct world *w = arg;
    size_t i = world_find(w, o);
    world_note(w, "remove", o);
    if (i < w->n) {
        vigil_object_unref(w->objects[i]);
        memmove(&w->objects[i], &w->objects[i + 1], (--w->n - i) * sizeof(w->objects[0]));
    }
    return 0;
}

static inline int world_replace(void *arg, const struct vigil_object *const *objects, size_t n,
                                struct vigil_text version)
{
    struct world *w = arg;
    assert_int_equal(vg_buf_printf(&w->calls, "replace %zu@%.*s;", n, VIGIL_TEXT_ARG(version)), 0);
    for (size_t i = 0; i < w->n; i++)
        vigil_object_unref(w->objects[i]);
    w->replaces++;
    w->n = n;
    assert_true(n <= VG_ARRAY_LEN(w->objects));
    for (size_t i = 0; i < n; i++) {
        if (w->opts.transform)
            vigil_object_unref(w->opts.transform(w, objects[i]));
        w->objects[i] = vigil_object_ref(objects[i]);
    }
    return 0;
}

static inline void world_bookmark(void *arg, struct vigil_text version)
{
    struct world *w = arg;
    assert_int_equal(vg_buf_printf(&w->calls, "bookmark @%.*s;", VIGIL_TEXT_ARG(version)), 0);
}

static inline int world_resync(void *arg)
{
    struct world *w = arg;
    return ++w->resyncs == w->resync_fails_at ? -EIO : 0;
}

static inline void world_error(void *arg, const struct vigil_error *err)
{
    struct world *w = arg;
    w->errors++;
    w->last_error = *err;
}

static inline void world_lost(void *arg, const struct vigil_error *err)
{
    struct world *w = arg;
    assert_true(err->code < 0 && err->message[0]);
    assert_int_equal(w->lost, w->backs);
    w->lost++;
}

static inline void world_back(void *arg)
{
    struct world *w = arg;
    w->backs++;
    assert_int_equal(w->lost, w->backs);
}

static inline const struct vigil_object *world_transform(void *arg, const struct vigil_object *o)
{
    struct world *w = arg;
    w->transforms++;
    return vigil_object_ref(o);
}

static inline void world_init(struct world *w, const struct step *steps, unsigned n)
{
    *w = (struct world){.opts = {.size = sizeof(w->opts), .resource = &vigil_pods}};
    vg_fake_clock_init(&w->clock);
    w->opts.on_error = world_error;
    w->opts.on_lost = world_lost;
    w->opts.on_back = world_back;
    w->opts.arg = w;
    w->tuning.seed = vg_test_seed() | 1;
    w->server = script_new(steps, n);
}

static inline void world_make_at(struct world *w, const char *url)
{
    struct vigil_config_opts co = VIGIL_INIT(struct vigil_config_opts);
    co.server = url;
    struct vigil_config *config = NULL;
    assert_int_equal(vigil_config_new(&co, &config, NULL), 0);
    struct vigil_client_opts o = VIGIL_INIT(struct vigil_client_opts);
    o.mode = VIGIL_OWN_LOOP;
    o.qps = -1;
    assert_int_equal(vg_client_new(config, &o, &w->clock.clock, &w->client, NULL), 0);
    vigil_config_free(config);
    const struct vigil_sink sink = {.put = world_put,
                                    .remove = world_remove,
                                    .replace = world_replace,
                                    .bookmark = world_bookmark,
                                    .resync = world_resync,
                                    .arg = w};
    assert_int_equal(vg_reflector_new(w->client, &w->opts, &sink, &w->tuning, &w->reflector, NULL),
                     0);
    assert_int_equal(vigil_reflector_start(w->reflector), 0);
}

static inline void world_make(struct world *w)
{
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", w->server->port);
    world_make_at(w, url);
}

static inline void world_start(struct world *w)
{
    script_listen(w->server);
    world_make(w);
}

static inline void world_done(struct world *w)
{
    vigil_reflector_free(w->reflector);
    vigil_client_free(w->client);
    script_stop(w->server);
    for (size_t i = 0; i < w->n; i++)
        vigil_object_unref(w->objects[i]);
    vg_buf_done(&w->calls);
    vg_fake_clock_done(&w->clock);
}

static inline void world_step(struct world *w)
{
    vigil_client_step(w->client);
    uint64_t wait = w->reflector ? vg_reflector_wait_ns(w->reflector) : 0;
    if (wait) {
        w->waits++;
        w->waited_ns += wait;
        vg_fake_clock_advance(&w->clock, wait);
        vigil_client_step(w->client);
        return;
    }
    if (w->drift_ns) {
        vg_fake_clock_advance(&w->clock, w->drift_ns);
        vigil_client_step(w->client); /* the move of the clock has woken the loop */
    }
    struct pollfd p = {.fd = vigil_client_fd(w->client), .events = POLLIN};
    poll(&p, 1, 1);
}

/* Steps until it holds; a minute of real time is a failure. */
#define WORLD_UNTIL(w, condition)                                                                  \
    do {                                                                                           \
        unsigned left = 60000;                                                                     \
        while (!(condition)) {                                                                     \
            if (left-- == 0)                                                                       \
                fail_msg("waited in vain for: %s; calls: %.*s", #condition, (int)(w)->calls.n,     \
                         (w)->calls.p);                                                            \
            world_step(w);                                                                         \
        }                                                                                          \
    } while (0)

/* A few turns in which nothing new should happen. */
static inline void world_rest(struct world *w)
{
    for (int i = 0; i < 20; i++)
        world_step(w);
}

/* The requests so far, in short. */
static inline void assert_asked_(struct world *w, const char *const *want, size_t n)
{
    char got[256];
    WORLD_UNTIL(w, script_asked(w->server) >= n);
    world_rest(w);
    for (unsigned i = 0; i < n; i++)
        assert_string_equal(script_short(w->server, i, got, sizeof(got)), want[i]);
    assert_int_equal(script_asked(w->server), n);
}
#define assert_asked(w, ...)                                                                       \
    assert_asked_(w, (const char *const[]){__VA_ARGS__},                                           \
                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static inline bool world_has(struct world *w, const char *want)
{
    struct vg_buf got = {0};
    for (size_t i = 0; i < w->n; i++) {
        struct vg_slice v = vg_object_version(w->objects[i]), k = vg_object_key(w->objects[i]);
        assert_int_equal(
            vg_buf_printf(&got, "%s%.*s@%.*s", i ? " " : "", VG_SLICE_ARG(k), VG_SLICE_ARG(v)), 0);
    }
    bool same = vg_slice_eq(vg_buf_slice(&got), vg_slice_str(want));
    vg_buf_done(&got);
    return same;
}

#endif
