/* predicate.c - see predicate.h. The pins are found once, when a predicate is made; they repeat
 * what the URL and the selectors say, which stay the judges of what matches. */
#include "predicate.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/alloc.h"

/* Which term of the field selector pins a thing. Every idle watcher holds a predicate, so a pin is
 * two bytes and not a copy of the term's value. */
typedef uint16_t term_no;
#define NO_TERM UINT16_MAX
static_assert(VG_FIELD_SELECTOR_TERMS_MAX <= NO_TERM, "a term_no names any term");

struct vg_obj_predicate {
    _Atomic uint32_t refs;
    term_no pin_ns, pin_name, pin_trigger; /* the URL goes before the first two */
    bool has_labels, has_fields;           /* they restrict something */
    uint32_t ns_n, name_n;                 /* lengths */
    const struct vg_label_selector *labels;
    /* The field selector, resolved; then namespace and name from the URL; empty: any. */
    _Alignas(uint32_t) char bytes[];
};

static const struct vg_field_selector *fields_of(const struct vg_obj_predicate *p)
{
    return (const struct vg_field_selector *)(const void *)p->bytes;
}

static struct vg_slice url_ns(const struct vg_obj_predicate *p)
{
    return vg_slice(p->bytes + vg_field_selector_block_size(fields_of(p)), p->ns_n);
}

static struct vg_slice url_name(const struct vg_obj_predicate *p)
{
    return vg_slice(url_ns(p).p + p->ns_n, p->name_n);
}

/* ---- resolving ---- */

/* metadata.name, metadata.namespace and the kind's own. */
static uint32_t label_table(const struct vg_obj_fields *fields,
                            struct vg_field_label table[VG_OBJ_FIELDS_MAX + 2])
{
    uint32_t n = 0;
    table[n++] =
        (struct vg_field_label){.name = VG_SLICE_LIT("metadata.name"), .index = VG_OBJ_FIELD_NAME};
    table[n++] = (struct vg_field_label){.name = VG_SLICE_LIT("metadata.namespace"),
                                         .index = VG_OBJ_FIELD_NAMESPACE};
    for (uint32_t i = 0; i < fields->n; i++)
        table[n++] = (struct vg_field_label){.name = vg_slice_str(fields->v[i].label), .index = i};
    return n;
}

static int resolve(const struct vg_obj_fields *fields, const struct vg_field_selector *s,
                   const struct vg_field_selector **ret, struct vg_status *status)
{
    struct vg_field_label table[VG_OBJ_FIELDS_MAX + 2];
    VG_AUTO(buf) message;
    vg_buf_init(&message, 0);
    struct vg_field_labels labels = {
        .v = table, .n = label_table(fields, table), .refusal = VG_FIELD_NOT_SUPPORTED};
    int err = vg_field_selector_resolve(s, &labels, ret, &message);
    if (err < 0 && message.n)
        return vg_fail(status, err, "%.*s", VG_SLICE_ARG(vg_buf_slice(&message)));
    return err;
}

static bool is_resolved(const struct vg_field_selector *s)
{
    for (uint32_t i = 0; i < vg_field_selector_count(s); i++)
        if (vg_field_selector_at(s, i).index == VG_FIELD_UNRESOLVED)
            return false;
    return true;
}

static bool are_indexes_known(const struct vg_obj_fields *fields, const struct vg_field_selector *s)
{
    for (uint32_t i = 0; i < vg_field_selector_count(s); i++) {
        uint32_t index = vg_field_selector_at(s, i).index;
        if (index >= fields->n && index != VG_OBJ_FIELD_NAME && index != VG_OBJ_FIELD_NAMESPACE)
            return false;
    }
    return true;
}

/* ---- making ---- */

static void set_pin(term_no *pin, uint32_t term)
{
    if (*pin == NO_TERM)
        *pin = (term_no)term;
}

