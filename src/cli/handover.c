/* handover.c - see handover.h. */
#include "handover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"

#define PATH_ROOM 4096

static const struct {
    const char *command, *program;
} programs[] = {
    {"backup", "vigil-copy"},
    {"restore", "vigil-copy"},
    {"migrate", "vigil-copy"},
    {"bench", "vigil-bench"},
};

/* NULL: it is done here. */
static const char *program_of(const char *command)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(programs); i++)
        if (strcmp(programs[i].command, command) == 0)
            return programs[i].program;
    return NULL;
}

/* Beside a path of this program; returns if there is none. */
static void try_beside(const char *path, const char *name, char **argv)
{
    char program[PATH_ROOM];
    const char *slash = strrchr(path, '/');
    if (!slash)
        return;
    int n = snprintf(program, sizeof program, "%.*s/%s", (int)(slash - path), path, name);
    if (n > 0 && (size_t)n < sizeof program)
        execv(program, argv);
}

int vg_handover(int argc, char **argv)
{
    char self[PATH_ROOM] = "";
    bool is_help = argc == 3 && strcmp(argv[1], "help") == 0;
    const char *command = argc < 2 ? "" : argv[is_help ? 2 : 1], *program = program_of(command);
    if (!program)
        return -1;
    try_beside(argv[0], program, argv);
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
        try_beside(self, program, argv);
    execvp(program, argv);
    fprintf(stderr, "vigil: %s is done by the program %s, which cannot be run: %s\n", command,
            program, strerror(errno));
    return VG_EXIT_FAILED;
}
