/* bench_schema.h - what the files of bench_schema share. */
#ifndef VG_BENCH_SCHEMA_H
#define VG_BENCH_SCHEMA_H

#include "base/buf.h"
#include "server/schema/proto.h"

/* More than fit into the inner caches. */
#define PODS 500u

struct pods {
    const char *name;
    const struct vg_schema_type *type;
    struct vg_buf json[PODS];  /* as stored: canonical, without a revision */
    struct vg_buf bytes[PODS]; /* their messages, with one */
    size_t json_n, bytes_n;    /* in all */
};
#define REVISION VG_SLICE_LIT("1234567")

/* `labels` many labels, five containers; or what a kubelet and several managers leave. */
void pods_make_labelled(struct pods *p);
void pods_make_managed(struct pods *p);

/* One side of the comparison; each pass goes over all pods. encode fills *out, decode drops what it
 * makes. check: is what encode made the same bytes? */
struct contender {
    const char *name;
    void *(*open)(const struct pods *pods);
    void (*encode)(void *state);
    void (*decode)(void *state);
    void (*measure)(void *state); /* how long it will be */
    bool (*check)(void *state);
    void (*close)(void *state);
};
extern const struct contender with_vigil, with_protobuf_c;

void must(int r); /* a failure ends the process */

#endif
