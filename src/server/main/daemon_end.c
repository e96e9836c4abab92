/* daemon_end.c - signs of life, draining, and taking it all apart in the reverse order. */
#include <time.h>

#include "base/alloc.h"
#include "daemon_int.h"

/* ---- signs of life ---- */

static void on_beat(struct vg_mail *mail)
{
    struct vg_worker *w = VG_CONTAINER_OF(mail, struct vg_worker, beat_mail);
    atomic_store(&w->has_beat, true);
}

bool vg_daemon_is_alive(struct vg_daemon *d)
{
    for (size_t i = 0; i < d->n_workers; i++) {
        if (!atomic_load(&d->workers[i].has_beat))
            return false;
    }
    for (size_t i = 0; i < d->n_workers; i++) {
        struct vg_worker *w = &d->workers[i];
        atomic_store(&w->has_beat, false);
        w->beat_mail.run = on_beat;
        vg_loop_post(w->loop, &w->beat_mail);
    }
    return true;
}

/* Writes into files that were removed succeed, and are lost when the last descriptor is closed. */
void vg_daemon_look_at_store(struct vg_daemon *d)
{
    bool is_here = strcmp(d->config->storage, "lmdb") == 0;
    if (!is_here || atomic_load(&d->is_store_gone) || vg_data_dir_is_there(&d->dir, "store"))
        return;
    atomic_store(&d->is_store_gone, true);
    vg_error(vg_daemon_logger(d, VG_LOG_MAIN), "data_dir_removed", "dir=%s", d->dir.path);
}

/* ---- draining ---- */

void vg_daemon_announce_end(struct vg_daemon *d, const siginfo_t *why)
{
    vg_info(vg_daemon_logger(d, VG_LOG_MAIN), "ending", "signal=%d pid=%ld uid=%ld", why->si_signo,
            (long)why->si_pid, (long)why->si_uid);
    atomic_store(&d->is_ending, true);
}

static void on_drained(void *arg)
{
    struct vg_worker *w = arg;
    atomic_store(&w->is_drained, true);
}

static void end_control(struct vg_worker *w)
{
    struct vg_control *c = vg_steal(w->control);
    if (!c)
        return;
    vg_control_stop(c);
    vg_control_free(c);
}

static void drain_worker(struct vg_mail *mail)
{
    struct vg_worker *w = VG_CONTAINER_OF(mail, struct vg_worker, drain_mail);
    end_control(w);
    vg_api_loop_drain(w->api);
    vg_http_server_drain(w->server, on_drained, w);
}

void vg_daemon_drain(struct vg_daemon *d)
{
    vg_gate_shut(d->gate);
    for (size_t i = 0; i < d->n_workers; i++) {
        d->workers[i].drain_mail.run = drain_worker;
        vg_loop_post(d->workers[i].loop, &d->workers[i].drain_mail);
    }
}

bool vg_daemon_is_drained(struct vg_daemon *d)
{
    for (size_t i = 0; i < d->n_workers; i++) {
        if (!atomic_load(&d->workers[i].is_drained))
            return false;
    }
    return true;
}

/* ---- the end ---- */

/* 5 s: what storage owes comes in milliseconds; what has not come by then never will. */
#define STOP_TURNS_MAX 5000

static void on_idle(void *arg)
{
    struct vg_worker *w = arg;
    w->is_idle = true;
}

/* Requests that wait for storage or for another loop end when that has come: turn all loops until
 * none is left. */
static bool settle_requests(struct vg_daemon *d)
{
    for (int turns = 0; turns < STOP_TURNS_MAX; turns++) {
        bool all_idle = true, has_run = false;
        for (size_t i = 0; i < d->n_workers; i++) {
            struct vg_worker *w = &d->workers[i];
            has_run |= w->loop && vg_loop_turn(w->loop, false);
            all_idle &= w->is_idle || !w->gate;
        }
        if (all_idle)
            return true;
        if (!has_run)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

static bool close_workers(struct vg_daemon *d)
{
    for (size_t i = 0; i < d->n_workers; i++) {
        struct vg_worker *w = &d->workers[i];
        if (w->is_started)
            vg_loop_stop(w->loop);
        end_control(w);
        if (w->server)
            vg_http_server_free(w->server);
        if (w->gate)
            vg_gate_loop_when_idle(w->gate, on_idle, w);
    }
    if (!settle_requests(d))
        return false;
    for (size_t i = 0; i < d->n_workers; i++) {
        vg_gate_loop_close(d->workers[i].gate);
        vg_api_loop_close(d->workers[i].api);
    }
    return true;
}

/* A port that was just woken is freed by the mail that woke it: the loops that served are turned
 * too. */
static void close_cacher(struct vg_daemon *d)
{
    bool is_done = false;
    if (d->is_feeding)
        vg_loop_stop(d->feed);
    if (!d->cacher)
        return;
    vg_cacher_close(d->cacher, &is_done);
    while (!is_done) {
        bool has_run = vg_loop_turn(d->feed, false);
        for (size_t i = 0; i < d->n_workers; i++)
            has_run |= d->workers[i].loop && vg_loop_turn(d->workers[i].loop, false);
        if (!has_run && !is_done)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* After the store: the loops bring its last answers. */
static void free_loops(struct vg_daemon *d)
{
    for (size_t i = 0; i < d->n_workers; i++) {
        if (d->workers[i].loop)
            vg_loop_turn(d->workers[i].loop, false);
        vg_loop_free(d->workers[i].loop);
    }
    vg_free(d->workers);
    if (d->feed)
        vg_loop_turn(d->feed, false);
    vg_loop_free(d->feed);
}

void vg_daemon_stop(struct vg_daemon *d)
{
    if (!d)
        return;
    if (d->is_preparing)
        (void)!vg_daemon_join_tls(d, NULL);
    if (!close_workers(d)) {
        /* The store is durable at any moment: leave the rest to the kernel. */
        vg_error(vg_daemon_logger(d, VG_LOG_MAIN), "requests_left", "after_ms=%d", STOP_TURNS_MAX);
        return;
    }
    vg_http_shared_free(d->shared);
    vg_gate_free(d->gate);
    vg_api_free(d->api);
    vg_tokens_unref(d->tokens);
    vg_issuer_free(d->issuer);
    vg_listener_free(d->secure);
    vg_listener_free(d->plain);
    vg_tls_free(d->tls);
    close_cacher(d);
    vg_storage_close(d->storage);
    free_loops(d);
    vg_metrics_free(d->metrics);
    vg_free(d->stat_rows);
    vg_free(d->ranges);
    vg_free(d->uncached);
    vg_buf_done(&d->root_ca);
    vg_buf_done(&d->client_ca);
    vg_free(d->cert_path);
    vg_free(d->key_path);
    vg_free(d->client_ca_path);
    vg_data_dir_close(&d->dir);
    for (size_t i = 0; i < VG_LOG_COUNT; i++)
        vg_log_done(&d->logs[i]);
    vg_log_root_done(&d->log_root);
    vg_free(d);
}
