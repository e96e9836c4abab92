/* label_selector.c - the compiled form of a label selector, and matching; see label_selector.h.
 * The block of a selector is its head, the requirements, all values as slices, all bytes; every
 * slice points into the block. Requirements and labels both rise by key, so each search of a match
 * begins where the last one found. */
#include "label_selector.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "label_selector_int.h"

struct vg_label_selector {
    size_t size; /* of the block */
    uint32_t n;
    bool is_static;
    bool is_nothing;
    struct vg_label_requirement v[];
};

static const struct vg_label_selector everything = {.size = 0, .is_static = true};
static const struct vg_label_selector nothing = {.size = 0, .is_static = true, .is_nothing = true};

const struct vg_label_selector *vg_label_selector_everything(void)
{
    return &everything;
}

const struct vg_label_selector *vg_label_selector_nothing(void)
{
    return &nothing;
}

void vg_label_selector_free(const struct vg_label_selector *s)
{
    if (s && !s->is_static)
        vg_free((void *)(uintptr_t)s);
}

/* ---- matching ---- */

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : -1;
}

bool vg_label_parse_int(struct vg_slice s, int64_t *ret)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    size_t i = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+');
    if (i == s.n)
        return false;
    int64_t value = 0; /* built below zero, where there is room for one more */
    for (; i < s.n; i++) {
        int digit = digit_of(s.p[i]);
        if (digit < 0 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value))
            return false;
    }
    if (!negative && value == INT64_MIN)
        return false;
    *ret = negative ? value : -value;
    return true;
}

static bool has_value(const struct vg_label_requirement *r, struct vg_slice value)
{
    uint32_t low = 0, high = r->values_n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int c = vg_slice_cmp(r->values[middle], value);
        if (c == 0)
            return true;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* For a label that is there. */
static bool value_matches(const struct vg_label_requirement *r, struct vg_slice value)
{
    int64_t number;
    switch (r->op) {
    case VG_LABEL_EXISTS:
        return true;
    case VG_LABEL_NOT_EXISTS:
        return false;
    case VG_LABEL_EQUALS:
    case VG_LABEL_DOUBLE_EQUALS:
        return vg_slice_eq(r->values[0], value);
    case VG_LABEL_NOT_EQUALS:
        return !vg_slice_eq(r->values[0], value);
    case VG_LABEL_IN:
        return has_value(r, value);
    case VG_LABEL_NOT_IN:
        return !has_value(r, value);
    case VG_LABEL_GREATER:
        return vg_label_parse_int(value, &number) && number > r->number;
    case VG_LABEL_LESS:
        return vg_label_parse_int(value, &number) && number < r->number;
    }
    return false;
}

static bool absence_matches(enum vg_label_op op)
{
    return op == VG_LABEL_NOT_EXISTS || op == VG_LABEL_NOT_EQUALS || op == VG_LABEL_NOT_IN;
}

bool vg_label_selector_matches(const struct vg_label_selector *s, const struct vg_labels *l)
{
    uint32_t from = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct vg_label_requirement *r = &s->v[i];
        uint32_t at = vg_labels_index(l, r->key, from);
        if (at < l->n)
            from = at;
        if (!(at < l->n ? value_matches(r, vg_labels_value(l, at)) : absence_matches(r->op)))
            return false;
    }
    return !s->is_nothing;
}

/* ---- looking inside ---- */

bool vg_label_selector_is_everything(const struct vg_label_selector *s)
{
    return s->n == 0 && !s->is_nothing;
}

bool vg_label_selector_is_nothing(const struct vg_label_selector *s)
{
    return s->is_nothing;
}

uint32_t vg_label_selector_count(const struct vg_label_selector *s)
{
    return s->n;
}

size_t vg_label_selector_size(const struct vg_label_selector *s)
{
    return s->size;
}

const struct vg_label_requirement *vg_label_selector_at(const struct vg_label_selector *s,
                                                        uint32_t i)
{
    assert(i < s->n);
    return &s->v[i];
}

bool vg_label_selector_requires(const struct vg_label_selector *s, struct vg_slice key,
                                struct vg_slice *ret_value)
{
    uint32_t i = 0;
    while (i < s->n && !vg_slice_eq(s->v[i].key, key))
        i++;
    if (i == s->n || s->v[i].values_n != 1)
        return false;
    enum vg_label_op op = s->v[i].op;
    if (op != VG_LABEL_EQUALS && op != VG_LABEL_DOUBLE_EQUALS && op != VG_LABEL_IN)
        return false;
    *ret_value = s->v[i].values[0];
    return true;
}

static bool requirement_equal(const struct vg_label_requirement *a,
                              const struct vg_label_requirement *b)
{
    if (a->op != b->op || a->values_n != b->values_n || !vg_slice_eq(a->key, b->key))
        return false;
    for (uint32_t i = 0; i < a->values_n; i++) {
        if (!vg_slice_eq(a->values[i], b->values[i]))
            return false;
    }
    return true;
}

bool vg_label_selector_equal(const struct vg_label_selector *a, const struct vg_label_selector *b)
{
    if (a->n != b->n || a->is_nothing != b->is_nothing)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (!requirement_equal(&a->v[i], &b->v[i]))
            return false;
    }
    return true;
}

static bool requirement_is_sound(const struct vg_label_requirement *r)
{
    int64_t number;
    for (uint32_t i = 1; i < r->values_n; i++) {
        if (vg_slice_cmp(r->values[i - 1], r->values[i]) >= 0)
            return false;
    }
    switch (r->op) {
    case VG_LABEL_EXISTS:
    case VG_LABEL_NOT_EXISTS:
        return r->values_n == 0;
    case VG_LABEL_IN:
    case VG_LABEL_NOT_IN:
        return r->values_n > 0;
    case VG_LABEL_GREATER:
    case VG_LABEL_LESS:
        return r->values_n == 1 && vg_label_parse_int(r->values[0], &number) && number == r->number;
    default:
        return r->values_n == 1;
    }
}

