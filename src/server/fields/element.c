/* element.c - path elements: their texts, and their order; see element.h and set.h.
 * Elements are compared as texts wherever that is the same: names always, keys and values when they
 * are equal. Else what stands behind the prefix is parsed and compared by value. */
#include "element.h"

#include <errno.h>
#include <stdlib.h>

#include "object/quote.h"
#include "set.h"
#include "json/write.h"

/* ---- making ---- */

int vg_element_field(struct vg_arena *a, struct vg_slice name, struct vg_slice *ret)
{
    char *p = vg_arena_alloc(a, name.n + 2, 1);
    if (!p)
        return -ENOMEM;
    p[0] = 'f';
    p[1] = ':';
    if (name.n)
        memcpy(p + 2, name.p, name.n);
    *ret = vg_slice(p, name.n + 2);
    return 0;
}

/* A scalar whose text needs no thought: as it is printed, between its quotes. False: look closer.
 */
static bool is_plain(const struct vg_json *v, size_t *ret_n)
{
    *ret_n = v->n + (v->type == VG_JSON_STRING ? 2u : 0u);
    if (v->type == VG_JSON_NUMBER)
        return v->flags & VG_JSON_INTEGER;
    if (v->type != VG_JSON_STRING)
        return false;
    for (uint32_t i = 0; i < v->n; i++) {
        unsigned char c = (unsigned char)v->text[i];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&')
            return false;
    }
    return true;
}

static char *put_plain(char *p, const struct vg_json *v)
{
    bool is_string = v->type == VG_JSON_STRING;
    if (is_string)
        *p++ = '"';
    if (v->n)
        memcpy(p, v->text, v->n);
    p += v->n;
    if (is_string)
        *p++ = '"';
    return p;
}

int vg_element_value(struct vg_arena *a, const struct vg_json *scalar, struct vg_slice *ret)
{
    size_t n;
    if (is_plain(scalar, &n)) {
        char *p = vg_arena_alloc(a, n + 2, 1);
        if (!p)
            return -ENOMEM;
        memcpy(p, "v:", 2);
        put_plain(p + 2, scalar);
        *ret = vg_slice(p, n + 2);
        return 0;
    }
    VG_AUTO(buf) b = {0};
    int err = vg_buf_append(&b, "v:", 2);
    if (err == 0)
        err = vg_json_write(&b, scalar, VG_JSON_ESCAPE_HTML);
    return err < 0 ? err : vg_arena_keep(a, vg_buf_slice(&b), ret);
}

/* One plain key, which nearly all are. 1: done; 0: it is not. */
static int plain_key(struct vg_arena *a, const struct vg_element_key *k, struct vg_slice *ret)
{
    size_t n;
    if (!is_plain(k->value, &n))
        return 0;
    size_t all = k->name.n + n + 7; /* k:{"":} */
    char *p = vg_arena_alloc(a, all, 1), *start = p;
    if (!p)
        return -ENOMEM;
    memcpy(p, "k:{\"", 4);
    memcpy(p + 4, k->name.p, k->name.n);
    p += 4 + k->name.n;
    memcpy(p, "\":", 2);
    p = put_plain(p + 2, k->value);
    *p = '}';
    *ret = vg_slice(start, all);
    return 1;
}

int vg_element_keys(struct vg_arena *a, const struct vg_element_key *v, size_t n,
                    struct vg_slice *ret)
{
    int err = n == 1 ? plain_key(a, v, ret) : 0;
    if (err != 0)
        return err < 0 ? err : 0;
    VG_AUTO(buf) b = {0};
    err = vg_buf_append(&b, "k:{", 3);
    for (size_t i = 0; i < n && err == 0; i++) {
        if (i)
            err = vg_buf_append_byte(&b, ',');
        if (err == 0)
            err = vg_json_write_string(&b, v[i].name, VG_JSON_ESCAPE_HTML);
        if (err == 0)
            err = vg_buf_append_byte(&b, ':');
        if (err == 0)
            err = vg_json_write(&b, v[i].value, VG_JSON_ESCAPE_HTML);
    }
    if (err == 0)
        err = vg_buf_append_byte(&b, '}');
    return err < 0 ? err : vg_arena_keep(a, vg_buf_slice(&b), ret);
}

