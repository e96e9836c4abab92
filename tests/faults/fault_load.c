/* fault_load.c - see fault_load.h. */
#include "fault_load.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "test_support.h"

#define SLOTS_MAX 64u
#define WRITERS_MAX 8u

struct slot {
    struct vg_txn txn;
    struct vg_op ops[FM_OPS_MAX];
    uint64_t id; /* 0: idle */
};

struct writer {
    struct fl_load *load;
    struct vg_drv d;
    struct slot slots[SLOTS_MAX];
    struct vg_rng rng;
    bool has_chores; /* it compacts and moves the clock */
    unsigned since_compaction;
    struct vg_compact compact;
    bool is_compacting;
};

/* ---- sending and hearing ---- */

static bool take_ticket(struct fl_load *load)
{
    uint64_t left = atomic_load(&load->to_send);
    while (left > 0)
        if (atomic_compare_exchange_weak(&load->to_send, &left, left - 1))
            return true;
    return false;
}

/* What is refused at once is answered, and heard with the next round. */
static void submit(struct writer *w, struct slot *s)
{
    int err = vg_drv_submit_txn(&w->d, &s->txn);
    (void)err;
}

/* A store that is behind with its checkpoint says so: try again until it is not. */
static bool send_again(struct writer *w, struct slot *s)
{
    if (s->txn.req.err != VIGIL_E_BUSY)
        return false;
    sched_yield();
    submit(w, s);
    return true;
}

static void hear(struct writer *w, struct slot *s)
{
    struct vg_store_req *req = &s->txn.req;
    if (send_again(w, s))
        return;
    struct fl_report r = {s->id, fm_fate_of(&s->txn), req->err, req->rev};
    fm_answer(w->load->m, r.id, r.fate, r.rev);
    if (w->load->on_answer)
        w->load->on_answer(&r, w->load->arg);
    vg_txn_done(&s->txn);
    s->id = 0;
    w->since_compaction++;
}

static bool send_one(struct writer *w, struct slot *s)
{
    uint64_t id = take_ticket(w->load) ? fm_send(w->load->m) : 0;
    if (id == 0)
        return false;
    s->id = id;
    s->txn = (struct vg_txn){.ops = s->ops};
    if (!fm_build(w->load->m, id, &s->txn))
        exit(2);
    submit(w, s);
    return true;
}

/* Refill idle slots and hear the answered; false: all are idle and nothing is left to send. */
static bool serve_slots(struct writer *w)
{
    bool busy = false;
    for (unsigned i = 0; i < w->load->slots; i++) {
        struct slot *s = &w->slots[i];
        if (s->id && vg_drv_is_answered(&s->txn.req))
            hear(w, s);
        if (s->id || send_one(w, s))
            busy = true;
    }
    return busy;
}

static bool is_anything_open(const struct writer *w)
{
    for (unsigned i = 0; i < w->load->slots; i++)
        if (w->slots[i].id && !vg_drv_is_answered(&w->slots[i].txn.req))
            return true;
    return false;
}

/* ---- chores ---- */

static void compact(struct writer *w)
{
    struct fl_load *load = w->load;
    struct fm_cut now = fm_cut_now(load->m);
    vg_rev top = load->compact_max ? load->compact_max : now.seen;
    vg_rev back = vg_rng_below(&w->rng, 40);
    w->since_compaction = 0;
    if (top <= back + VG_REV_EMPTY || top - back <= now.compact_asked)
        return;
    fm_compacting(load->m, top - back, false);
    w->compact = (struct vg_compact){.at = top - back};
    w->is_compacting = vg_drv_submit_compact(&w->d, &w->compact) == 0;
}

static void hear_compaction(struct writer *w)
{
    if (!w->is_compacting || !vg_drv_is_answered(&w->compact.req))
        return;
    w->is_compacting = false;
    if (w->compact.req.err == 0)
        fm_compacting(w->load->m, w->compact.at, true);
}

/* A store whose disk fails looks again when time has passed. */
static void end_compaction(struct writer *w)
{
    for (hear_compaction(w); w->is_compacting; hear_compaction(w)) {
        if (w->load->clock)
            vg_fake_clock_advance(w->load->clock, 100 * VG_NS_PER_MS);
        vg_loop_turn(w->d.loop, w->load->clock == NULL);
        sched_yield();
    }
}

