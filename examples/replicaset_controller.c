/* replicaset_controller.c - makes as many pods as each ReplicaSet asks for.
 *
 *   informers of ReplicaSets and pods --keys--> work queue --> sync_set(key): compare, create or
 * delete
 *
 * What it rests on:
 *   R1 sync_set() looks at the stores alone and never at what has happened, so that it may run at
 * any time and after any crash. R2 the stores lag behind our own writes. A key is left alone until
 * its pods that were created or deleted have been seen (expectations): nothing is created twice. R3
 * a pod's name is chosen here, so a create whose answer was lost can be sent again. R4 pods of a
 * ReplicaSet that is gone are deleted: it does that for the garbage collector. */
#include <stdatomic.h>

#include "expectations.h"
#include "replicaset_pods.h"

#define BY_OWNER "owner"
#define BURST 100         /* pods created or deleted in one go */
#define LOOK_AGAIN_MS 200 /* after an answer that was lost */

struct controller {
    struct vigil_client *client;
    struct vigil_informer *sets, *pods;
    struct interest in_sets, in_pods;
    struct vigil_workqueue *queue;
    struct vigil_recorder *events;
    struct vigil_leader *leader; /* NULL: the only one */
    atomic_bool is_ending;
    struct expectations expected;
};

/* ---- what is told by the informers: only keys go on from here ---- */

static void index_by_owner(void *arg, const struct vigil_object *pod,
                           void (*emit)(void *emit_arg, struct vigil_text value), void *emit_arg)
{
    char key[KEY_SIZE];
    (void)arg;
    if (owner_of(pod, key))
        emit(emit_arg, vigil_text(key));
}

static void pod_changed(void *arg, const struct vigil_object *pod, bool is_gone)
{
    struct controller *c = arg;
    char key[KEY_SIZE];
    observe(&c->expected, vigil_object_key(pod), false);
    if (is_gone || is_going(pod))
        observe(&c->expected, vigil_object_key(pod), true);
    if (owner_of(pod, key))
        vigil_workqueue_add(c->queue, vigil_text(key));
}

static void set_changed(void *arg, const struct vigil_object *set, bool is_gone)
{
    struct controller *c = arg;
    (void)is_gone; /* then its pods are left */
    vigil_workqueue_add(c->queue, vigil_object_key(set));
}

/* ---- the work: one ReplicaSet ---- */

/* R3: until it is known to be there, or refused. */
static int create_surely(struct controller *c, const char *ns, const char *json,
                         struct vigil_error *err)
{
    for (bool was_lost = false; !c->is_ending; was_lost = true) {
        const struct vigil_object *pod = NULL;
        int e = vigil_create(c->client, &vigil_pods, ns, vigil_text(json), &pod, err);
        vigil_object_unref(pod);
        if (e == VIGIL_E_EXISTS && was_lost)
            return 0;
        if (e != VIGIL_E_NETWORK && e != VIGIL_E_TIMEOUT)
            return e;
        usleep(LOOK_AGAIN_MS * 1000);
    }
    return VIGIL_E_CANCELED;
}

static int create_pod(struct controller *c, const struct vigil_object *set, const char *key)
{
    struct place p = place_of(set);
    struct vigil_error err = {0};
    char suffix[6], pod[KEY_SIZE];
    random_suffix(suffix);
    char *json = pod_json(set, suffix);
    snprintf(pod, sizeof(pod), "%s/%s-%s", p.ns, p.name, suffix);
    expect(&c->expected, key, pod, false);
    int e = create_surely(c, p.ns, json, &err);
    free(json);
    if (e < 0) {
        observe(&c->expected, vigil_text(pod), false);
        vigil_record(c->events, set, "Warning", "FailedCreate", "Error creating: %s", err.message);
        return e;
    }
    say("created %s", pod);
    vigil_record(c->events, set, "Normal", "SuccessfulCreate", "Created pod: %s-%s", p.name,
                 suffix);
    return 0;
}

