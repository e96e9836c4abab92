/* fuzz_strategic_model.c - a list of items by key, a set of scalars and an object, patched as the
 * input's bytes say, beside a model that holds them as arrays of bits and values. Checked: what the
 * patch names comes out as asked, what it does not name stays as it was, and lists keep the two
 * orders that a merge promises: the patch's (or $setElementOrder's) and the document's. */
#include "base/buf.h"
#include "fuzz.h"
#include "strategic.h"

#define KEYS 8u
#define GONE (-1)

static const struct vg_merge_schema root;
static const struct vg_merge_field fields[] = {
    {"l", VG_MERGE_LIST, "k", &root},
    {"s", VG_MERGE_LIST, NULL, NULL},
    {"m", 0, NULL, &root},
    {0},
};
static const struct vg_merge_schema root = {fields};

/* Keys in an order, each once. */
struct row {
    unsigned key[KEYS];
    unsigned n, has; /* has: a bit each */
};

struct world {
    const uint8_t *at, *end;
    int value[KEYS], want[KEYS]; /* of items: before and after; GONE: no such item */
    int member[KEYS], want_member[KEYS];
    struct row live, named, deleted, order; /* of items */
    struct row set, added, dropped;         /* of scalars */
    bool has_order, replaces_list, replaces_map, retains;
    struct vg_buf doc, patch;
};

static unsigned next(struct world *w)
{
    return w->at < w->end ? *w->at++ : 0;
}

static bool add(struct row *r, unsigned key)
{
    if (r->has >> key & 1)
        return false;
    r->has |= 1u << key;
    r->key[r->n++] = key;
    return true;
}

static struct row read_row(struct world *w)
{
    struct row r = {.n = 0};
    for (unsigned n = next(w) % (KEYS + 1); n > 0; n--)
        add(&r, next(w) % KEYS);
    return r;
}

/* ---- the document ---- */

static void write_scalars(struct vg_buf *b, const char *name, const struct row *r)
{
    VG_MUST(vg_buf_printf(b, "\"%s\":[", name) == 0);
    for (unsigned i = 0; i < r->n; i++)
        VG_MUST(vg_buf_printf(b, "%s\"%u\"", i ? "," : "", r->key[i]) == 0);
    VG_MUST(vg_buf_printf(b, "]") == 0);
}

static void make_document(struct world *w)
{
    w->live = read_row(w);
    add(&w->live, 0); /* an order for no items at all is refused */
    VG_MUST(vg_buf_printf(&w->doc, "{\"l\":[") == 0);
    for (unsigned k = 0; k < KEYS; k++)
        w->value[k] = GONE;
    for (unsigned i = 0; i < w->live.n; i++) {
        unsigned k = w->live.key[i];
        w->value[k] = (int)next(w);
        VG_MUST(vg_buf_printf(&w->doc, "%s{\"k\":\"%u\",\"v\":%d}", i ? "," : "", k, w->value[k]) ==
                0);
    }
    VG_MUST(vg_buf_printf(&w->doc, "],") == 0);
    w->set = read_row(w);
    write_scalars(&w->doc, "s", &w->set);
    VG_MUST(vg_buf_printf(&w->doc, ",\"m\":{\"always\":0") == 0);
    for (unsigned k = 0; k < KEYS; k++) {
        w->member[k] = (int)(next(w) % 3) - 1;
        if (w->member[k] != GONE)
            VG_MUST(vg_buf_printf(&w->doc, ",\"%u\":%d", k, w->member[k]) == 0);
    }
    VG_MUST(vg_buf_printf(&w->doc, "}}") == 0);
}

/* ---- the patch, and what it should do ---- */

