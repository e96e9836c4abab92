/* pod_sources.c - see pod_sources.h.
 *
 *   API   reflector (spec.nodeName=NODE) --> UndeltaStore --push(all)--+
 *   file  every poll_s: all *.json of a directory ---------------------+--> source_set --> merged
 *   http  every poll_s: GET url, a Pod or a List ----------------------+
 *
 * A source that cannot be read keeps what it said last: a broken disk or a server that is away ends
 * no pod. */
#include <dirent.h>

#include "pod_sources.h"

#define MANIFEST_MAX ((size_t)1 << 20)

enum { API, FILES, HTTP, N_SOURCES };

struct pod_sources {
    struct pod_sources_opts opts;
    pthread_mutex_t mu;
    pthread_cond_t changed;
    bool has_changed, has_ended;
    struct pod_set source[N_SOURCES]; /* is_complete: it has spoken */
    time_t next_poll;
    struct vigil_undelta *undelta;
    struct vigil_reflector *reflector;
    struct vigil_client *web; /* of the URL */
    char *web_path;
};

/* ---- sets ---- */

const struct vigil_object *pod_set_find(const struct pod_set *set, struct vigil_text key,
                                        bool is_static)
{
    for (size_t i = 0; i < set->pods.n; i++)
        if (same_text(vigil_object_key(set->pods.v[i]), key) &&
            is_static == is_static_pod(set->pods.v[i]))
            return set->pods.v[i];
    return NULL;
}

/* The whole set of a source, in place of what it said before. */
static void source_set(struct pod_sources *s, int which, struct pod_set take_set)
{
    take_set.is_complete = true;
    pthread_mutex_lock(&s->mu);
    struct pod_set before = s->source[which];
    s->source[which] = take_set;
    s->has_changed = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mu);
    objects_done(&before.pods);
}

struct pod_set pod_sources_merged(struct pod_sources *s)
{
    struct pod_set all = {.is_complete = true};
    pthread_mutex_lock(&s->mu);
    for (int i = 0; i < N_SOURCES; i++) {
        const struct pod_set *set = &s->source[i];
        all.is_complete = all.is_complete && set->is_complete;
        for (size_t k = 0; k < set->pods.n; k++)
            objects_add(&all.pods, vigil_object_ref(set->pods.v[k]));
    }
    pthread_mutex_unlock(&s->mu);
    return all;
}

/* ---- the API ---- */

static void on_push(void *arg, const struct vigil_object *const *pods, size_t n)
{
    struct pod_set set = {0};
    for (size_t i = 0; i < n; i++)
        objects_add(&set.pods, vigil_object_ref(pods[i]));
    source_set(arg, API, set);
}

static void start_api(struct pod_sources *s)
{
    char *selector = format("spec.nodeName=%s", s->opts.node);
    struct vigil_informer_opts o = {.size = sizeof(o), .resource = &vigil_pods};
    struct vigil_error err;
    o.field_selector = selector;
    if (vigil_undelta_new(on_push, s, &s->undelta) < 0)
        die("undelta", NULL);
    struct vigil_sink sink = vigil_undelta_sink(s->undelta);
    if (vigil_reflector_new(s->opts.client, &o, &sink, &s->reflector, &err) < 0)
        die("reflector", &err);
    if (vigil_reflector_start(s->reflector) < 0)
        die("reflector", NULL);
    free(selector);
}

/* ---- static pods ---- */

/* FNV-1a: tells one manifest from another. */
static unsigned long long hash_of(struct vigil_text text)
{
    unsigned long long h = 14695981039346656037ull;
    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (unsigned char)text.p[i]) * 1099511628211ull;
    return h;
}

/* A pod of a manifest as it is known here: bound to this node, with a name and a uid of its own. */
static void add_static(struct pod_sources *s, struct pod_set *set, const char *source,
                       struct vigil_text json)
{
    struct vigil_error err;
    const struct vigil_object *o = vigil_object_parse(json, &err), *pod = NULL;
    if (o) {
        struct place p = place_of(o);
        char *patch =
            format("{\"metadata\":{\"name\":\"%s-%s\",\"namespace\":\"%s\",\"uid\":\"%016llx\","
                   "\"annotations\":{\"" CONFIG_SOURCE "\":\"%s\",\"" CONFIG_HASH
                   "\":\"%016llx\"}},\"spec\":{\"nodeName\":\"%s\"}}",
                   p.name, s->opts.node, *p.ns ? p.ns : "default", hash_of(json), source,
                   hash_of(json), s->opts.node);
        pod = vigil_object_merge(o, vigil_text(patch), &err);
        free(patch);
    }
    vigil_object_unref(o);
    if (pod)
        objects_add(&set->pods, pod);
    else
        say("%s: a manifest is no pod: %s", source, err.message);
}