static int delete_pod(struct controller *c, const struct vigil_object *pod, const char *key)
{
    char name[KEY_SIZE];
    struct vigil_error err;
    snprintf(name, sizeof(name), "%.*s", VIGIL_TEXT_ARG(vigil_object_key(pod)));
    expect(&c->expected, key, name, true);
    int e = delete_object(c->client, &vigil_pods, pod, -1, &err);
    if (e < 0)
        observe(&c->expected, vigil_text(name), true);
    else
        say("deleted %s", name);
    return e;
}

static int scale(struct controller *c, const struct vigil_object *set, const char *key,
                 struct pods *p)
{
    size_t want = (size_t)vigil_get_int(set, "spec.replicas", 1);
    int e = 0;
    for (size_t i = p->mine.n; e == 0 && i < want && i < p->mine.n + BURST; i++)
        e = create_pod(c, set, key);
    if (p->mine.n > want)
        qsort((void *)p->mine.v, p->mine.n, sizeof(*p->mine.v), cheapest_first);
    for (size_t i = 0; e == 0 && i + want < p->mine.n && i < BURST; i++)
        e = delete_pod(c, p->mine.v[i], key);
    return e;
}

static int report(struct controller *c, const struct vigil_object *set, const struct pods *p)
{
    struct place at = place_of(set);
    struct vigil_patch_opts opts = {
        .size = sizeof(opts), .type = VIGIL_PATCH_MERGE, .subresource = "status"};
    int64_t generation = vigil_get_int(set, "metadata.generation", 0);
    if (vigil_get_int(set, "status.replicas", 0) == (int64_t)p->mine.n &&
        vigil_get_int(set, "status.readyReplicas", 0) == (int64_t)p->n_ready &&
        vigil_get_int(set, "status.observedGeneration", 0) == generation)
        return 0;
    char *json = format("{\"status\":{\"replicas\":%zu,\"readyReplicas\":%zu,\"availableReplicas\":"
                        "%zu,\"observedGeneration\":%lld}}",
                        p->mine.n, p->n_ready, p->n_ready, (long long)generation);
    const struct vigil_object *ret = NULL;
    int e = vigil_patch(c->client, &vigil_replicasets, at.ns, at.name, vigil_text(json), &opts,
                        &ret, NULL);
    vigil_object_unref(ret);
    free(json);
    return e == VIGIL_E_NOT_FOUND ? 0 : e;
}

/* R4. The store may lag behind: only the server knows that an owner is gone. */
static int sweep(struct controller *c, const char *key, const struct pods *p)
{
    struct place at = place_of(p->strays.v[0]);
    const struct vigil_object *set = NULL;
    struct vigil_error err;
    int e = vigil_read(c->client, &vigil_replicasets, at.ns, strchr(key, '/') + 1, &set, &err);
    for (size_t i = 0; (e == 0 || e == VIGIL_E_NOT_FOUND) && i < p->strays.n; i++) {
        struct vigil_text kind, name, uid;
        bool has_owner = vigil_object_controller(p->strays.v[i], &kind, &name, &uid);
        if (!set || (has_owner && !same_text(uid, vigil_object_uid(set))))
            e = delete_pod(c, p->strays.v[i], key);
    }
    vigil_object_unref(set);
    return e == VIGIL_E_NOT_FOUND ? 0 : e;
}

static int sync_set(void *arg, const char *key)
{
    struct controller *c = arg;
    /* R2: what we wait for brings the key back, or its time does */
    if (is_expecting(&c->expected, key))
        return vigil_workqueue_add_after(c->queue, vigil_text(key), SEEN_WITHIN_S * 1000);
    const struct vigil_object *set =
        vigil_store_get(vigil_informer_store(c->sets), vigil_text(key));
    struct pods p = {.uid = set ? vigil_object_uid(set) : (struct vigil_text){0}};
    int e =
        vigil_store_by_index(vigil_informer_store(c->pods), BY_OWNER, vigil_text(key), collect, &p);
    if (e == 0 && p.strays.n)
        e = sweep(c, key, &p);
    if (e == 0 && set && !is_going(set))
        e = scale(c, set, key, &p);
    if (e == 0 && set)
        e = report(c, set, &p);
    if (e < 0)
        say("%s: %s", key, vigil_code_text(e));
    objects_done(&p.mine);
    objects_done(&p.strays);
    vigil_object_unref(set);
    return e;
}

