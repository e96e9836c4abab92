/* options.c - see options.h. Two tables say which commands and options there are; parsing, help and
 * "this command does not take that option" all come from them. */
#include "options.h"

#include <getopt.h>
#include <stdlib.h>

#include "option_rows.h"

#define DIR_DEFAULT "vigil-store-data"

/* ---- the tables ---- */

static const struct command {
    const char *name;
    const char *args;
    int min_args, max_args;
    const char *help; /* NULL: not shown */
} commands[VG_CMD_COUNT] = {
    [VG_CMD_DEMO] = {"demo", "", 0, 0, "show in a few seconds what the store does, with numbers"},
    [VG_CMD_PUT] = {"put", " KEY VALUE", 2, 2, "write a value; VALUE - reads standard input"},
    [VG_CMD_GET] = {"get", " KEY", 1, 1, "print the value of a key"},
    [VG_CMD_DEL] = {"del", " KEY", 1, 1, "delete a key"},
    [VG_CMD_LIST] = {"list", " [PREFIX]", 0, 1, "print the keys that begin with PREFIX"},
    [VG_CMD_WATCH] = {"watch", " [PREFIX]", 0, 1, "print the changes, oldest first, and wait"},
    [VG_CMD_COMPACT] = {"compact", " REV", 1, 1, "forget the history up to a revision"},
    [VG_CMD_BACKUP] = {"backup", " FILE", 1, 1, "copy the whole store into a new file"},
    [VG_CMD_RESTORE] = {"restore", " FILE DIR", 2, 2, "make a store in DIR from a backup"},
    [VG_CMD_CHECK] = {"check", "", 0, 0, "read everything back and say whether it is whole"},
    [VG_CMD_REPAIR] = {"repair", "", 0, 0,
                       "make a damaged store whole again, and say what is lost"},
    [VG_CMD_STAT] = {"stat", "", 0, 0, "print revisions, counts and sizes"},
    [VG_CMD_DEMO_CHILD] = {"demo-child", "", 0, 0, NULL},
};

#define C(name) (1u << VG_CMD_##name)
#define ANY (~0u)
#define ANSWERS                                                                                    \
    (C(PUT) | C(GET) | C(DEL) | C(LIST) | C(WATCH) | C(COMPACT) | C(BACKUP) | C(RESTORE) |         \
     C(CHECK) | C(REPAIR) | C(STAT))

static const struct vg_option_row rows[] = {
#define AT(field) offsetof(struct vg_options, field)
    {"dir", "DIR", VG_OPTION_TEXT, AT(dir), ANY & ~C(RESTORE),
     "where the store is; else $VIGIL_STORE_DIR,\nelse ./" DIR_DEFAULT},
    {"output", "text|json", VG_OPTION_OUTPUT, AT(is_json), ANSWERS,
     "how to print answers; text unless said"},
    {"pretty", NULL, VG_OPTION_FLAG, AT(is_pretty), ANSWERS, "lay JSON out over several lines"},
    {"raw", NULL, VG_OPTION_FLAG, AT(is_raw), C(GET), "the exact bytes, even on a terminal"},
    {"at", "REV", VG_OPTION_NUMBER, AT(at), C(GET) | C(LIST), "as it was at that revision"},
    {"limit", "N", VG_OPTION_NUMBER, AT(limit), C(LIST), "at most N keys"},
    {"keys-only", NULL, VG_OPTION_FLAG, AT(is_keys_only), C(LIST), "keys without values"},
    {"from", "REV", VG_OPTION_NUMBER, AT(from), C(WATCH),
     "the first revision to print; else the oldest"},
    {"count", "N", VG_OPTION_NUMBER, AT(count), C(WATCH), "end after N changes"},
    {"no-wait", NULL, VG_OPTION_FLAG, AT(is_no_wait), C(WATCH),
     "end when everything has been printed"},
    {"expect", "REV", VG_OPTION_NUMBER_OR_0, AT(expect), C(PUT) | C(DEL),
     "only if the key is at that revision; 0: absent"},
    {"ttl", "DURATION", VG_OPTION_DURATION, AT(ttl_ms), C(PUT),
     "delete it after 30s, 5m, 2h, 7d, 1h30m"},
    {"bump", "N", VG_OPTION_NUMBER_OR_0, AT(bump), C(RESTORE) | C(REPAIR),
     "revisions to skip, so that none is given\ntwice; 1000000000 unless said"},
    {"unsafe-no-fsync", NULL, VG_OPTION_FLAG, AT(is_unsafe_no_fsync), ANY & ~C(RESTORE),
     "do not wait for the disk: a power cut loses\nwhat was acknowledged; for tests"},
    {"help", NULL, VG_OPTION_FLAG, AT(is_help), ANY, "this text"},
    {"version", NULL, VG_OPTION_FLAG, AT(is_version), ANY, "the version"},
#undef AT
};
static const struct vg_option_table options = {rows, VG_ARRAY_LEN(rows), 24};

