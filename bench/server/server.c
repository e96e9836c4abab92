/* server.c - see server.h. */
#include "server.h"

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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "place.h"
#include "procs.h"

#define READY_MS 60000

void server_write_tokens(const struct server *s)
{
    char *path = bench_path(s->dir, "tokens.csv");
    FILE *f = fopen(path, "w");
    if (!f || fprintf(f, "%s,bench,bench,\"system:masters\"\n", BENCH_TOKEN) < 0 || fclose(f) != 0)
        bench_die("cannot write %s: %s", path, strerror(errno));
    if (chmod(path, 0600) < 0)
        bench_die("cannot protect %s: %s", path, strerror(errno));
    free(path);
}

/* The plain port must be named before the server starts; another may take it meanwhile, but the
 * bench is alone. */
uint16_t server_free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    bool is_bound = fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 &&
                    getsockname(fd, (struct sockaddr *)&a, &n) == 0;
    if (!is_bound)
        bench_die("no free port: %s", strerror(errno));
    close(fd);
    return ntohs(a.sin_port);
}

static void become_vigild(const struct server *s, const char *binary, int out)
{
    char data[600], tokens[600], plain[32], etcd[100];
    snprintf(data, sizeof data, "--data-dir=%s/data", s->dir);
    snprintf(tokens, sizeof tokens, "--token-auth-file=%s/tokens.csv", s->dir);
    snprintf(plain, sizeof plain, "--insecure-port=%u", s->plain);
    snprintf(etcd, sizeof etcd, "--etcd-servers=%s", s->etcd);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever ends the bench ends it */
    dup2(out, STDOUT_FILENO);
    execl(binary, "vigild", data, tokens, plain, "--secure-port=0",
          "--max-requests-inflight=100000", "--max-mutating-requests-inflight=100000",
          s->etcd[0] ? etcd : (char *)NULL, (char *)NULL);
    fprintf(stderr, "bench_server: cannot run %s: %s\n", binary, strerror(errno));
    _exit(127);
}

/* Read lines until the one that names the address. */
static void await_ready(struct server *s, int in)
{
    char text[4096];
    size_t n = 0;
    for (;;) {
        struct pollfd p = {.fd = in, .events = POLLIN};
        ssize_t r = poll(&p, 1, READY_MS) == 1 ? read(in, text + n, sizeof text - 1 - n) : 0;
        if (r <= 0)
            bench_die("vigild did not say that it is ready");
        n += (size_t)r;
        text[n] = 0;
        const char *at = strstr(text, "https://");
        const char *end = at ? strchr(at, '\n') : NULL;
        if (end) {
            const char *colon = strchr(at + 8, ':');
            s->secure = colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
            return;
        }
        if (n == sizeof text - 1)
            n = 0;
    }
}

static void open_target(struct vg_bench_target *t, const struct vg_cli_place *place)
{
    struct vg_status status = {0};
    if (vg_bench_target_open(t, place, &status) < 0)
        bench_die("%s", status.message);
    t->agent = NULL; /* memory of a watch is counted: it has no words of its own in it */
}

void target_open(struct vg_bench_target *t, uint16_t port, bool is_tls)
{
    char url[64];
    snprintf(url, sizeof url, "http%s://127.0.0.1:%u", is_tls ? "s" : "", port);
    /* The bench started this server itself: nobody else answers there. */
    open_target(t,
                &(struct vg_cli_place){.server = url, .token = BENCH_TOKEN, .is_insecure = is_tls});
}

void server_open_targets(struct server *s)
{
    if (s->plain)
        target_open(&s->targets[false], s->plain, false);
    target_open(&s->targets[true], s->secure, true);
}

void server_show_cert(struct server *s)
{
    char *cert = bench_path(s->dir, "data/pki/admin.crt");
    char *key = bench_path(s->dir, "data/pki/admin.key");
    char url[64];
    snprintf(url, sizeof url, "https://127.0.0.1:%u", s->secure);
    vg_bench_target_close(&s->targets[true]);
    open_target(
        &s->targets[true],
        &(struct vg_cli_place){.server = url, .cert = cert, .key = key, .is_insecure = true});
    free(cert);
    free(key);
}

void server_start_again(struct server *s, const char *binary)
{
    int out[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        bench_die("no pipe: %s", strerror(errno));
    s->plain = server_free_port();
    uint64_t begin = bench_now_ns();
    s->pid = fork();
    if (s->pid < 0)
        bench_die("cannot fork: %s", strerror(errno));
    if (s->pid == 0)
        become_vigild(s, binary, out[1]);
    close(out[1]);
    await_ready(s, out[0]);
    s->ready_ms = (double)(bench_now_ns() - begin) / 1e6;
    close(out[0]);
    server_open_targets(s);
}

void server_make_dir(struct server *s, const char *parent)
{
    static unsigned count;
    *s = (struct server){0};
    snprintf(s->dir, sizeof s->dir, "%s/server-%u", parent, count++);
    if (mkdir(s->dir, 0700) < 0)
        bench_die("cannot make %s: %s", s->dir, strerror(errno));
    server_write_tokens(s);
}

void server_start(struct server *s, const char *binary, const char *parent)
{
    server_make_dir(s, parent);
    server_start_again(s, binary);
}

void server_start_on(struct server *s, const char *binary, const struct server *etcd,
                     const char *parent)
{
    server_make_dir(s, parent);
    memcpy(s->etcd, etcd->etcd, sizeof s->etcd);
    server_start_again(s, binary);
}

static void end_process(pid_t *pid, int sig)
{
    if (*pid <= 0)
        return;
    kill(*pid, sig);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *pid = 0;
}

static void end_with(struct server *s, int sig)
{
    end_process(&s->pid, sig);
    end_process(&s->store, sig);
    vg_bench_target_close(&s->targets[false]);
    vg_bench_target_close(&s->targets[true]);
}

void server_stop(struct server *s)
{
    end_with(s, SIGTERM);
}

void server_kill(struct server *s)
{
    end_with(s, SIGKILL);
}

static uint64_t process_ns(pid_t pid)
{
    struct vg_bench_usage u = {0};
    if (!vg_bench_proc_add_cpu(pid, &u))
        bench_die("the server is gone");
    return u.cpu_ns;
}

uint64_t server_cpu_ns(const struct server *s)
{
    return process_ns(s->pid) + (s->store > 0 ? process_ns(s->store) : 0);
}

uint64_t server_own_cpu_ns(const struct server *s)
{
    return process_ns(s->pid);
}

uint64_t server_store_cpu_ns(const struct server *s)
{
    return process_ns(s->store);
}

uint64_t server_anonymous_bytes(const struct server *s)
{
    struct vg_bench_usage u = {0};
    if (!vg_bench_proc_add_memory(s->pid, &u))
        bench_die("vigild is gone");
    return u.anonymous_bytes;
}
