/* cmd.h - the commands, one function each.
 * Each opens what it needs, does its work, prints the answer and closes again. 0, or an error with
 * a sentence for the user; main.c turns it into an exit status. Thread: main. */
#ifndef VG_TOOL_CMD_H
#define VG_TOOL_CMD_H

#include "options.h"
#include "session.h"

typedef int vg_cmd_fn(const struct vg_options *o, struct vg_status *reterr_status);

vg_cmd_fn vg_cmd_put, vg_cmd_get, vg_cmd_del, vg_cmd_list, vg_cmd_watch;
vg_cmd_fn vg_cmd_compact, vg_cmd_backup, vg_cmd_restore, vg_cmd_check, vg_cmd_repair, vg_cmd_stat;
vg_cmd_fn vg_cmd_demo, vg_cmd_demo_child;

/* Print what is wrong with the files of the store, if anything is: VIGIL_E_STORE_DAMAGED. */
VG_CHECK int vg_cmd_examine(const struct vg_options *o, struct vg_status *reterr_status);
/* The store that the options name, which must exist. */
VG_CHECK int vg_cmd_open(struct vg_session *s, const struct vg_options *o,
                         struct vg_status *reterr_status);

#endif
