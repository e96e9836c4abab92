/* args.h - what the command line asks for. Texts are borrowed from argv. Thread: any. */
#ifndef VG_CLI_ARGS_H
#define VG_CLI_ARGS_H

#include <stdbool.h>

#include "base/macros.h"
#include "place.h"

enum vg_command {
    VG_CMD_GET = 1u << 0,
    VG_CMD_WATCH = 1u << 1,
    VG_CMD_EVENTS = 1u << 2,
    VG_CMD_TOP = 1u << 3,
    VG_CMD_KINDS = 1u << 4,
    VG_CMD_HELP = 1u << 5,
    VG_CMD_VERSION = 1u << 6
};
enum vg_output { VG_OUT_TABLE, VG_OUT_WIDE, VG_OUT_NAME, VG_OUT_JSON, VG_OUT_YAML };

/* Also the exit status. */
enum vg_exit { VG_EXIT_OK = 0, VG_EXIT_FAILED = 1, VG_EXIT_USAGE = 2, VG_EXIT_INTERRUPTED = 130 };

struct vg_args {
    enum vg_command command;
    const char *command_name;
    const char *kind, *name; /* NULL: not given; for help, kind is a command or NULL */
    const char *ns, *labels, *fields;
    struct vg_cli_place place;
    bool all_namespaces, follow;
    const char *output_name;
    enum vg_output output;
};

#define VG_ARGS_WHY_SIZE 256
/* true, or ret_why says in a sentence what is wrong. */
VG_CHECK bool vg_args_parse(int argc, char **argv, struct vg_args *ret,
                            char ret_why[VG_ARGS_WHY_SIZE]);

static inline bool vg_args_is_table(const struct vg_args *a)
{
    return a->output == VG_OUT_TABLE || a->output == VG_OUT_WIDE;
}

/* What `vigil help` says, or `vigil help COMMAND`: with a->kind, which is a command's name. */
extern const char vg_help[];
const char *vg_help_of(const struct vg_args *a);

#endif
