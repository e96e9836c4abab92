/* replicaset_pods.h - the pods of a ReplicaSet: whose they are, which count, and what a new one is.
 */
#ifndef EXAMPLES_REPLICASET_PODS_H
#define EXAMPLES_REPLICASET_PODS_H

#include "common.h"

#include <unistd.h>

/* The key of the ReplicaSet that controls a pod. false: none does. */
static inline bool owner_of(const struct vigil_object *pod, char key[KEY_SIZE])
{
    struct vigil_text kind, name, uid, ns = vigil_object_namespace(pod);
    if (!vigil_object_controller(pod, &kind, &name, &uid) || !vigil_text_is(kind, "ReplicaSet"))
        return false;
    snprintf(key, KEY_SIZE, "%.*s/%.*s", VIGIL_TEXT_ARG(ns), VIGIL_TEXT_ARG(name));
    return true;
}

/* The pods that count, and those of an owner that is not this one. */
struct pods {
    struct vigil_text uid; /* of the ReplicaSet; empty: there is none */
    struct objects mine, strays;
    size_t n_ready;
};

static inline bool collect(void *arg, const struct vigil_object *pod)
{
    struct pods *p = arg;
    struct vigil_text kind, name, uid, phase = vigil_get_string(pod, "status.phase");
    if (is_going(pod) || !vigil_object_controller(pod, &kind, &name, &uid))
        return true;
    bool is_mine = p->uid.n && same_text(uid, p->uid);
    if (is_mine && (vigil_text_is(phase, "Succeeded") || vigil_text_is(phase, "Failed")))
        return true;
    objects_add(is_mine ? &p->mine : &p->strays, vigil_object_ref(pod));
    p->n_ready += is_mine && has_condition(pod, "Ready");
    return true;
}

static inline void random_suffix(char buf[6])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz245678901234";
    unsigned char dice[5];
    if (getentropy(dice, sizeof(dice)) < 0)
        die("getentropy", NULL);
    for (size_t i = 0; i < sizeof(dice); i++)
        buf[i] = letters[dice[i] % 32];
    buf[5] = 0;
}

/* The template with a name and an owner. */
static inline char *pod_json(const struct vigil_object *set, const char *suffix)
{
    struct place p = place_of(set);
    struct vigil_value labels = vigil_get(set, "spec.template.metadata.labels");
    struct vigil_value notes = vigil_get(set, "spec.template.metadata.annotations");
    struct vigil_value spec = vigil_get(set, "spec.template.spec");
    struct vigil_text none = vigil_text("{}");
    return format("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s-%s\","
                  "\"labels\":%.*s,\"annotations\":%.*s,\"ownerReferences\":[{\"apiVersion\":"
                  "\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"%s\",\"uid\":\"%.*s\","
                  "\"controller\":true,\"blockOwnerDeletion\":true}]},\"spec\":%.*s}",
                  p.name, suffix, VIGIL_TEXT_ARG(labels.type ? labels.raw : none),
                  VIGIL_TEXT_ARG(notes.type ? notes.raw : none), p.name,
                  VIGIL_TEXT_ARG(vigil_object_uid(set)), VIGIL_TEXT_ARG(spec.raw));
}

/* Those go first that cost least: without a node, then not ready. */
static inline int rank(const struct vigil_object *pod)
{
    return (vigil_get_string(pod, "spec.nodeName").n ? 2 : 0) +
           (has_condition(pod, "Ready") ? 1 : 0);
}
static inline int cheapest_first(const void *a, const void *b)
{
    return rank(*(const struct vigil_object *const *)a) -
           rank(*(const struct vigil_object *const *)b);
}

#endif