/* Items are named in the order of the list that orders them, which names others, too. */
static void patch_items(struct world *w)
{
    unsigned how = next(w);
    w->has_order = how & 1;
    w->replaces_list = (how & 6) == 6;
    w->order = read_row(w);
    for (unsigned k = 0; k < KEYS; k++)
        w->want[k] = w->replaces_list ? GONE : w->value[k];
    VG_MUST(vg_buf_printf(&w->patch, "{\"l\":[%s",
                          w->replaces_list ? "{\"$patch\":\"replace\"}" : "") == 0);
    const char *comma = w->replaces_list ? "," : ""; /* a directive last would need a place, too */
    for (unsigned i = 0; i < w->order.n; i++) {
        unsigned k = w->order.key[i], what = next(w);
        if (what % 4 == 0)
            continue; /* ordered only */
        if (what % 4 == 1 && !w->replaces_list) {
            add(&w->deleted, k);
            w->want[k] = GONE;
            VG_MUST(vg_buf_printf(&w->patch, "%s{\"$patch\":\"delete\",\"k\":\"%u\"}", comma, k) ==
                    0);
        } else {
            add(&w->named, k);
            w->want[k] = (int)what;
            VG_MUST(vg_buf_printf(&w->patch, "%s{\"k\":\"%u\",\"v\":%u}", comma, k, what) == 0);
        }
        comma = ",";
    }
    VG_MUST(vg_buf_printf(&w->patch, "]") == 0);
    if (!w->has_order)
        return;
    VG_MUST(vg_buf_printf(&w->patch, ",\"$setElementOrder/l\":[") == 0);
    for (unsigned i = 0; i < w->order.n; i++)
        VG_MUST(vg_buf_printf(&w->patch, "%s{\"k\":\"%u\"}", i ? "," : "", w->order.key[i]) == 0);
    VG_MUST(vg_buf_printf(&w->patch, "]") == 0);
}

static void patch_scalars(struct world *w)
{
    struct row dropped = read_row(w), added = read_row(w);
    for (unsigned i = 0; i < added.n; i++)
        if (!(dropped.has >> added.key[i] & 1)) /* both at once has no meaning of its own */
            add(&w->added, added.key[i]);
    w->dropped = dropped;
    VG_MUST(vg_buf_printf(&w->patch, ",") == 0);
    write_scalars(&w->patch, "s", &w->added);
    VG_MUST(vg_buf_printf(&w->patch, ",") == 0);
    write_scalars(&w->patch, "$deleteFromPrimitiveList/s", &w->dropped);
}

static void patch_members(struct world *w)
{
    unsigned how = next(w), retained = next(w);
    w->replaces_map = (how & 3) == 3;
    w->retains = !w->replaces_map && how & 4;
    VG_MUST(vg_buf_printf(&w->patch, ",\"m\":{\"%s\":%s", w->replaces_map ? "$patch" : "always",
                          w->replaces_map ? "\"replace\"" : "0") == 0);
    for (unsigned k = 0; k < KEYS; k++) {
        int v = (int)(next(w) % 4) - 2; /* -2: not named, GONE: null */
        bool is_set = v >= 0;
        bool stays = !w->replaces_map && (!w->retains || retained >> k & 1);
        retained |= (unsigned)is_set << k; /* what is set must be retained */
        w->want_member[k] = is_set ? v : v == GONE || !stays ? GONE : w->member[k];
        if (is_set)
            VG_MUST(vg_buf_printf(&w->patch, ",\"%u\":%d", k, v) == 0);
        else if (v == GONE && !w->replaces_map)
            VG_MUST(vg_buf_printf(&w->patch, ",\"%u\":null", k) == 0);
    }
    if (w->retains) {
        VG_MUST(vg_buf_printf(&w->patch, ",\"$retainKeys\":[\"always\"") == 0);
        for (unsigned k = 0; k < KEYS; k++)
            if (retained >> k & 1)
                VG_MUST(vg_buf_printf(&w->patch, ",\"%u\"", k) == 0);
        VG_MUST(vg_buf_printf(&w->patch, "]") == 0);
    }
    VG_MUST(vg_buf_printf(&w->patch, "}}") == 0);
}

