/* vigild_process.h - the real vigild as a child of a test. What fails ends the test. */
#ifndef VG_TESTS_CLIENT_VIGILD_PROCESS_H
#define VG_TESTS_CLIENT_VIGILD_PROCESS_H

#include "test_support.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct vigild {
    const char *binary;
    char dir[512];
    char kubeconfig[600];
    int port; /* 0 before the first start; kept over restarts */
    pid_t pid;
};

static inline void vigild_init(struct vigild *v, const char *binary, const char *dir)
{
    *v = (struct vigild){.binary = binary};
    snprintf(v->dir, sizeof(v->dir), "%s/data", dir);
    snprintf(v->kubeconfig, sizeof(v->kubeconfig), "%s/admin.kubeconfig", v->dir);
}

/* Returns when it is ready. */
static inline void vigild_start(struct vigild *v)
{
    char port[16], line[512];
    int fds[2];
    snprintf(port, sizeof(port), "%d", v->port);
    const char *argv[] = {v->binary, "--data-dir",  v->dir,  "--secure-port",
                          port,      "--log-level", "error", NULL};
    assert_int_equal(pipe(fds), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, fds[0]);
    assert_int_equal(
        posix_spawn(&v->pid, v->binary, &actions, NULL, (char **)(uintptr_t)argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    FILE *out = fdopen(fds[0], "r");
    assert_non_null(out);
    do
        assert_non_null(fgets(line, sizeof(line), out));
    while (!strstr(line, "ready on"));
    v->port = (int)strtol(strstr(line, "127.0.0.1:") + 10, NULL, 10);
    fclose(out);
}

static inline void vigild_kill(struct vigild *v, int signal)
{
    if (!v->pid)
        return;
    kill(v->pid, signal);
    waitpid(v->pid, NULL, 0);
    v->pid = 0;
}

#endif
