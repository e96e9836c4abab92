/* guard.c - the last resort when a mapped file cannot be read while it is in use.
 * A data file that is cut off under a running process, or a disk that fails, ends in SIGBUS: the
 * mapping is LMDB's, and there is no way back into the call that touched it. Nothing was
 * acknowledged that is not in the log, so ending is safe; it ends with a sentence and an exit
 * status instead of a signal. LMDB's own assertions end the same way. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lmdb_int.h"

#define EXIT_DAMAGED 7 /* as of vigil-store */

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* nobody listens */
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code != BUS_ADRERR) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    say("vigil: a file of the store cannot be read any more: it was cut off, or the disk fails. "
        "Nothing more is served. Look at the disk, then run vigil-store check; vigil-store repair "
        "saves what can be read\n");
    _exit(EXIT_DAMAGED);
}

void vg_storage_guard_maps(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL); /* fails for a wrong number alone */
}

void vg_lmdb_on_assert(MDB_env *env, const char *text)
{
    (void)env;
    say("vigil: LMDB found its pages damaged: ");
    say(text);
    say("\nvigil: nothing more is served; run vigil-store check, then vigil-store repair\n");
    _exit(EXIT_DAMAGED);
}
