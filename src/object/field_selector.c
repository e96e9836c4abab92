/* field_selector.c - the compiled form of a field selector, matching, and the fields of a kind; see
 * field_selector.h. The block of a selector is its head, the terms, all bytes; a term says where in
 * the bytes its texts are. Every idle watch that selects by a field has such a block. */
#include "field_selector.h"

#include <errno.h>

#include "base/alloc.h"
#include "quote.h"

struct packed_term {
    uint32_t at; /* the field's text, and behind it the value's */
    uint32_t field_n, value_n;
    uint32_t index;
    uint8_t op;
};

struct vg_field_selector {
    uint32_t size; /* of the block */
    uint16_t n;
    bool is_static;
    bool is_nothing;
    struct packed_term v[];
};
static_assert(VG_FIELD_SELECTOR_TERMS_MAX <= UINT16_MAX, "n counts them");
static_assert(_Alignof(struct vg_field_selector) == _Alignof(uint32_t), "as its users place it");

static const struct vg_field_selector everything = {.size = 0, .is_static = true};
static const struct vg_field_selector nothing = {.size = 0, .is_static = true, .is_nothing = true};

const struct vg_field_selector *vg_field_selector_everything(void)
{
    return &everything;
}

const struct vg_field_selector *vg_field_selector_nothing(void)
{
    return &nothing;
}

static struct vg_field_term unpack(const struct vg_field_selector *s, uint32_t i)
{
    const struct packed_term *t = &s->v[i];
    const char *text = (const char *)(s->v + s->n) + t->at;
    return (struct vg_field_term){.field = vg_slice(text, t->field_n),
                                  .value = vg_slice(text + t->field_n, t->value_n),
                                  .op = (enum vg_field_op)t->op,
                                  .index = t->index};
}

/* ---- making ---- */

static uint32_t place_bytes(char *to, struct vg_slice s)
{
    if (s.n > 0)
        memcpy(to, s.p, s.n);
    return (uint32_t)s.n;
}

static void place(struct vg_field_selector *s, const struct vg_field_term *terms)
{
    char *bytes = (char *)(s->v + s->n);
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        struct packed_term *t = &s->v[i];
        *t = (struct packed_term){.at = at, .index = terms[i].index, .op = (uint8_t)terms[i].op};
        t->field_n = place_bytes(bytes + at, terms[i].field);
        t->value_n = place_bytes(bytes + at + t->field_n, terms[i].value);
        at += t->field_n + t->value_n;
    }
}

int vg_field_selector_from_terms(const struct vg_field_term *terms, size_t n,
                                 const struct vg_field_selector **ret_selector)
{
    if (n > VG_FIELD_SELECTOR_TERMS_MAX)
        return VIGIL_E_TOO_LARGE;
    if (n == 0) {
        *ret_selector = &everything;
        return 0;
    }
    size_t size = sizeof(struct vg_field_selector) + n * sizeof(struct packed_term);
    for (size_t i = 0; i < n; i++)
        size += terms[i].field.n + terms[i].value.n;
    if (size > UINT32_MAX)
        return VIGIL_E_TOO_LARGE;
    struct vg_field_selector *s = vg_calloc(1, size);
    if (!s)
        return -ENOMEM;
    s->size = (uint32_t)size;
    s->n = (uint16_t)n;
    place(s, terms);
    *ret_selector = s;
    return 0;
}

void vg_field_selector_free(const struct vg_field_selector *s)
{
    if (s && !s->is_static)
        vg_free((void *)(uintptr_t)s);
}

/* ---- the fields of a kind ---- */

static const struct vg_field_label *find_label(const struct vg_field_labels *labels,
                                               struct vg_slice name)
{
    for (uint32_t i = 0; i < labels->n; i++) {
        if (vg_slice_eq(labels->v[i].name, name))
            return &labels->v[i];
    }
    return NULL;
}

/* `before`, the field as it is or in quotes, `after`. */
static int append_around(struct vg_buf *b, const char *before, struct vg_slice field, bool quoted,
                         const char *after)
{
    int r = vg_buf_append(b, before, strlen(before));
    if (r == 0)
        r = quoted ? vg_quote_append(b, field) : vg_buf_append_slice(b, field);
    return r < 0 ? r : vg_buf_append(b, after, strlen(after));
}

static int append_refusal(struct vg_buf *b, const struct vg_field_labels *labels,
                          struct vg_slice field)
{
    static const char only[] =
        " is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    int r;
    switch (labels->refusal) {
    case VG_FIELD_NOT_KNOWN:
        return append_around(b, "", field, true, only);
    case VG_FIELD_NOT_SUPPORTED_FOR:
        r = append_around(b, "field label ", field, true, " not supported for ");
        return r < 0 ? r : vg_buf_append_slice(b, labels->kind);
    case VG_FIELD_NOT_SUPPORTED_KIND:
        r = append_around(b, "field label not supported for ", labels->kind, false, ": ");
        return r < 0 ? r : vg_buf_append_slice(b, field);
    case VG_FIELD_NOT_SUPPORTED:
        break;
    }
    return append_around(b, "field label not supported: ", field, false, "");
}

