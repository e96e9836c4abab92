/* mux.c - see mux.h. */
#include "mux.h"

#include <errno.h>

#include "base/alloc.h"

/* A socket that cannot be polled for want of memory is looked at this often. Telling libcurl of the
 * failure would end all transfers for ever. */
#define BLIND_MS 20

struct vg_mux {
    CURLM *multi;
    unsigned n_blind; /* sockets that are not polled; libcurl keeps `blind` for them */
    struct vg_loop *loop;
    uv_timer_t *timer; /* of its own block: it closes after the mux is gone */
    struct vg_list sockets, jobs;
    unsigned depth; /* calls of libcurl under way */
    bool is_draining;
    void (*done)(void *private_arg, CURLcode result);
};

struct mux_socket {
    struct vg_list link;
    uv_poll_t poll;
    curl_socket_t fd;
    int events;         /* of libuv */
    struct vg_mux *mux; /* NULL: closed */
};

static struct mux_socket blind;

static void enter(struct vg_mux *m)
{
    m->depth++;
}

/* What has ended is told, and what was deferred is done, both outside of libcurl. */
static void drain(struct vg_mux *m)
{
    m->is_draining = true;
    for (;;) {
        int left = 0;
        CURLMsg *msg = curl_multi_info_read(m->multi, &left);
        if (msg && msg->msg == CURLMSG_DONE) {
            void *arg = NULL;
            CURLcode result = msg->data.result;
            curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &arg);
            m->done(arg, result);
            continue;
        }
        struct vg_list *l = msg ? NULL : vg_list_pop_front(&m->jobs);
        if (!l && !msg)
            break;
        if (l) {
            struct vg_mux_job *job = VG_CONTAINER_OF(l, struct vg_mux_job, link);
            job->run(job);
        }
    }
    m->is_draining = false;
}

static void leave(struct vg_mux *m)
{
    if (--m->depth == 0 && !m->is_draining)
        drain(m);
}

static void act(struct vg_mux *m, curl_socket_t fd, int events)
{
    int running = 0;
    enter(m);
    curl_multi_socket_action(m->multi, fd, events, &running);
    leave(m);
}

static void on_poll(uv_poll_t *handle, int status, int events);

/* libuv stops polling a descriptor that has an error, a reset among them. libcurl is to read what
 * came before it, which may take several turns. */
