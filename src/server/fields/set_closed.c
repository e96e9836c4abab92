/* set_closed.c - sets that are still text; see set.h.
 * Most updates change what their manager owns already, and nothing that another does: that is seen
 * by a look at a few places of the text, while opening it takes as long as parsing the object. */
#include <errno.h>

#include "set.h"
#include "json/scan.h"

/* With more entries at one level, opening is cheaper. */
#define LOOKED_FOR_MAX 16u

/* An entry that is empty, or begins with ".". */
static bool is_member(struct vg_json_iter entry)
{
    struct vg_json_raw raw;
    int r = vg_json_iter_key(&entry, &raw);
    return r == 0 || (r > 0 && vg_slice_eq(raw.key, VG_SLICE_LIT(".")));
}

/* The one of these entries that the key names, or NULL. Both are sorted: those before *next are
 * passed, but for keys with escapes, whose order is not looked at. */
static const struct vg_json *find(struct vg_fields_span entries, const struct vg_json_raw *raw,
                                  uint32_t *next)
{
    if (raw->key_is_escaped) {
        for (uint32_t i = 0; i < entries.n; i++)
            if (vg_json_raw_key_eq(raw->key, vg_json_key(&entries.v[i])))
                return &entries.v[i].value;
        return NULL;
    }
    int c = -1;
    while (*next < entries.n && (c = vg_fields_order(vg_json_key(&entries.v[*next]), raw->key)) < 0)
        ++*next;
    return c == 0 ? &entries.v[(*next)++].value : NULL;
}

static bool stays(enum vg_fields_op op, struct vg_json_iter x, const struct vg_json *y);

static bool stays_below(enum vg_fields_op op, const struct vg_json_iter *at,
                        const struct vg_json *y)
{
    struct vg_json_iter inside;
    if (!vg_json_iter_down(at, &inside))
        return false;
    if (vg_fields_is_member(y) && is_member(inside) != (op == VG_FIELDS_UNION))
        return false;
    return stays(op, inside, y);
}

static bool stays(enum vg_fields_op op, struct vg_json_iter x, const struct vg_json *y)
{
    struct vg_fields_span entries = vg_fields_children(y);
    uint32_t found = 0, next = 0;
    if (entries.n > LOOKED_FOR_MAX)
        return false;
    while (next < entries.n && found < entries.n) {
        struct vg_json_raw raw;
        struct vg_slice value;
        int r = vg_json_iter_key(&x, &raw);
        if (r < 0)
            return false;
        if (r == 0)
            break;
        bool is_self = vg_slice_eq(raw.key, VG_SLICE_LIT("."));
        const struct vg_json *same = is_self ? NULL : find(entries, &raw, &next);
        if (same && !stays_below(op, &x, same))
            return false;
        found += same != NULL;
        if (found < entries.n && next < entries.n && vg_json_iter_value(&x, &value) < 0)
            return false;
    }
    return found == entries.n || op == VG_FIELDS_DIFFERENCE;
}

bool vg_fields_stays_closed(enum vg_fields_op op, const struct vg_json *x, const struct vg_json *y)
{
    struct vg_json_iter it;
    bool is_known = op == VG_FIELDS_UNION || op == VG_FIELDS_DIFFERENCE;
    return is_known && !vg_fields_is_closed(y) && vg_json_iter_init(&it, vg_json_text(x)) == 0 &&
           it.is_object && stays(op, it, y);
}

int vg_fields_open(struct vg_arena *a, const struct vg_json *set, struct vg_json *ret)
{
    if (!vg_fields_is_closed(set)) {
        *ret = *set;
        return 0;
    }
    struct vg_json_opts opts = {
        .on_dup = VG_JSON_DUP_NONE, .max_depth = VG_JSON_DEPTH_MAX, .from = set->begin};
    struct vg_json *root = NULL;
    int err = vg_json_parse(a, vg_slice(set->text - set->begin, set->end), &opts, &root, NULL);
    if (err == 0)
        *ret = *root;
    return err == 0 || err == -ENOMEM ? err : VIGIL_E_STORE_DAMAGED;
}