bool vg_label_selector_is_sound(const struct vg_label_selector *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (i > 0 && vg_slice_cmp(s->v[i - 1].key, s->v[i].key) > 0)
            return false;
        if (!requirement_is_sound(&s->v[i]))
            return false;
    }
    return true;
}

/* ---- text ---- */

static int append_values(struct vg_buf *b, const struct vg_label_requirement *r)
{
    int err = 0;
    for (uint32_t i = 0; err == 0 && i < r->values_n; i++) {
        err = i > 0 ? vg_buf_append_byte(b, ',') : 0;
        if (err == 0)
            err = vg_buf_append_slice(b, r->values[i]);
    }
    return err;
}

static int append_requirement(struct vg_buf *b, const struct vg_label_requirement *r)
{
    static const struct {
        const char *before, *between, *after;
    } forms[] = {
        [VG_LABEL_EXISTS] = {"", "", ""},          [VG_LABEL_NOT_EXISTS] = {"!", "", ""},
        [VG_LABEL_EQUALS] = {"", "=", ""},         [VG_LABEL_DOUBLE_EQUALS] = {"", "==", ""},
        [VG_LABEL_NOT_EQUALS] = {"", "!=", ""},    [VG_LABEL_IN] = {"", " in (", ")"},
        [VG_LABEL_NOT_IN] = {"", " notin (", ")"}, [VG_LABEL_GREATER] = {"", ">", ""},
        [VG_LABEL_LESS] = {"", "<", ""},
    };
    int err = vg_buf_append(b, forms[r->op].before, strlen(forms[r->op].before));
    if (err == 0)
        err = vg_buf_append_slice(b, r->key);
    if (err == 0)
        err = vg_buf_append(b, forms[r->op].between, strlen(forms[r->op].between));
    if (err == 0)
        err = append_values(b, r);
    return err < 0 ? err : vg_buf_append(b, forms[r->op].after, strlen(forms[r->op].after));
}

int vg_label_selector_append(struct vg_buf *b, const struct vg_label_selector *s)
{
    int err = 0;
    for (uint32_t i = 0; err == 0 && i < s->n; i++) {
        err = i > 0 ? vg_buf_append_byte(b, ',') : 0;
        if (err == 0)
            err = append_requirement(b, &s->v[i]);
    }
    return err;
}

/* ---- making ---- */

static int compare_places(uintptr_t a, uintptr_t b)
{
    return (a > b) - (a < b);
}

/* Keys lie in one text: of two equal ones the earlier in the text comes first. */
static int compare_requirements(const void *a, const void *b)
{
    const struct vg_label_requirement *x = a, *y = b;
    int c = vg_slice_cmp(x->key, y->key);
    return c ? c : compare_places((uintptr_t)x->key.p, (uintptr_t)y->key.p);
}

static struct vg_slice place_bytes(char **at, struct vg_slice s)
{
    struct vg_slice placed = {*at, s.n};
    if (s.n > 0)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return placed;
}

static void place(struct vg_label_selector *s, const struct vg_label_requirement *reqs,
                  uint32_t values_n)
{
    struct vg_slice *values = (struct vg_slice *)(void *)(s->v + s->n);
    char *bytes = (char *)(values + values_n);
    for (uint32_t i = 0; i < s->n; i++) {
        s->v[i] = reqs[i];
        s->v[i].key = place_bytes(&bytes, reqs[i].key);
        s->v[i].values = values;
        for (uint32_t j = 0; j < reqs[i].values_n; j++)
            *values++ = place_bytes(&bytes, reqs[i].values[j]);
    }
}

int vg_label_selector_compile(struct vg_label_requirement *reqs, uint32_t n,
                              const struct vg_label_selector **ret_selector)
{
    if (n == 0) {
        *ret_selector = &everything;
        return 0;
    }
    qsort(reqs, n, sizeof *reqs, compare_requirements);
    uint32_t values_n = 0;
    size_t size = sizeof(struct vg_label_selector) + n * sizeof *reqs;
    for (uint32_t i = 0; i < n; i++) {
        size += reqs[i].key.n + reqs[i].values_n * sizeof(struct vg_slice);
        values_n += reqs[i].values_n;
        for (uint32_t j = 0; j < reqs[i].values_n; j++)
            size += reqs[i].values[j].n;
    }
    struct vg_label_selector *s = vg_calloc(1, size);
    if (!s)
        return -ENOMEM;
    s->size = size;
    s->n = n;
    place(s, reqs, values_n);
    assert(vg_label_selector_is_sound(s));
    *ret_selector = s;
    return 0;
}

int vg_label_selector_from_labels(const struct vg_labels *l,
                                  const struct vg_label_selector **ret_selector)
{
    if (l->n > VG_LABEL_SELECTOR_REQUIREMENTS_MAX)
        return VIGIL_E_TOO_LARGE;
    struct vg_slice *values = vg_calloc(l->n + 1, sizeof *values);
    struct vg_label_requirement *reqs = vg_calloc(l->n + 1, sizeof *reqs);
    int r = values && reqs ? 0 : -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < l->n; i++) {
        values[i] = vg_labels_value(l, i);
        reqs[i] = (struct vg_label_requirement){
            .key = vg_labels_key(l, i), .values = &values[i], .values_n = 1, .op = VG_LABEL_EQUALS};
    }
    if (r == 0)
        r = vg_label_selector_compile(reqs, l->n, ret_selector);
    vg_free(values);
    vg_free(reqs);
    return r;
}
