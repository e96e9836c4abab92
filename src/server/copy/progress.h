/* progress.h - how far it is, on one line of a terminal; nothing where there is none.
 * Thread: main. */
#ifndef VG_COPY_PROGRESS_H
#define VG_COPY_PROGRESS_H

#include "base/clock.h"
#include "base/macros.h"

struct vg_progress {
    const char *what; /* "copying" */
    uint64_t total, done, bytes;
    uint64_t began_ns, drawn_ns;
    bool is_shown;
};

/* Shown on standard error if that is a terminal and nobody asked for silence. */
void vg_progress_begin(struct vg_progress *p, const char *what, uint64_t total, bool is_quiet);
void vg_progress_add(struct vg_progress *p, uint64_t done, uint64_t bytes);
/* The line goes. */
void vg_progress_end(struct vg_progress *p);

#endif
