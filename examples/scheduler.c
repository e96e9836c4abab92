/* scheduler.c - gives every pod without a node the node that has fewest pods.
 *
 *   pods with spec.nodeName empty --> work queue --> fits(node)?, fewest pods --> bind
 *
 * What it rests on:
 *   S1 the server filters (field selectors): pods to be bound and pods that are bound are two
 *      informers, and a pod goes from the one to the other when it is bound.
 *   S2 the informers lag behind our own bindings: those not seen yet are assumed, and count.
 *   S3 a binding happens once: who binds a pod that has a node, or another pod of its name, is
 *      refused by the server. Two schedulers do no harm. */
#include <stdatomic.h>
#include <unistd.h>

#include "common.h"

#define BY_NODE "node"
#define NODE_ALIVE_MS 40000 /* a node whose Lease is not renewed for so long gets no pods */
#define LOOK_AGAIN_MS 10
#define ASSUMED_MS 30000 /* a binding not seen by then has not happened */

struct scheduler {
    struct vigil_client *client;
    struct vigil_informer *unbound, *bound, *nodes, *leases;
    struct vigil_expiring *assumed; /* pods as they will be (S2) */
    struct vigil_expiring *alive;   /* Leases that were renewed lately, by our own clock */
    struct vigil_workqueue *queue;
    struct vigil_recorder *events;
    struct interest in_unbound, in_bound, in_nodes, in_leases;
    atomic_bool is_ending;
};

/* ---- what is told by the informers ---- */

static void unbound_changed(void *arg, const struct vigil_object *pod, bool is_gone)
{
    struct scheduler *s = arg;
    if (!is_gone)
        vigil_workqueue_add(s->queue, vigil_object_key(pod));
}

static void bound_changed(void *arg, const struct vigil_object *pod, bool is_gone)
{
    struct scheduler *s = arg;
    (void)is_gone;
    vigil_expiring_delete(s->assumed, vigil_object_key(pod));
}

/* A chance for every pod that waits. */
static void node_changed(void *arg, const struct vigil_object *node, bool is_gone)
{
    struct scheduler *s = arg;
    const struct vigil_snapshot *all = vigil_store_snapshot(vigil_informer_store(s->unbound));
    struct vigil_iter at = {0};
    (void)node, (void)is_gone;
    for (const struct vigil_object *pod; all && (pod = vigil_snapshot_next(all, &at));)
        vigil_workqueue_add(s->queue, vigil_object_key(pod));
    vigil_snapshot_unref(all);
}

static void lease_changed(void *arg, const struct vigil_object *lease, bool is_gone)
{
    struct scheduler *s = arg;
    if (is_gone)
        vigil_expiring_delete(s->alive, vigil_object_key(lease));
    else if (vigil_expiring_put(s->alive, lease) < 0)
        say("out of memory: a node may seem dead until it renews its Lease again");
}

static void index_by_node(void *arg, const struct vigil_object *pod,
                          void (*emit)(void *emit_arg, struct vigil_text value), void *emit_arg)
{
    (void)arg;
    emit(emit_arg, vigil_get_string(pod, "spec.nodeName"));
}

/* ---- where to ---- */

static bool selects(const struct vigil_object *pod, const struct vigil_object *node)
{
    struct vigil_value wanted = vigil_get(pod, "spec.nodeSelector"), value;
    struct vigil_iter at = {0};
    struct vigil_text key;
    while (vigil_value_next(wanted, &at, &key, &value)) {
        char name[KEY_SIZE];
        snprintf(name, sizeof(name), "%.*s", VIGIL_TEXT_ARG(key));
        struct vigil_text label = vigil_object_label(node, name);
        if (!label.p || !same_text(label, vigil_value_string(value)))
            return false;
    }
    return true;
}

static bool fits(struct scheduler *s, const struct vigil_object *pod,
                 const struct vigil_object *node)
{
    char lease[KEY_SIZE];
    snprintf(lease, sizeof(lease), "kube-node-lease/%.*s", VIGIL_TEXT_ARG(vigil_object_name(node)));
    const struct vigil_object *alive = vigil_expiring_get(s->alive, vigil_text(lease));
    vigil_object_unref(alive);
    return alive && !is_going(node) && has_condition(node, "Ready") &&
           !vigil_value_bool(vigil_get(node, "spec.unschedulable"), false) && selects(pod, node);
}

struct count {
    struct vigil_text node;
    size_t n;
};
static bool count_one(void *arg, const struct vigil_object *pod)
{
    struct count *c = arg;
    c->n += same_text(vigil_get_string(pod, "spec.nodeName"), c->node);
    return true;
}

static size_t pods_on(struct scheduler *s, struct vigil_text node)
{
    struct count c = {.node = node};
    if (vigil_store_by_index(vigil_informer_store(s->bound), BY_NODE, node, count_one, &c) < 0 ||
        vigil_expiring_list(s->assumed, count_one, &c) < 0)
        return SIZE_MAX;
    return c.n;
}

/* A reference; NULL: no node will do. */
static const struct vigil_object *choose(struct scheduler *s, const struct vigil_object *pod)
{
    const struct vigil_snapshot *nodes = vigil_store_snapshot(vigil_informer_store(s->nodes));
    const struct vigil_object *best = NULL, *node;
    struct vigil_iter at = {0};
    size_t fewest = SIZE_MAX;
    while (nodes && (node = vigil_snapshot_next(nodes, &at))) {
        size_t n = fits(s, pod, node) ? pods_on(s, vigil_object_name(node)) : SIZE_MAX;
        if (n < fewest) {
            fewest = n;
            best = node;
        }
    }
    best = best ? vigil_object_ref(best) : NULL;
    vigil_snapshot_unref(nodes);
    return best;
}

