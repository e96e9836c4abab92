/* errand.c - requests that controllers make; see control_int.h. */
#include <errno.h>

#include "base/alloc.h"
#include "control_int.h"

struct vg_errand *vg_errand_new(struct vg_control *c, const char *method, struct vg_work_item *item,
                                void (*done)(struct vg_errand *e))
{
    struct vg_errand *e = vg_new(struct vg_errand);
    if (!e)
        return NULL;
    e->call.method = method;
    e->c = c;
    e->item = item;
    e->done = done;
    return e;
}

void vg_errand_free(struct vg_errand *e)
{
    if (!e)
        return;
    vg_inside_call_done(&e->call);
    vg_buf_done(&e->target);
    vg_buf_done(&e->body);
    vg_free(e);
}

/* Names of stored objects are path segments that mean themselves, but for RBAC's, which may hold
 * what a URL does not. */
static int add_segment(struct vg_buf *out, struct vg_slice s)
{
    static const char hex[] = "0123456789ABCDEF";
    int r = vg_buf_append_byte(out, '/');
    for (size_t i = 0; i < s.n && r == 0; i++) {
        unsigned char b = (unsigned char)s.p[i];
        bool is_plain = (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') ||
                        (b >= '0' && b <= '9') || strchr("-._~:@!$'()*,;=", b);
        r = is_plain && b ? vg_buf_append_byte(out, (char)b)
                          : vg_buf_append(out, (char[]){'%', hex[b >> 4], hex[b & 15]}, 3);
    }
    return r;
}

int vg_errand_path(struct vg_errand *e, const struct vg_kind *kind, struct vg_slice ns,
                   struct vg_slice name, const char *sub)
{
    struct vg_buf *out = &e->target;
    int r = vg_buf_printf(out, *kind->group ? "/apis/%s" : "/api/%s", kind->api_version);
    if (r == 0 && ns.n)
        r = vg_buf_append_slice(out, VG_SLICE_LIT("/namespaces"));
    if (r == 0 && ns.n)
        r = add_segment(out, ns);
    if (r == 0)
        r = add_segment(out, vg_slice_str(kind->resource));
    if (r == 0 && name.n)
        r = add_segment(out, name);
    if (r == 0 && sub)
        r = add_segment(out, vg_slice_str(sub));
    return r;
}

static void on_answer(struct vg_inside_call *call)
{
    struct vg_errand *e = VG_CONTAINER_OF(call, struct vg_errand, call);
    e->done(e);
    vg_errand_free(e);
}

bool vg_errand_send(struct vg_errand *take_e, const char *content_type)
{
    struct vg_inside_call *call = &take_e->call;
    call->target = vg_buf_slice(&take_e->target);
    call->content_type = content_type;
    call->body = vg_buf_slice(&take_e->body);
    call->done = on_answer;
    int r = take_e->c->is_stopped ? VIGIL_E_CLOSED : vg_inside_send(take_e->c->inside, call);
    if (r == 0)
        return true;
    if (take_e->item)
        vg_work_failed(take_e->item);
    vg_errand_free(take_e);
    return false;
}

void vg_errand_settle(struct vg_errand *e, int also)
{
    if (vg_errand_ok(e) || (e->call.err == 0 && e->call.status == also)) {
        vg_work_done(e->item);
        return;
    }
    if (e->call.err == 0 && e->call.status != 409 && e->call.status != 429)
        vg_warn(e->c->log, "controller_refused", "method=%s target=%.*s code=%d answer=%.*s",
                e->call.method, VG_SLICE_ARG(vg_buf_slice(&e->target)), e->call.status,
                (int)VG_MIN(e->call.answer.n, (size_t)512), e->call.answer.p);
    vg_work_failed(e->item);
}
