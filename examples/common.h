/* common.h - what the programs of the flow share: how they connect, say things, write JSON and end.
 * They hold no state that matters: whatever is killed reads it back from the server and goes on. */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vigil/vigil.h>

/* A namespace, "/" and a name always fit, and something after them. */
#define KEY_SIZE 352

static inline _Noreturn void die(const char *what, const struct vigil_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err ? err->message : "failed");
    exit(1);
}

/* printf to memory that the caller frees: the way these programs write JSON. What they put in is
 * names, which need no escapes, and values as they stand in other objects (vigil_value.raw). */
static inline char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline char *format(const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *s = n < 0 ? NULL : malloc((size_t)n + 1);
    if (!s)
        die("format", NULL);
    vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return s;
}

/* Namespace and name of an object, as the requests take them. */
struct place {
    char ns[64], name[256];
};
static inline struct place place_of(const struct vigil_object *o)
{
    struct place p;
    snprintf(p.ns, sizeof(p.ns), "%.*s", VIGIL_TEXT_ARG(vigil_object_namespace(o)));
    snprintf(p.name, sizeof(p.name), "%.*s", VIGIL_TEXT_ARG(vigil_object_name(o)));
    return p;
}

/* Objects, each held by a reference. */
struct objects {
    const struct vigil_object **v;
    size_t n;
};
static inline void objects_add(struct objects *all, const struct vigil_object *take_o)
{
    const struct vigil_object **v = realloc((void *)all->v, (all->n + 1) * sizeof(*v));
    if (!v)
        die("objects", NULL);
    all->v = v;
    all->v[all->n++] = take_o;
}
static inline void objects_done(struct objects *all)
{
    for (size_t i = 0; i < all->n; i++)
        vigil_object_unref(all->v[i]);
    free((void *)all->v);
    *all = (struct objects){0};
}

static inline bool is_going(const struct vigil_object *o)
{
    return vigil_get(o, "metadata.deletionTimestamp").type == VIGIL_STRING;
}

static inline bool same_text(struct vigil_text a, struct vigil_text b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Is the condition of this type "True"? */
static inline bool has_condition(const struct vigil_object *o, const char *type)
{
    struct vigil_value all = vigil_get(o, "status.conditions"), one;
    struct vigil_iter at = {0};
    while (vigil_value_next(all, &at, NULL, &one))
        if (vigil_text_is(vigil_value_string(vigil_value_get(one, "type")), type))
            return vigil_text_is(vigil_value_string(vigil_value_get(one, "status")), "True");
    return false;
}

/* Delete this very object: not one that took its name meanwhile. grace -1: the object's own. To
 * find it gone is as good. */
static inline int delete_object(struct vigil_client *c, const struct vigil_resource *r,
                                const struct vigil_object *o, int64_t grace,
                                struct vigil_error *err)
{
    struct place p = place_of(o);
    char uid[64];
    snprintf(uid, sizeof(uid), "%.*s", VIGIL_TEXT_ARG(vigil_object_uid(o)));
    struct vigil_delete_opts opts = {.size = sizeof(opts), .grace_period_s = grace, .uid = uid};
    int e = vigil_delete(c, r, p.ns, p.name, &opts, err);
    return e == VIGIL_E_NOT_FOUND || e == VIGIL_E_CONFLICT ? 0 : e;
}

/* To stdout with the time of day. */
static inline void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline void say(const char *fmt, ...)
{
    char line[1024];
    struct tm tm;
    time_t now = time(NULL);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    gmtime_r(&now, &tm);
    printf("%02d:%02d:%02d %s\n", tm.tm_hour, tm.tm_min, tm.tm_sec, line);
    fflush(stdout);
}

/* Made before all threads, so that none of them is interrupted: main waits for the end by sigwait.
 */
static inline sigset_t signals_of_the_end(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return set;
}

static inline void log_line(void *arg, enum vigil_level level, const char *component,
                            const char *event, const char *fields)
{
    (void)arg, (void)level;
    fprintf(stderr, "%s: %s %s\n", component, event, fields);
}

/* To the cluster that kubectl talks to. */
static inline struct vigil_client *connect_to_cluster(void)
{
    struct vigil_error err;
    struct vigil_config *config;
    struct vigil_client *client;
    struct vigil_client_opts opts = {
        .size = sizeof(opts), .qps = 50, .burst = 100, .log = log_line, .log_level = VIGIL_WARN};
    if (vigil_config_load(NULL, NULL, &config, &err) < 0)
        die("kubeconfig", &err);
    if (vigil_client_new(config, &opts, &client, &err) < 0)
        die("client", &err);
    vigil_config_free(config);
    return client;
}

/* What these programs want of an informer: to hear that something about an object has changed, in
 * whatever way. They look at the store then. Must outlive the informer. */
struct interest {
    void (*changed)(void *arg, const struct vigil_object *o, bool is_gone);
    void *arg;
    struct vigil_registration *told;
};
static inline void interest_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    const struct interest *i = arg;
    (void)is_initial;
    i->changed(i->arg, o, false);
}
static inline void interest_update(void *arg, const struct vigil_object *before,
                                   const struct vigil_object *o)
{
    const struct interest *i = arg;
    (void)before;
    i->changed(i->arg, o, false);
}
static inline void interest_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    const struct interest *i = arg;
    (void)is_tombstone;
    i->changed(i->arg, o, true);
}

static inline struct vigil_informer *informer_with(struct vigil_client *c,
                                                   const struct vigil_informer_opts *opts,
                                                   struct interest *interest)
{
    struct vigil_error err;
    struct vigil_informer *i;
    struct vigil_handler h = {sizeof(h), interest_add, interest_update, interest_delete,
                              .arg = interest};
    if (vigil_informer_new(c, opts, &i, &err) < 0 ||
        vigil_informer_add_handler(i, &h, &interest->told, &err) < 0)
        die("informer", &err);
    if (vigil_informer_start(i) < 0)
        die("informer", NULL);
    return i;
}

/* Work off a queue until it is shut down: what fails comes back later. */
static inline void work_off(struct vigil_workqueue *q, int (*sync_key)(void *arg, const char *key),
                            void *arg)
{
    char key[KEY_SIZE];
    while (vigil_workqueue_get(q, key, sizeof(key), 0) >= 0) {
        if (sync_key(arg, key) < 0)
            vigil_workqueue_add_limited(q, vigil_text(key));
        else
            vigil_workqueue_forget(q, vigil_text(key));
        vigil_workqueue_done(q, vigil_text(key));
    }
}

#endif