static void poll_again(struct mux_socket *s)
{
    if (s->mux)
        (void)uv_poll_start(&s->poll, s->events, on_poll);
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct mux_socket *s = handle->data; /* freed when closed, in a later phase of the turn */
    int flags = 0;
    if (status < 0 || events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (status < 0 || events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    if (s->mux)
        act(s->mux, s->fd, flags);
    if (status < 0)
        poll_again(s);
}

static void on_timer(uv_timer_t *timer);

/* Sockets and timers alike, polled or not. */
static void look_around(struct vg_mux *m)
{
    int running = 0;
    enter(m);
    curl_multi_perform(m->multi, &running);
    if (m->n_blind)
        uv_timer_start(m->timer, on_timer, BLIND_MS, 0);
    leave(m);
}

/* libuv runs timers before it polls, too: what ends here must not be slept upon by who waits for it
 * with a loop of his own. The stop keeps this poll from sleeping and is forgotten at its end. */
static void on_timer(uv_timer_t *timer)
{
    struct vg_mux *m = timer->data;
    uv_stop(timer->loop);
    if (m && m->n_blind)
        look_around(m);
    else if (m)
        act(m, CURL_SOCKET_TIMEOUT, 0);
}

static int timer_changed(CURLM *multi, long timeout_ms, void *arg)
{
    (void)multi;
    struct vg_mux *m = arg;
    if (m->n_blind && (timeout_ms < 0 || timeout_ms > BLIND_MS))
        timeout_ms = BLIND_MS;
    if (timeout_ms < 0)
        return uv_timer_stop(m->timer);
    uv_update_time(m->timer->loop);
    return uv_timer_start(m->timer, on_timer, (uint64_t)timeout_ms, 0);
}

static void on_socket_closed(uv_handle_t *handle)
{
    vg_free(handle->data);
}

static void close_socket(struct mux_socket *s)
{
    uv_poll_stop(&s->poll);
    vg_list_remove(&s->link);
    s->mux = NULL;
    uv_close((uv_handle_t *)&s->poll, on_socket_closed);
}

static struct mux_socket *open_socket(struct vg_mux *m, curl_socket_t fd)
{
    struct mux_socket *s = vg_new(struct mux_socket);
    if (!s)
        return NULL;
    if (uv_poll_init(vg_loop_uv(m->loop), &s->poll, fd) < 0) {
        vg_free(s);
        return NULL;
    }
    s->poll.data = s;
    s->fd = fd;
    s->mux = m;
    vg_list_push_back(&m->sockets, &s->link);
    curl_multi_assign(m->multi, fd, s);
    return s;
}

static int socket_changed(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    (void)easy;
    struct vg_mux *m = arg;
    struct mux_socket *s = socket_arg == &blind ? NULL : socket_arg;
    m->n_blind -= socket_arg == &blind;
    if (what == CURL_POLL_REMOVE) {
        if (s)
            close_socket(s);
        curl_multi_assign(m->multi, fd, NULL);
        return 0;
    }
    if (!s)
        s = open_socket(m, fd);
    if (s) {
        s->events =
            (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
        (void)uv_poll_start(&s->poll, s->events, on_poll); /* fails only when it is closing */
        return 0;
    }
    m->n_blind++;
    curl_multi_assign(m->multi, fd, &blind);
    return uv_timer_start(m->timer, on_timer, BLIND_MS, 0);
}

static void set_options(struct vg_mux *m)
{
    curl_multi_setopt(m->multi, CURLMOPT_SOCKETFUNCTION, socket_changed);
    curl_multi_setopt(m->multi, CURLMOPT_SOCKETDATA, m);
    curl_multi_setopt(m->multi, CURLMOPT_TIMERFUNCTION, timer_changed);
    curl_multi_setopt(m->multi, CURLMOPT_TIMERDATA, m);
    curl_multi_setopt(m->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
}

int vg_mux_new(struct vg_loop *loop, void (*done)(void *private_arg, CURLcode result),
               struct vg_mux **ret)
{
    struct vg_mux *m = vg_new(struct vg_mux);
    uv_timer_t *timer = vg_new(uv_timer_t);
    CURLM *multi = curl_multi_init();
    if (!m || !timer || !multi) {
        vg_free(m);
        vg_free(timer);
        curl_multi_cleanup(multi);
        return -ENOMEM;
    }
    *m = (struct vg_mux){.multi = multi, .loop = loop, .timer = timer, .done = done};
    vg_list_init(&m->sockets);
    vg_list_init(&m->jobs);
    uv_timer_init(vg_loop_uv(loop), timer); /* cannot fail */
    timer->data = m;
    set_options(m);
    *ret = m;
    return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
    vg_free(handle);
}

void vg_mux_free(struct vg_mux *m)
{
    if (!m)
        return;
    /* libcurl closes its descriptors next: nobody may poll them then. */
    curl_multi_setopt(m->multi, CURLMOPT_SOCKETFUNCTION, NULL);
    curl_multi_setopt(m->multi, CURLMOPT_TIMERFUNCTION, NULL);
    VG_LIST_FOREACH_SAFE (l, &m->sockets)
        close_socket(VG_CONTAINER_OF(l, struct mux_socket, link));
    curl_multi_cleanup(m->multi);
    m->timer->data = NULL;
    uv_timer_stop(m->timer);
    uv_close((uv_handle_t *)m->timer, on_timer_closed);
    vg_free(m);
}

int vg_mux_add(struct vg_mux *m, CURL *easy)
{
    enter(m);
    int r = (int)curl_multi_add_handle(m->multi, easy);
    leave(m);
    return r;
}

void vg_mux_remove(struct vg_mux *m, CURL *easy)
{
    enter(m);
    curl_multi_remove_handle(m->multi, easy);
    leave(m);
}

void vg_mux_unpause(struct vg_mux *m, CURL *easy)
{
    enter(m);
    curl_easy_pause(easy, CURLPAUSE_CONT); /* may deliver what waited */
    leave(m);
}

void vg_mux_defer(struct vg_mux *m, struct vg_mux_job *job)
{
    if (job->link.next && !vg_list_is_empty(&job->link))
        return; /* it waits already */
    if (m->depth == 0 && !m->is_draining) {
        job->run(job);
        return;
    }
    vg_list_push_back(&m->jobs, &job->link);
}
