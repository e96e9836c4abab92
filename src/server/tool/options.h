/* options.h - the command line of vigil-store: what can be said, and whether it makes sense.
 * Everything is checked before a store is opened, so that a slip of the finger changes nothing.
 * Thread: main. */
#ifndef VG_TOOL_OPTIONS_H
#define VG_TOOL_OPTIONS_H

#include <stdio.h>

#include "server/storage/storage.h"

enum vg_cmd {
    VG_CMD_DEMO,
    VG_CMD_PUT,
    VG_CMD_GET,
    VG_CMD_DEL,
    VG_CMD_LIST,
    VG_CMD_WATCH,
    VG_CMD_COMPACT,
    VG_CMD_BACKUP,
    VG_CMD_RESTORE,
    VG_CMD_CHECK,
    VG_CMD_REPAIR,
    VG_CMD_STAT,
    VG_CMD_DEMO_CHILD, /* the process that the demo kills; not for people */
    VG_CMD_COUNT
};

struct vg_options {
    enum vg_cmd cmd;
    char **args; /* after the command; as many as it takes */
    int n_args;
    const char *program; /* as it was called, for examples */
    const char *dir;     /* NULL: not said */
    bool is_json, is_pretty, is_raw, is_keys_only, is_no_wait, is_unsafe_no_fsync;
    bool is_help, is_version; /* then nothing else counts */
    vg_rev at;                /* 0: now */
    vg_rev from;              /* 0: the oldest that is kept */
    vg_rev expect;            /* VG_EXPECT_ANY: not said */
    vg_rev bump;
    uint64_t limit, count; /* 0: not said */
    uint64_t ttl_ms;       /* 0: for ever */
};

/* argv is reordered, and borrowed by the result. VIGIL_E_INVALID with a sentence. */
VG_CHECK int vg_options_parse(int argc, char **argv, struct vg_options *ret_options,
                              struct vg_status *reterr_status);
void vg_options_help(FILE *to);
/* The directory of the store: as said, or $VIGIL_STORE_DIR, or vigil-store-data. */
const char *vg_options_dir(const struct vg_options *o);

/* A revision in decimal, at least `min`. VIGIL_E_INVALID. */
VG_CHECK int vg_parse_rev(const char *text, vg_rev min, vg_rev *ret_rev,
                          struct vg_status *reterr_status);
/* 1h30m, 90s, 250ms, 7d; more than nothing. VIGIL_E_INVALID. */
VG_CHECK int vg_parse_duration(const char *text, uint64_t *ret_ms, struct vg_status *reterr_status);

#endif