static int resolve_term(const struct vg_field_labels *labels, struct vg_field_term *term,
                        struct vg_buf *message)
{
    const struct vg_field_label *label = find_label(labels, term->field);
    if (!label) {
        int r = message ? append_refusal(message, labels, term->field) : 0;
        return r < 0 ? r : VIGIL_E_INVALID;
    }
    term->index = label->index;
    if (label->canonical.n > 0)
        term->field = label->canonical;
    return 0;
}

static int resolve_terms(const struct vg_field_selector *s, const struct vg_field_labels *labels,
                         struct vg_field_term *terms, struct vg_buf *message)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < s->n; i++) {
        terms[i] = unpack(s, i);
        r = resolve_term(labels, &terms[i], message);
    }
    return r;
}

int vg_field_selector_resolve(const struct vg_field_selector *s,
                              const struct vg_field_labels *labels,
                              const struct vg_field_selector **ret_selector,
                              struct vg_buf *reterr_message)
{
    if (reterr_message)
        vg_buf_clear(reterr_message);
    if (s->n == 0) {
        *ret_selector = s->is_nothing ? &nothing : &everything;
        return 0;
    }
    struct vg_field_term *terms = vg_calloc(s->n, sizeof *terms);
    if (!terms)
        return -ENOMEM;
    int r = resolve_terms(s, labels, terms, reterr_message);
    if (r == 0)
        r = vg_field_selector_from_terms(terms, s->n, ret_selector);
    vg_free(terms);
    return r;
}

/* ---- matching ---- */

bool vg_field_selector_matches(const struct vg_field_selector *s, vg_field_get_fn *get,
                               const void *object)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct vg_field_term t = unpack(s, i);
        if (vg_slice_eq(get(object, &t), t.value) != (t.op == VG_FIELD_EQUALS))
            return false;
    }
    return !s->is_nothing;
}

/* ---- looking inside ---- */

bool vg_field_selector_is_everything(const struct vg_field_selector *s)
{
    return s->n == 0 && !s->is_nothing;
}

bool vg_field_selector_is_nothing(const struct vg_field_selector *s)
{
    return s->is_nothing;
}

uint32_t vg_field_selector_count(const struct vg_field_selector *s)
{
    return s->n;
}

size_t vg_field_selector_size(const struct vg_field_selector *s)
{
    return s->size;
}

size_t vg_field_selector_block_size(const struct vg_field_selector *s)
{
    return VG_MAX((size_t)s->size, sizeof *s);
}

void vg_field_selector_place(const struct vg_field_selector *s, void *block)
{
    struct vg_field_selector *copy = block;
    memcpy(copy, s, vg_field_selector_block_size(s));
    copy->is_static = true;
}

struct vg_field_term vg_field_selector_at(const struct vg_field_selector *s, uint32_t i)
{
    assert(i < s->n);
    return unpack(s, i);
}

bool vg_field_selector_requires(const struct vg_field_selector *s, struct vg_slice field,
                                struct vg_slice *ret_value)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct vg_field_term t = unpack(s, i);
        if (t.op == VG_FIELD_EQUALS && vg_slice_eq(t.field, field)) {
            *ret_value = t.value;
            return true;
        }
    }
    return false;
}

static uint32_t count_equal(const struct vg_field_selector *s, const struct vg_field_term *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        struct vg_field_term u = unpack(s, i);
        n += u.op == t->op && u.index == t->index && vg_slice_eq(u.field, t->field) &&
             vg_slice_eq(u.value, t->value);
    }
    return n;
}

bool vg_field_selector_equal(const struct vg_field_selector *a, const struct vg_field_selector *b)
{
    if (a->n != b->n || a->is_nothing != b->is_nothing)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        struct vg_field_term t = unpack(a, i);
        if (count_equal(a, &t) != count_equal(b, &t))
            return false;
    }
    return true;
}

/* ---- text ---- */

int vg_field_value_append(struct vg_buf *b, struct vg_slice value)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < value.n; i++) {
        char c = value.p[i];
        if (c == '\\' || c == ',' || c == '=')
            r = vg_buf_append_byte(b, '\\');
        if (r == 0)
            r = vg_buf_append_byte(b, c);
    }
    return r;
}

static int append_term(struct vg_buf *b, const struct vg_field_term *t)
{
    int r = append_around(b, "", t->field, false, t->op == VG_FIELD_EQUALS ? "=" : "!=");
    return r < 0 ? r : vg_field_value_append(b, t->value);
}

int vg_field_selector_append(struct vg_buf *b, const struct vg_field_selector *s)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < s->n; i++) {
        struct vg_field_term t = unpack(s, i);
        r = i > 0 ? vg_buf_append_byte(b, ',') : 0;
        if (r == 0)
            r = append_term(b, &t);
    }
    return r;
}
