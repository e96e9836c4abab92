/* exec.c - see exec.h: running the program. */
#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/buf.h"
#include "json/write.h"

extern char **environ;

struct vg_exec_run {
    struct vg_mail mail; /* posted by the thread as the last thing it does */
    struct vigil_config *config;
    struct vg_loop *loop;
    void (*done)(void *arg, struct vg_exec_result *take_result);
    void *arg;
    struct vg_exec_result result;
    pthread_t thread;
    int cancel[2]; /* a pipe; closing its writing end wakes the thread */
    bool is_canceled;
};

void vg_exec_result_done(struct vg_exec_result *r)
{
    vg_arena_done(&r->arena);
}

static bool is_interactive(const struct vg_exec_config *x)
{
    return x->mode != VG_EXEC_NEVER && isatty(STDIN_FILENO);
}

/* One that talks to the user stays in the group that the terminal belongs to. */
static bool has_group(const struct vg_exec_config *x)
{
    return !is_interactive(x);
}

uint64_t vg_exec_limit_ms(const struct vigil_config *config)
{
    return is_interactive(&config->exec) ? VG_EXEC_LIMIT_INTERACTIVE_MS : VG_EXEC_LIMIT_MS;
}

static void put_cluster(struct vg_json_writer *w, const struct vigil_config *c)
{
    vg_json_put_key(w, VG_SLICE_LIT("cluster"));
    vg_json_put_begin_object(w);
    vg_json_put_member(w, "server", vg_slice_str(c->server));
    if (c->tls_server_name)
        vg_json_put_member(w, "tls-server-name", vg_slice_str(c->tls_server_name));
    if (c->is_insecure) {
        vg_json_put_key(w, VG_SLICE_LIT("insecure-skip-tls-verify"));
        vg_json_put_bool(w, true);
    }
    if (c->proxy_url)
        vg_json_put_member(w, "proxy-url", vg_slice_str(c->proxy_url));
    if (c->exec.cluster_config) {
        vg_json_put_key(w, VG_SLICE_LIT("config"));
        vg_json_put_raw(w, vg_slice_str(c->exec.cluster_config));
    }
}

static int put_ca(struct vg_json_writer *w, const struct vigil_config *c)
{
    VG_AUTO(arena) arena = {0};
    struct vg_slice pem = c->ca.data;
    if (!pem.p && c->ca.path && vg_config_read_file(&arena, c->ca.path, &pem) < 0)
        return 0; /* connecting will say what is wrong with it */
    if (!pem.p)
        return 0;
    VG_AUTO(buf) text = {0};
    int r = vg_base64_append(&text, pem);
    if (r == 0)
        vg_json_put_member(w, "certificate-authority-data", vg_buf_slice(&text));
    return r;
}

/* The variable by which the program learns what is wanted. */
static int make_info(const struct vigil_config *c, struct vg_buf *out)
{
    struct vg_json_writer *w = vg_new(struct vg_json_writer);
    int r = w ? vg_buf_printf(out, "KUBERNETES_EXEC_INFO=") : -ENOMEM;
    if (r < 0) {
        vg_free(w);
        return r;
    }
    vg_json_writer_init(w, out, 0);
    vg_json_put_begin_object(w);
    vg_json_put_member(w, "kind", VG_SLICE_LIT("ExecCredential"));
    vg_json_put_member(w, "apiVersion", vg_slice_str(c->exec.api_version));
    vg_json_put_key(w, VG_SLICE_LIT("spec"));
    vg_json_put_begin_object(w);
    vg_json_put_key(w, VG_SLICE_LIT("interactive"));
    vg_json_put_bool(w, is_interactive(&c->exec));
    if (c->exec.gives_cluster) {
        put_cluster(w, c);
        r = put_ca(w, c);
        vg_json_put_end_object(w);
    }
    vg_json_put_end_object(w);
    vg_json_put_end_object(w);
    int e = vg_json_writer_end(w);
    vg_free(w);
    r = r < 0 ? r : e;
    return r < 0 ? r : vg_buf_append_byte(out, 0);
}

