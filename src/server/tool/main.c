/* main.c - vigil-store: reads, changes, backs up and checks vigil's embedded store from the command
 * line. Options are read here, commands are run (cmd_*.c), and errors become a sentence, a hint and
 * an exit status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmd.h"
#include "safe_text.h"

static vg_cmd_fn *const commands[VG_CMD_COUNT] = {
    [VG_CMD_DEMO] = vg_cmd_demo,
    [VG_CMD_PUT] = vg_cmd_put,
    [VG_CMD_GET] = vg_cmd_get,
    [VG_CMD_DEL] = vg_cmd_del,
    [VG_CMD_LIST] = vg_cmd_list,
    [VG_CMD_WATCH] = vg_cmd_watch,
    [VG_CMD_COMPACT] = vg_cmd_compact,
    [VG_CMD_BACKUP] = vg_cmd_backup,
    [VG_CMD_RESTORE] = vg_cmd_restore,
    [VG_CMD_CHECK] = vg_cmd_check,
    [VG_CMD_REPAIR] = vg_cmd_repair,
    [VG_CMD_STAT] = vg_cmd_stat,
    [VG_CMD_DEMO_CHILD] = vg_cmd_demo_child,
};

/* Exit statuses as --help and the man page list them, and what to do next where the message itself
 * does not say. */
static const struct outcome {
    int err;
    int status;
    const char *hint;
} outcomes[] = {
    {VIGIL_E_INVALID, 2, "vigil-store --help shows what there is"},
    {VIGIL_E_KEY_INVALID, 2, "shorten the key, or give one"},
    {VIGIL_E_VALUE_TOO_LARGE, 2, "split the value over several keys"},
    {VIGIL_E_NOT_FOUND, 3, NULL},
    {-ENOENT, 3, NULL},
    {VIGIL_E_CONFLICT, 4, "read it again, decide anew, and expect the revision that it is at now"},
    {VIGIL_E_COMPACTED, 5, "vigil-store stat shows which revisions there are"},
    {VIGIL_E_FUTURE, 5, "vigil-store stat shows which revisions there are"},
    {VIGIL_E_STORE_LOCKED, 6, NULL},
    {VIGIL_E_STORE_DAMAGED, 7,
     "vigil-store check says what is wrong; vigil-store restore FILE DIR brings a backup back; "
     "vigil-store repair saves what can be read"},
    {VIGIL_E_STORE_FOREIGN, 7, NULL},
    {VIGIL_E_STORE_VERSION, 7, NULL},
    {VIGIL_E_UNKNOWN_OUTCOME, 8, NULL},
    {VIGIL_E_EXISTS, 1, "choose another name, or move the old one away"},
};

static const struct outcome *outcome_of(int err)
{
    static const struct outcome other = {0, 1, NULL};
    for (size_t i = 0; i < VG_ARRAY_LEN(outcomes); i++) {
        if (outcomes[i].err == err)
            return &outcomes[i];
    }
    return &other;
}

/* Messages may name keys, which may hold anything. */
static void complain(const struct vg_status *status, int err)
{
    VG_AUTO(buf) text = {0};
    const char *message =
        status->err == err && status->message[0] ? status->message : vg_err_text(err);
    if (vg_safe_append(&text, vg_slice_str(message), VG_SAFE_DISPLAY) == 0)
        fprintf(stderr, "vigil-store: %.*s\n", VG_SLICE_ARG(text));
    else
        fprintf(stderr, "vigil-store: %s\n", vg_err_text(err));
    const char *hint = outcome_of(err)->hint;
    if (hint)
        fprintf(stderr, "vigil-store: %s\n", hint);
}

static int say(const struct vg_options *o)
{
    if (o->is_help)
        vg_options_help(stdout);
    else
        printf("vigil-store %s\n", VG_TOOL_VERSION);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct vg_options o;
    struct vg_status status = {0};
    vg_storage_guard_maps();
    int r = vg_options_parse(argc, argv, &o, &status);
    if (r == 0 && (o.is_help || o.is_version))
        return say(&o);
    if (r == 0)
        r = commands[o.cmd](&o, &status);
    if (r >= 0)
        return EXIT_SUCCESS;
    complain(&status, r);
    return outcome_of(r)->status;
}