/* ---- order ---- */

static int rank_of(const struct vg_json *v)
{
    static const int ranks[] = {[VG_JSON_NUMBER] = 0, [VG_JSON_STRING] = 1, [VG_JSON_BOOL] = 2,
                                [VG_JSON_ARRAY] = 3,  [VG_JSON_OBJECT] = 4, [VG_JSON_NULL] = 5};
    return ranks[v->type];
}

static int by_size(double a, double b)
{
    return (a > b) - (a < b);
}

/* Numbers that a double cannot tell apart are told apart as integers, if they are some. */
static int order_numbers(const struct vg_json *a, const struct vg_json *b)
{
    int64_t i, j;
    double x = 0, y = 0;
    if (vg_json_to_int64(a, &i) == 0 && vg_json_to_int64(b, &j) == 0)
        return (i > j) - (i < j);
    if (vg_json_to_double(a, &x) < 0 || vg_json_to_double(b, &y) < 0)
        return vg_slice_cmp(vg_json_text(a), vg_json_text(b));
    return by_size(x, y);
}

static int order_values(const struct vg_json *a, const struct vg_json *b)
{
    if (a->type != b->type)
        return rank_of(a) - rank_of(b);
    switch ((enum vg_json_type)a->type) {
    case VG_JSON_NUMBER:
        return order_numbers(a, b);
    case VG_JSON_STRING:
        return vg_slice_cmp(vg_json_text(a), vg_json_text(b));
    case VG_JSON_BOOL:
        return (int)vg_json_is_true(a) - (int)vg_json_is_true(b);
    default: /* what is no scalar is no element of a set or key */
        return 0;
    }
}

static int order_keys(const struct vg_json *a, const struct vg_json *b)
{
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        int c = vg_slice_cmp(vg_json_key(&a->members[i]), vg_json_key(&b->members[i]));
        if (c == 0)
            c = order_values(&a->members[i].value, &b->members[i].value);
        if (c != 0)
            return c;
    }
    return (a->n > b->n) - (a->n < b->n);
}

/* By value; when one cannot be parsed, which no set holds, by bytes. */
static int order_parsed(struct vg_slice a, struct vg_slice b)
{
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 1024, 0);
    struct vg_json *x = NULL, *y = NULL;
    if (vg_json_parse(&arena, vg_slice(a.p + 2, a.n - 2), NULL, &x, NULL) < 0 ||
        vg_json_parse(&arena, vg_slice(b.p + 2, b.n - 2), NULL, &y, NULL) < 0)
        return vg_slice_cmp(a, b);
    bool are_keys = x->type == VG_JSON_OBJECT && y->type == VG_JSON_OBJECT;
    int c = are_keys ? order_keys(x, y) : order_values(x, y);
    return c ? c : vg_slice_cmp(a, b);
}

/* k:{"name":"a"} and k:{"name":"b"}, the most frequent pair: the first texts that differ, if
 * nothing in them is escaped. */
static bool order_plain(struct vg_slice a, struct vg_slice b, int *ret)
{
    size_t i = 0, quote = 0;
    while (i < a.n && i < b.n && a.p[i] == b.p[i]) {
        if (a.p[i] == '\\')
            return false;
        quote = a.p[i] == '"' ? i : quote;
        i++;
    }
    if (quote < 2 || a.p[quote - 1] != ':')
        return false;
    const char *x = memchr(a.p + i, '"', a.n - i), *y = memchr(b.p + i, '"', b.n - i);
    if (!x || !y || memchr(a.p + i, '\\', (size_t)(x - a.p) - i) ||
        memchr(b.p + i, '\\', (size_t)(y - b.p) - i))
        return false;
    *ret = vg_slice_cmp(vg_slice(a.p + i, (size_t)(x - a.p) - i),
                        vg_slice(b.p + i, (size_t)(y - b.p) - i));
    return true;
}

