/* options.c - ListOptions as kube-apiserver decodes, defaults and validates them. */
#include "options.h"

#include <errno.h>

#include "object/quote.h"
#include "server/schema/strconv.h"
#include "status_int.h"

/* ---- parsing ---- */

static int parse_int(const struct vg_target *t, const char *name, struct vg_arena *a, int64_t *ret,
                     struct vg_api_status *ret_status)
{
    struct vg_slice text = vg_query_get(t, name), why;
    *ret = 0;
    if (!text.p)
        return 0;
    int r = vg_strconv_int(a, text, ret, &why);
    if (r == VIGIL_E_INVALID)
        vg_status_bad_request(a, ret_status, "%.*s", VG_SLICE_ARG(why));
    else if (r < 0)
        vg_status_no_memory(ret_status);
    return r;
}

static enum vg_rev_match parse_match(struct vg_slice text)
{
    if (text.n == 0)
        return VG_MATCH_UNSET;
    if (vg_slice_eq(text, VG_SLICE_LIT("Exact")))
        return VG_MATCH_EXACT;
    if (vg_slice_eq(text, VG_SLICE_LIT("NotOlderThan")))
        return VG_MATCH_NOT_OLDER_THAN;
    return VG_MATCH_OTHER;
}

static struct vg_slice text_of(const struct vg_target *t, const char *name)
{
    struct vg_slice s = vg_query_get(t, name);
    return s.p ? s : VG_SLICE_LIT("");
}

static int parse(const struct vg_target *t, struct vg_arena *a, struct vg_list_options *o,
                 struct vg_api_status *ret_status)
{
    o->label_selector = text_of(t, "labelSelector");
    o->field_selector = text_of(t, "fieldSelector");
    o->is_watch = vg_query_bool(t, "watch");
    o->allow_bookmarks = vg_query_bool(t, "allowWatchBookmarks");
    o->rev = text_of(t, "resourceVersion");
    o->match_text = text_of(t, "resourceVersionMatch");
    o->match = parse_match(o->match_text);
    o->continue_token = text_of(t, "continue");
    struct vg_slice initial = vg_query_get(t, "sendInitialEvents");
    o->send_initial = !initial.p                  ? VG_TRI_UNSET
                      : vg_query_is_true(initial) ? VG_TRI_TRUE
                                                  : VG_TRI_FALSE;
    int r = parse_int(t, "timeoutSeconds", a, &o->timeout_s, ret_status);
    return r < 0 ? r : parse_int(t, "limit", a, &o->limit, ret_status);
}

/* ---- selectors ---- */

struct selectors {
    const struct vg_label_selector *labels;
    const struct vg_field_selector *fields;
};

static int refuse_selector(struct vg_arena *a, int r, const struct vg_buf *why,
                           struct vg_api_status *ret_status)
{
    if (r == -ENOMEM)
        vg_status_no_memory(ret_status);
    else
        vg_status_bad_request(a, ret_status, "%.*s", VG_SLICE_ARG(vg_buf_slice(why)));
    return r;
}

static int parse_selectors(const struct vg_list_options *o, struct vg_arena *a,
                           struct selectors *ret, struct vg_api_status *ret_status)
{
    VG_AUTO(buf) why = {0};
    int r =
        o->label_selector.n ? vg_label_selector_parse(o->label_selector, &ret->labels, &why) : 0;
    if (r == 0 && o->field_selector.n)
        r = vg_field_selector_parse(o->field_selector, &ret->fields, &why);
    return r < 0 ? refuse_selector(a, r, &why, ret_status) : 0;
}

static int resolve_fields(const struct vg_kind *kind, struct vg_arena *a, struct selectors *s,
                          struct vg_api_status *ret_status)
{
    if (!s->fields)
        return 0;
    VG_AUTO(buf) why = {0};
    const struct vg_field_selector *resolved;
    int r = vg_field_selector_resolve(s->fields, kind->labels, &resolved, &why);
    if (r < 0)
        return refuse_selector(a, r, &why, ret_status);
    vg_field_selector_free(s->fields);
    s->fields = resolved;
    return 0;
}

/* The name in a watch path: a selector that is there too must ask for the same. */
static int check_name(const struct vg_target *t, const struct selectors *s, struct vg_arena *a,
                      struct vg_api_status *ret_status)
{
    struct vg_slice name;
    if (t->name.n == 0 || !s->fields || vg_field_selector_is_everything(s->fields))
        return 0;
    if (vg_field_selector_requires(s->fields, VG_SLICE_LIT("metadata.name"), &name) &&
        vg_slice_eq(name, t->name))
        return 0;
    vg_status_bad_request(a, ret_status,
                          "fieldSelector metadata.name doesn't match requested name");
    return VIGIL_E_INVALID;
}

static int make_predicate(const struct vg_target *t, struct vg_arena *a, struct selectors *s,
                          struct vg_list_options *o, struct vg_api_status *ret_status)
{
    struct vg_slice ignored;
    struct vg_status why;
    o->has_selector = (s->labels && !vg_label_selector_is_everything(s->labels)) ||
                      (s->fields && !vg_field_selector_is_everything(s->fields));
    struct vg_obj_predicate_opts opts = {.fields = t->kind->fields,
                                         .ns = t->ns,
                                         .name = t->name,
                                         .take_labels = vg_steal(s->labels),
                                         .take_fields = vg_steal(s->fields)};
    int r = vg_obj_predicate_new(&opts, &o->predicate, &why);
    if (r == VIGIL_E_INVALID)
        vg_status_bad_request(a, ret_status, "%s", why.message);
    else if (r < 0)
        vg_status_no_memory(ret_status);
    else
        o->is_name_pinned = vg_obj_predicate_name(o->predicate, &ignored);
    return r;
}

