/* copy_args.c - see copy_args.h. Two tables, of commands and of options; help comes from them too.
 */
#include "copy_args.h"

#include <errno.h>
#include <getopt.h>

#include "server/api/protobuf.h"
#include "server/api/stored_form.h"

static const struct command {
    const char *name, *args, *help;
} commands[VG_COPY_COMMANDS] = {
    [VG_COPY_BACKUP] = {"backup", " FROM FILE", "everything of one revision into a new file"},
    [VG_COPY_RESTORE] = {"restore", " FILE TO", "what a backup holds into a place that is empty"},
    [VG_COPY_MIGRATE] = {"migrate", " FROM TO", "everything from one place into another one"},
};

/* A person waits. */
#define OPEN_MS 5000u

#define C(name) (1u << VG_COPY_##name)
#define ANY (C(BACKUP) | C(RESTORE) | C(MIGRATE))

enum type { FLAG, TEXT, OUTPUT, REVISION };

static const struct option_row {
    const char *name, *arg;
    enum type type;
    size_t offset; /* in struct vg_copy_args */
    unsigned commands;
    const char *help;
} rows[] = {
#define AT(field) offsetof(struct vg_copy_args, field)
    {"bump", "N", REVISION, AT(opts.bump), C(RESTORE) | C(MIGRATE),
     "begin so many revisions above the source's;\nunless said 10000 for migrate and\n1000000000 "
     "for restore; into etcd 1 and 10000"},
    {"force", NULL, FLAG, AT(opts.is_forced), C(RESTORE) | C(MIGRATE),
     "replace everything that an etcd in use has\nunder the prefix"},
    {"keep-clock", NULL, FLAG, AT(opts.keeps_clock), C(RESTORE) | C(MIGRATE),
     "leave etcd's revision below the source's:\nclients that watch must be restarted"},
    {"etcd-cafile", "FILE", TEXT, AT(opts.etcd.ca_file), ANY, "whom to trust, in PEM"},
    {"etcd-certfile", "FILE", TEXT, AT(opts.etcd.cert_file), ANY,
     "certificate to show etcd, in PEM"},
    {"etcd-keyfile", "FILE", TEXT, AT(opts.etcd.key_file), ANY, "its key"},
    {"etcd-username", "NAME", TEXT, AT(opts.etcd.username), ANY,
     "user of etcd, where it asks for one"},
    {"etcd-password-file", "FILE", TEXT, AT(password_file), ANY, "file with that user's password"},
    {"etcd-prefix", "PATH", TEXT, AT(prefix), ANY,
     "what the keys begin with; /registry unless\nsaid"},
    {"storage-media-type", "TYPE", TEXT, AT(media), C(RESTORE) | C(MIGRATE),
     "how objects are written into etcd:\napplication/json unless said, or\n" VG_PROTOBUF_TYPE},
    {"output", "text|json", OUTPUT, AT(is_json), ANY, "how to print what was done"},
    {"quiet", NULL, FLAG, AT(opts.is_quiet), ANY, "no progress, even on a terminal"},
    {"help", NULL, FLAG, AT(is_help), ANY, "this text"},
    {"version", NULL, FLAG, AT(is_version), ANY, "the version"},
#undef AT
};
#define N_ROWS VG_ARRAY_LEN(rows)

const char *vg_copy_command_name(enum vg_copy_command command)
{
    return commands[command].name;
}

/* ---- help ---- */

static void print_entry(FILE *to, const char *a, const char *b, const char *text)
{
    int used = fprintf(to, "  %s%s", a, b);
    for (const char *line = text; line; used = 0) {
        const char *end = strchr(line, '\n');
        int n = end ? (int)(end - line) : (int)strlen(line);
        fprintf(to, "%*s%.*s\n", VG_MAX(28 - used, 1), "", n, line);
        line = end ? end + 1 : NULL;
    }
}

void vg_copy_help(FILE *to)
{
    fputs("vigil backup, restore, migrate - copy everything that a vigild keeps\n\nusage:\n", to);
    for (size_t i = 0; i < VG_COPY_COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "vigil %s", commands[i].name);
        print_entry(to, left, commands[i].args, commands[i].help);
    }
    fputs("\nFROM and TO are places: the --data-dir of a vigild that is not running, or the\n"
          "servers of an etcd cluster, as http://10.0.0.1:2379,http://10.0.0.2:2379.\n"
          "\noptions:\n",
          to);
    for (size_t i = 0; i < N_ROWS; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s", rows[i].name, rows[i].arg ? " " : "");
        print_entry(to, left, rows[i].arg ? rows[i].arg : "", rows[i].help);
    }
    fputs("\nThe copy is read again and compared before it is called done. One that was\n"
          "interrupted leaves nothing that a vigild would take for whole: run it again.\n"
          "Clients that come with a resourceVersion of before are told to list anew.\n"
          "\nexit status:\n"
          "  0   done\n"
          "  1   it failed; the message says why\n"
          "  2   the command line is wrong\n"
          "  3   there is no such file or store, or no etcd that answers\n"
          "  6   the store is in use by another process\n"
          "  7   the source is damaged, or not vigil's; or the copy differs\n"
          "\nMore: man vigil-copy\n",
          to);
}

/* ---- parsing ---- */

