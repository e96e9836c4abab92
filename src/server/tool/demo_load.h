/* demo_load.h - many writes at once: the load of the demo and of the process that it kills.
 * Objects look like small Kubernetes pods; key and value follow from a number, so that whoever
 * reads them back knows what must be there. Thread: main. */
#ifndef VG_TOOL_DEMO_LOAD_H
#define VG_TOOL_DEMO_LOAD_H

#include "session.h"

#define VG_LOAD_IN_FLIGHT 64
#define VG_LOAD_MIN 200 /* however slow the disk */
#define VG_LOAD_TEXT_MAX 1024

struct vg_load {
    struct vg_session *s;
    const char *prefix;
    size_t total;    /* writes 0 to total - 1 */
    uint64_t max_ns; /* no new write after this long, once there are VG_LOAD_MIN */
    /* Called for each answer, in the order in which they come. */
    void (*on_ack)(void *arg, size_t index, vg_rev rev, uint64_t latency_ns);
    void *arg;
    /* Results. */
    size_t n_acked;
    uint64_t took_ns;
};

/* Writes until total or max_ns is reached and all is answered; the first error ends it. */
VG_CHECK int vg_load_run(struct vg_load *load, struct vg_status *reterr_status);

/* The text is the caller's buffer. */
struct vg_slice vg_load_key(const char *prefix, size_t index, char text[VG_LOAD_TEXT_MAX]);
struct vg_slice vg_load_value(size_t index, char text[VG_LOAD_TEXT_MAX]);
/* Which one is it? False: not one of this prefix. */
bool vg_load_index(const char *prefix, struct vg_slice key, size_t *ret_index);
/* Is it what vg_load_run writes? */
bool vg_load_is_right(const struct vg_rec *rec, size_t index);

#endif
