/* options.c - see options.h. Two tables say which commands and options there are; parsing, help and
 * "this command does not take that option" all come from them. */
#include "options.h"

#include <getopt.h>
#include <stdlib.h>

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
    [VG_CMD_STAT] = {"stat", "", 0, 0, "print revisions, counts and sizes"},
    [VG_CMD_DEMO_CHILD] = {"demo-child", "", 0, 0, NULL},
};

#define C(name) (1u << VG_CMD_##name)
#define ANY (~0u)
#define ANSWERS                                                                                    \
    (C(PUT) | C(GET) | C(DEL) | C(LIST) | C(WATCH) | C(COMPACT) | C(BACKUP) | C(RESTORE) |         \
     C(CHECK) | C(STAT))

enum option_type { FLAG, TEXT, OUTPUT, NUMBER, REVISION, REVISION_OR_0, DURATION };

static const struct option_row {
    const char *name;
    const char *arg; /* NULL: takes none */
    enum option_type type;
    size_t offset; /* in struct vg_options */
    unsigned commands;
    const char *help;
} rows[] = {
#define AT(field) offsetof(struct vg_options, field)
    {"dir", "DIR", TEXT, AT(dir), ANY & ~C(RESTORE),
     "where the store is; else $VIGIL_STORE_DIR,\nelse ./" DIR_DEFAULT},
    {"output", "text|json", OUTPUT, AT(is_json), ANSWERS, "how to print answers; text unless said"},
    {"pretty", NULL, FLAG, AT(is_pretty), ANSWERS, "lay JSON out over several lines"},
    {"raw", NULL, FLAG, AT(is_raw), C(GET), "the exact bytes, even on a terminal"},
    {"at", "REV", REVISION, AT(at), C(GET) | C(LIST), "as it was at that revision"},
    {"limit", "N", NUMBER, AT(limit), C(LIST), "at most N keys"},
    {"keys-only", NULL, FLAG, AT(is_keys_only), C(LIST), "keys without values"},
    {"from", "REV", REVISION, AT(from), C(WATCH), "the first revision to print; else the oldest"},
    {"count", "N", NUMBER, AT(count), C(WATCH), "end after N changes"},
    {"no-wait", NULL, FLAG, AT(is_no_wait), C(WATCH), "end when everything has been printed"},
    {"expect", "REV", REVISION_OR_0, AT(expect), C(PUT) | C(DEL),
     "only if the key is at that revision; 0: absent"},
    {"ttl", "DURATION", DURATION, AT(ttl_ms), C(PUT), "delete it after 30s, 5m, 2h, 7d, 1h30m"},
    {"bump", "N", REVISION_OR_0, AT(bump), C(RESTORE),
     "revisions to skip, so that none is given\ntwice; 1000000000 unless said"},
    {"unsafe-no-fsync", NULL, FLAG, AT(is_unsafe_no_fsync), ANY & ~C(RESTORE),
     "do not wait for the disk: a power cut loses\nwhat was acknowledged; for tests"},
    {"help", NULL, FLAG, AT(is_help), ANY, "this text"},
    {"version", NULL, FLAG, AT(is_version), ANY, "the version"},
#undef AT
};
#define N_ROWS VG_ARRAY_LEN(rows)

/* ---- help ---- */

/* One entry: the left side, then the text, whose further lines are indented likewise. */
static void print_entry(FILE *to, const char *a, const char *b, const char *c, const char *text)
{
    int used = fprintf(to, "  %s%s%s", a, b, c);
    for (const char *line = text; line; used = 0) {
        const char *end = strchr(line, '\n');
        int n = end ? (int)(end - line) : (int)strlen(line);
        fprintf(to, "%*s%.*s\n", VG_MAX(24 - used, 1), "", n, line);
        line = end ? end + 1 : NULL;
    }
}

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
        if (commands[i].help)
            print_entry(to, commands[i].name, commands[i].args, "", commands[i].help);
    }
    fputs("\noptions:\n", to);
    for (size_t i = 0; i < N_ROWS; i++) {
        char name[32];
        snprintf(name, sizeof name, "--%s", rows[i].name);
        print_entry(to, name, rows[i].arg ? " " : "", rows[i].arg ? rows[i].arg : "", rows[i].help);
    }
    print_codes(to);
    fputs("\nA store belongs to one process at a time. More: man vigil-store\n", to);
}

