/* fuzz_json.c - any bytes into the parser, and what it accepts through everything else.
 *   F1 a tree written and parsed again is the same tree, compact and indented.
 *   F2 offsets nest and rise (J1), and a scalar's bytes parse to the same scalar.
 *   F3 the scanner finds, for paths taken from the tree, exactly the bytes the tree says.
 *   F4 replacing bad UTF-8 accepts at least what is accepted without.
 *   F5 a clone writes the same text. */
#include "fuzz.h"
#include "json/json.h"
#include "json/scan.h"
#include "json/write.h"

static void check_same_node(const struct vg_json_walk *x, const struct vg_json_walk *y)
{
    VG_MUST(x->node->type == y->node->type && x->leaving == y->leaving && x->depth == y->depth);
    VG_MUST(x->node->n == y->node->n);
    VG_MUST(vg_slice_eq(vg_json_text(x->node), vg_json_text(y->node)));
    VG_MUST(vg_json_is_true(x->node) == vg_json_is_true(y->node));
    VG_MUST(!x->member == !y->member);
    VG_MUST(!x->member || vg_slice_eq(vg_json_key(x->member), vg_json_key(y->member)));
}

static void check_same(const struct vg_json *a, const struct vg_json *b)
{
    VG_AUTO(json_walk) x;
    VG_AUTO(json_walk) y;
    vg_json_walk_init(&x, a);
    vg_json_walk_init(&y, b);
    int r;
    while ((r = vg_json_walk_next(&x)) > 0) {
        VG_MUST(vg_json_walk_next(&y) == 1);
        check_same_node(&x, &y);
    }
    VG_MUST(r == 0 && vg_json_walk_next(&y) == 0);
}

/* F1 */
static void check_round_trip(const struct vg_json *root, unsigned flags)
{
    VG_AUTO(arena) a = {0};
    VG_AUTO(buf) once = {0};
    VG_AUTO(buf) twice = {0};
    struct vg_json *again = NULL;
    VG_MUST(vg_json_write(&once, root, flags) == 0);
    struct vg_json_opts strict = {.on_dup = VG_JSON_DUP_FAIL};
    VG_MUST(vg_json_parse(&a, vg_buf_slice(&once), &strict, &again, NULL) == 0);
    check_same(root, again);
    VG_MUST(vg_json_write(&twice, again, flags) == 0);
    VG_MUST(vg_slice_eq(vg_buf_slice(&once), vg_buf_slice(&twice)));
}

/* F2, for one container and its children. */
static void check_children(const struct vg_json *v)
{
    uint32_t last = v->begin;
    VG_JSON_FOREACH_ITEM (it, v) {
        VG_MUST(it->begin > v->begin && it->begin >= last && it->begin < it->end &&
                it->end < v->end);
        last = it->end;
    }
    VG_JSON_FOREACH_MEMBER (m, v) {
        VG_MUST(m->key_begin > v->begin && m->key_begin >= last && m->value.begin > m->key_begin);
        VG_MUST(m->value.begin < m->value.end && m->value.end < v->end);
        last = m->value.end;
    }
}

static void check_offsets(const struct vg_json *root, struct vg_slice text)
{
    VG_AUTO(json_walk) w;
    vg_json_walk_init(&w, root);
    while (vg_json_walk_next(&w) > 0) {
        const struct vg_json *v = w.node;
        VG_MUST(v->begin < v->end && v->end <= text.n);
        check_children(v);
        if (v->type == VG_JSON_STRING)
            VG_MUST(text.p[v->begin] == '"' && text.p[v->end - 1] == '"');
        if (v->type == VG_JSON_NUMBER)
            VG_MUST(vg_slice_eq(vg_json_text(v), vg_slice(text.p + v->begin, v->end - v->begin)));
    }
}

/* F3: go down from the root along children picked by `pick`, asking the scanner at each step. */
static void check_scan(const struct vg_json *v, struct vg_slice text, uint32_t pick)
{
    struct vg_json_step path[64];
    for (size_t n = 0;; n++) {
        struct vg_slice found;
        VG_MUST(vg_json_find(text, path, n, &found) == 0);
        VG_MUST(found.p == text.p + v->begin && found.n == v->end - v->begin);
        bool container = v->type == VG_JSON_OBJECT || v->type == VG_JSON_ARRAY;
        if (!container || v->n == 0 || n == VG_ARRAY_LEN(path))
            return;
        pick = pick * 1664525u + 1013904223u;
        uint32_t i = (pick >> 8) % v->n;
        path[n] = (struct vg_json_step){.index = i};
        if (v->type == VG_JSON_OBJECT)
            path[n].key = vg_json_key(&v->members[i]);
        v = v->type == VG_JSON_OBJECT ? &v->members[i].value : &v->items[i];
    }
}

/* F5 */
static void check_clone(const struct vg_json *root)
{
    VG_AUTO(arena) a = {0};
    struct vg_json copy;
    VG_MUST(vg_json_clone(&a, root, &copy) == 0);
    check_same(root, &copy);
}

static void check_numbers(const struct vg_json *v)
{
    int64_t i;
    uint64_t u;
    double d;
    if (v->type != VG_JSON_NUMBER)
        return;
    if (vg_json_to_int64(v, &i) == 0)
        VG_MUST(vg_json_to_double(v, &d) == 0);
    if (vg_json_to_uint64(v, &u) == 0)
        VG_MUST(vg_json_to_double(v, &d) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    VG_AUTO(arena) a = {0};
    struct vg_json *root = NULL, *loose = NULL;
    struct vg_status st = {0};
    struct vg_json_dups dups = {0};
    struct vg_slice text = vg_slice(data, size);
    struct vg_json_opts report = {.on_dup = VG_JSON_DUP_REPORT, .ret_dups = &dups};
    struct vg_json_opts replace = {.replace_bad_utf8 = true};
    int r = vg_json_parse(&a, text, &report, &root, &st);
    int r_loose = vg_json_parse(&a, text, &replace, &loose, NULL);
    VG_MUST(r_loose == (r == VIGIL_E_JSON_UTF8 ? r_loose : r)); /* F4 */
    if (r_loose == 0)
        check_round_trip(loose, 0);
    if (r < 0) {
        VG_MUST(st.err == r && st.message[0]);
        return 0;
    }
    check_round_trip(root, 0);
    check_round_trip(root, VG_JSON_INDENT | VG_JSON_ESCAPE_HTML);
    check_offsets(root, text);
    check_clone(root);
    check_numbers(root);
    for (uint32_t pick = 0; dups.n == 0 && pick < 8; pick++)
        check_scan(root, text, pick);
    return 0;
}
