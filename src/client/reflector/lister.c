/* lister.c - the list of a round, page by page, as it arrives.
 * What to ask for: "" when the last version is unavailable, "0" before the first list, else the
 * last version. A limit goes with "" and "0" alone, because with a version it would lead past the
 * server's cache; unless the caller wants pages, or a list at "0" has shown that the server has no
 * cache. Later pages carry the token and no version. A page that has expired is followed by the
 * whole list at once; an expired or too large version by one more try at "". */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "reflector_int.h"

#define PAGE_SIZE 500u
#define STALL_MS 60000u
/* Selectors that match little make pages without items, but not for ever. */
#define EMPTY_PAGES_MAX 1000u

static void get_page(struct vigil_reflector *r);

static void drop_items(struct vigil_reflector *r)
{
    for (size_t i = 0; i < r->n_items; i++)
        vigil_object_unref(r->items[i]);
    vg_free(vg_steal(r->items));
    r->n_items = r->cap_items = 0;
}

static void drop_reader(struct vigil_reflector *r)
{
    if (r->has_reader)
        vg_list_reader_done(&r->reader);
    r->has_reader = false;
}

void vg_lister_drop(struct vigil_reflector *r)
{
    vg_exchange_cancel(vg_steal(r->x));
    drop_reader(r);
    drop_items(r);
    vg_buf_clear(&r->next);
}

static int on_item(void *arg, const struct vigil_object *take_o)
{
    struct vigil_reflector *r = arg;
    if (r->n_items == r->cap_items) {
        size_t cap = r->cap_items ? r->cap_items * 2 : 64;
        const struct vigil_object **v = vg_reallocarray(r->items, cap, sizeof(*v));
        if (!v) {
            vigil_object_unref(take_o);
            return -ENOMEM;
        }
        r->items = v;
        r->cap_items = cap;
    }
    r->items[r->n_items++] = take_o;
    return 0;
}

static int on_data(void *arg, struct vg_slice bytes)
{
    struct vigil_reflector *r = arg;
    int e = vg_list_reader_feed(&r->reader, bytes);
    return VG_MIN(e, 0);
}

/* ---- what was answered ---- */

static void begin_at(struct vigil_reflector *r, const char *version);

static void list_failed(struct vigil_reflector *r, const struct vg_exchange_end *end)
{
    bool is_expired = vg_is_expired(&end->err);
    if (is_expired && r->page > 1 && !r->is_whole) {
        drop_items(r);
        vg_buf_clear(&r->next);
        r->is_whole = true;
        r->page = 0;
        get_page(r);
        return;
    }
    if ((is_expired || end->is_version_too_large) && !r->is_second_try) {
        r->is_unavailable = true;
        r->is_second_try = true;
        begin_at(r, "");
        return;
    }
    vg_reflector_failed(r, &end->err, VG_TELL_NOW, VG_NEXT_ROUND);
}

/* The whole list is here. */
static void list_done(struct vigil_reflector *r)
{
    size_t n = r->n_items;
    const struct vigil_object **items = vg_steal(r->items);
    r->n_items = r->cap_items = 0;
    int e = vg_reflector_replace(r, items, n, vg_slice_str(r->list_version));
    for (size_t i = 0; i < n; i++)
        vigil_object_unref(items[i]);
    vg_free(items);
    if (e == VIGIL_E_CLOSED)
        return;
    if (e == 0) {
        vg_reflector_start_resync(r);
        vg_watcher_begin(r);
        return;
    }
    struct vigil_error err;
    vg_error_set(&err, e, "the sink does not take the list: %s", vg_err_text(e));
    vg_reflector_failed(r, &err, VG_TELL_NOW, VG_NEXT_ROUND);
}

static bool is_same_token(const struct vigil_reflector *r, struct vg_slice next)
{
    return r->next.n && vg_slice_eq(vg_slice(r->next.p, r->next.n - 1), next);
}

