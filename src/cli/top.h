/* top.h - what a server tells of its kinds and watchers, gathered from its own answers.
 * Thread: main. */
#ifndef VG_CLI_TOP_H
#define VG_CLI_TOP_H

#include "table.h"
#include "vigil/object.h"

/* What a server may have; those beyond are left out. */
#define VG_TOP_KINDS_MAX 1024u
#define VG_TOP_NAME_SIZE 128

enum vg_top_value {
    VG_TOP_OBJECTS,
    VG_TOP_BYTES,
    VG_TOP_EVENTS,
    VG_TOP_WATCHERS,
    VG_TOP_WINDOW,
    VG_TOP_VALUES
};

struct vg_top_kind {
    char name[VG_TOP_NAME_SIZE]; /* pods, deployments.apps */
    double values[VG_TOP_VALUES];
    unsigned has;         /* a bit for each value that was told */
    double events_before; /* of the last look */
    double lag;           /* of the slowest watcher, in revisions */
};

struct vg_top {
    struct vg_top_kind *kinds; /* room for VG_TOP_KINDS_MAX */
    size_t n_kinds;
    double seconds; /* since the last look; 0: this is the first */
    unsigned told;  /* a bit for each value that the server knows of, be it without a sample */
    bool has_lags;
};

/* Take in an answer of /metrics: numbers of the look before are kept for rates. */
void vg_top_metrics(struct vg_top *top, struct vg_slice text, double seconds);
/* Kinds that have objects, events or watchers, with most watchers first, then most objects. */
void vg_top_put_kinds(struct vg_top *top, struct vg_table *t);
#define VG_TOP_KIND_COLUMNS 8u
/* Take in an answer of /debug/vigil/watches, after the metrics: the lag of each kind. */
void vg_top_lags(struct vg_top *top, struct vigil_text json);
/* The watchers of such an answer, with the largest lag first. 0 or -ENOMEM. */
VG_CHECK int vg_top_put_watches(struct vigil_text json, struct vg_table *t);
#define VG_TOP_WATCH_COLUMNS 9u

/* In few characters: 12, 3456, 120k, 1.2M. */
#define VG_TOP_NUMBER_SIZE 32
void vg_top_number(double n, char ret[VG_TOP_NUMBER_SIZE]);

#endif
