/* list.c - vigil/client.h: lists, page by page. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "list_reader.h"
#include "request.h"
#include "transport.h"

#define PAGE_SIZE 500u

struct lister {
    struct vigil_client *c;
    const struct vigil_resource *r;
    const char *ns;
    struct vigil_list_opts o;
    bool (*each)(void *arg, const struct vigil_object *o);
    void *arg;
    size_t told;
    bool has_stopped;
    struct vg_buf next; /* the continue token, ended by 0; empty: the first page */
};

static int on_item(void *arg, const struct vigil_object *take_o)
{
    struct lister *l = arg;
    if (!l->has_stopped) {
        l->told++;
        l->has_stopped = !l->each(l->arg, take_o) || l->told == l->o.limit;
    }
    vigil_object_unref(take_o);
    return 0;
}

static int make_path(const struct lister *l, struct vg_buf *out)
{
    char limit[16];
    unsigned page = l->o.page_size ? l->o.page_size : PAGE_SIZE;
    if (l->o.limit)
        page = (unsigned)VG_MIN((size_t)page, l->o.limit - l->told);
    snprintf(limit, sizeof(limit), "%u", page);
    bool is_first = !l->next.n;
    int r = vg_path_resource(out, l->r, l->ns, NULL, NULL);
    if (r == 0)
        r = vg_path_query(out, "labelSelector", l->o.label_selector);
    if (r == 0)
        r = vg_path_query(out, "fieldSelector", l->o.field_selector);
    if (r == 0)
        r = vg_path_query(out, "limit", limit);
    if (r == 0)
        r = vg_path_query(out, "resourceVersion", is_first ? l->o.resource_version : NULL);
    if (r == 0)
        r = vg_path_query(out, "continue", is_first ? NULL : l->next.p);
    return r < 0 ? r : vg_buf_append_byte(out, 0);
}

static int api_version(const struct vigil_resource *r, struct vg_buf *out)
{
    return r->group && *r->group ? vg_buf_printf(out, "%s/%s", r->group, r->version)
                                 : vg_buf_printf(out, "%s", r->version);
}

/* Tell of a page's items; the continue token goes to l->next. */
static int read_page(struct lister *l, struct vg_slice answer, struct vigil_error *err)
{
    struct vg_list_reader reader;
    VG_AUTO(buf) version = {0};
    struct vg_slice rv = {"", 0}, next = {"", 0};
    if (api_version(l->r, &version) < 0)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    vg_list_reader_init(&reader, vg_buf_slice(&version), vg_slice_str(l->r->kind), on_item, l);
    int r = vg_list_reader_feed(&reader, answer);
    if (r >= 0)
        r = vg_list_reader_end(&reader, &rv, &next);
    vg_buf_clear(&l->next);
    if (r == 0 && next.n)
        r = vg_buf_append_slice(&l->next, next);
    if (r == 0 && next.n)
        r = vg_buf_append_byte(&l->next, 0);
    vg_list_reader_done(&reader);
    return r < 0 ? vg_error_set(err, r, "the server's answer is no list: %s", vg_err_text(r)) : 0;
}

static int get_page(struct lister *l, struct vigil_error *err)
{
    VG_AUTO(buf) path = {0};
    if (make_path(l, &path) < 0)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    struct vg_call call = {.method = "GET", .path = path.p, .answer.max = VG_ANSWER_MAX};
    int r = vg_call(l->c, &call);
    if (r < 0)
        *err = call.err;
    else
        r = read_page(l, vg_buf_slice(&call.answer), err);
    vg_buf_done(&call.answer);
    return r;
}

int vigil_list(struct vigil_client *c, const struct vigil_resource *r, const char *ns,
               const struct vigil_list_opts *opts,
               bool (*each)(void *arg, const struct vigil_object *o), void *arg,
               struct vigil_error *err)
{
    struct lister l = {.c = c, .r = r, .ns = ns, .each = each, .arg = arg};
    struct vigil_error local = {0};
    if (opts && opts->size == 0)
        return vg_error_set(err, VIGIL_E_INVALID, VG_NO_SIZE);
    if (opts)
        memcpy(&l.o, opts, VG_MIN(opts->size, sizeof(l.o)));
    int e = 0;
    do
        e = get_page(&l, &local);
    while (e == 0 && l.next.n && !l.has_stopped);
    vg_buf_done(&l.next);
    if (e < 0 && err)
        *err = local;
    return e;
}