int vg_fields_order(struct vg_slice a, struct vg_slice b)
{
    static const char kinds[] = "fkvi";
    int c;
    if (a.n < 2 || b.n < 2)
        return vg_slice_cmp(a, b);
    if (a.p[0] != b.p[0]) {
        const char *x = strchr(kinds, a.p[0]), *y = strchr(kinds, b.p[0]);
        return x && y ? (x > y) - (x < y) : vg_slice_cmp(a, b);
    }
    if (a.p[0] == 'f' || vg_slice_eq(a, b))
        return vg_slice_cmp(a, b);
    return order_plain(a, b, &c) ? c : order_parsed(a, b);
}

/* ---- reading ---- */

struct reading {
    struct vg_arena *arena;
    struct vg_status *status;
};

static int by_name(const void *a, const void *b)
{
    return vg_slice_cmp(((const struct vg_element_key *)a)->name,
                        ((const struct vg_element_key *)b)->name);
}

static int read_keys(struct reading *r, const struct vg_json *v, struct vg_slice *ret)
{
    struct vg_element_key keys[VG_ELEMENT_KEYS_MAX];
    if (v->type != VG_JSON_OBJECT || v->n > VG_ELEMENT_KEYS_MAX)
        return vg_fail(r->status, VIGIL_E_INVALID, "a key of a list is no object of keys");
    for (uint32_t i = 0; i < v->n; i++)
        keys[i] = (struct vg_element_key){vg_json_key(&v->members[i]), &v->members[i].value};
    if (v->n)
        qsort(keys, v->n, sizeof *keys, by_name);
    return vg_element_keys(r->arena, keys, v->n, ret);
}

static int read_index(struct reading *r, struct vg_slice text, struct vg_slice *ret)
{
    struct vg_json number = {
        .type = VG_JSON_NUMBER, .flags = VG_JSON_INTEGER, .n = (uint32_t)text.n, .text = text.p};
    int64_t i = 0;
    size_t sign = text.n && text.p[0] == '-' ? 1 : 0;
    bool is_number = text.n > sign;
    for (size_t k = sign; k < text.n; k++)
        is_number = is_number && text.p[k] >= '0' && text.p[k] <= '9';
    if (!is_number || vg_json_to_int64(&number, &i) < 0)
        return vg_fail(r->status, VIGIL_E_INVALID, "strconv.Atoi: parsing \"%.*s\": invalid syntax",
                       VG_SLICE_ARG(text));
    return vg_arena_printf(r->arena, ret, "i:%lld", (long long)i);
}

/* 1: *ret is the element as it is printed; 0: it is of a kind that is not known. */
static int read_element(struct reading *r, struct vg_slice key, struct vg_slice *ret)
{
    struct vg_json *v = NULL;
    if (key.n < 2)
        return vg_fail(r->status, VIGIL_E_INVALID, "key must be 2 characters long:");
    if (key.p[1] != ':')
        return vg_fail(r->status, VIGIL_E_INVALID, "missing colon: %.*s", VG_SLICE_ARG(key));
    struct vg_slice text = vg_slice(key.p + 2, key.n - 2);
    *ret = key;
    if (key.p[0] == 'f')
        return 1;
    if (key.p[0] != 'k' && key.p[0] != 'v' && key.p[0] != 'i')
        return 0;
    int err = 0;
    if (key.p[0] != 'i')
        err = vg_json_parse(r->arena, text, NULL, &v, r->status);
    if (err < 0 && err != -ENOMEM)
        return VIGIL_E_INVALID;
    if (err == 0)
        err = key.p[0] == 'i'   ? read_index(r, text, ret)
              : key.p[0] == 'k' ? read_keys(r, v, ret)
                                : vg_element_value(r->arena, v, ret);
    return err < 0 ? err : 1;
}

static int by_order(const void *a, const void *b)
{
    return vg_fields_order(vg_json_key((const struct vg_json_member *)a),
                           vg_json_key((const struct vg_json_member *)b));
}

