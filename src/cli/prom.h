/* prom.h - reading metrics in the Prometheus text format, sample by sample. Thread: any. */
#ifndef VG_CLI_PROM_H
#define VG_CLI_PROM_H

#include "base/slice.h"

struct vg_prom {
    struct vg_slice name, labels; /* labels: what is between the braces */
    double value;
};
/* The next sample of *text, which moves on; comments and lines that are none are passed over.
 * false: the end. */
bool vg_prom_next(struct vg_slice *text, struct vg_prom *ret);
/* The value of a label as written, escapes included; empty: not there. */
struct vg_slice vg_prom_label(const struct vg_prom *s, const char *name);

#endif