/* ---- binding ---- */

static int bind_pod(struct scheduler *s, const struct vigil_object *pod,
                    const struct vigil_object *node, struct vigil_error *err)
{
    struct place p = place_of(pod), n = place_of(node);
    char *binding =
        format("{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":"
               "\"%s\",\"uid\":\"%.*s\"},\"target\":{\"kind\":\"Node\",\"name\":\"%s\"}}",
               p.name, VIGIL_TEXT_ARG(vigil_object_uid(pod)), n.name);
    char *patch = format("{\"spec\":{\"nodeName\":\"%s\"}}", n.name);
    const struct vigil_object *bound = vigil_object_merge(pod, vigil_text(patch), err);
    int e = bound ? vigil_expiring_put(s->assumed, bound) : err->code;
    if (e == 0)
        e = vigil_call(s->client, &vigil_pods, p.ns, p.name, "binding", vigil_text(binding), NULL,
                       err);
    if (e < 0)
        vigil_expiring_delete(s->assumed, vigil_object_key(pod));
    vigil_object_unref(bound);
    free(patch);
    free(binding);
    if (e < 0)
        return e;
    say("bound %s/%s to %s", p.ns, p.name, n.name);
    vigil_record(s->events, pod, "Normal", "Scheduled", "Successfully assigned %s/%s to %s", p.ns,
                 p.name, n.name);
    return 0;
}

static int schedule(void *arg, const char *key)
{
    struct scheduler *s = arg;
    struct vigil_error err = {0};
    const struct vigil_object *pod =
        vigil_store_get(vigil_informer_store(s->unbound), vigil_text(key));
    const struct vigil_object *node = pod && !is_going(pod) ? choose(s, pod) : NULL;
    int e = 0;
    if (node)
        e = bind_pod(s, pod, node, &err);
    else if (pod && !is_going(pod))
        e = VIGIL_E_BUSY;                                /* later, perhaps */
    if (e == VIGIL_E_NOT_FOUND || e == VIGIL_E_CONFLICT) /* it went away, or has a node: S3 */
        e = 0;
    if (e < 0) {
        const char *why = node ? err.message : "no node is ready and fits";
        say("%s: %s", key, why);
        vigil_record(s->events, pod, "Warning", "FailedScheduling", "%s", why);
    }
    vigil_object_unref(node);
    vigil_object_unref(pod);
    return e;
}

static void *work(void *arg)
{
    struct scheduler *s = arg;
    if (vigil_informer_wait_sync(s->unbound, 0) < 0 || vigil_informer_wait_sync(s->bound, 0) < 0 ||
        vigil_informer_wait_sync(s->nodes, 0) < 0 || vigil_informer_wait_sync(s->leases, 0) < 0)
        return NULL;
    /* That an informer has synced says nothing of its handlers: who is alive must have been told.
     */
    while (!vigil_registration_has_synced(s->in_leases.told) && !s->is_ending)
        usleep(LOOK_AGAIN_MS * 1000);
    say("at work");
    work_off(s->queue, schedule, s);
    return NULL;
}

static void start(struct scheduler *s)
{
    const struct vigil_index by_node = {.name = BY_NODE, .fn = index_by_node};
    struct vigil_informer_opts o = {.size = sizeof(o), .resource = &vigil_pods};
    const struct vigil_workqueue_opts limits = {.size = sizeof(limits), .max_delay_ms = 5000};
    struct vigil_error err;
    if (vigil_workqueue_new(&limits, &s->queue, &err) < 0 ||
        vigil_expiring_new(ASSUMED_MS, &s->assumed, &err) < 0 ||
        vigil_expiring_new(NODE_ALIVE_MS, &s->alive, &err) < 0 ||
        vigil_recorder_new(s->client, "scheduler", &s->events, &err) < 0)
        die("start", &err);
    s->in_unbound = (struct interest){.changed = unbound_changed, .arg = s};
    s->in_bound = (struct interest){.changed = bound_changed, .arg = s};
    s->in_nodes = (struct interest){.changed = node_changed, .arg = s};
    s->in_leases = (struct interest){.changed = lease_changed, .arg = s};
    o.field_selector = "spec.nodeName=";
    s->unbound = informer_with(s->client, &o, &s->in_unbound);
    o.field_selector = "spec.nodeName!=";
    o.indexes = &by_node;
    o.n_indexes = 1;
    s->bound = informer_with(s->client, &o, &s->in_bound);
    o = (struct vigil_informer_opts){.size = sizeof(o), .resource = &vigil_nodes};
    s->nodes = informer_with(s->client, &o, &s->in_nodes);
    o.resource = &vigil_leases;
    o.ns = "kube-node-lease";
    s->leases = informer_with(s->client, &o, &s->in_leases);
}

int main(void)
{
    static struct scheduler s;
    sigset_t end = signals_of_the_end();
    struct vigil_informer **all[] = {&s.unbound, &s.bound, &s.nodes, &s.leases};
    pthread_t worker;
    int signal_number;
    s.client = connect_to_cluster();
    start(&s);
    if (pthread_create(&worker, NULL, work, &s) != 0)
        die("thread", NULL);
    sigwait(&end, &signal_number);
    s.is_ending = true;
    vigil_workqueue_shut_down(s.queue, false);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        vigil_informer_stop(*all[i]); /* the worker may still wait for them */
    pthread_join(worker, NULL);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        vigil_informer_free(*all[i]);
    vigil_recorder_free(s.events);
    vigil_workqueue_free(s.queue);
    vigil_expiring_free(s.assumed);
    vigil_expiring_free(s.alive);
    vigil_client_free(s.client);
    return 0;
}
