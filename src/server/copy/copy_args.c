/* copy_args.c - see copy_args.h. Two tables, of commands and of options; help comes from them too.
 */
#include "copy_args.h"

#include <errno.h>
#include <getopt.h>

#include "option_rows.h"
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

static const struct vg_option_row rows[] = {
#define AT(field) offsetof(struct vg_copy_args, field)
    {"bump", "N", VG_OPTION_NUMBER_OR_0, AT(opts.bump), C(RESTORE) | C(MIGRATE),
     "begin so many revisions above the source's;\nunless said 10000 for migrate and\n1000000000 "
     "for restore; into etcd 1 and 10000"},
    {"force", NULL, VG_OPTION_FLAG, AT(opts.is_forced), C(RESTORE) | C(MIGRATE),
     "replace everything that an etcd in use has\nunder the prefix"},
    {"keep-clock", NULL, VG_OPTION_FLAG, AT(opts.keeps_clock), C(RESTORE) | C(MIGRATE),
     "leave etcd's revision below the source's:\nclients that watch must be restarted"},
    {"etcd-cafile", "FILE", VG_OPTION_TEXT, AT(opts.etcd.ca_file), ANY, "whom to trust, in PEM"},
    {"etcd-certfile", "FILE", VG_OPTION_TEXT, AT(opts.etcd.cert_file), ANY,
     "certificate to show etcd, in PEM"},
    {"etcd-keyfile", "FILE", VG_OPTION_TEXT, AT(opts.etcd.key_file), ANY, "its key"},
    {"etcd-username", "NAME", VG_OPTION_TEXT, AT(opts.etcd.username), ANY,
     "user of etcd, where it asks for one"},
    {"etcd-password-file", "FILE", VG_OPTION_TEXT, AT(password_file), ANY,
     "file with that user's password"},
    {"etcd-prefix", "PATH", VG_OPTION_TEXT, AT(prefix), ANY,
     "what the keys begin with; /registry unless\nsaid"},
    {"storage-media-type", "TYPE", VG_OPTION_TEXT, AT(media), C(RESTORE) | C(MIGRATE),
     "how objects are written into etcd:\napplication/json unless said, or\n" VG_PROTOBUF_TYPE},
    {"output", "text|json", VG_OPTION_OUTPUT, AT(is_json), ANY, "how to print what was done"},
    {"quiet", NULL, VG_OPTION_FLAG, AT(opts.is_quiet), ANY, "no progress, even on a terminal"},
    {"help", NULL, VG_OPTION_FLAG, AT(is_help), ANY, "this text"},
    {"version", NULL, VG_OPTION_FLAG, AT(is_version), ANY, "the version"},
#undef AT
};
static const struct vg_option_table options = {rows, VG_ARRAY_LEN(rows), 28};

/* ---- help ---- */

void vg_copy_help(FILE *to)
{
    fputs("vigil backup, restore, migrate - copy everything that a vigild keeps\n\nusage:\n", to);
    for (size_t i = 0; i < VG_COPY_COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "vigil %s%s", commands[i].name, commands[i].args);
        vg_option_table_entry(&options, to, left, commands[i].help);
    }
    fputs("\nFROM and TO are places: the --data-dir of a vigild that is not running, or the\n"
          "servers of an etcd cluster, as http://10.0.0.1:2379,http://10.0.0.2:2379.\n"
          "\noptions:\n",
          to);
    vg_option_table_help(&options, to);
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
    int r = vg_option_table_fits(&options, given, 1u << a->command, c->name, reterr_status);
    if (r < 0)
        return r;
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
    int r = vg_option_table_read(&options, argc, argv, ret, &ret->is_help, &given, reterr_status);
    if (r == 0 && optind < argc && strcmp(argv[optind], "help") == 0)
        ret->is_help = true;
    if (r < 0 || ret->is_help || ret->is_version)
        return r;
    if (optind >= argc)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "say what to do");
    r = find_command(ret, argv[optind], reterr_status);
    return r < 0 ? r : check_fit(ret, argv + optind + 1, argc - optind - 1, given, reterr_status);
}
