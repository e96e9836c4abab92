/* pod_sources.h - which pods a node shall run, from three sources as with the kubelet: the API
 * server, a directory of manifests, and a URL of manifests. Each source hands over its whole set
 * when something has changed; here they are merged. */
#ifndef EXAMPLES_POD_SOURCES_H
#define EXAMPLES_POD_SOURCES_H

#include "common.h"

/* What a static pod (one of a file or a URL) is marked with, and its mirror in the API. */
#define CONFIG_SOURCE "kubernetes.io/config.source"
#define CONFIG_HASH "kubernetes.io/config.hash"
#define CONFIG_MIRROR "kubernetes.io/config.mirror"

static inline bool is_static_pod(const struct vigil_object *pod)
{
    struct vigil_text source = vigil_object_annotation(pod, CONFIG_SOURCE);
    return source.n && !vigil_object_annotation(pod, CONFIG_MIRROR).p;
}

struct pod_sources;

struct pod_sources_opts {
    struct vigil_client *client;
    const char *node;
    const char *dir, *url; /* NULL: no such source */
    unsigned poll_s;       /* how often to look at them */
};
struct pod_sources *pod_sources_new(const struct pod_sources_opts *opts);
void pod_sources_free(struct pod_sources *s);

/* Wait until something has changed, a second at most. false: the sources end. */
bool pod_sources_wait(struct pod_sources *s);
/* From a thread that does not wait: let the one that does go. */
void pod_sources_end(struct pod_sources *s);

/* All pods of all sources. */
struct pod_set {
    struct objects pods;
    bool is_complete; /* every source has spoken: what is in none of them is not wanted */
};
struct pod_set pod_sources_merged(struct pod_sources *s);
/* Borrowed; NULL: not there. is_static: of a file or a URL, else of the API. */
const struct vigil_object *pod_set_find(const struct pod_set *set, struct vigil_text key,
                                        bool is_static);

#endif
