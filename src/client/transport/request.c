/* request.c - vigil/client.h: asynchronous requests from any thread, and waiting for one.
 * A request is begun, ended and freed on the loop. Its cancel may be on its way as mail when it
 * ends: whoever of the two comes last frees it. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "client_int.h"
#include "request.h"

#define CLIENT_GONE "the client is gone"

enum { NO_CANCEL, CANCEL_POSTED, ENDED };

struct vigil_request {
    struct vg_mail begin, cancel;
    struct vigil_client *c;
    struct vg_exchange *x; /* NULL: not begun, or ended */
    struct vg_exchange_opts opts;
    char *texts; /* of opts, until it has begun */
    struct vg_buf body;
    void (*done)(void *arg, const struct vigil_error *err, struct vigil_text body);
    void *arg;
    _Atomic int cancel_state;
};

static void free_request(struct vigil_request *r)
{
    vg_buf_done(&r->body);
    vg_free(r->texts);
    vg_free(r);
}

/* After done has returned. */
static void end_request(struct vigil_request *r)
{
    if (atomic_exchange(&r->cancel_state, ENDED) != CANCEL_POSTED)
        free_request(r);
}

static int on_data(void *arg, struct vg_slice bytes)
{
    struct vigil_request *r = arg;
    return vg_buf_append_slice(&r->body, bytes);
}

static void tell(struct vigil_request *r, const struct vigil_error *err)
{
    r->x = NULL;
    r->done(r->arg, err, (struct vigil_text){r->body.p ? r->body.p : "", r->body.n});
    end_request(r);
}

static void on_done(void *arg, const struct vg_exchange_end *end)
{
    tell(arg, &end->err);
}

static void run_begin(struct vg_mail *mail)
{
    struct vigil_request *r = VG_CONTAINER_OF(mail, struct vigil_request, begin);
    int e = vg_exchange_start(r->c, &r->opts, &r->x);
    if (e == 0) {
        vg_free(vg_steal(r->texts));
        return;
    }
    struct vigil_error err;
    if (e == VIGIL_E_CLOSED) /* posted before the client closed: as those under way */
        vg_error_set(&err, VIGIL_E_CANCELED, CLIENT_GONE);
    else
        vg_error_set(&err, VIGIL_E_MEMORY, "out of memory");
    tell(r, &err);
}

static void run_cancel(struct vg_mail *mail)
{
    struct vigil_request *r = VG_CONTAINER_OF(mail, struct vigil_request, cancel);
    if (atomic_load(&r->cancel_state) == ENDED) {
        free_request(r);
        return;
    }
    atomic_store(&r->cancel_state, NO_CANCEL);
    struct vigil_error err;
    vg_error_set(&err, VIGIL_E_CANCELED, "canceled");
    vg_exchange_cancel(vg_steal(r->x));
    tell(r, &err);
}

void vigil_request_cancel(struct vigil_request *r)
{
    int expected = NO_CANCEL;
    if (!r || !atomic_compare_exchange_strong(&r->cancel_state, &expected, CANCEL_POSTED))
        return;
    r->cancel.run = run_cancel;
    vg_loop_post(r->c->loop, &r->cancel);
}

static const char *copy_text(char **p, const char *s)
{
    if (!s)
        return NULL;
    size_t n = strlen(s) + 1;
    char *at = memcpy(*p, s, n);
    *p += n;
    return at;
}

