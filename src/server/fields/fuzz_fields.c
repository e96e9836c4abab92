/* fuzz_fields.c - FieldsV1 of any shape is refused, or read into a set that keeps its invariants;
 * and the operations on two such sets keep the laws of sets. Input: two texts, a zero byte between.
 */
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "set.h"
#include "json/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* F1 to F3. */
static void check_set(const struct vg_json *v, bool is_root)
{
    struct vg_fields_span s = vg_fields_children(v);
    check(v->type == VG_JSON_OBJECT && (!is_root || s.n == v->n));
    check(v->n != 1 || s.n == 1);
    for (uint32_t i = 0; i < s.n; i++) {
        check(i == 0 || vg_fields_order(vg_json_key(&s.v[i - 1]), vg_json_key(&s.v[i])) < 0);
        check_set(&s.v[i].value, false);
    }
}

static void combine(struct vg_arena *a, enum vg_fields_op op, const struct vg_json *x,
                    const struct vg_json *y, struct vg_json *ret)
{
    check(vg_fields_combine(a, op, x, y, ret) == 0);
    check_set(ret, true);
}

static void check_same(const struct vg_json *x, const struct vg_json *y)
{
    VG_AUTO(buf) p = {0};
    VG_AUTO(buf) q = {0};
    check(vg_json_write(&p, x, 0) == 0 && vg_json_write(&q, y, 0) == 0);
    check(vg_slice_eq(vg_buf_slice(&p), vg_buf_slice(&q)));
}

static bool read(struct vg_arena *a, struct vg_slice text, struct vg_json *ret)
{
    struct vg_json *root, again;
    struct vg_status why;
    if (vg_json_parse(a, text, NULL, &root, NULL) < 0 || vg_fields_read(a, root, ret, &why) < 0)
        return false;
    check_set(ret, true);
    check(vg_fields_read(a, ret, &again, &why) == 0);
    check_same(ret, &again);
    return true;
}

static void show_all(const struct vg_json *v)
{
    struct vg_fields_span s = vg_fields_children(v);
    for (uint32_t i = 0; i < s.n; i++) {
        VG_AUTO(buf) out = {0};
        check(vg_element_show(&out, vg_json_key(&s.v[i])) == 0);
        show_all(&s.v[i].value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    VG_AUTO(arena) a;
    struct vg_json x, y, both, left, shared, all;
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t n = zero ? (size_t)(zero - data) : size;
    vg_arena_init(&a, 0, 0);
    if (!read(&a, vg_slice(data, n), &x))
        return 0;
    show_all(&x);
    if (!zero || !read(&a, vg_slice(zero + 1, size - n - 1), &y))
        return 0;
    combine(&a, VG_FIELDS_UNION, &x, &y, &both);
    combine(&a, VG_FIELDS_UNION, &y, &x, &all);
    check_same(&both, &all);
    combine(&a, VG_FIELDS_DIFFERENCE, &x, &y, &left);
    combine(&a, VG_FIELDS_INTERSECTION, &x, &y, &shared);
    combine(&a, VG_FIELDS_UNION, &left, &shared, &all);
    check_same(&all, &x);
    combine(&a, VG_FIELDS_INTERSECTION, &left, &y, &all);
    check(vg_fields_is_empty(&all));
    combine(&a, VG_FIELDS_DIFFERENCE_DEEP, &x, &y, &left);
    combine(&a, VG_FIELDS_DIFFERENCE, &left, &x, &all);
    check(vg_fields_is_empty(&all));
    return 0;
}