/* Sorted; of elements that are there twice the last stays. */
static uint32_t put_in_order(struct vg_json_member *v, uint32_t n)
{
    uint32_t kept = 0;
    bool is_sorted = true;
    for (uint32_t i = 1; i < n; i++)
        is_sorted = is_sorted && by_order(&v[i - 1], &v[i]) < 0;
    if (is_sorted)
        return n;
    qsort(v, n, sizeof *v, by_order);
    for (uint32_t i = 0; i < n; i++) {
        kept -= kept && by_order(&v[kept - 1], &v[i]) == 0;
        v[kept++] = v[i];
    }
    return kept;
}

static int read_entry(struct reading *r, const struct vg_json *given, bool is_root,
                      struct vg_json *ret)
{
    bool is_member = false;
    uint32_t n = 0;
    if (given->type == VG_JSON_NULL) {
        *ret = vg_json_object();
        return 0;
    }
    if (given->type != VG_JSON_OBJECT)
        return vg_fail(r->status, VIGIL_E_INVALID, "a set of fields is no object");
    struct vg_json_member *out =
        vg_arena_array(r->arena, struct vg_json_member, (size_t)given->n + 1);
    if (!out)
        return -ENOMEM;
    out++;
    VG_JSON_FOREACH_MEMBER (m, given) {
        struct vg_slice element = VG_SLICE_LIT("");
        if (m->key_n == 1 && m->key[0] == '.') {
            is_member = true;
            continue;
        }
        int err = read_element(r, vg_json_key(m), &element);
        if (err == 0)
            continue;
        if (err > 0)
            err = read_entry(r, &m->value, false, &out[n].value);
        if (err < 0)
            return err;
        out[n].key = element.p;
        out[n].key_n = (uint32_t)element.n;
        out[n++].key_begin = 0;
    }
    n = put_in_order(out, n);
    return vg_fields_entry(r->arena, is_member && !is_root, (struct vg_fields_span){out, n}, true,
                           ret);
}

int vg_fields_read(struct vg_arena *a, const struct vg_json *given, struct vg_json *ret,
                   struct vg_status *reterr_status)
{
    struct reading r = {.arena = a, .status = reterr_status};
    if (!given) {
        *ret = vg_json_object();
        return 0;
    }
    return read_entry(&r, given, true, ret);
}

/* ---- showing ---- */

static int show_value(struct vg_buf *out, const struct vg_json *v)
{
    if (v->type == VG_JSON_STRING)
        return vg_quote_append(out, vg_json_text(v));
    return vg_json_write(out, v, 0);
}

static int show_keys(struct vg_buf *out, const struct vg_json *v)
{
    int err = vg_buf_append_byte(out, '[');
    for (uint32_t i = 0; i < v->n && err == 0; i++) {
        const struct vg_json_member *m = &v->members[i];
        err = vg_buf_printf(out, "%s%.*s=", i ? "," : "", VG_SLICE_ARG(vg_json_key(m)));
        if (err == 0)
            err = show_value(out, &m->value);
    }
    return err < 0 ? err : vg_buf_append_byte(out, ']');
}

int vg_element_show(struct vg_buf *out, struct vg_slice element)
{
    struct vg_slice text = vg_slice(element.p + 2, element.n - 2);
    if (element.p[0] == 'f')
        return vg_buf_printf(out, ".%.*s", VG_SLICE_ARG(text));
    if (element.p[0] == 'i')
        return vg_buf_printf(out, "[%.*s]", VG_SLICE_ARG(text));
    VG_AUTO(arena) a;
    vg_arena_init(&a, 1024, 0);
    struct vg_json *v = NULL;
    int err = vg_json_parse(&a, text, NULL, &v, NULL);
    if (err == 0 && element.p[0] == 'k')
        return show_keys(out, v);
    if (err == 0)
        err = vg_buf_append(out, "[=", 2);
    if (err == 0)
        err = show_value(out, v);
    return err < 0 ? err : vg_buf_append_byte(out, ']');
}