static void find_pins(struct vg_obj_predicate *p, uint32_t trigger)
{
    p->pin_ns = p->pin_name = p->pin_trigger = NO_TERM;
    for (uint32_t i = 0; i < vg_field_selector_count(fields_of(p)); i++) {
        struct vg_field_term term = vg_field_selector_at(fields_of(p), i);
        if (term.op != VG_FIELD_EQUALS)
            continue;
        if (term.index == VG_OBJ_FIELD_NAMESPACE)
            set_pin(&p->pin_ns, i);
        else if (term.index == VG_OBJ_FIELD_NAME)
            set_pin(&p->pin_name, i);
        else if (term.index == trigger)
            set_pin(&p->pin_trigger, i);
    }
}

/* Owns labels from then on, and has a copy of fields. NULL: out of memory, and they are still the
 * caller's. */
static struct vg_obj_predicate *build(const struct vg_obj_predicate_opts *opts,
                                      const struct vg_label_selector *labels,
                                      const struct vg_field_selector *fields)
{
    size_t fields_n = vg_field_selector_block_size(fields);
    size_t size = sizeof(struct vg_obj_predicate) + fields_n + opts->ns.n + opts->name.n;
    struct vg_obj_predicate *p = vg_calloc(1, size);
    if (!p)
        return NULL;
    vg_field_selector_place(fields, p->bytes);
    atomic_init(&p->refs, 1);
    p->ns_n = (uint32_t)opts->ns.n;
    p->name_n = (uint32_t)opts->name.n;
    if (opts->ns.n)
        memcpy(p->bytes + fields_n, opts->ns.p, opts->ns.n);
    if (opts->name.n)
        memcpy(p->bytes + fields_n + opts->ns.n, opts->name.p, opts->name.n);
    p->labels = labels;
    p->has_labels = !vg_label_selector_is_everything(labels);
    p->has_fields = !vg_field_selector_is_everything(fields);
    find_pins(p, opts->fields->trigger);
    return p;
}

static int make(const struct vg_obj_predicate_opts *opts, const struct vg_label_selector *labels,
                const struct vg_field_selector *fields, struct vg_obj_predicate **ret,
                struct vg_status *status)
{
    if (!are_indexes_known(opts->fields, fields))
        return vg_fail(status, VIGIL_E_INVALID, "a field of the selector is not one of the kind");
    struct vg_obj_predicate *p = build(opts, labels, fields);
    if (!p)
        return -ENOMEM;
    *ret = p;
    return 0;
}

/* Puts the resolved selector in the place of *s, which it frees. */
static int resolve_own(const struct vg_obj_fields *fields, const struct vg_field_selector **s,
                       struct vg_status *status)
{
    const struct vg_field_selector *resolved = NULL;
    int err = is_resolved(*s) ? 0 : resolve(fields, *s, &resolved, status);
    if (resolved) {
        vg_field_selector_free(*s);
        *s = resolved;
    }
    return err;
}

int vg_obj_predicate_new(const struct vg_obj_predicate_opts *opts, struct vg_obj_predicate **ret,
                         struct vg_status *reterr_status)
{
    const struct vg_label_selector *labels = opts->take_labels;
    const struct vg_field_selector *fields = opts->take_fields;
    labels = labels ? labels : vg_label_selector_everything();
    fields = fields ? fields : vg_field_selector_everything();
    bool is_long = opts->ns.n > UINT32_MAX || opts->name.n > UINT32_MAX;
    int err = opts->fields->n > VG_OBJ_FIELDS_MAX || is_long ? VIGIL_E_INVALID : 0;
    if (err == 0)
        err = resolve_own(opts->fields, &fields, reterr_status);
    if (err == 0)
        err = make(opts, labels, fields, ret, reterr_status);
    if (err < 0)
        vg_label_selector_free(labels);
    vg_field_selector_free(fields);
    return err;
}

struct vg_obj_predicate *vg_obj_predicate_ref(const struct vg_obj_predicate *p)
{
    struct vg_obj_predicate *own = (struct vg_obj_predicate *)p; /* the count is all that changes */
    atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
    return own;
}

