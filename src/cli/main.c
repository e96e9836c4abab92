/* main.c - vigil, the command line: read the arguments, connect, run one command. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli.h"
#include "handover.h"

/* Until a command catches signals itself there is nothing to clean up. */
static void end_at_once(int number)
{
    (void)number;
    _exit(VG_EXIT_INTERRUPTED);
}

static int connect_to(struct vg_cli *cli, struct vigil_error *err)
{
    struct vigil_client_opts opts = VIGIL_INIT(struct vigil_client_opts);
    int r = vg_cli_place_config(&cli->args.place, &cli->config, err);
    if (r < 0)
        return r;
    opts.mode = VIGIL_OWN_LOOP;
    opts.qps = -1; /* a person waits, and asks for little */
    opts.user_agent = "vigil";
    return vigil_client_new(cli->config, &opts, &cli->client, err);
}

static int run(struct vg_cli *cli)
{
    switch (cli->args.command) {
    case VG_CMD_WATCH:
        return vg_cmd_watch(cli);
    case VG_CMD_EVENTS:
        return vg_cmd_events(cli);
    case VG_CMD_TOP:
        return vg_cmd_top(cli);
    case VG_CMD_KINDS:
        return vg_cmd_kinds(cli);
    case VG_CMD_GET:
    case VG_CMD_HELP:
    case VG_CMD_VERSION:
        break;
    }
    return vg_cmd_get(cli);
}

int main(int argc, char **argv)
{
    struct vg_cli cli = {0};
    char why[VG_ARGS_WHY_SIZE];
    struct vigil_error err;
    int status = vg_handover(argc, argv);
    if (status >= 0)
        return status;
    if (!vg_args_parse(argc, argv, &cli.args, why)) {
        fprintf(stderr, "vigil: %s\nvigil --help tells how it is used.\n", why);
        return VG_EXIT_USAGE;
    }
    if (cli.args.command == VG_CMD_HELP || cli.args.command == VG_CMD_VERSION) {
        if (cli.args.command == VG_CMD_HELP)
            fputs(vg_help_of(&cli.args), stdout);
        else
            printf("vigil %s\n", vigil_version());
        return vg_cli_flush();
    }
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* for the widths of characters: the output is UTF-8 */
    signal(SIGPIPE, SIG_IGN);             /* writing tells */
    signal(SIGINT, end_at_once);
    vg_kinds_init(&cli.kinds);
    status = connect_to(&cli, &err) < 0 ? vg_cli_complain(&cli, &err) : run(&cli);
    vg_terminal_leave(&cli.terminal);
    vigil_client_free(cli.client);
    vigil_config_free(cli.config);
    vg_kinds_done(&cli.kinds);
    return status;
}