static int read_option(const struct option_row *row, const char *text, struct vg_copy_args *a,
                       struct vg_status *reterr_status)
{
    void *field = (char *)a + row->offset;
    switch (row->type) {
    case FLAG:
        *(bool *)field = true;
        return 0;
    case TEXT:
        *(const char **)field = text;
        return *text ? 0 : vg_fail(reterr_status, VIGIL_E_INVALID, "--%s is empty", row->name);
    case OUTPUT:
        *(bool *)field = strcmp(text, "json") == 0;
        if (!*(bool *)field && strcmp(text, "text") != 0)
            return vg_fail(reterr_status, VIGIL_E_INVALID, "--output is text or json, not '%s'",
                           text);
        return 0;
    case REVISION:
        return vg_parse_rev(text, 0, field, reterr_status);
    }
    return VIGIL_E_INTERNAL;
}

#define FIRST_VALUE 256 /* of long options, above every character */

static int read_options(int argc, char **argv, struct vg_copy_args *a, unsigned *ret_given,
                        struct vg_status *reterr_status)
{
    struct option longs[N_ROWS + 1] = {0};
    int value;
    for (size_t i = 0; i < N_ROWS; i++)
        longs[i] = (struct option){
            .name = rows[i].name,
            .has_arg = rows[i].arg ? required_argument : no_argument,
            .val = FIRST_VALUE + (int)i,
        };
    opterr = 0;
    while ((value = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
        if (value == ':')
            return vg_fail(reterr_status, VIGIL_E_INVALID, "%s needs a value", argv[optind - 1]);
        if (value == '?')
            return vg_fail(reterr_status, VIGIL_E_INVALID,
                           "there is no option '%s', or it takes no value", argv[optind - 1]);
        a->is_help = a->is_help || value == 'h';
        if (value == 'h')
            continue;
        *ret_given |= 1u << (value - FIRST_VALUE);
        int r = read_option(&rows[value - FIRST_VALUE], optarg, a, reterr_status);
        if (r < 0)
            return r;
    }
    return 0;
}

static int find_command(struct vg_copy_args *a, const char *name, struct vg_status *reterr_status)
{
    for (size_t i = 0; i < VG_COPY_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            a->command = (enum vg_copy_command)i;
            return 0;
        }
    }
    return vg_fail(reterr_status, VIGIL_E_INVALID,
                   "there is no command '%s'; there are backup, restore and migrate", name);
}

/* The first line of a file. */
static int read_password(struct vg_copy_args *a, struct vg_status *reterr_status)
{
    FILE *f = fopen(a->password_file, "re");
    if (!f)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "--etcd-password-file: %s: %s",
                       a->password_file, strerror(errno));
    size_t n = fread(a->password, 1, sizeof a->password - 1, f);
    (void)fclose(f);
    a->password[n] = '\0';
    a->password[strcspn(a->password, "\r\n")] = '\0';
    return 0;
}

static int fill_etcd(struct vg_copy_args *a, struct vg_status *reterr_status)
{
    enum vg_stored_media media;
    int n = snprintf(a->prefix_text, sizeof a->prefix_text, "%s/", a->prefix);
    if (n < 0 || (size_t)n >= sizeof a->prefix_text || a->prefix[0] != '/')
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--etcd-prefix is a path that begins with / and is not long, not '%s'",
                       a->prefix);
    if (!vg_stored_media_find(a->media, &media))
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "--storage-media-type is application/json or " VG_PROTOBUF_TYPE ", not '%s'",
                       a->media);
    int r = a->password_file ? read_password(a, reterr_status) : 0;
    a->opts.etcd.root = "/registry/";
    a->opts.etcd.prefix = a->prefix_text;
    a->opts.etcd.password = a->opts.etcd.username ? a->password : NULL;
    a->opts.etcd.open_ms = OPEN_MS;
    vg_stored_form(media, NULL, &a->opts.etcd.form);
    return r;
}

static int check_fit(struct vg_copy_args *a, char **args, int n_args, unsigned given,
                     struct vg_status *reterr_status)
{
    const struct command *c = &commands[a->command];
    if (n_args != 2)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "write: vigil %s%s%s", c->name, c->args,
                       n_args > 2 ? ", and nothing more" : "");
    for (size_t i = 0; i < N_ROWS; i++) {
        if ((given & (1u << i)) && !(rows[i].commands & (1u << a->command)))
            return vg_fail(reterr_status, VIGIL_E_INVALID, "%s does not take --%s", c->name,
                           rows[i].name);
    }
    a->opts.from = args[0];
    a->opts.to = args[1];
    a->opts.is_from_file = a->command == VG_COPY_RESTORE;
    a->opts.is_to_file = a->command == VG_COPY_BACKUP;
    return fill_etcd(a, reterr_status);
}

int vg_copy_args_parse(int argc, char **argv, struct vg_copy_args *ret,
                       struct vg_status *reterr_status)
{
    unsigned given = 0;
    *ret = (struct vg_copy_args){
        .opts.bump = VG_COPY_BUMP_DEFAULT,
        .prefix = "/registry",
        .media = "application/json",
    };
    int r = read_options(argc, argv, ret, &given, reterr_status);
    if (r == 0 && optind < argc && strcmp(argv[optind], "help") == 0)
        ret->is_help = true;
    if (r < 0 || ret->is_help || ret->is_version)
        return r;
    if (optind >= argc)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "say what to do");
    r = find_command(ret, argv[optind], reterr_status);
    return r < 0 ? r : check_fit(ret, argv + optind + 1, argc - optind - 1, given, reterr_status);
}
