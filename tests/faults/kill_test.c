/* kill_test.c - a process that writes is killed at a random moment; the store it leaves is checked,
 * and the next one goes on with it.
 * The child is this binary again. It keeps many transactions in flight and reports every answer on
 * a pipe as soon as it has it; a report that can be read is an acknowledgement that was given. The
 * page cache survives a killed process, so this is about order and about states that no orderly end
 * leaves behind; powercut_test is about what is on the disk. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_load.h"
#include "test_support.h"

#define ROUNDS 20
#define ROUNDS_LONG 500
#define WRITERS 3u
#define SLOTS 24u
#define TXNS_PER_ROUND 3000u /* more than a round lives to see, mostly */

static struct vg_storage_opts opts_for(const char *dir, const struct vg_clock *clock)
{
    return (struct vg_storage_opts){
        .dir = dir,
        .clock = clock,
        .map_size = (size_t)1 << 28,
        .checkpoint_bytes = 128u << 10,
        .flight_min = 2, /* most groups take the syncer, some do not */
        .checkpoint_ms = 50,
    };
}

/* ---- the child ---- */

/* Shorter than PIPE_BUF: reports of several threads do not mix, and one is there whole or not. */
static void report(const struct fl_report *r, void *arg)
{
    int fd = *(int *)arg;
    if (write(fd, r, sizeof *r) != (ssize_t)sizeof *r)
        _exit(4);
}

static uint64_t number_arg(const char *text)
{
    return strtoull(text, NULL, 10);
}

/* --child <pipe> <dir> <seed> <first number> <newest revision to compact> */
static int child_main(char **args)
{
    struct fm m;
    struct vg_drv d;
    int fd = (int)number_arg(args[0]);
    struct vg_storage_opts opts = opts_for(args[1], vg_clock_system());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uint64_t first = number_arg(args[3]);
    fm_init(&m, number_arg(args[2]), first + TXNS_PER_ROUND);
    m.first = first;
    m.last = first - 1;
    vg_drv_open(&d, "lmdb", &opts);
    struct fl_load load = {
        .m = &m,
        .host = &d,
        .writers = WRITERS,
        .slots = SLOTS,
        .txns = TXNS_PER_ROUND,
        .seed = m.seed + first,
        .compact_every = 100,
        .compact_max = number_arg(args[4]),
        .on_answer = report,
        .arg = &fd,
    };
    fl_run(&load);
    vg_drv_close(&d);
    fm_done(&m);
    return 0;
}

/* ---- the parent ---- */

struct child {
    pid_t pid;
    int fd;
};

static struct child start_child(const char *dir, const struct fm *m, vg_rev compact_max)
{
    int fds[2];
    char text[4][32];
    assert_int_equal(pipe(fds), 0);
    snprintf(text[0], sizeof text[0], "%d", fds[1]);
    snprintf(text[1], sizeof text[1], "%llu", (unsigned long long)m->seed);
    snprintf(text[2], sizeof text[2], "%llu", (unsigned long long)m->first);
    snprintf(text[3], sizeof text[3], "%llu", (unsigned long long)compact_max);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        execl("/proc/self/exe", "kill_test", "--child", text[0], dir, text[1], text[2], text[3],
              (char *)NULL);
        _exit(5);
    }
    close(fds[1]);
    return (struct child){pid, fds[0]};
}

static bool read_report(struct child *c, struct fl_report *r)
{
    ssize_t n;
    do
        n = read(c->fd, r, sizeof *r);
    while (n < 0 && errno == EINTR);
    assert_true(n == 0 || n == (ssize_t)sizeof *r);
    return n > 0;
}

static void take_report(struct fm *m, const struct fl_report *r)
{
    assert_in_range(r->id, m->first, m->cap);
    m->txns[r->id].fate = FM_SENT;
    fm_answer(m, r->id, r->fate, r->rev);
    m->last = VG_MAX(m->last, r->id);
}

/* Not a sleep: another moment of the child's work each time. */
static void spin(uint64_t turns)
{
    for (volatile uint64_t i = 0; i < turns; i++)
        ;
}

static unsigned hear_and_kill(struct child *c, struct fm *m, struct vg_rng *rng)
{
    struct fl_report r;
    unsigned heard = 0;
    uint64_t wanted = vg_rng_below(rng, vg_rng_below(rng, 4) ? 600 : TXNS_PER_ROUND);
    while (heard < wanted && read_report(c, &r)) {
        take_report(m, &r);
        heard++;
    }
    spin(vg_rng_below(rng, 2000000));
    kill(c->pid, SIGKILL);
    while (read_report(c, &r)) { /* answers that were given all the same */
        take_report(m, &r);
        heard++;
    }
    close(c->fd);
    return heard;
}

/* Each report was for one of at most WRITERS * SLOTS under way. */
static void guess_what_was_sent(struct fm *m, unsigned heard)
{
    uint64_t last = VG_MIN(m->cap, m->first + heard + WRITERS * SLOTS);
    for (uint64_t id = m->first; id <= last; id++)
        if (m->txns[id].fate == FM_UNSENT)
            m->txns[id].fate = FM_SENT;
    m->last = VG_MAX(m->last, last);
}

static void check_store(struct fm *m, const char *dir, struct vg_rng *rng)
{
    struct vg_drv d;
    struct vg_status status = {0};
    struct vg_storage_opts opts = opts_for(dir, NULL); /* time stands still in 2024 */
    if (vg_drv_try_open(&d, "lmdb", &opts, &status) < 0)
        fail_msg("the store does not open after a kill: %s", status.message);
    m->compact_asked = m->rev; /* the child was told not to go beyond */
    struct fm_cut all = {.order = m->order, .seen = m->rev, .compact_asked = m->compact_asked};
    fm_check(m, &all, FM_IN_FLIGHT, &d, rng);
    fm_check_acknowledged(m);
    fm_rewind(m, m->rev, vg_storage_compacted(d.store));
    vg_drv_close(&d);
}

static void one_round(struct fm *m, const char *dir, struct vg_rng *rng)
{
    int status = 0;
    vg_rev before = m->rev;
    struct child c = start_child(dir, m, m->rev > 100 ? m->rev - 50 : 0);
    unsigned heard = hear_and_kill(&c, m, rng);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    if (!WIFSIGNALED(status) && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        fail_msg("the child ended by itself with status %d", status);
    guess_what_was_sent(m, heard);
    check_store(m, dir, rng);
    print_message("killed after %u answers; revisions %llu to %llu\n", heard,
                  (unsigned long long)before, (unsigned long long)m->rev);
}

static void what_was_acknowledged_survives_every_kill(void **state)
{
    struct fm m;
    struct vg_rng rng;
    uint64_t rounds = vg_test_is_long() ? ROUNDS_LONG : ROUNDS;
    char dir[512];
    snprintf(dir, sizeof dir, "%s/store", (const char *)*state);
    vg_rng_seed(&rng, vg_test_seed());
    fm_init(&m, vg_rng_u64(&rng), rounds * (TXNS_PER_ROUND + 2 * WRITERS * SLOTS));
    for (uint64_t i = 0; i < rounds; i++)
        one_round(&m, dir, &rng);
    fm_done(&m);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_acknowledged_survives_every_kill,
                                        vg_test_tmpdir_setup, vg_test_tmpdir_teardown),
    };
    if (argc == 7 && strcmp(argv[1], "--child") == 0)
        return child_main(argv + 2);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
