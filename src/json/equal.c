/* equal.c - see equal.h.
 * Numbers. A number is sign * D * 10^e with D = d.ddd, its first and last digit not 0; two numbers
 * are equal when sign, D and e are. Nothing is converted: D is compared in place, skipping the
 * point, and e is (written exponent) + (a shift of at most the text's length). Written exponents
 * may have any number of digits, so their difference is summed up digit by digit and given up once
 * it is too large for the shifts, below 2^33, to make good: from there it can only grow. Trees.
 * Pairs of containers wait on an explicit stack; an object's members are found in the other by
 * vg_json_lookup. With unique keys (J2) and equal counts, "each of a's keys is in b" suffices. */
#include "equal.h"

#include "base/alloc.h"
#include "bytes.h"
#include "lookup.h"
#include "tree_edit.h"

/* ---- numbers ---- */

struct number {
    bool negative, exp_negative;
    const char *digits, *end; /* first significant digit, past the last; may hold the point */
    struct vg_slice exp;      /* digits of the written exponent, no leading zeros; may be empty */
    int64_t shift;            /* e == written exponent + shift */
};

/* Far above any shift, far below overflow. */
#define EXP_DIFF_MAX ((int64_t)1 << 40)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void read_exponent(const char *p, const char *end, struct number *num)
{
    num->exp_negative = p < end && *p == '-';
    while (p < end && (*p == '-' || *p == '+' || *p == '0'))
        p++;
    num->exp = vg_slice(p, (size_t)(end - p));
}

/* The digits in [p, end), one of them perhaps the point, without zeros at either end. */
static void read_digits(const char *p, const char *end, struct number *num)
{
    const char *point = memchr(p, '.', (size_t)(end - p));
    const char *int_end = point ? point : end;
    while (p < end && (*p == '0' || *p == '.'))
        p++;
    while (end > p && (end[-1] == '0' || end[-1] == '.'))
        end--;
    num->digits = p;
    num->end = end;
    /* 123.4: the first digit stands for 10^2; 0.05: for 10^-2. */
    num->shift = p < int_end ? int_end - p - 1 : int_end - p;
}

static struct number read_number(struct vg_slice text)
{
    struct number num = {0};
    const char *p = text.p, *end = text.p + text.n;
    if (p < end && *p == '-') {
        num.negative = true;
        p++;
    }
    const char *mantissa_end = p;
    while (mantissa_end < end && (is_digit(*mantissa_end) || *mantissa_end == '.'))
        mantissa_end++;
    read_digits(p, mantissa_end, &num);
    if (mantissa_end < end)
        mantissa_end++; /* the e */
    read_exponent(mantissa_end, end, &num);
    return num;
}

static int exp_digit(const struct number *num, size_t place)
{
    int digit = place < num->exp.n ? num->exp.p[num->exp.n - 1 - place] - '0' : 0;
    return num->exp_negative ? -digit : digit;
}

/* a's written exponent minus b's; beyond EXP_DIFF_MAX only its sign and "too far" are true. */
static int64_t exponent_difference(const struct number *a, const struct number *b)
{
    int64_t diff = 0;
    for (size_t place = VG_MAX(a->exp.n, b->exp.n); place-- > 0;) {
        diff = diff * 10 + exp_digit(a, place) - exp_digit(b, place);
        if (diff > EXP_DIFF_MAX || diff < -EXP_DIFF_MAX)
            return diff;
    }
    return diff;
}

static bool digits_equal(const struct number *a, const struct number *b)
{
    const char *p = a->digits, *q = b->digits;
    for (;;) {
        p += p < a->end && *p == '.';
        q += q < b->end && *q == '.';
        if (p == a->end || q == b->end)
            return p == a->end && q == b->end;
        if (*p++ != *q++)
            return false;
    }
}

/* No number, but a container that was left as text (json.h). */
static bool is_left(struct vg_slice text)
{
    return text.n && (text.p[0] == '{' || text.p[0] == '[');
}