static bool names_variable(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static bool is_replaced(const struct vg_exec_config *x, const char *entry)
{
    for (size_t i = 0; i < x->n_env; i++)
        if (names_variable(entry, x->env[i].name))
            return true;
    return names_variable(entry, "KUBERNETES_EXEC_INFO");
}

/* Our environment, what the configuration adds to it, and the info. */
static char **make_env(const struct vg_exec_config *x, struct vg_arena *a, char *info)
{
    size_t n = 0, k = 0;
    while (environ[n])
        n++;
    char **env = vg_arena_array(a, char *, n + x->n_env + 2);
    for (size_t i = 0; env && i < n; i++)
        if (!is_replaced(x, environ[i]))
            env[k++] = environ[i];
    for (size_t i = 0; env && i < x->n_env; i++) {
        size_t len = strlen(x->env[i].name) + strlen(x->env[i].value) + 2;
        char *s = vg_arena_alloc(a, len, 1);
        if (!s)
            return NULL;
        snprintf(s, len, "%s=%s", x->env[i].name, x->env[i].value);
        env[k++] = s;
    }
    if (env) {
        env[k++] = info;
        env[k] = NULL;
    }
    return env;
}

static int spawn(const struct vigil_config *c, int out, pid_t *ret_pid)
{
    const struct vg_exec_config *x = &c->exec;
    VG_AUTO(buf) info = {0};
    VG_AUTO(arena) arena = {0};
    if (make_info(c, &info) < 0)
        return -ENOMEM;
    char **env = make_env(x, &arena, info.p);
    posix_spawn_file_actions_t actions;
    if (!env || posix_spawn_file_actions_init(&actions) != 0)
        return -ENOMEM;
    posix_spawnattr_t attr;
    if (posix_spawnattr_init(&attr) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return -ENOMEM;
    }
    int r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (r == 0 && !is_interactive(x))
        r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (r == 0 && has_group(x))
        r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP); /* to one of its own */
    if (r == 0)
        r = posix_spawnp(ret_pid, x->command, &actions, &attr, (char **)(uintptr_t)x->args, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

/* With the children it has made, where they are in a group with it. */
static void kill_program(const struct vg_exec_config *x, pid_t pid)
{
    if (!has_group(x) || kill(-pid, SIGKILL) < 0)
        kill(pid, SIGKILL);
}

/* Everything that it prints. 0: it closed its output; VIGIL_E_CANCELED; VIGIL_E_TIMEOUT: it was
 * given up; other errors. */
static int read_output(int fd, int cancel_fd, struct vg_buf *out)
{
    for (;;) {
        struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return -errno;
        if (p[1].revents) {
            char byte;
            return read(cancel_fd, &byte, 1) == 1 ? VIGIL_E_TIMEOUT : VIGIL_E_CANCELED;
        }
        if (!p[0].revents)
            continue;
        int r = vg_buf_reserve(out, 4096);
        if (r < 0)
            return r;
        ssize_t n = read(fd, out->p + out->n, out->cap - out->n);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 0;
        out->n += n > 0 ? (size_t)n : 0;
    }
}

static int reap(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 0; /* somebody else reaps in this process: its output must do */
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *hint(const struct vg_exec_config *x)
{
    return x->install_hint ? x->install_hint : "";
}

static void run_program(struct vg_exec_run *run)
{
    const struct vg_exec_config *x = &run->config->exec;
    struct vigil_error *err = &run->result.err;
    VG_AUTO(buf) out = {.max = VG_EXEC_OUTPUT_MAX};
    int fds[2];
    pid_t pid = 0;
    if (x->mode == VG_EXEC_ALWAYS && !is_interactive(x)) {
        vg_error_set(err, VIGIL_E_UNAUTHORIZED, "%s needs a terminal, and standard input is none",
                     x->command);
        return;
    }
    if (pipe2(fds, O_CLOEXEC) < 0) {
        vg_error_set(err, -errno, "no pipe for %s", x->command);
        return;
    }
    int r = spawn(run->config, fds[1], &pid);
    close(fds[1]);
    if (r < 0) {
        vg_error_set(err, VIGIL_E_UNAUTHORIZED,
                     "cannot run %s, which should give credentials: %s. %s", x->command,
                     vg_err_text(r), hint(x));
        close(fds[0]);
        return;
    }
    r = read_output(fds[0], run->cancel[0], &out);
    close(fds[0]);
    if (r < 0)
        kill_program(x, pid);
    int status = reap(pid);
    if (r == VIGIL_E_TIMEOUT)
        vg_error_set(err, r, "%s, which should give credentials, did not end within %llu s",
                     x->command, (unsigned long long)vg_exec_limit_ms(run->config) / 1000);
    else if (r < 0)
        vg_error_set(err, r, "reading from %s: %s", x->command, vg_err_text(r));
    else if (status != 0)
        vg_error_set(err, VIGIL_E_UNAUTHORIZED,
                     "%s, which should give credentials, failed with %d. %s", x->command, status,
                     hint(x));
    else
        vg_exec_read(run->config, vg_buf_slice(&out), &run->result);
}

static void *exec_thread(void *arg)
{
    struct vg_exec_run *run = arg;
    run_program(run);
    vg_loop_post(run->loop, &run->mail);
    return NULL;
}

static void free_run(struct vg_exec_run *run)
{
    if (run->cancel[1] >= 0)
        close(run->cancel[1]);
    close(run->cancel[0]);
    vigil_config_free(run->config);
    vg_free(run);
}

static void on_done(struct vg_mail *mail)
{
    struct vg_exec_run *run = VG_CONTAINER_OF(mail, struct vg_exec_run, mail);
    if (!run->is_canceled) {
        pthread_join(run->thread, NULL); /* it has posted and ends */
        run->done(run->arg, &run->result);
    } else {
        vg_exec_result_done(&run->result);
    }
    free_run(run);
}

int vg_exec_start(const struct vigil_config *config, struct vg_loop *loop,
                  void (*done)(void *arg, struct vg_exec_result *take_result), void *arg,
                  struct vg_exec_run **ret)
{
    struct vg_exec_run *run = vg_new(struct vg_exec_run);
    if (!run)
        return -ENOMEM;
    *run = (struct vg_exec_run){
        .mail.run = on_done, .loop = loop, .done = done, .arg = arg, .cancel = {-1, -1}};
    if (pipe2(run->cancel, O_CLOEXEC) < 0) {
        int r = -errno;
        vg_free(run);
        return r;
    }
    run->config = vg_config_ref(config);
    int r = -pthread_create(&run->thread, NULL, exec_thread, run);
    if (r < 0)
        free_run(run);
    else
        *ret = run;
    return r;
}

void vg_exec_give_up(struct vg_exec_run *run)
{
    if (write(run->cancel[1], "t", 1) < 0) /* a pipe that is empty has room */
        assert(errno == EINTR || errno == EAGAIN);
}

/* The mail comes all the same, and frees the run. */
void vg_exec_cancel(struct vg_exec_run *run)
{
    if (!run)
        return;
    run->is_canceled = true;
    close(run->cancel[1]);
    run->cancel[1] = -1;
    pthread_join(run->thread, NULL);
}