/* ---- parsing ---- */

static int read_number(const char *text, vg_rev min, uint64_t *ret, const char *option,
                       struct vg_status *reterr_status)
{
    int r = vg_parse_rev(text, min, ret, reterr_status);
    if (r < 0 && reterr_status)
        vg_fail(reterr_status, r, "--%s: %s", option, reterr_status->message);
    return r;
}

static int read_output(const char *text, bool *ret_is_json, struct vg_status *reterr_status)
{
    bool is_json = strcmp(text, "json") == 0;
    if (!is_json && strcmp(text, "text") != 0)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "--output is text or json, not '%s'", text);
    *ret_is_json = is_json;
    return 0;
}

static int read_option(const struct option_row *row, const char *text, struct vg_options *o,
                       struct vg_status *reterr_status)
{
    void *field = (char *)o + row->offset;
    switch (row->type) {
    case FLAG:
        *(bool *)field = true;
        return 0;
    case TEXT:
        *(const char **)field = text;
        return *text ? 0 : vg_fail(reterr_status, VIGIL_E_INVALID, "--%s is empty", row->name);
    case OUTPUT:
        return read_output(text, field, reterr_status);
    case NUMBER:
    case REVISION:
        return read_number(text, 1, field, row->name, reterr_status);
    case REVISION_OR_0:
        return read_number(text, 0, field, row->name, reterr_status);
    case DURATION:
        return vg_parse_duration(text, field, reterr_status);
    }
    return VIGIL_E_INTERNAL;
}

#define FIRST_VALUE 256 /* of long options, above every character */

static void fill_long_options(struct option longs[N_ROWS + 1])
{
    for (size_t i = 0; i < N_ROWS; i++)
        longs[i] = (struct option){
            .name = rows[i].name,
            .has_arg = rows[i].arg ? required_argument : no_argument,
            .val = FIRST_VALUE + (int)i,
        };
    longs[N_ROWS] = (struct option){0};
}

/* All options; *ret_given has a bit for each row that was named. */
static int read_options(int argc, char **argv, struct vg_options *o, unsigned *ret_given,
                        struct vg_status *reterr_status)
{
    struct option longs[N_ROWS + 1];
    int value;
    fill_long_options(longs);
    *ret_given = 0;
    opterr = 0;
    while ((value = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
        if (value == ':')
            return vg_fail(reterr_status, VIGIL_E_INVALID, "%s needs a value", argv[optind - 1]);
        if (value == '?')
            return vg_fail(reterr_status, VIGIL_E_INVALID,
                           "there is no option '%s', or it takes no value", argv[optind - 1]);
        if (value == 'h') {
            o->is_help = true;
            continue;
        }
        *ret_given |= 1u << (value - FIRST_VALUE);
        int r = read_option(&rows[value - FIRST_VALUE], optarg, o, reterr_status);
        if (r < 0)
            return r;
    }
    return 0;
}

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
    for (size_t i = 0; i < N_ROWS; i++) {
        if ((given & (1u << i)) && !(rows[i].commands & (1u << o->cmd)))
            return vg_fail(reterr_status, VIGIL_E_INVALID, "%s does not take --%s", c->name,
                           rows[i].name);
    }
    return 0;
}

int vg_options_parse(int argc, char **argv, struct vg_options *ret_options,
                     struct vg_status *reterr_status)
{
    struct vg_options o = {.expect = VG_EXPECT_ANY, .bump = VG_RESTORE_BUMP_DEFAULT};
    unsigned given;
    int r = read_options(argc, argv, &o, &given, reterr_status);
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
