/* top.h - what a server tells of its kinds and watchers, gathered from its own answers. */
#ifndef VG_CLI_TOP_H
#define VG_CLI_TOP_H

#include "table.h"
#include "vigil/object.h"

/* What a server may have; those beyond are left out. */
#define VG_TOP_KINDS_MAX 1024u
#define VG_TOP_NAME_SIZE 128

struct vg_top_kind {
    char name[VG_TOP_NAME_SIZE]; /* pods, deployments.apps */
    double objects, events, watchers, window;
    double events_before; /* of the last look */
};

struct vg_top {
    struct vg_top_kind *kinds; /* room for VG_TOP_KINDS_MAX */
    size_t n_kinds;
    double seconds; /* since the last look; 0: this is the first */
};

/* Take in an answer of /metrics: numbers of the look before are kept for rates. */
void vg_top_metrics(struct vg_top *top, struct vg_slice text, double seconds);
/* Kinds that have objects, events or watchers, with most watchers first, then most objects. */
void vg_top_put_kinds(struct vg_top *top, struct vg_table *t);
#define VG_TOP_KIND_COLUMNS 6u
/* An answer of /debug/vigil/watches, with the largest lag first. 0 or -ENOMEM. */
VG_CHECK int vg_top_put_watches(struct vigil_text json, struct vg_table *t);
#define VG_TOP_WATCH_COLUMNS 8u

/* In few characters: 12, 3456, 120k, 1.2M. */
#define VG_TOP_NUMBER_SIZE 32
void vg_top_number(double n, char ret[VG_TOP_NUMBER_SIZE]);

#endif