struct vg_obj_predicate *vg_obj_predicate_unref(const struct vg_obj_predicate *p)
{
    struct vg_obj_predicate *own = (struct vg_obj_predicate *)p;
    if (own && atomic_fetch_sub_explicit(&own->refs, 1, memory_order_release) == 1) {
        (void)atomic_load_explicit(&own->refs, memory_order_acquire); /* as a fence; TSan sees it */
        vg_label_selector_free(own->labels);
        vg_free(own);
    }
    return NULL;
}

/* ---- matching ---- */

static struct vg_slice get_field(const void *object, const struct vg_field_term *term)
{
    const struct vg_obj_header *h = object;
    if (term->index == VG_OBJ_FIELD_NAME)
        return vg_obj_name(h);
    if (term->index == VG_OBJ_FIELD_NAMESPACE)
        return vg_obj_namespace(h);
    return vg_obj_field(h, term->index);
}

bool vg_obj_predicate_matches(const struct vg_obj_predicate *p, const struct vg_obj_header *h)
{
    if (p->ns_n && !vg_slice_eq(url_ns(p), vg_obj_namespace(h)))
        return false;
    if (p->name_n && !vg_slice_eq(url_name(p), vg_obj_name(h)))
        return false;
    if (p->has_fields && !vg_field_selector_matches(fields_of(p), get_field, h))
        return false;
    return !p->has_labels || vg_label_selector_matches(p->labels, &h->labels);
}

bool vg_obj_predicate_is_all(const struct vg_obj_predicate *p)
{
    return p->ns_n == 0 && p->name_n == 0 && !p->has_fields && !p->has_labels;
}

bool vg_obj_predicate_is_trigger(const struct vg_obj_predicate *p)
{
    return p->pin_trigger != NO_TERM && vg_field_selector_count(fields_of(p)) == 1 &&
           p->ns_n == 0 && p->name_n == 0 && !p->has_labels;
}

enum vg_obj_change vg_obj_predicate_change(const struct vg_obj_predicate *p,
                                           const struct vg_obj_header *before,
                                           const struct vg_obj_header *after)
{
    bool was = before && vg_obj_predicate_matches(p, before);
    bool is = after && vg_obj_predicate_matches(p, after);
    if (was)
        return is ? VG_OBJ_MODIFIED : VG_OBJ_DELETED;
    return is ? VG_OBJ_ADDED : VG_OBJ_NONE;
}

/* ---- pins ---- */

static bool get_pin(const struct vg_obj_predicate *p, struct vg_slice url, term_no term,
                    struct vg_slice *ret)
{
    if (url.n)
        *ret = url;
    else if (term != NO_TERM)
        *ret = vg_field_selector_at(fields_of(p), term).value;
    return url.n || term != NO_TERM;
}

bool vg_obj_predicate_namespace(const struct vg_obj_predicate *p, struct vg_slice *ret_ns)
{
    return get_pin(p, url_ns(p), p->pin_ns, ret_ns);
}

bool vg_obj_predicate_name(const struct vg_obj_predicate *p, struct vg_slice *ret_name)
{
    return get_pin(p, url_name(p), p->pin_name, ret_name);
}

bool vg_obj_predicate_trigger(const struct vg_obj_predicate *p, struct vg_slice *ret_value)
{
    return get_pin(p, vg_slice(NULL, 0), p->pin_trigger, ret_value);
}

const struct vg_label_selector *vg_obj_predicate_labels(const struct vg_obj_predicate *p)
{
    return p->labels;
}

const struct vg_field_selector *vg_obj_predicate_fields(const struct vg_obj_predicate *p)
{
    return fields_of(p);
}

size_t vg_obj_predicate_size(const struct vg_obj_predicate *p)
{
    return sizeof *p + p->ns_n + p->name_n + vg_label_selector_size(p->labels) +
           vg_field_selector_block_size(fields_of(p));
}
