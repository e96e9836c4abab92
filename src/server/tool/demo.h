/* demo.h - what the steps of the demo share. Thread: main. */
#ifndef VG_TOOL_DEMO_H
#define VG_TOOL_DEMO_H

#include "cmd.h"
#include "demo_load.h"

#define VG_DEMO_PATH_MAX 4096
#define VG_DEMO_PREFIX "/registry/pods/demo/web-"
#define VG_DEMO_KILL_PREFIX "/registry/pods/killed/web-"
#define VG_DEMO_OBJECTS ((size_t)10000)

struct vg_demo {
    const struct vg_options *o;
    bool has_colour;
    char dir[VG_DEMO_PATH_MAX - 64]; /* holds the others */
    char store[VG_DEMO_PATH_MAX];
    char backup[VG_DEMO_PATH_MAX];
    char restored[VG_DEMO_PATH_MAX];
    int lock_fd; /* of the mark that says whose the directory is; -1: none */
    struct vg_session s;
    size_t n;         /* objects written */
    vg_rev *acked;    /* of each: the revision that was acknowledged */
    vg_rev *seen;     /* of each: the revision that the watch saw, 0: not yet */
    uint64_t *waited; /* of each: how long its answer took */
};

/* One step's line: its name and what was found. */
void vg_demo_say(const struct vg_demo *d, const char *name, const char *fmt, ...) VG_PRINTF(3, 4);
/* 12,345 */
#define VG_DEMO_NUMBER_SIZE 32
const char *vg_demo_number(uint64_t n, char text[VG_DEMO_NUMBER_SIZE]);

/* demo_dir.c: choose the directory, empty what an earlier demo left, and hold it. */
VG_CHECK int vg_demo_dir_take(struct vg_demo *d, struct vg_status *reterr_status);
void vg_demo_dir_release(struct vg_demo *d);

/* The steps: each checks what it says. VIGIL_E_INTERNAL: the store did not keep a promise. */
VG_CHECK int vg_demo_write(struct vg_demo *d, struct vg_status *reterr_status);
VG_CHECK int vg_demo_history(struct vg_demo *d, struct vg_status *reterr_status);
VG_CHECK int vg_demo_conflict(struct vg_demo *d, struct vg_status *reterr_status);
VG_CHECK int vg_demo_kill(struct vg_demo *d, struct vg_status *reterr_status);
VG_CHECK int vg_demo_backup(struct vg_demo *d, struct vg_status *reterr_status);

#endif
