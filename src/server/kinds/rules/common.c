/* common.c - checks that many kinds share; see check.h. */
#include "check.h"
#include "json/equal.h"

/* All annotations of an object together. */
#define ANNOTATIONS_MAX ((size_t)256 << 10)

bool vg_check_reasons(struct vg_check *c, const struct vg_at *at, const struct vg_name_reasons *why)
{
    for (uint32_t i = 0; i < why->n; i++)
        vg_bad_text(c, at, "%s", why->v[i]);
    return why->n == 0;
}

bool vg_check_dns_label(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    return vg_validate_dns1123_label(vg_at_text(at), VG_NAME_CHARACTERS, &why) ||
           vg_check_reasons(c, at, &why);
}

bool vg_check_dns_subdomain(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    return vg_validate_dns1123_subdomain(vg_at_text(at), VG_NAME_CHARACTERS, &why) ||
           vg_check_reasons(c, at, &why);
}

bool vg_check_qualified(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    return vg_validate_label_key(vg_at_text(at), &why) || vg_check_reasons(c, at, &why);
}

bool vg_check_one_of(struct vg_check *c, const struct vg_at *at, const char *const *supported)
{
    if (vg_text_is_one_of(vg_at_text(at), supported))
        return true;
    vg_unsupported(c, at, supported);
    return false;
}

bool vg_check_not_negative(struct vg_check *c, const struct vg_at *at)
{
    if (vg_at_int(at) >= 0)
        return true;
    vg_bad_int(c, at, "must be greater than or equal to 0");
    return false;
}

bool vg_check_port(struct vg_check *c, const struct vg_at *at)
{
    int64_t port = vg_at_int(at);
    if (port >= 1 && port <= 65535)
        return true;
    vg_bad_int(c, at, "must be between 1 and 65535, inclusive");
    return false;
}

/* Keys and values are blamed on the map as a whole. */
static void blame_map(struct vg_check *c, const struct vg_at *map, struct vg_slice text,
                      const struct vg_name_reasons *why)
{
    for (uint32_t i = 0; i < why->n; i++)
        vg_bad_value(c, map, vg_json_quoted(c, text), "%s", why->v[i]);
}

void vg_check_labels(struct vg_check *c, const struct vg_at *at)
{
    if (!at->v)
        return;
    VG_JSON_FOREACH_MEMBER (m, at->v) {
        struct vg_name_reasons why = {0};
        if (vg_field_errors_is_full(c->errors))
            return;
        if (!vg_validate_label_key(vg_json_key(m), &why))
            blame_map(c, at, vg_json_key(m), &why);
        why.n = 0;
        if (!vg_validate_label_value(vg_json_text(&m->value), &why))
            blame_map(c, at, vg_json_text(&m->value), &why);
    }
}

/* Keys of annotations may have capitals; they are checked in lower case, and shown as they are. */
static void check_annotation_key(struct vg_check *c, const struct vg_at *at, struct vg_slice key)
{
    struct vg_name_reasons why = {0};
    char *low = key.n ? vg_arena_copy(c->arena, key.p, key.n) : NULL;
    for (size_t i = 0; low && i < key.n; i++)
        low[i] = (char)(low[i] >= 'A' && low[i] <= 'Z' ? low[i] + 32 : low[i]);
    if (!vg_validate_label_key(vg_slice(low, low ? key.n : 0), &why))
        blame_map(c, at, key, &why);
}

void vg_check_annotations(struct vg_check *c, const struct vg_at *at)
{
    size_t total = 0;
    if (!at->v)
        return;
    VG_JSON_FOREACH_MEMBER (m, at->v) {
        check_annotation_key(c, at, vg_json_key(m));
        total += m->key_n + vg_json_text(&m->value).n;
    }
    if (total > ANNOTATIONS_MAX)
        vg_too_long(c, at, ANNOTATIONS_MAX);
}

const struct vg_json *vg_check_find(struct vg_check *c, struct vg_json_lookup *map,
                                    struct vg_slice key, uint32_t hint)
{
    const struct vg_json_member *m = NULL;
    int r = vg_json_lookup_find(map, key, hint, &m);
    c->errors->failed |= r < 0;
    return r > 0 ? &m->value : NULL;
}

bool vg_check_same(struct vg_check *c, const struct vg_json *a, const struct vg_json *b)
{
    static const struct vg_json null;
    int r = vg_json_equal(a ? a : &null, b ? b : &null);
    c->errors->failed |= r < 0;
    return r != 0;
}

bool vg_check_immutable(struct vg_check *c, const struct vg_at *at, const struct vg_json *old)
{
    if (vg_check_same(c, at->v, old))
        return true;
    vg_bad(c, at, "field is immutable");
    return false;
}
