/* pods.h - the objects of this bench: label-rich pods of about 4 KB, all different, the same in
 * every run. Thread: one owner of each struct pods. */
#ifndef BENCH_CACHER_PODS_H
#define BENCH_CACHER_PODS_H

#include "server/cacher/cacher.h"

/* 20: what an operator and two policy engines leave on a pod. */
#define PODS_LABELS 20u
#define PODS_NAMESPACES 20u

extern const struct vg_cache_kind pods_kind;

struct pods {
    struct vg_buf text;
    struct vg_arena arena;
    struct vg_obj_sealed sealed;
};
void pods_init(struct pods *p);
void pods_done(struct pods *p);

/* One pod in one of its versions. */
struct pod_id {
    uint32_t id, node, version;
};
/* A record to be put, with one reference. */
struct vg_rec *pods_make(struct pods *p, struct pod_id pod);

/* NULL or "" = not restricted. One reference. */
const struct vg_obj_predicate *pods_predicate(const char *labels, const char *fields);
const struct vg_obj_predicate *pods_of_node(uint32_t node);

#endif