static size_t text_size(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

static int copy_opts(struct vigil_request *r, const struct vigil_request_opts *o)
{
    char *p = vg_malloc(text_size(o->method) + text_size(o->path) + text_size(o->accept) +
                        text_size(o->content_type) + o->body.n + 1);
    if (!p)
        return -ENOMEM;
    r->texts = p;
    r->opts.method = copy_text(&p, o->method ? o->method : "GET");
    r->opts.path = copy_text(&p, o->path);
    r->opts.accept = copy_text(&p, o->accept);
    r->opts.content_type = copy_text(&p, o->content_type);
    if (o->body.n)
        memcpy(p, o->body.p, o->body.n);
    r->opts.body = vg_slice(p, o->body.n);
    r->opts.timeout_ms = o->timeout_ms ? o->timeout_ms : r->c->timeout_ms;
    r->opts.on_data = on_data;
    r->opts.on_done = on_done;
    r->opts.arg = r;
    return 0;
}

/* Whatever stands in the first line of a request ends at a blank. */
static bool is_one_word(const char *s)
{
    for (; *s; s++)
        if ((uint8_t)*s <= ' ' || *s == 0x7f)
            return false;
    return true;
}

/* What is wrong with a request, or NULL. */
static const char *check(const struct vigil_request_opts *o)
{
    if (!o->path || o->path[0] != '/' || !o->done)
        return "a request needs a path that begins with /, and done";
    if (!is_one_word(o->path))
        return "the path has a blank or a control character; escape it";
    if (!*o->method || strspn(o->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(o->method))
        return "the method is not a word in capitals";
    if (!vg_is_header_text(o->accept) || !vg_is_header_text(o->content_type))
        return "accept or content_type has a line break or another control character";
    return NULL;
}

int vigil_request(struct vigil_client *c, const struct vigil_request_opts *opts,
                  struct vigil_request **ret, struct vigil_error *err)
{
    struct vigil_request_opts o = {0};
    if (opts->size == 0)
        return vg_error_set(err, VIGIL_E_INVALID, VG_NO_SIZE);
    memcpy(&o, opts, VG_MIN(opts->size, sizeof(o))); /* of an older program: shorter */
    if (!o.method)
        o.method = "GET";
    const char *wrong = check(&o);
    if (wrong)
        return vg_error_set(err, VIGIL_E_INVALID, "%s", wrong);
    if (atomic_load(&c->is_closing))
        return vg_error_set(err, VIGIL_E_CLOSED, CLIENT_GONE);
    struct vigil_request *r = vg_new(struct vigil_request);
    if (r)
        r->c = c;
    if (!r || copy_opts(r, &o) < 0) {
        vg_free(r);
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    }
    r->body.max = VG_ANSWER_MAX;
    r->done = o.done;
    r->arg = o.arg;
    r->begin.run = run_begin;
    if (ret)
        *ret = r; /* before it may end */
    vg_loop_post(c->loop, &r->begin);
    return 0;
}

/* ---- waiting ---- */

struct waiter {
    struct vigil_client *c;
    struct vg_call *call;
    bool is_done; /* under the client's mutex */
};

static void on_called(void *arg, const struct vigil_error *err, struct vigil_text body)
{
    struct waiter *w = arg;
    struct vigil_client *c = w->c;
    w->call->err = *err;
    if (err->code == 0 && vg_buf_append_slice(&w->call->answer, vg_slice_of(body)) < 0)
        vg_error_set(&w->call->err, VIGIL_E_MEMORY, "out of memory");
    vg_mutex_lock(&c->mu);
    w->is_done = true;
    vg_cond_broadcast(&c->done);
    vg_mutex_unlock(&c->mu);
}

/* With a thread of its own nobody else may wait on that thread; without one, not within a step. */
static bool would_block_itself(struct vigil_client *c)
{
    return vg_loop_is_current(c->loop) && (c->mode == VIGIL_OWN_THREAD || c->is_turning);
}

int vg_call(struct vigil_client *c, struct vg_call *call)
{
    if (would_block_itself(c))
        return vg_error_set(&call->err, VIGIL_E_INVALID,
                            "a call that waits was made from a callback; use vigil_request there");
    struct waiter w = {.c = c, .call = call};
    struct vigil_request_opts o = VIGIL_INIT(struct vigil_request_opts);
    o.method = call->method;
    o.path = call->path;
    o.content_type = call->content_type;
    o.body = call->body;
    o.done = on_called;
    o.arg = &w;
    int r = vigil_request(c, &o, NULL, &call->err);
    if (r < 0)
        return r;
    bool is_done = false;
    while (!is_done) {
        bool has_turned = vg_client_turn(c);
        vg_mutex_lock(&c->mu);
        while (!has_turned && !w.is_done)
            vg_cond_wait(&c->done, &c->mu);
        is_done = w.is_done;
        vg_mutex_unlock(&c->mu);
    }
    return call->err.code;
}
