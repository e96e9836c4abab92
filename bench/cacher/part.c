/* part.c - see part.h. */
#include "part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct report *part_shared_report(void)
{
    void *p = mmap(NULL, sizeof(struct report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED)
        bench_die("no memory to share: %s", strerror(errno));
    return p;
}

static void explain(int status)
{
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s: a part was ended by signal %d (%s)\n", program_invocation_short_name,
                WTERMSIG(status), strsignal(WTERMSIG(status)));
}

bool part_in_child(void (*fn)(struct report *r, void *arg), struct report *r, void *arg)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        bench_die("fork: %s", strerror(errno));
    if (child == 0) {
        fn(r, arg);
        exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    explain(status);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