static void *work(void *arg)
{
    struct controller *c = arg;
    if (vigil_informer_wait_sync(c->sets, 0) < 0 || vigil_informer_wait_sync(c->pods, 0) < 0)
        return NULL;
    while (c->leader && !vigil_leader_is_leading(c->leader) && !c->is_ending)
        usleep(LOOK_AGAIN_MS * 1000);
    say("at work");
    work_off(c->queue, sync_set, c);
    return NULL;
}

/* ---- the whole ---- */

/* What the worker does just now cannot be called back: the end of the process is the one sure way.
 */
static void stop_leading(void *arg)
{
    struct controller *c = arg;
    if (!c->is_ending)
        die("lost the lease", NULL);
}

static void stand_for_election(struct controller *c, unsigned lease_s)
{
    struct vigil_error err;
    struct vigil_leader_opts opts = {.size = sizeof(opts),
                                     .ns = "kube-system",
                                     .name = "replicaset-controller",
                                     .lease_ms = lease_s * 1000ull,
                                     .renew_ms = lease_s * 700ull,
                                     .retry_ms = lease_s * 200ull,
                                     .release = true,
                                     .on_stopped = stop_leading,
                                     .arg = c};
    if (vigil_leader_new(c->client, &opts, &c->leader, &err) < 0)
        die("leader", &err);
}

static void start(struct controller *c)
{
    const struct vigil_index by_owner = {.name = BY_OWNER, .fn = index_by_owner};
    const struct vigil_informer_opts of_sets = {.size = sizeof(of_sets),
                                                .resource = &vigil_replicasets};
    const struct vigil_informer_opts of_pods = {
        .size = sizeof(of_pods), .resource = &vigil_pods, .indexes = &by_owner, .n_indexes = 1};
    const struct vigil_workqueue_opts limits = {.size = sizeof(limits), .max_delay_ms = 5000};
    struct vigil_error err;
    if (vigil_workqueue_new(&limits, &c->queue, &err) < 0)
        die("work queue", &err);
    if (vigil_recorder_new(c->client, "replicaset-controller", &c->events, &err) < 0)
        die("recorder", &err);
    c->in_sets = (struct interest){.changed = set_changed, .arg = c};
    c->in_pods = (struct interest){.changed = pod_changed, .arg = c};
    c->sets = informer_with(c->client, &of_sets, &c->in_sets);
    c->pods = informer_with(c->client, &of_pods, &c->in_pods);
}

int main(int argc, char **argv)
{
    static struct controller c = {.expected = {.mu = PTHREAD_MUTEX_INITIALIZER}};
    sigset_t end = signals_of_the_end();
    pthread_t worker;
    int signal_number;
    unsigned lease_s = argc == 3 && strcmp(argv[1], "--leader-elect") == 0
                           ? (unsigned)strtoul(argv[2], NULL, 10)
                           : 0;
    if (argc != 1 && !lease_s)
        return fprintf(stderr, "usage: %s [--leader-elect LEASE_SECONDS]\n", argv[0]), 2;
    c.client = connect_to_cluster();
    if (lease_s)
        stand_for_election(&c, lease_s);
    start(&c);
    if (pthread_create(&worker, NULL, work, &c) != 0)
        die("thread", NULL);
    sigwait(&end, &signal_number);
    c.is_ending = true;
    vigil_workqueue_shut_down(c.queue, false);
    vigil_informer_stop(c.sets); /* the worker may still wait for them */
    vigil_informer_stop(c.pods);
    pthread_join(worker, NULL);
    vigil_leader_free(c.leader);
    vigil_informer_free(c.sets);
    vigil_informer_free(c.pods);
    vigil_recorder_free(c.events);
    vigil_workqueue_free(c.queue);
    vigil_client_free(c.client);
    forget_expectations(&c.expected);
    return 0;
}
