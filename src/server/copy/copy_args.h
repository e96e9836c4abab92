/* copy_args.h - the command line of vigil-copy. Thread: main. */
#ifndef VG_COPY_COPY_ARGS_H
#define VG_COPY_COPY_ARGS_H

#include <stdio.h>

#include "copy.h"
#include "options.h"

enum vg_copy_command { VG_COPY_BACKUP, VG_COPY_RESTORE, VG_COPY_MIGRATE, VG_COPY_COMMANDS };

struct vg_copy_args {
    enum vg_copy_command command;
    struct vg_copy_opts opts;
    const char *media; /* of what is written into a cluster */
    const char *prefix, *password_file;
    char prefix_text[256], password[512]; /* what opts.etcd points to */
    bool is_json, is_help, is_version;
};

/* argv is reordered, and borrowed by the result, which points into itself. VIGIL_E_INVALID with a
 * sentence. */
VG_CHECK int vg_copy_args_parse(int argc, char **argv, struct vg_copy_args *ret,
                                struct vg_status *reterr_status);
void vg_copy_help(FILE *to);

#endif
