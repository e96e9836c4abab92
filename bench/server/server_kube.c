/* server_kube.c - the rival: etcd and kube-apiserver with all their defaults, on loopback, with the
 * bench's token. Certificates and keys are made by openssl's command. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "measure.h"
#include "server.h"

#define ARGS_MAX 24
#define READY_TRIES 600

/* Words of a command, each printed into room of its own. */
struct command {
    char *words[ARGS_MAX];
    size_t n;
};

static void word(struct command *c, const char *fmt, ...) VG_PRINTF(2, 3);
static void word(struct command *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (c->n + 1 >= ARGS_MAX || vasprintf(&c->words[c->n++], fmt, ap) < 0)
        bench_die("a command is too long");
    va_end(ap);
}

/* Its output goes to a file in the server's directory. */
static pid_t run(struct command *c, const struct server *s, const char *log)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", s->dir, log);
    pid_t pid = fork();
    if (pid < 0)
        bench_die("cannot fork: %s", strerror(errno));
    if (pid == 0) {
        int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever ends the bench ends it */
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
        c->words[c->n] = NULL;
        execvp(c->words[0], c->words);
        _exit(127);
    }
    while (c->n > 0)
        free(c->words[--c->n]);
    return pid;
}

static void must_run(struct command *c, const struct server *s)
{
    int status = 0;
    pid_t pid = run(c, s, "openssl.log");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        bench_die("openssl failed; see %s/openssl.log", s->dir);
}

static void make_keys(const struct server *s)
{
    struct command c = {0};
    word(&c, "openssl");
    word(&c, "req");
    word(&c, "-x509");
    word(&c, "-newkey");
    word(&c, "rsa:2048");
    word(&c, "-nodes");
    word(&c, "-keyout");
    word(&c, "%s/tls.key", s->dir);
    word(&c, "-out");
    word(&c, "%s/tls.crt", s->dir);
    word(&c, "-days");
    word(&c, "2");
    word(&c, "-subj");
    word(&c, "/CN=kube-apiserver");
    word(&c, "-addext");
    word(&c, "subjectAltName=IP:127.0.0.1");
    must_run(&c, s);
}

static void start_etcd(struct server *s, const char *binaries, unsigned client, unsigned peer)
{
    struct command c = {0};
    word(&c, "%s/etcd", binaries);
    word(&c, "--data-dir=%s/etcd", s->dir);
    word(&c, "--listen-client-urls=http://127.0.0.1:%u", client);
    word(&c, "--advertise-client-urls=http://127.0.0.1:%u", client);
    word(&c, "--listen-peer-urls=http://127.0.0.1:%u", peer);
    word(&c, "--initial-advertise-peer-urls=http://127.0.0.1:%u", peer);
    word(&c, "--initial-cluster=default=http://127.0.0.1:%u", peer);
    s->store = run(&c, s, "etcd.log");
    snprintf(s->etcd, sizeof s->etcd, "http://127.0.0.1:%u", client);
}

/* Without a controller manager no pod would get a service account. */
static void start_apiserver(struct server *s, const char *binaries)
{
    struct command c = {0};
    word(&c, "%s/kube-apiserver", binaries);
    word(&c, "--etcd-servers=%s", s->etcd);
    word(&c, "--bind-address=127.0.0.1");
    word(&c, "--secure-port=%u", s->secure);
    word(&c, "--tls-cert-file=%s/tls.crt", s->dir);
    word(&c, "--tls-private-key-file=%s/tls.key", s->dir);
    word(&c, "--token-auth-file=%s/tokens.csv", s->dir);
    word(&c, "--authorization-mode=RBAC");
    word(&c, "--service-account-issuer=https://kubernetes.default.svc");
    word(&c, "--service-account-key-file=%s/tls.key", s->dir);
    word(&c, "--service-account-signing-key-file=%s/tls.key", s->dir);
    word(&c, "--service-cluster-ip-range=10.0.0.0/24");
    word(&c, "--disable-admission-plugins=ServiceAccount");
    s->pid = run(&c, s, "kube-apiserver.log");
}

static bool is_listening(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool is_open = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
    if (fd >= 0)
        close(fd);
    return is_open;
}

static bool is_ready(const struct server *s)
{
    struct client c;
    if (!is_listening(s->secure))
        return false;
    client_open(&c, s, H1_TLS);
    int status = client_ask(&c, &(struct vg_bench_ask){.method = "GET", .path = "/readyz"}, NULL);
    client_done(&c);
    return status == 200;
}

static void await_ready(const struct server *s)
{
    for (int i = 0; i < READY_TRIES; i++) {
        if (is_ready(s))
            return;
        usleep(100 * 1000);
    }
    bench_die("kube-apiserver did not become ready; see %s", s->dir);
}

static bool has_program(const char *binaries, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", binaries, name);
    return access(path, X_OK) == 0;
}

static void start_kube(struct server *s, const char *binaries)
{
    make_keys(s);
    s->secure = server_free_port();
    server_open_targets(s);
    start_apiserver(s, binaries);
    await_ready(s);
}

bool server_start_etcd(struct server *s, const char *binaries, const char *parent)
{
    if (!has_program(binaries, "etcd"))
        return false;
    server_make_dir(s, parent);
    unsigned client = server_free_port(), peer = server_free_port();
    start_etcd(s, binaries, client, peer);
    for (int i = 0; i < READY_TRIES && !is_listening((uint16_t)client); i++)
        usleep(100 * 1000);
    return true;
}

void server_start_kube_on(struct server *s, const char *binaries, const struct server *etcd,
                          const char *parent)
{
    server_make_dir(s, parent);
    memcpy(s->etcd, etcd->etcd, sizeof s->etcd);
    start_kube(s, binaries);
}

bool server_start_kube(struct server *s, const char *binaries, const char *parent)
{
    if (!has_program(binaries, "kube-apiserver") || !server_start_etcd(s, binaries, parent))
        return false;
    start_kube(s, binaries);
    return true;
}