static int page_done(struct vigil_reflector *r)
{
    struct vg_slice version, next;
    int e = vg_list_reader_end(&r->reader, &version, &next);
    if (e < 0)
        return e;
    if (version.n > VG_OBJECT_VERSION_MAX)
        return VIGIL_E_TOO_LARGE;
    if (r->page == 1)
        snprintf(r->list_version, sizeof(r->list_version), "%.*s", VG_SLICE_ARG(version));
    r->empty_pages = r->n_items > r->page_items ? 0 : r->empty_pages + 1;
    r->page_items = r->n_items;
    if (next.n && (is_same_token(r, next) || r->empty_pages > EMPTY_PAGES_MAX))
        return VIGIL_E_INVALID; /* it would go on for ever */
    if (next.n && r->page == 1 && strcmp(r->list_asked, "0") == 0)
        r->pages_always = true;
    vg_buf_clear(&r->next);
    if (next.n)
        e = vg_buf_append_slice(&r->next, next);
    if (next.n && e == 0)
        e = vg_buf_append_byte(&r->next, 0);
    drop_reader(r);
    return e;
}

static void on_done(void *arg, const struct vg_exchange_end *end)
{
    struct vigil_reflector *r = arg;
    struct vg_exchange_end failed = *end;
    r->x = NULL;
    if (!vg_reflector_ended(r, end))
        return;
    int e = end->err.code < 0 ? 0 : page_done(r);
    if (e < 0)
        vg_error_set(&failed.err, e, "the server's answer is no list: %s", vg_err_text(e));
    drop_reader(r);
    if (failed.err.code < 0)
        list_failed(r, &failed);
    else if (r->next.n)
        get_page(r);
    else
        list_done(r);
}

/* ---- asking ---- */

static int make_path(struct vigil_reflector *r, struct vg_buf *out)
{
    char limit[16] = "";
    bool is_first = !r->next.n;
    if (r->list_limit && !r->is_whole)
        snprintf(limit, sizeof(limit), "%u", r->list_limit);
    int e = vg_path_resource(out, r->opts.resource, r->opts.ns, NULL, NULL);
    if (e == 0)
        e = vg_path_query(out, "labelSelector", r->opts.label_selector);
    if (e == 0)
        e = vg_path_query(out, "fieldSelector", r->opts.field_selector);
    if (e == 0)
        e = vg_path_query(out, "limit", limit);
    if (e == 0)
        e = vg_path_query(out, "resourceVersion", is_first ? r->list_asked : NULL);
    if (e == 0)
        e = vg_path_query(out, "continue", is_first ? NULL : r->next.p);
    return e < 0 ? e : vg_buf_append_byte(out, 0);
}

static void get_page(struct vigil_reflector *r)
{
    const struct vigil_resource *res = r->opts.resource;
    bool is_core = !res->group || !*res->group;
    VG_AUTO(buf) path = {0};
    r->page++;
    vg_buf_clear(&r->api_version);
    if (vg_buf_printf(&r->api_version, "%s%s%s", is_core ? "" : res->group, is_core ? "" : "/",
                      res->version) < 0 ||
        make_path(r, &path) < 0) {
        vg_reflector_no_memory(r);
        return;
    }
    vg_list_reader_init(&r->reader, vg_buf_slice(&r->api_version), vg_slice_str(res->kind), on_item,
                        r);
    r->has_reader = true;
    const struct vg_exchange_opts o = {.method = "GET",
                                       .path = path.p,
                                       .stall_ms = r->tuning.list_stall_ms ? r->tuning.list_stall_ms
                                                                           : STALL_MS,
                                       .on_open = vg_reflector_opened,
                                       .on_retry = vg_reflector_retried,
                                       .on_data = on_data,
                                       .on_done = on_done,
                                       .arg = r};
    if (vg_exchange_start(r->c, &o, &r->x) < 0)
        vg_reflector_no_memory(r);
}

static void begin_at(struct vigil_reflector *r, const char *version)
{
    vg_lister_drop(r);
    snprintf(r->list_asked, sizeof(r->list_asked), "%s", version);
    r->page = r->empty_pages = 0;
    r->page_items = 0;
    r->is_whole = false;
    get_page(r);
}

void vg_lister_begin(struct vigil_reflector *r)
{
    const char *version = r->is_unavailable ? "" : r->has_synced ? r->version : "0";
    bool is_cached = version[0] && strcmp(version, "0") != 0;
    r->state = VG_REFLECTOR_LISTING;
    r->is_second_try = version[0] == 0;
    r->list_limit = r->opts.page_size               ? r->opts.page_size
                    : is_cached && !r->pages_always ? 0
                                                    : PAGE_SIZE;
    begin_at(r, version);
}