/* ---- defaults and validation ---- */

static void set_defaults(struct vg_list_options *o)
{
    bool is_legacy = vg_rev_is_unset(o->rev) || vg_rev_is_zero(o->rev);
    if (!o->is_watch || !is_legacy || o->send_initial != VG_TRI_UNSET || o->match != VG_MATCH_UNSET)
        return;
    o->send_initial = VG_TRI_TRUE;
    o->match = VG_MATCH_NOT_OLDER_THAN;
}

static const char match_field[] = "resourceVersionMatch";

static void refuse_match(struct vg_field_errors *e, const struct vg_list_options *o,
                         const char *const *supported)
{
    VG_AUTO(buf) quoted = {0};
    if (vg_quote_append(&quoted, o->match_text) < 0)
        e->failed = true;
    else
        vg_field_not_supported(e, match_field, vg_buf_slice(&quoted), supported);
}

static void validate_watch(const struct vg_list_options *o, struct vg_field_errors *e)
{
    static const char *const supported[] = {"NotOlderThan", NULL};
    bool is_set = o->match != VG_MATCH_UNSET, is_not_older = o->match == VG_MATCH_NOT_OLDER_THAN;
    if (o->send_initial != VG_TRI_UNSET && !is_not_older)
        vg_field_forbidden(e, match_field,
                           "sendInitialEvents requires setting resourceVersionMatch to "
                           "NotOlderThan");
    if (is_set && o->send_initial == VG_TRI_UNSET)
        vg_field_forbidden(e, match_field,
                           "resourceVersionMatch is forbidden for watch unless sendInitialEvents "
                           "is provided");
    if (is_set && !is_not_older)
        refuse_match(e, o, supported);
    if (is_set && o->continue_token.n)
        vg_field_forbidden(e, match_field,
                           "resourceVersionMatch is forbidden when continue is provided");
}

static void validate_list(const struct vg_list_options *o, struct vg_field_errors *e)
{
    static const char *const supported[] = {"Exact", "NotOlderThan", "", NULL};
    bool is_set = o->match != VG_MATCH_UNSET;
    if (is_set && vg_rev_is_unset(o->rev))
        vg_field_forbidden(e, match_field,
                           "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (is_set && o->continue_token.n)
        vg_field_forbidden(e, match_field,
                           "resourceVersionMatch is forbidden when continue is provided");
    if (o->match == VG_MATCH_OTHER)
        refuse_match(e, o, supported);
    if (o->match == VG_MATCH_EXACT && vg_rev_is_zero(o->rev))
        vg_field_forbidden(e, match_field,
                           "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    if (o->send_initial != VG_TRI_UNSET)
        vg_field_forbidden(e, "sendInitialEvents", "sendInitialEvents is forbidden for list");
}

static int validate(const struct vg_list_options *o, struct vg_arena *a,
                    struct vg_api_status *ret_status)
{
    struct vg_field_errors e = {.arena = a};
    if (o->is_watch)
        validate_watch(o, &e);
    else
        validate_list(o, &e);
    if (e.n == 0 && !e.failed)
        return 0;
    vg_status_invalid(a, ret_status, "meta.k8s.io", "ListOptions", VG_SLICE_LIT(""), &e);
    return VIGIL_E_INVALID;
}

int vg_list_options_parse(const struct vg_target *t, struct vg_arena *a,
                          struct vg_list_options *ret, struct vg_api_status *ret_status)
{
    struct vg_list_options o = {0};
    struct selectors s = {0};
    int r = parse(t, a, &o, ret_status);
    if (r == 0)
        r = parse_selectors(&o, a, &s, ret_status);
    if (r == 0) {
        set_defaults(&o);
        r = validate(&o, a, ret_status);
    }
    if (r == 0)
        r = resolve_fields(t->kind, a, &s, ret_status);
    if (r == 0)
        r = check_name(t, &s, a, ret_status);
    if (r == 0)
        r = make_predicate(t, a, &s, &o, ret_status);
    vg_label_selector_free(s.labels);
    vg_field_selector_free(s.fields);
    if (r == 0)
        *ret = o;
    return r;
}

void vg_list_options_done(struct vg_list_options *o)
{
    o->predicate = vg_obj_predicate_unref(o->predicate);
}

int vg_rev_parse(struct vg_arena *a, struct vg_slice text, uint64_t *ret,
                 struct vg_slice *reterr_why)
{
    struct vg_slice why;
    int r = vg_strconv_uint(a, text, ret, &why);
    if (r != VIGIL_E_INVALID)
        return r;
    VG_AUTO(buf) b = {0};
    r = vg_buf_printf(&b, "resourceVersion: Invalid value: ");
    if (r == 0)
        r = vg_quote_append(&b, text);
    if (r == 0)
        r = vg_buf_printf(&b, ": %.*s", VG_SLICE_ARG(why));
    if (r == 0)
        r = vg_arena_keep(a, vg_buf_slice(&b), reterr_why);
    return r < 0 ? -ENOMEM : VIGIL_E_INVALID;
}
