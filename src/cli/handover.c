/* handover.c - see handover.h. */
#include "handover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"

#define PROGRAM "vigil-copy"
#define PATH_ROOM 4096

static bool is_handed_over(const char *name)
{
    return strcmp(name, "backup") == 0 || strcmp(name, "restore") == 0 ||
           strcmp(name, "migrate") == 0;
}

/* Beside a path of this program; returns if there is none. */
static void try_beside(const char *path, char **argv)
{
    char program[PATH_ROOM];
    const char *slash = strrchr(path, '/');
    if (!slash)
        return;
    int n = snprintf(program, sizeof program, "%.*s/%s", (int)(slash - path), path, PROGRAM);
    if (n > 0 && (size_t)n < sizeof program)
        execv(program, argv);
}

int vg_handover(int argc, char **argv)
{
    char self[PATH_ROOM] = "";
    bool is_help = argc == 3 && strcmp(argv[1], "help") == 0 && is_handed_over(argv[2]);
    if (!is_help && (argc < 2 || !is_handed_over(argv[1])))
        return -1;
    try_beside(argv[0], argv);
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
        try_beside(self, argv);
    execvp(PROGRAM, argv);
    fprintf(stderr, "vigil: %s is done by the program %s, which cannot be run: %s\n",
            argv[is_help ? 2 : 1], PROGRAM, strerror(errno));
    return VG_EXIT_FAILED;
}
