/* informer.c - vigil/informer.h: making, starting and ending informers, adding and removing
 * handlers; what other threads ask for is done on the loop. */
#include <errno.h>

#include "base/alloc.h"
#include "informer_int.h"

/* ---- making ---- */

static void destroy(struct vigil_informer *i)
{
    vg_consumer_done(&i->consumer);
    vg_fifo_free(i->fifo);
    vigil_store_free(i->store);
    vg_cond_done(&i->changed);
    vg_mutex_done(&i->mu);
    vg_free(i->texts);
    vg_free(i);
}

/* Mail: there is room in a ring, or a thread has ended. */
static void on_wake(struct vg_mail *mail)
{
    struct vigil_informer *i = VG_CONTAINER_OF(mail, struct vigil_informer, wake);
    atomic_store(&i->is_wake_posted, false);
    if (i->is_freed)
        destroy(i);
    else
        vg_informer_work_soon(i);
}

static int make_parts(struct vigil_informer *i)
{
    const struct vigil_informer_opts *o = &i->opts;
    int r = vigil_store_new(o->indexes, o->n_indexes, &i->store, NULL);
    if (r < 0)
        return r;
    struct vg_consumer_calls calls = vg_informer_calls(i);
    vg_consumer_init(&i->consumer, i->store, &calls);
    i->is_by_key = o->queue == VIGIL_QUEUE_BY_KEY;
    i->default_ms = o->resync_ms;
    i->check_ms = vg_resync_period(o->resync_ms);
    return vg_fifo_new(
        &(struct vg_fifo_opts){.mode = i->is_by_key ? VG_FIFO_BY_KEY : VG_FIFO_ATOMIC,
                               .known = i->is_by_key ? i->store : NULL,
                               .transform = o->transform,
                               .transform_arg = o->arg},
        &i->fifo);
}

int vg_informer_new(struct vigil_client *c, const struct vigil_informer_opts *opts, bool is_unfed,
                    struct vigil_informer **ret, struct vigil_error *err)
{
    if (opts->size == 0)
        return vg_error_set(err, VIGIL_E_INVALID, VG_NO_SIZE);
    struct vigil_informer *i = vg_new(struct vigil_informer);
    if (!i)
        return vg_error_set(err, -ENOMEM, "no memory for an informer");
    i->c = c;
    i->loop = vg_client_loop(c);
    i->is_unfed = is_unfed;
    i->wake.run = on_wake;
    vg_list_init(&i->handlers);
    vg_list_init(&i->leaving);
    vg_list_init(&i->registrations);
    vg_mutex_init(&i->mu, VG_RANK_CLIENT_INFORMER);
    vg_cond_init(&i->changed);
    int r = vg_source_init(i, opts);
    if (r == 0 && !is_unfed && !i->opts.resource)
        r = VIGIL_E_INVALID;
    if (r == 0)
        r = make_parts(i);
    if (r < 0) {
        destroy(i);
        return vg_error_set(err, r, "no informer: %s", vg_err_text(r));
    }
    *ret = i;
    return 0;
}

int vigil_informer_new(struct vigil_client *c, const struct vigil_informer_opts *opts,
                       struct vigil_informer **ret, struct vigil_error *err)
{
    return vg_informer_new(c, opts, false, ret, err);
}

/* ---- calls that travel to the loop ---- */

struct call {
    struct vigil_informer *i;
    struct vigil_registration *registration;
    struct vg_handler *r;
    bool waits; /* the caller can wait for a thread; after the call: and does */
    int result;
};

static void run_call(struct vigil_informer *i, void (*fn)(void *arg), struct call *call)
{
    call->i = i;
    vg_client_run(i->c, fn, call);
}

/* Free the handlers that left and whose threads have ended. */
static void reap(struct vigil_informer *i)
{
    VG_LIST_FOREACH_SAFE (n, &i->leaving) {
        struct vg_handler *r = VG_CONTAINER_OF(n, struct vg_handler, link);
        vg_mutex_lock(&i->mu);
        bool has_ended = r->has_ended;
        vg_mutex_unlock(&i->mu);
        if (!has_ended)
            continue;
        vg_list_remove(&r->link);
        vg_handler_free(r);
    }
}

/* ---- start ---- */

static void start(void *arg)
{
    struct call *call = arg;
    struct vigil_informer *i = call->i;
    if (i->is_stopped)
        call->result = VIGIL_E_CLOSED;
    if (call->result < 0 || i->is_started)
        return;
    call->result = vg_source_start(i);
    if (call->result < 0)
        return;
    i->is_started = true;
    vg_resync_start(i);
}

int vigil_informer_start(struct vigil_informer *i)
{
    struct call call = {0};
    run_call(i, start, &call);
    return vg_error_code(call.result);
}

/* ---- handlers ---- */

