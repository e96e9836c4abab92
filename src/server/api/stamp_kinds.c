/* stamp_kinds.c - what the server sets in kinds of their own: the data of secrets, the label and
 * the finalizers of namespaces. As in stamp.c, only top copies are changed. */
#include <errno.h>

#include "base/base64.h"
#include "stamp.h"
#include "json/lookup.h"

/* ---- secrets ---- */

static int add_base64(struct vg_arena *a, struct vg_json *data, struct vg_slice key,
                      struct vg_slice text)
{
    size_t n = vg_base64_size(text.n);
    char *out = vg_arena_alloc(a, n ? n : 1, 1);
    if (!out)
        return -ENOMEM;
    vg_base64_encode(text, out);
    return vg_json_object_add(a, data, key, vg_json_string_ref(vg_slice(out, n)));
}

/* The members of data that stringData does not have. */
static int keep_others(struct vg_arena *a, const struct vg_json *given, const struct vg_json *texts,
                       struct vg_json *data)
{
    struct vg_json_lookup lookup;
    vg_json_lookup_init(&lookup, texts);
    int err = 0;
    for (uint32_t i = 0; i < given->n && err >= 0; i++) {
        const struct vg_json_member *m = &given->members[i], *ignored;
        err = vg_json_lookup_find(&lookup, vg_json_key(m), i, &ignored);
        if (err == 0)
            err = vg_json_object_add(a, data, vg_json_key(m), m->value);
    }
    vg_json_lookup_done(&lookup);
    return err < 0 ? err : 0;
}

int vg_stamp_string_data(struct vg_arena *a, struct vg_json *root)
{
    const struct vg_json *texts = vg_json_get_str(root, "stringData");
    const struct vg_json *given = vg_json_get_str(root, "data");
    struct vg_json data = vg_json_object();
    if (!vg_json_is(texts, VG_JSON_OBJECT))
        return 0;
    int err = vg_json_is(given, VG_JSON_OBJECT) ? keep_others(a, given, texts, &data) : 0;
    VG_JSON_FOREACH_MEMBER (m, texts)
        if (err == 0)
            err = add_base64(a, &data, vg_json_key(m), vg_json_text(&m->value));
    if (err == 0 && data.n)
        err = vg_json_object_set(a, root, VG_SLICE_LIT("data"), data);
    (void)vg_json_object_remove(root, VG_SLICE_LIT("stringData"));
    return err;
}

/* ---- namespaces ---- */

#define NAME_LABEL VG_SLICE_LIT("kubernetes.io/metadata.name")

/* The label that says the name, at its place among the sorted ones. */
int vg_stamp_name_label(struct vg_arena *a, struct vg_meta *m)
{
    struct vg_json *out = vg_arena_new(a, struct vg_json);
    if (!out)
        return -ENOMEM;
    *out = vg_json_object();
    bool is_there = false;
    int err = 0;
    for (uint32_t i = 0; m->labels && i < m->labels->n && err == 0; i++) {
        const struct vg_json_member *l = &m->labels->members[i];
        int c = vg_slice_cmp(vg_json_key(l), NAME_LABEL);
        if (c > 0 && !is_there)
            err = vg_json_object_add(a, out, NAME_LABEL, vg_json_string_ref(m->name));
        is_there = is_there || c >= 0;
        if (err == 0)
            err = vg_json_object_add(a, out, vg_json_key(l),
                                     c == 0 ? vg_json_string_ref(m->name) : l->value);
    }
    if (err == 0 && !is_there)
        err = vg_json_object_add(a, out, NAME_LABEL, vg_json_string_ref(m->name));
    m->labels = out;
    return err;
}

static int with_kubernetes(struct vg_arena *a, const struct vg_json *given, struct vg_json *ret)
{
    static const struct vg_slice own = {"kubernetes", 10};
    struct vg_json list = vg_json_array();
    bool is_there = false;
    int err = 0;
    for (uint32_t i = 0; vg_json_is(given, VG_JSON_ARRAY) && i < given->n && err == 0; i++) {
        is_there = is_there || vg_slice_eq(vg_json_text(&given->items[i]), own);
        err = vg_json_array_push(a, &list, given->items[i]);
    }
    if (err == 0 && !is_there)
        err = vg_json_array_push(a, &list, vg_json_string_ref(own));
    *ret = list;
    return err;
}

int vg_stamp_namespace(struct vg_arena *a, struct vg_json *root, struct vg_meta *m,
                       const struct vg_json *finalizers)
{
    struct vg_json spec = vg_json_object(), list;
    const struct vg_json *given = vg_json_get_str(root, "spec");
    int err = m->name.n ? vg_stamp_name_label(a, m) : 0;
    if (err == 0 && vg_json_is(given, VG_JSON_OBJECT))
        err = vg_json_top_copy(a, given, &spec);
    if (err == 0 && finalizers)
        list = *finalizers;
    else if (err == 0)
        err = with_kubernetes(a, vg_json_get_str(given, "finalizers"), &list);
    if (err == 0 && list.n)
        err = vg_json_object_set(a, &spec, VG_SLICE_LIT("finalizers"), list);
    else if (err == 0)
        (void)vg_json_object_remove(&spec, VG_SLICE_LIT("finalizers"));
    return err < 0 ? err : vg_json_object_set(a, root, VG_SLICE_LIT("spec"), spec);
}
