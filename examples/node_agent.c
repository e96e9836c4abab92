/* node_agent.c - runs the pods of one node, or does as if: registers the Node, keeps its Lease,
 * starts and ends pods, and reports how they do.
 *
 * What it rests on:
 *   N1 every turn looks at all pods that are wanted and at all that run, whatever has happened.
 *   N2 the runtime outlives the agent, as containers do. Here it is a directory with a file per
 *      running pod, named by its uid: an agent that was killed finds its pods running.
 *   N3 nothing that runs is ended before every source has spoken: after a start, silence is not "no
 *      pods".
 *   N4 static pods, of files and URLs, run without the API. What the API has of them is a mirror,
 * made here for everybody to see. */
#include <errno.h>
#include <getopt.h>

#include "runtime.h"

#define HEARTBEAT_S 10
#define STARTING_MS 300 /* what pulling an image and starting it takes here */

struct agent {
    struct vigil_client *client;
    const char *node, *root; /* root: of the runtime */
    struct pod_sources *sources;
    time_t next_heartbeat;
};

static const char *format_time(char buf[40], const struct timespec *t, bool is_micro)
{
    struct tm tm;
    gmtime_r(&t->tv_sec, &tm);
    size_t n = strftime(buf, 40, "%Y-%m-%dT%H:%M:%S", &tm);
    if (is_micro)
        snprintf(buf + n, 40 - n, ".%06ldZ", t->tv_nsec / 1000);
    else
        snprintf(buf + n, 40 - n, "Z");
    return buf;
}

/* ---- the node ---- */

/* Patch something, or make it when it is not there. Frees both texts. */
static void patch_or_create(struct agent *a, const struct vigil_resource *r, const char *ns,
                            const char *sub, char *take_patch, char *take_create)
{
    struct vigil_patch_opts opts = {
        .size = sizeof(opts), .type = VIGIL_PATCH_STRATEGIC, .subresource = sub};
    const struct vigil_object *o = NULL;
    struct vigil_error err = {0};
    int e = vigil_patch(a->client, r, ns, a->node, vigil_text(take_patch), &opts, &o, &err);
    if (e == VIGIL_E_NOT_FOUND) {
        e = vigil_create(a->client, r, ns, vigil_text(take_create), &o, &err);
        a->next_heartbeat = 0; /* and its status with the next turn */
    }
    if (e < 0 && e != VIGIL_E_EXISTS)
        say("%s %s: %s", r->plural, a->node, err.message);
    vigil_object_unref(o);
    free(take_patch);
    free(take_create);
}

static void heartbeat(struct agent *a)
{
    struct timespec mono, wall;
    char now[40], micro[40];
    clock_gettime(CLOCK_MONOTONIC, &mono);
    clock_gettime(CLOCK_REALTIME, &wall);
    if (mono.tv_sec < a->next_heartbeat)
        return;
    a->next_heartbeat = mono.tv_sec + HEARTBEAT_S;
    format_time(now, &wall, false);
    format_time(micro, &wall, true);
    patch_or_create(
        a, &vigil_nodes, NULL, "status",
        format(
            "{\"status\":{\"capacity\":{\"pods\":\"110\"},\"allocatable\":{\"pods\":\"110\"},"
            "\"addresses\":[{\"type\":\"Hostname\",\"address\":\"%s\"}],\"conditions\":[{\"type\":"
            "\"Ready\",\"status\":\"True\",\"reason\":\"AgentReady\",\"message\":\"the agent is at "
            "work\",\"lastHeartbeatTime\":\"%s\"}],\"nodeInfo\":{\"kubeletVersion\":\"vigil "
            "%s\"}}}",
            a->node, now, vigil_version()),
        format("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
               "\"kubernetes.io/hostname\":\"%s\"}}}",
               a->node, a->node));
    patch_or_create(
        a, &vigil_leases, "kube-node-lease", NULL,
        format("{\"spec\":{\"renewTime\":\"%s\"}}", micro),
        format(
            "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":"
            "\"%s\"},\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":40,\"renewTime\":"
            "\"%s\"}}",
            a->node, a->node, micro));
}

/* ---- pods ---- */

/* Say of the pod in the API how the one that runs does; once, and again when somebody changed it.
 */
static void report(struct agent *a, const struct vigil_object *in_api,
                   const struct vigil_object *pod, const struct timespec *since)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool is_up = (now.tv_sec - since->tv_sec) * 1000 + (now.tv_nsec - since->tv_nsec) / 1000000 >=
                 STARTING_MS;
    const char *phase = is_up ? "Running" : "Pending", *yes = is_up ? "True" : "False";
    if (vigil_text_is(vigil_get_string(in_api, "status.phase"), phase) &&
        has_condition(in_api, "Ready") == is_up && vigil_get_string(in_api, "status.startTime").n)
        return;
    char started[40], changed[40];
    struct place p = place_of(in_api);
    struct vigil_text uid = vigil_object_uid(in_api);
    struct vigil_patch_opts opts = {
        .size = sizeof(opts), .type = VIGIL_PATCH_STRATEGIC, .subresource = "status"};
    format_time(started, since, false);
    format_time(changed, &now, false);
    char *containers = runtime_statuses(pod, is_up, changed);
    char *patch = format(
        "{\"metadata\":{\"uid\":\"%.*s\"},\"status\":{\"phase\":\"%s\",\"startTime\":\"%s\","
        "\"hostIP\":\"127.0.0.1\",\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\"},"
        "{\"type\":\"ContainersReady\",\"status\":\"%s\",\"lastTransitionTime\":\"%s\"},"
        "{\"type\":\"Ready\",\"status\":\"%s\",\"lastTransitionTime\":\"%s\"}],"
        "\"containerStatuses\":[%s]}}",
        VIGIL_TEXT_ARG(uid), phase, started, yes, changed, yes, changed, containers);
    const struct vigil_object *o = NULL;
    struct vigil_error err;
    int e = vigil_patch(a->client, &vigil_pods, p.ns, p.name, vigil_text(patch), &opts, &o, &err);
    if (e == 0)
        say("%s/%s is %s", p.ns, p.name, phase);
    else if (e != VIGIL_E_NOT_FOUND && e != VIGIL_E_CONFLICT)
        say("%s/%s: %s", p.ns, p.name, err.message);
    vigil_object_unref(o);
    free(patch);
    free(containers);
}

