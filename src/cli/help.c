/* help.c - what --help and `vigil help COMMAND` say; docs/man/vigil.1 says the same at length. */
#include <string.h>

#include "args.h"

const char vg_help[] =
    "vigil looks at a Kubernetes API server and watches it.\n"
    "\n"
    "  vigil get KIND [NAME]     objects as they are now\n"
    "  vigil watch KIND [NAME]   and as they change: a live table on a terminal, else a line for\n"
    "                            each object that is there or added (+), changed (~), deleted (-)\n"
    "  vigil events              what was reported about objects, the latest last\n"
    "  vigil top                 objects, bytes, watchers and their lag by kind, and who watches\n"
    "  vigil kinds               the kinds that the server has\n"
    "  vigil backup FROM FILE    everything that a vigild keeps, into a file\n"
    "  vigil restore FILE TO     and back\n"
    "  vigil migrate FROM TO     into another place; for these three see vigil help backup\n"
    "  vigil bench SCENARIO...   how much the server holds, and how soon; see vigil help bench\n"
    "  vigil help COMMAND        more about a command, with examples\n"
    "\n"
    "KIND is a plural, a singular or a short name, with .GROUP where it is ambiguous: pods, pod, "
    "po,\n"
    "deployments.apps. KIND/NAME is the same as KIND NAME.\n"
    "\n"
    "Which objects\n"
    "  -n, --namespace NS        in this namespace (the context's, else default)\n"
    "  -A, --all-namespaces      in all namespaces\n"
    "  -l, --selector SEL        by labels: app=web,tier!=db\n"
    "      --field-selector SEL  by fields: spec.nodeName=n1\n"
    "  -o, --output FORMAT       table, wide, name, json or yaml\n"
    "  -w, --watch               get, events: go on and show what changes\n"
    "\n"
    "Which server\n"
    "      --kubeconfig FILE     else $KUBECONFIG, ~/.kube/config, or the pod's service account\n"
    "      --context NAME        of the kubeconfig, in place of its current one\n"
    "  -s, --server URL          in place of a kubeconfig; these go with it:\n"
    "      --token TOKEN\n"
    "      --certificate-authority FILE\n"
    "      --client-certificate FILE, --client-key FILE\n"
    "      --insecure-skip-tls-verify\n"
    "\n"
    "  -h, --help   --version\n"
    "\n"
    "Keys of the live tables: q ends; arrows, j, k, Page Up, Page Down, g and G scroll.\n"
    "Exit status: 0 done, 1 the server said no or cannot be reached, 2 wrong usage, 130 "
    "interrupted.\n";

static const struct {
    const char *name, *text;
} topics[] = {
    {"get",
     "vigil get KIND [NAME] [-n NS | -A] [-l SEL] [--field-selector SEL] [-o FORMAT] [-w]\n"
     "\n"
     "Prints objects as they are now, as the table that the server makes of them, or as one of\n"
     "vigil's own where it makes none. -o wide shows more columns, -o json and -o yaml "
     "everything,\n"
     "-o name what other commands take. With -w it goes on as vigil watch does.\n"
     "\n"
     "  vigil get pods -A -o wide\n"
     "  vigil get deployment web -o yaml\n"
     "  vigil get pods --field-selector spec.nodeName=n1 -o name\n"},
    {"watch",
     "vigil watch KIND [NAME] [-n NS | -A] [-l SEL] [--field-selector SEL] [-o FORMAT]\n"
     "\n"
     "On a terminal, a table that changes in place: new rows are green for two seconds, changed\n"
     "ones yellow, deleted ones crossed out (NO_COLOR leaves out the colours). Elsewhere, or with\n"
     "-o name, json or yaml, a line or a document for each object that is there or added (+),\n"
     "changed (~) or deleted (-). A server that goes away is waited for, and that is said.\n"
     "\n"
     "  vigil watch pods -l app=web\n"
     "  vigil watch nodes -o json | jq -c '[.type, .object.metadata.name]'\n"},
    {"events",
     "vigil events [-n NS | -A] [-w]\n"
     "\n"
     "Prints what was reported about objects, the latest last. With -w it goes on and prints each\n"
     "event that is new or seen again.\n"
     "\n"
     "  vigil events -A -w\n"},
    {"top",
     "vigil top\n"
     "\n"
     "Shows by kind: objects and the bytes they take, watch events sent, watchers, the events "
     "kept\n"
     "for those that come back (WINDOW), and how many revisions the slowest watcher is behind "
     "(LAG).\n"
     "Then each watcher, those that lag most first, with the bytes that wait to be sent to it\n"
     "(UNSENT). On a terminal it is drawn anew every two seconds. From /metrics, which Kubernetes\n"
     "servers have, and vigild's own /debug/vigil/watches; - is what a server does not tell.\n"},
    {"kinds",
     "vigil kinds\n"
     "\n"
     "Lists the kinds that the server has, with their short names: what get and watch take.\n"},
};

const char *vg_help_of(const struct vg_args *a)
{
    for (size_t i = 0; a->kind && i < VG_ARRAY_LEN(topics); i++)
        if (strcmp(topics[i].name, a->kind) == 0)
            return topics[i].text;
    return vg_help;
}
