/* cli.h - one run of vigil: its arguments, its client, and the commands.
 * The client runs inside the program's own loop (VIGIL_OWN_LOOP), so there is one thread and
 * nothing to lock: callbacks come from vg_terminal_turn and from requests that wait. */
#ifndef VG_CLI_CLI_H
#define VG_CLI_CLI_H

#include "args.h"
#include "base/buf.h"
#include "kinds.h"
#include "table.h"
#include "terminal.h"
#include "vigil/vigil.h"

struct vg_cli {
    struct vg_args args;
    struct vigil_config *config;
    struct vigil_client *client;
    struct vg_kinds kinds;
    struct vg_terminal terminal;
};

/* Commands. Each returns an exit status and has said why when it is not 0. */
int vg_cmd_get(struct vg_cli *cli);
int vg_cmd_watch(struct vg_cli *cli);
int vg_cmd_events(struct vg_cli *cli);
int vg_cmd_top(struct vg_cli *cli);
int vg_cmd_kinds(struct vg_cli *cli);

/* The table on a terminal that `vigil watch` shows; live.c. */
int vg_live_watch(struct vg_cli *cli, const struct vg_kind *kind);

/* GET a path and wait; accept NULL: JSON. The body is appended to ret. 0; a VIGIL_E_ code, err
 * filled; VIGIL_E_CANCELED: interrupted meanwhile, if signals are caught. */
VG_CHECK int vg_cli_fetch(struct vg_cli *cli, const char *path, const char *accept,
                          struct vg_buf *ret, struct vigil_error *err);
/* Append the path of a collection or, with a name, of an object; then ?name=value, &name=value, but
 * nothing for a value that is NULL. No 0 byte behind. */
VG_CHECK int vg_cli_path(struct vg_buf *out, const struct vigil_resource *r, const char *ns,
                         const char *name);
VG_CHECK int vg_cli_path_query(struct vg_buf *out, const char *name, const char *value);
/* Find the kind that the arguments name. An exit status; if not 0 it was said why. */
VG_CHECK int vg_cli_kind(struct vg_cli *cli, const struct vg_kind **ret);
/* The namespace to ask for; NULL: all, or the kind has none. */
const char *vg_cli_namespace(const struct vg_cli *cli, const struct vg_kind *kind);
/* Options of an informer as the arguments say; name_selector holds a selector by name. */
#define VG_CLI_SELECTOR_SIZE 1024
VG_CHECK bool vg_cli_informer_opts(const struct vg_cli *cli, const struct vg_kind *kind,
                                   char name_selector[VG_CLI_SELECTOR_SIZE],
                                   struct vigil_informer_opts *ret);

/* "Error from server (NotFound): ..." for what a server says, else "vigil: ...", and what to do
 * about it; returns VG_EXIT_FAILED. */
int vg_cli_complain(const struct vg_cli *cli, const struct vigil_error *err);
int vg_cli_no_memory(void);
/* An object that cannot be printed: out of memory, or what YAML is refused with. */
int vg_cli_cannot_print(int err);
/* For informers whose changes are printed as lines: on_lost, on_back. */
void vg_cli_say_lost(void *arg, const struct vigil_error *err);
void vg_cli_say_back(void *arg);
/* Flush standard output: VG_EXIT_OK, or VG_EXIT_FAILED and it was said why, unless the reader went
 * away, who knows. */
int vg_cli_flush(void);

/* Is an update one? A list after a lost watch tells of objects that are as they were. */
bool vg_cli_is_changed(const struct vigil_object *before, const struct vigil_object *o);

static inline struct vg_slice vg_cli_slice(struct vigil_text t)
{
    return (struct vg_slice){t.p, t.n};
}

#endif