/* A Pod, or a list of them. */
static void add_manifest(struct pod_sources *s, struct pod_set *set, const char *source,
                         struct vigil_text json)
{
    struct vigil_value items = vigil_value_get((struct vigil_value){VIGIL_OBJECT, json}, "items"),
                       one;
    struct vigil_iter at = {0};
    if (items.type != VIGIL_ARRAY)
        add_static(s, set, source, json);
    while (items.type == VIGIL_ARRAY && vigil_value_next(items, &at, NULL, &one))
        add_static(s, set, source, one.raw);
}

static void read_file(struct pod_sources *s, struct pod_set *set, const char *name)
{
    char *path = format("%s/%s", s->opts.dir, name), *text = malloc(MANIFEST_MAX);
    FILE *f = fopen(path, "re");
    if (f && text)
        add_manifest(s, set, "file", (struct vigil_text){text, fread(text, 1, MANIFEST_MAX, f)});
    if (f)
        fclose(f);
    free(text);
    free(path);
}

static void read_files(struct pod_sources *s)
{
    struct pod_set set = {0};
    DIR *d = opendir(s->opts.dir);
    if (!d)
        return;
    for (const struct dirent *e; (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && strcmp(dot, ".json") == 0 && e->d_name[0] != '.')
            read_file(s, &set, e->d_name);
    }
    closedir(d);
    source_set(s, FILES, set);
}

static void on_web(void *arg, const struct vigil_error *err, struct vigil_text body)
{
    struct pod_sources *s = arg;
    struct pod_set set = {0};
    if (err->code != 0)
        return;
    if (body.n)
        add_manifest(s, &set, "http", body);
    source_set(s, HTTP, set);
}

/* The URL's server is no API server, but it is asked in the same way. */
static void start_web(struct pod_sources *s)
{
    const char *host = strstr(s->opts.url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    struct vigil_error err;
    struct vigil_config *config;
    char *server = path ? format("%.*s", (int)(path - s->opts.url), s->opts.url) : NULL;
    struct vigil_config_opts o = {.size = sizeof(o), .server = server};
    if (!server)
        die("a URL is http://host:port/path", NULL);
    if (vigil_config_new(&o, &config, &err) < 0 ||
        vigil_client_new(config, NULL, &s->web, &err) < 0)
        die(s->opts.url, &err);
    vigil_config_free(config);
    s->web_path = format("%s", path);
    free(server);
}

static void poll_static(struct pod_sources *s)
{
    struct timespec now;
    struct vigil_request_opts r = {
        .size = sizeof(r), .method = "GET", .path = s->web_path, .done = on_web, .arg = s};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec < s->next_poll)
        return;
    s->next_poll = now.tv_sec + s->opts.poll_s;
    if (s->opts.dir)
        read_files(s);
    if (s->web && vigil_request(s->web, &r, NULL, NULL) < 0)
        say("%s: cannot ask", s->opts.url);
}

/* ---- all of them ---- */

struct pod_sources *pod_sources_new(const struct pod_sources_opts *opts)
{
    struct pod_sources *s = calloc(1, sizeof(*s));
    pthread_condattr_t monotonic;
    if (!s)
        die("sources", NULL);
    s->opts = *opts;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->mu, NULL);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    s->source[FILES].is_complete = !opts->dir;
    s->source[HTTP].is_complete = !opts->url;
    if (opts->url)
        start_web(s);
    start_api(s);
    return s;
}

void pod_sources_free(struct pod_sources *s)
{
    vigil_reflector_free(s->reflector);
    vigil_undelta_free(s->undelta);
    vigil_client_free(s->web);
    for (int i = 0; i < N_SOURCES; i++)
        objects_done(&s->source[i].pods);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mu);
    free(s->web_path);
    free(s);
}

bool pod_sources_wait(struct pod_sources *s)
{
    struct timespec until;
    poll_static(s);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    pthread_mutex_lock(&s->mu);
    while (!s->has_changed && !s->has_ended &&
           pthread_cond_timedwait(&s->changed, &s->mu, &until) == 0)
        ;
    s->has_changed = false;
    bool goes_on = !s->has_ended;
    pthread_mutex_unlock(&s->mu);
    return goes_on;
}

void pod_sources_end(struct pod_sources *s)
{
    pthread_mutex_lock(&s->mu);
    s->has_ended = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mu);
}