static void add_handler(void *arg)
{
    struct call *call = arg;
    struct vigil_informer *i = call->i;
    reap(i);
    if (i->is_stopped) {
        call->result = VIGIL_E_CLOSED;
        return;
    }
    call->result = vg_informer_replay(i, call->r);
    if (call->result < 0)
        return;
    vg_resync_join(i, call->r);
    vg_list_push_back(&i->registrations, &call->registration->link);
    vg_list_push_back(&i->handlers, &call->r->link);
    vg_informer_work_soon(i);
}

static int make_handler(struct vigil_informer *i, const struct vigil_handler *h, struct call *call)
{
    call->registration = vg_new(struct vigil_registration);
    if (!call->registration)
        return -ENOMEM;
    call->registration->i = i;
    return vg_handler_new(i, h, call->registration, &call->r);
}

int vigil_informer_add_handler(struct vigil_informer *i, const struct vigil_handler *h,
                               struct vigil_registration **ret, struct vigil_error *err)
{
    struct call call = {0};
    call.result = make_handler(i, h, &call);
    if (call.result == 0)
        run_call(i, add_handler, &call);
    if (call.result < 0) {
        if (call.r)
            vg_handler_end(call.r);
        vg_handler_free(call.r);
        vg_free(call.registration);
        return vg_error_set(err, call.result, "no handler: %s", vg_err_text(call.result));
    }
    if (ret)
        *ret = call.registration;
    return 0;
}

/* call->r: the handler whose thread removes it. */
static void remove_handler(void *arg)
{
    struct call *call = arg;
    struct vigil_informer *i = call->i;
    struct vg_handler *r = vg_steal(call->registration->handler);
    call->waits = call->waits && r && r->has_thread && r != call->r;
    call->r = r;
    if (!r)
        return; /* again */
    r->is_claimed = call->waits;
    vg_handler_end(r);
    if (!i->is_telling)
        vg_informer_unlink(i, r);
    vg_informer_work_soon(i); /* it may have been what the others waited for */
    reap(i);
}

/* The caller cannot wait for it: it is freed when its thread has ended. */
static void let_go(void *arg)
{
    struct call *call = arg;
    call->r->is_claimed = false;
    vg_list_push_back(&call->i->leaving, &call->r->link);
}

void vigil_informer_remove_handler(struct vigil_informer *i, struct vigil_registration *r)
{
    if (!r || r->i != i)
        return;
    struct call call = {
        .registration = r, .r = vg_handler_current(i), .waits = vg_wait_is_possible(i)};
    run_call(i, remove_handler, &call);
    if (!call.waits)
        return;
    if (!vg_handler_may_wait(call.r)) {
        run_call(i, let_go, &call);
        return;
    }
    vg_wait_ended(i, call.r);
    vg_handler_waited();
    vg_handler_free(call.r);
}

bool vigil_registration_has_synced(const struct vigil_registration *r)
{
    return atomic_load(&r->has_synced);
}

/* ---- the end ---- */

static void stop(void *arg)
{
    struct vigil_informer *i = ((struct call *)arg)->i;
    if (i->is_stopped)
        return;
    vg_source_stop(i);
    vg_timer_stop(i->loop, &i->work);
    vg_timer_stop(i->loop, &i->resync);
    vg_fifo_close(i->fifo);
    VG_LIST_FOREACH (n, &i->handlers)
        vg_handler_end(VG_CONTAINER_OF(n, struct vg_handler, link));
    vg_mutex_lock(&i->mu);
    i->is_stopped = true;
    vg_cond_broadcast(&i->changed);
    vg_mutex_unlock(&i->mu);
}

void vigil_informer_stop(struct vigil_informer *i)
{
    struct call call = {0};
    run_call(i, stop, &call);
    if (vg_wait_is_possible(i) &&
        !vg_handler_current(i)) /* two callbacks that stop it would wait */
        vg_wait_ended(i, NULL);
}

static void free_handlers(struct vg_list *list)
{
    struct vg_list *n;
    while ((n = vg_list_pop_front(list)))
        vg_handler_free(VG_CONTAINER_OF(n, struct vg_handler, link));
}

static void finish(void *arg)
{
    struct vigil_informer *i = ((struct call *)arg)->i;
    free_handlers(&i->handlers);
    free_handlers(&i->leaving);
    for (struct vg_list *n; (n = vg_list_pop_front(&i->registrations));)
        vg_free(VG_CONTAINER_OF(n, struct vigil_registration, link));
    if (atomic_load(&i->is_wake_posted))
        i->is_freed = true; /* the mail finds it */
    else
        destroy(i);
}

void vigil_informer_free(struct vigil_informer *i)
{
    struct call call = {0};
    if (!i)
        return;
    vigil_informer_stop(i);
    run_call(i, finish, &call);
}

/* ---- looking ---- */

struct vigil_store *vigil_informer_store(struct vigil_informer *i)
{
    return i->store;
}

bool vigil_informer_has_synced(const struct vigil_informer *i)
{
    return atomic_load(&i->has_synced);
}