/* ---- what came out ---- */

static unsigned key_of(const struct vg_json *v)
{
    struct vg_slice text = vg_json_text(v);
    VG_MUST(text.n == 1 && text.p[0] >= '0' && (unsigned)(text.p[0] - '0') < KEYS);
    return (unsigned)(text.p[0] - '0');
}

/* Those of `got` that `of` has, too, stand as in `of`. */
static void check_order(const struct row *got, const struct row *of, unsigned except)
{
    unsigned at = 0;
    for (unsigned i = 0; i < got->n; i++) {
        unsigned k = got->key[i];
        if (!(of->has >> k & 1) || except >> k & 1)
            continue;
        while (at < of->n && of->key[at] != k)
            at++;
        VG_MUST(at < of->n);
    }
}

static void check_items(struct world *w, const struct vg_json *doc)
{
    const struct vg_json *l = vg_json_get_str(doc, "l");
    struct row got = {.n = 0};
    VG_MUST(vg_json_is(l, VG_JSON_ARRAY) && l->n <= KEYS);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct vg_json *v = vg_json_get_str(&l->items[i], "v");
        unsigned k = key_of(vg_json_get_str(&l->items[i], "k"));
        int64_t value;
        VG_MUST(add(&got, k));
        VG_MUST(vg_json_to_int64(v, &value) == 0 && value == w->want[k]);
    }
    for (unsigned k = 0; k < KEYS; k++)
        VG_MUST((w->want[k] != GONE) == (got.has >> k & 1));
    const struct row *by = w->has_order ? &w->order : &w->named;
    check_order(&got, by, 0);
    check_order(&got, &w->live, by->has); /* the document's own among themselves */
}

static void check_scalars(struct world *w, const struct vg_json *doc)
{
    const struct vg_json *s = vg_json_get_str(doc, "s");
    struct row got = {.n = 0};
    VG_MUST(vg_json_is(s, VG_JSON_ARRAY) && s->n <= KEYS);
    for (uint32_t i = 0; i < s->n; i++)
        VG_MUST(add(&got, key_of(&s->items[i])));
    VG_MUST(got.has == ((w->set.has & ~w->dropped.has) | w->added.has));
    check_order(&got, &w->added, 0);
    check_order(&got, &w->set, w->added.has);
}

static void check_members(struct world *w, const struct vg_json *doc)
{
    const struct vg_json *m = vg_json_get_str(doc, "m");
    for (unsigned k = 0; k < KEYS; k++) {
        char name[2] = {(char)('0' + k), '\0'};
        const struct vg_json *v = vg_json_get_str(m, name);
        int64_t value;
        VG_MUST((v != NULL) == (w->want_member[k] != GONE));
        VG_MUST(!v || (vg_json_to_int64(v, &value) == 0 && value == w->want_member[k]));
    }
    VG_MUST((vg_json_get_str(m, "always") != NULL) == !w->replaces_map);
    VG_MUST(!vg_json_get_str(m, "$patch") && !vg_json_get_str(m, "$retainKeys"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.at = data, .end = data + size};
    VG_AUTO(arena) a = {0};
    struct vg_json *doc, *patch, merged;
    struct vg_status status = {0};
    make_document(&w);
    patch_items(&w);
    patch_scalars(&w);
    patch_members(&w);
    VG_MUST(vg_json_parse(&a, vg_buf_slice(&w.doc), NULL, &doc, NULL) == 0);
    VG_MUST(vg_json_parse(&a, vg_buf_slice(&w.patch), NULL, &patch, NULL) == 0);
    VG_MUST(vg_json_strategic_apply(&a, doc, patch, &root, &merged, &status) == 0);
    check_items(&w, &merged);
    check_scalars(&w, &merged);
    check_members(&w, &merged);
    vg_buf_done(&w.doc);
    vg_buf_done(&w.patch);
    return 0;
}
