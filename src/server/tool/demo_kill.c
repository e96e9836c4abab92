/* demo_kill.c - kill -9 in the middle of writing, then every acknowledged write must be there.
 * The writer is this program again, as demo-child: it sends the number of each write down a pipe
 * once the store has acknowledged it. Whatever arrives was promised. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "demo.h"

#define CHILD_OBJECTS ((size_t)1000000)
#define CHILD_MAX_NS (60 * VG_NS_PER_S)
/* The kill comes at a random point between these, or after the patience is over. */
#define ACKS_MIN 1000
#define ACKS_MORE 1000
#define PATIENCE_MS 10000

/* ---- the child ---- */

/* A pipe that is full waits: a promise counts when it has arrived. */
static void send_ack(void *arg, size_t index, vg_rev rev, uint64_t latency_ns)
{
    uint64_t number = index;
    (void)arg;
    (void)rev;
    (void)latency_ns;
    if (write(STDOUT_FILENO, &number, sizeof number) != (ssize_t)sizeof number)
        _exit(1); /* nobody listens any more */
}

int vg_cmd_demo_child(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    struct vg_load load = {
        .s = &s,
        .prefix = VG_DEMO_KILL_PREFIX,
        .total = CHILD_OBJECTS,
        .max_ns = CHILD_MAX_NS,
        .on_ack = send_ack,
    };
    if (isatty(STDOUT_FILENO))
        return vg_fail(reterr_status, VIGIL_E_INVALID, "demo-child is for the demo alone");
    int r = vg_cmd_open(&s, o, reterr_status);
    return r < 0 ? r : vg_load_run(&load, reterr_status);
}

/* ---- the parent ---- */

struct promises {
    bool *is_acked; /* CHILD_OBJECTS of them */
    uint64_t n;
};

static int spawn_child(struct vg_demo *d, int out, pid_t *ret_pid)
{
    char name[] = "vigil-store", command[] = "demo-child", dir[] = "--dir";
    char no_sync[] = "--unsafe-no-fsync";
    char *argv[] = {name, command, dir, d->store, d->o->is_unsafe_no_fsync ? no_sync : NULL, NULL};
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return -rc;
    rc = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawn(ret_pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

/* Read what is there. 1: go on, 0: the pipe has ended, negative: it failed. */
static int read_acks(int fd, struct promises *p)
{
    uint64_t numbers[512];
    size_t got = 0;
    ssize_t n = 1;
    /* Each number is one small write, so whole ones arrive; a read may still end inside the last.
     */
    while (got == 0 || got % sizeof numbers[0]) {
        n = read(fd, (char *)numbers + got, sizeof numbers - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    for (size_t i = 0; i < got / sizeof numbers[0]; i++) {
        if (numbers[i] >= CHILD_OBJECTS)
            return -EPROTO;
        p->is_acked[numbers[i]] = true;
        p->n++;
    }
    return n < 0 ? -errno : n > 0;
}

/* Until there are enough of them, or patience ends. */
static int gather(int fd, uint64_t enough, struct promises *p)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    int r = 1;
    while (r == 1 && p->n < enough) {
        int ready = poll(&pfd, 1, PATIENCE_MS);
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready == 0)
            return 0;
        if (ready > 0)
            r = read_acks(fd, p);
    }
    return r < 0 ? r : 0;
}

/* Kill it and read what it had still promised. */
static int kill_and_drain(pid_t pid, int fd, struct promises *p, bool *ret_was_killed)
{
    int status, r = 1;
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    *ret_was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    while (r == 1)
        r = read_acks(fd, p);
    return r;
}

static int run_child(struct vg_demo *d, uint64_t enough, struct promises *p, bool *ret_was_killed)
{
    int pipe_fds[2];
    pid_t pid = 0;
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    int r = spawn_child(d, pipe_fds[1], &pid);
    close(pipe_fds[1]);
    if (r == 0) {
        r = gather(pipe_fds[0], enough, p);
        int drained = kill_and_drain(pid, pipe_fds[0], p, ret_was_killed);
        r = r < 0 ? r : drained;
    }
    close(pipe_fds[0]);
    return r;
}

/* ---- afterwards ---- */

struct finding {
    const struct promises *p;
    uint64_t n_promised, n_more;
};

static int find_one(void *arg, const struct vg_rec *rec, struct vg_status *reterr_status)
{
    struct finding *f = arg;
    size_t index;
    if (!vg_load_index(VG_DEMO_KILL_PREFIX, vg_rec_key(rec), &index) || index >= CHILD_OBJECTS ||
        !vg_load_is_right(rec, index))
        return vg_fail(reterr_status, VIGIL_E_INTERNAL, "after the kill a write is half there");
    if (f->p->is_acked[index])
        f->n_promised++;
    else
        f->n_more++;
    return 0;
}

static int check_promises(struct vg_demo *d, const struct promises *p,
                          struct vg_status *reterr_status)
{
    char count[VG_DEMO_NUMBER_SIZE];
    struct finding f = {.p = p};
    struct vg_each each = {.prefix = VG_SLICE_LIT(VG_DEMO_KILL_PREFIX), .fn = find_one, .arg = &f};
    int r = vg_session_each(&d->s, &each, reterr_status);
    if (r < 0)
        return r;
    if (f.n_promised != p->n)
        return vg_fail(reterr_status, VIGIL_E_INTERNAL,
                       "after the kill %llu acknowledged writes are gone",
                       (unsigned long long)(p->n - f.n_promised));
    vg_demo_say(d, "kill -9", "of a writer after %s acknowledged writes: reopened in %.1f ms,",
                vg_demo_number(p->n, count), (double)d->s.open_ns / 1e6);
    vg_demo_say(d, "", "every one of them is there, and none is half there");
    return 0;
}

static int kill_a_writer(struct vg_demo *d, struct promises *p, struct vg_status *reterr_status)
{
    struct vg_session_opts opts = {.dir = d->store, .unsafe_no_fsync = d->o->is_unsafe_no_fsync};
    uint64_t chance = 0;
    bool was_killed = false;
    int r = vg_random_bytes(&chance, sizeof chance);
    if (r == 0)
        r = run_child(d, ACKS_MIN + chance % ACKS_MORE, p, &was_killed);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot run a process to kill: %s", vg_err_text(r));
    if (!was_killed || p->n == 0)
        return vg_fail(reterr_status, VIGIL_E_INTERNAL,
                       "the process that was to be killed ended by itself, or wrote nothing");
    r = vg_session_open(&d->s, &opts, reterr_status);
    return r < 0 ? r : check_promises(d, p, reterr_status);
}

int vg_demo_kill(struct vg_demo *d, struct vg_status *reterr_status)
{
    struct promises p = {.is_acked = vg_calloc(CHILD_OBJECTS, sizeof(bool))};
    if (!p.is_acked)
        return vg_fail(reterr_status, -ENOMEM, "%s", vg_err_text(-ENOMEM));
    vg_session_close(&d->s); /* the store is the writer's now */
    int r = kill_a_writer(d, &p, reterr_status);
    vg_free(p.is_acked);
    return r;
}