bool vg_json_number_equal(struct vg_slice a, struct vg_slice b)
{
    if (vg_slice_eq(a, b))
        return true;
    if (is_left(a) || is_left(b))
        return false;
    struct number x = read_number(a), y = read_number(b);
    bool x_is_zero = x.digits == x.end, y_is_zero = y.digits == y.end;
    if (x_is_zero || y_is_zero)
        return x_is_zero && y_is_zero;
    return x.negative == y.negative && digits_equal(&x, &y) &&
           exponent_difference(&x, &y) + x.shift == y.shift;
}

/* ---- trees ---- */

struct frame {
    const struct vg_json *a, *b; /* containers of one type and count */
    uint32_t next;               /* child of a to compare */
    struct vg_json_lookup in_b;
};

/* Most trees are not deeper: these are compared without an allocation. */
#define FIRST_FRAMES 10u

struct comparison {
    struct frame first[FIRST_FRAMES];
    struct frame *more; /* those above */
    uint32_t n, cap;    /* frames in all; room in more */
};

static struct frame *innermost(struct comparison *c)
{
    return c->n <= FIRST_FRAMES ? &c->first[c->n - 1] : &c->more[c->n - 1 - FIRST_FRAMES];
}

static void pop(struct comparison *c)
{
    struct frame *f = innermost(c);
    if (f->in_b.sorted)
        vg_json_lookup_done(&f->in_b);
    c->n--;
}

static int push(struct comparison *c, const struct vg_json *a, const struct vg_json *b)
{
    if (c->n >= VG_JSON_DEPTH_MAX)
        return VIGIL_E_JSON_DEPTH;
    if (c->n >= FIRST_FRAMES) {
        void *more = c->more;
        int r = vg_json_stack_room(&more, &c->cap, c->n - FIRST_FRAMES, sizeof *c->more);
        c->more = more;
        if (r < 0)
            return r;
    }
    c->n++;
    struct frame *f = innermost(c);
    *f = (struct frame){.a = a, .b = b};
    vg_json_lookup_init(&f->in_b, b);
    return 1;
}

/* Of one type that has no children. */
static bool is_leaf_equal(const struct vg_json *a, const struct vg_json *b)
{
    switch ((enum vg_json_type)a->type) {
    case VG_JSON_BOOL:
        return (a->flags & VG_JSON_TRUE) == (b->flags & VG_JSON_TRUE);
    case VG_JSON_NUMBER:
        return vg_json_number_equal(vg_json_text(a), vg_json_text(b));
    case VG_JSON_STRING:
        return a->n == b->n && vg_json_same_bytes(a->text, b->text, a->n);
    default:
        return true;
    }
}

/* 1: equal so far, containers are pushed to be compared later; 0: different. */
static int compare(struct comparison *c, const struct vg_json *a, const struct vg_json *b)
{
    if (a == b)
        return 1;
    if (!a || !b || a->type != b->type)
        return 0;
    if (a->type < VG_JSON_ARRAY)
        return is_leaf_equal(a, b);
    if (a->n != b->n)
        return 0;
    if (a->items == b->items) /* copies of one node share their children */
        return 1;
    return a->n == 0 ? 1 : push(c, a, b);
}

/* Compare the next child of the innermost pair; a member is mostly where it is in the other. */
static int step(struct comparison *c, struct frame *f)
{
    uint32_t i = f->next++;
    if (f->a->type == VG_JSON_ARRAY)
        return compare(c, &f->a->items[i], &f->b->items[i]);
    const struct vg_json_member *m = &f->a->members[i], *other = &f->b->members[i];
    if (m->key_n != other->key_n || !vg_json_same_bytes(m->key, other->key, m->key_n)) {
        int r = vg_json_lookup_find(&f->in_b, vg_json_key(m), i, &other);
        if (r <= 0)
            return r;
    }
    return compare(c, &m->value, &other->value);
}

int vg_json_equal(const struct vg_json *a, const struct vg_json *b)
{
    struct comparison c;
    c.n = c.cap = 0;
    c.more = NULL;
    int r = compare(&c, a, b);
    while (r > 0 && c.n > 0) {
        struct frame *f = innermost(&c);
        if (f->next < f->a->n)
            r = step(&c, f);
        else
            pop(&c);
    }
    while (c.n > 0)
        pop(&c);
    vg_free(c.more);
    return r;
}