/* ---- help ---- */

static void print_codes(FILE *to)
{
    static const char *const lines[] = {
        "0   done",
        "1   it failed; the message says why",
        "2   the command line is wrong",
        "3   there is no such key, file or store",
        "4   conflict: the key is not at the revision that --expect names",
        "5   that revision has been compacted, or is not there yet",
        "6   the store is in use by another process",
        "7   the store is damaged, or is not a vigil store",
        "8   the write may or may not have happened: read before you try again",
    };
    fputs("\nexit status:\n", to);
    for (size_t i = 0; i < VG_ARRAY_LEN(lines); i++)
        fprintf(to, "  %s\n", lines[i]);
}

void vg_options_help(FILE *to)
{
    fputs("vigil-store - read, change, back up and check vigil's embedded store\n\n"
          "usage: vigil-store [options] command [arguments]\n\ncommands:\n",
          to);
    for (int i = 0; i < VG_CMD_COUNT; i++) {
        char left[32];
        snprintf(left, sizeof left, "%s%s", commands[i].name, commands[i].args);
        if (commands[i].help)
            vg_option_table_entry(&options, to, left, commands[i].help);
    }
    fputs("\noptions:\n", to);
    vg_option_table_help(&options, to);
    print_codes(to);
    fputs("\nA store belongs to one process at a time. More: man vigil-store\n", to);
}

/* ---- parsing ---- */

static int find_command(const char *name, enum vg_cmd *ret_cmd, struct vg_status *reterr_status)
{
    for (int i = 0; i < VG_CMD_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            *ret_cmd = (enum vg_cmd)i;
            return 0;
        }
    }
    return vg_fail(reterr_status, VIGIL_E_INVALID, "there is no command '%s'", name);
}

static int check_fit(const struct vg_options *o, unsigned given, struct vg_status *reterr_status)
{
    const struct command *c = &commands[o->cmd];
    if (o->n_args < c->min_args || o->n_args > c->max_args)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "write: vigil-store %s%s%s", c->name,
                       c->args, o->n_args < c->min_args ? "" : ", and nothing more");
    return vg_option_table_fits(&options, given, 1u << o->cmd, c->name, reterr_status);
}

int vg_options_parse(int argc, char **argv, struct vg_options *ret_options,
                     struct vg_status *reterr_status)
{
    struct vg_options o = {.expect = VG_EXPECT_ANY, .bump = VG_RESTORE_BUMP_DEFAULT};
    unsigned given;
    int r = vg_option_table_read(&options, argc, argv, &o, &o.is_help, &given, reterr_status);
    if (r == 0 && !o.is_help && !o.is_version) {
        if (optind >= argc)
            return vg_fail(reterr_status, VIGIL_E_INVALID, "say what to do");
        r = find_command(argv[optind], &o.cmd, reterr_status);
        o.args = argv + optind + 1;
        o.n_args = argc - optind - 1;
        o.program = argv[0];
        if (r == 0)
            r = check_fit(&o, given, reterr_status);
    }
    if (r == 0)
        *ret_options = o;
    return r;
}

const char *vg_options_dir(const struct vg_options *o)
{
    const char *env = getenv("VIGIL_STORE_DIR");
    return o->dir ? o->dir : env && *env ? env : DIR_DEFAULT;
}
