/* etcd_member.c - see etcd_member.h. */
#include "etcd_member.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test_support.h"

#define ARGS_MAX 64
/* 60 s: what a member may take on a machine that is busy with other things. */
#define READY_S 60
/* 5: another process may take a port between our look and etcd's. */
#define STARTS_MAX 5

const char *vg_test_etcd_binary(const char *version)
{
    char name[32];
    snprintf(name, sizeof name, "VG_ETCD_%s", version);
    const char *path = getenv(name);
    if (path && access(path, X_OK) == 0)
        return path;
    printf("SKIPPED: no etcd here for %s (%s)\n", name, path ? path : "not set");
    return NULL;
}

static _Noreturn void give_up(const struct vg_test_etcd *e, const char *why)
{
    fprintf(stderr, "etcd_member: %s %s (its log: %s.log)\n", e->binary, why, e->dir);
    abort();
}

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        abort();
    close(fd);
    return ntohs(a.sin_port);
}

static void run(const struct vg_test_etcd *e)
{
    char client[96], peer[96], metrics[96], cluster[112], log[300];
    snprintf(client, sizeof client, "%s", e->url);
    snprintf(peer, sizeof peer, "http://127.0.0.1:%d", e->peer_port);
    snprintf(metrics, sizeof metrics, "http://127.0.0.1:%d", e->metrics_port);
    snprintf(cluster, sizeof cluster, "m=%s", peer);
    snprintf(log, sizeof log, "%s.log", e->dir);
    const char *args[ARGS_MAX] = {e->binary, "--name",
                                  "m",       "--data-dir",
                                  e->dir,    "--listen-client-urls",
                                  client,    "--advertise-client-urls",
                                  client,    "--listen-peer-urls",
                                  peer,      "--initial-advertise-peer-urls",
                                  peer,      "--initial-cluster",
                                  cluster,   "--listen-metrics-urls",
                                  metrics,   "--heartbeat-interval",
                                  "20",      "--election-timeout",
                                  "200",     "--log-level",
                                  "error"};
    size_t n = 0;
    while (args[n])
        n++;
    for (size_t i = 0; e->extra && e->extra[i] && n + 1 < ARGS_MAX; i++)
        args[n++] = e->extra[i];
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    if (e->binary)
        execv(e->binary, (char *const *)(uintptr_t)args);
    _exit(127);
}

static void spawn(struct vg_test_etcd *e)
{
    pid_t parent = getpid();
    e->pid = fork();
    if (e->pid < 0)
        give_up(e, "cannot be started");
    if (e->pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    run(e);
}

/* Its word on its own health, which it gives in plain HTTP/1. */
static bool is_healthy(const struct vg_test_etcd *e)
{
    static const char ask[] = "GET /health HTTP/1.0\r\n\r\n";
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)e->metrics_port)};
    char text[2048];
    size_t n = 0;
    ssize_t got = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = READY_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0 && send(fd, ask, sizeof ask - 1, 0) > 0)
        while (n < sizeof text - 1 && (got = recv(fd, text + n, sizeof text - 1 - n, 0)) > 0)
            n += (size_t)got;
    close(fd);
    text[n] = 0;
    return strstr(text, "\"health\":\"true\"") != NULL;
}

/* False: it ended by itself. */
static bool wait_ready(struct vg_test_etcd *e)
{
    time_t end = time(NULL) + READY_S;
    while (!is_healthy(e)) {
        if (waitpid(e->pid, NULL, WNOHANG) == e->pid) {
            e->pid = 0;
            return false;
        }
        if (time(NULL) > end)
            give_up(e, "does not get healthy");
        poll(NULL, 0, 20);
    }
    return true;
}

static void choose_ports(struct vg_test_etcd *e)
{
    e->client_port = free_port();
    e->peer_port = free_port();
    e->metrics_port = free_port();
    snprintf(e->url, sizeof e->url, "%s://127.0.0.1:%d", e->is_tls ? "https" : "http",
             e->client_port);
}

void vg_test_etcd_begin(struct vg_test_etcd *e)
{
    e->is_new = e->dir[0] == 0;
    if (e->is_new) {
        snprintf(e->dir, sizeof e->dir, "%s/etcd", vg_test_tmpdir());
        choose_ports(e);
    }
    spawn(e);
}

void vg_test_etcd_wait(struct vg_test_etcd *e)
{
    for (int i = 0; i < STARTS_MAX; i++) {
        if (wait_ready(e))
            return;
        if (e->is_new) {
            vg_test_remove_tree(e->dir);
            choose_ports(e);
        }
        spawn(e);
    }
    give_up(e, "ends by itself");
}

void vg_test_etcd_start(struct vg_test_etcd *e)
{
    vg_test_etcd_begin(e);
    vg_test_etcd_wait(e);
}

void vg_test_etcd_kill(struct vg_test_etcd *e)
{
    if (!e->pid)
        return;
    kill(e->pid, SIGKILL);
    waitpid(e->pid, NULL, 0);
    e->pid = 0;
}

void vg_test_etcd_remove(struct vg_test_etcd *e)
{
    vg_test_etcd_kill(e);
    vg_test_remove_tree(e->dir);
    e->dir[0] = 0;
}

void vg_test_etcd_pause(struct vg_test_etcd *e)
{
    int status;
    kill(e->pid, SIGSTOP);
    while (waitpid(e->pid, &status, WUNTRACED) < 0 && errno == EINTR)
        ; /* its threads run on until one of them has seen the signal */
}

void vg_test_etcd_go_on(struct vg_test_etcd *e)
{
    kill(e->pid, SIGCONT);
}

/* ---- one after the other ---- */

static struct vg_test_etcd *spare;
static const char *spare_version;

static struct vg_test_etcd *begin_new(const char *version)
{
    static const char *const extra[] = {"--unsafe-no-fsync", "--heartbeat-interval=20",
                                        "--election-timeout=200", "--max-request-bytes=33554432",
                                        NULL};
    struct vg_test_etcd *e = calloc(1, sizeof *e);
    if (!e || !(e->binary = vg_test_etcd_binary(version)))
        abort();
    e->extra = extra;
    vg_test_etcd_begin(e);
    return e;
}

static void drop_spare(void)
{
    vg_test_etcd_give(spare);
    spare = NULL;
}

struct vg_test_etcd *vg_test_etcd_take(const char *version)
{
    static bool is_armed;
    if (spare && strcmp(version, spare_version) != 0)
        drop_spare();
    struct vg_test_etcd *e = spare ? spare : begin_new(version);
    spare = begin_new(version);
    spare_version = version;
    if (!is_armed)
        atexit(drop_spare);
    is_armed = true;
    vg_test_etcd_wait(e);
    return e;
}

void vg_test_etcd_give(struct vg_test_etcd *e)
{
    if (!e)
        return;
    vg_test_etcd_remove(e);
    free(e);
}