static void create_mirror(struct agent *a, const struct vigil_object *pod)
{
    struct place p = place_of(pod);
    struct vigil_error err;
    char *patch =
        format("{\"metadata\":{\"uid\":null,\"annotations\":{\"" CONFIG_MIRROR "\":\"%.*s\"}}}",
               VIGIL_TEXT_ARG(vigil_object_annotation(pod, CONFIG_HASH)));
    const struct vigil_object *mirror = vigil_object_merge(pod, vigil_text(patch), &err), *o = NULL;
    if (!mirror ||
        vigil_create(a->client, &vigil_pods, p.ns, vigil_object_json(mirror), &o, &err) < 0)
        say("mirror of %s/%s: %s", p.ns, p.name, err.message);
    vigil_object_unref(o);
    vigil_object_unref(mirror);
    free(patch);
}

/* Remove it from the API: it has ended, or mirrors what is not there. */
static void forget(struct agent *a, const struct vigil_object *pod)
{
    struct vigil_error err;
    if (delete_object(a->client, &vigil_pods, pod, 0, &err) < 0)
        say("%.*s: %s", VIGIL_TEXT_ARG(vigil_object_key(pod)), err.message);
    else
        say("removed %.*s", VIGIL_TEXT_ARG(vigil_object_key(pod)));
}

static void sync_pod(struct agent *a, const struct pod_set *all, const struct vigil_object *pod)
{
    struct vigil_text key = vigil_object_key(pod), mirrors;
    struct timespec since;
    if (is_static_pod(pod)) { /* N4 */
        const struct vigil_object *mirror = pod_set_find(all, key, false);
        bool is_up = runtime_run(a->root, pod, &since);
        if (!mirror && all->is_complete)
            create_mirror(a, pod);
        else if (mirror && is_up)
            report(a, mirror, pod, &since);
        return;
    }
    mirrors = vigil_object_annotation(pod, CONFIG_MIRROR);
    if (mirrors.p) {
        const struct vigil_object *original = pod_set_find(all, key, true);
        bool is_true =
            original && same_text(mirrors, vigil_object_annotation(original, CONFIG_HASH));
        if (all->is_complete && (is_going(pod) || !is_true))
            forget(a, pod);
    } else if (is_going(pod)) {
        char uid[64];
        snprintf(uid, sizeof(uid), "%.*s", VIGIL_TEXT_ARG(vigil_object_uid(pod)));
        runtime_stop(a->root, uid);
        forget(a, pod);
    } else if (runtime_run(a->root, pod, &since)) {
        report(a, pod, pod, &since);
    }
}

static void *work(void *arg)
{
    struct agent *a = arg;
    do {
        struct pod_set all = pod_sources_merged(a->sources);
        heartbeat(a);
        for (size_t i = 0; i < all.pods.n; i++)
            sync_pod(a, &all, all.pods.v[i]);
        if (all.is_complete) /* N3 */
            runtime_clean_up(a->root, &all);
        objects_done(&all.pods);
    } while (pod_sources_wait(a->sources));
    return NULL;
}

static void read_flags(int argc, char **argv, struct agent *a, struct pod_sources_opts *sources)
{
    static const struct option names[] = {{"node", required_argument, NULL, 'n'},
                                          {"root", required_argument, NULL, 'r'},
                                          {"manifests", required_argument, NULL, 'm'},
                                          {"manifest-url", required_argument, NULL, 'u'},
                                          {"poll-seconds", required_argument, NULL, 'p'},
                                          {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == 'n')
            a->node = sources->node = optarg;
        else if (c == 'r')
            a->root = optarg;
        else if (c == 'm')
            sources->dir = optarg;
        else if (c == 'u')
            sources->url = optarg;
        else if (c == 'p')
            sources->poll_s = (unsigned)strtoul(optarg, NULL, 10);
    }
    if (a->node && a->root)
        return;
    fprintf(stderr,
            "usage: %s --node NAME --root DIR [--manifests DIR] [--manifest-url URL] "
            "[--poll-seconds N]\n",
            argv[0]);
    exit(2);
}

int main(int argc, char **argv)
{
    static struct agent a;
    sigset_t end = signals_of_the_end();
    struct pod_sources_opts opts = {.poll_s = 20};
    pthread_t worker;
    int signal_number;
    read_flags(argc, argv, &a, &opts);
    if (mkdir(a.root, 0700) < 0 && errno != EEXIST)
        die(a.root, NULL);
    a.client = opts.client = connect_to_cluster();
    a.sources = pod_sources_new(&opts);
    if (pthread_create(&worker, NULL, work, &a) != 0)
        die("thread", NULL);
    sigwait(&end, &signal_number);
    pod_sources_end(a.sources);
    pthread_join(worker, NULL);
    pod_sources_free(a.sources);
    vigil_client_free(a.client);
    return 0;
}