static void do_chores(struct writer *w)
{
    struct fl_load *load = w->load;
    hear_compaction(w);
    if (load->compact_every && w->since_compaction >= load->compact_every && !w->is_compacting)
        compact(w);
    if (load->clock && vg_rng_below(&w->rng, 8) == 0)
        vg_fake_clock_advance(load->clock, vg_rng_below(&w->rng, 400) * VG_NS_PER_MS);
}

/* ---- threads ---- */

struct thread {
    pthread_t thread;
    struct fl_load *load;
    unsigned index;
};

static void end_writer(struct fl_load *load)
{
    if (atomic_fetch_sub(&load->writers_left, 1) == 1)
        vg_loop_post(load->host->loop, &load->end_mail);
}

static void *run_writer(void *arg)
{
    struct thread *t = arg;
    struct writer *w = calloc(1, sizeof *w);
    if (!w)
        exit(2);
    w->load = t->load;
    w->has_chores = t->index == 0;
    vg_rng_seed(&w->rng, t->load->seed + t->index);
    vg_drv_attach(&w->d, t->load->host);
    while (serve_slots(w)) {
        if (is_anything_open(w))
            vg_drv_turn(&w->d, "answers to transactions");
        if (w->has_chores)
            do_chores(w);
    }
    end_compaction(w);
    vg_drv_close(&w->d);
    free(w);
    end_writer(t->load);
    return NULL;
}

static void on_end_mail(struct vg_mail *mail)
{
    VG_CONTAINER_OF(mail, struct fl_load, end_mail)->is_over = true;
}

/* A store whose disk fails tries again when time has passed, and may let writers wait until then:
 * so the clock goes on by itself, some ten times as fast as the real one. */
static void *run_clock(void *arg)
{
    struct fl_load *load = arg;
    while (atomic_load(&load->writers_left) > 0) {
        vg_fake_clock_advance(load->clock, 20 * VG_NS_PER_MS);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return NULL;
}

static void run_writers(struct fl_load *load)
{
    struct thread threads[WRITERS_MAX];
    pthread_t clock = {0};
    if (load->clock && pthread_create(&clock, NULL, run_clock, load) != 0)
        exit(2);
    for (unsigned i = 0; i < load->writers; i++) {
        threads[i] = (struct thread){.load = load, .index = i};
        if (pthread_create(&threads[i].thread, NULL, run_writer, &threads[i]) != 0)
            exit(2);
    }
    while (!load->is_over)
        vg_drv_turn(load->host, "the end of the load");
    for (unsigned i = 0; i < load->writers; i++)
        pthread_join(threads[i].thread, NULL);
    if (load->clock)
        pthread_join(clock, NULL);
}

static void after_batch(struct vg_drv_watch *w, void *arg)
{
    fm_saw(arg, w->rev);
}

/* Changes nothing, but takes with it what is to expire now: then the log stands still. */
static void settle(struct vg_drv *d)
{
    int err;
    do {
        struct vg_op op = vg_drv_delete_op("k/none", VG_EXPECT_ANY);
        err = vg_drv_run(d, &op, 1, NULL);
    } while (err == VIGIL_E_BUSY);
}

static void run_watched(struct fl_load *load)
{
    struct vg_drv_watch *w = vg_drv_watch_all(load->host, load->m->rev + 1);
    w->after_batch = after_batch;
    w->arg = load->m;
    run_writers(load);
    settle(load->host);
    vg_drv_watch_sync(w);
    if (w->is_ended)
        fail_msg("the watch ended: %s", vg_err_text(w->err));
    fm_extend(load->m, w->events, w->n_events);
    fm_check_acknowledged(load->m);
    vg_drv_watch_done(w);
}

void fl_run(struct fl_load *load)
{
    assert_true(load->writers <= WRITERS_MAX && load->slots <= SLOTS_MAX);
    atomic_store(&load->to_send, load->txns);
    atomic_store(&load->writers_left, load->writers);
    load->end_mail = (struct vg_mail){.run = on_end_mail};
    load->is_over = false;
    if (load->watched)
        run_watched(load);
    else
        run_writers(load);
}
