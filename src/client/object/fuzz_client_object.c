/* fuzz_client_object.c - any bytes as an object, as a list's item, as a watch frame.
 *   O1 every text of an object lies inside its block; labels are sound.
 *   O2 its JSON makes the same object again.
 *   O3 values lie inside the JSON, iteration ends, unescaping stays within what it says. */
#include "fuzz.h"
#include "object_int.h"

static bool same(struct vigil_text a, struct vigil_text b)
{
    return vg_slice_eq(vg_slice_of(a), vg_slice_of(b));
}

/* O3 */
static void check_inside(const struct vigil_object *o, struct vigil_value v)
{
    struct vigil_text json = vigil_object_json(o);
    if (v.type == VIGIL_NONE)
        return;
    VG_MUST(v.raw.p >= json.p && v.raw.p + v.raw.n <= json.p + json.n && v.raw.n > 0);
    char buf[8];
    long n = vigil_value_copy(v, buf, sizeof(buf));
    VG_MUST(v.type == VIGIL_STRING || n == -1);
    VG_MUST(n < (long)(3 * v.raw.n + 1));
    struct vigil_text s = vigil_value_string(v);
    VG_MUST(!s.p || (size_t)n <= 3 * s.n);
    (void)vigil_value_int(v, 0);
    (void)vigil_value_double(v, 0);
    (void)vigil_value_bool(v, false);
}

static void check_walk(const struct vigil_object *o, struct vigil_value v, unsigned depth)
{
    struct vigil_iter at = {0};
    struct vigil_value child;
    struct vigil_text key;
    size_t steps = 0;
    check_inside(o, v);
    while (depth < 4 && vigil_value_next(v, &at, &key, &child)) {
        check_walk(o, child, depth + 1);
        VG_MUST(++steps <= v.raw.n);
    }
}

/* O1, O2 */
static void check_object(const struct vigil_object *o)
{
    struct vg_labels labels = vg_object_labels(o);
    VG_MUST(vg_labels_is_sound(&labels, SIZE_MAX));
    VG_MUST(vigil_object_name(o).n > 0);
    const struct vigil_object *again = vigil_object_parse(vigil_object_json(o), NULL);
    VG_MUST(again);
    VG_MUST(same(vigil_object_key(o), vigil_object_key(again)));
    VG_MUST(same(vigil_object_kind(o), vigil_object_kind(again)));
    VG_MUST(same(vigil_object_uid(o), vigil_object_uid(again)));
    VG_MUST(same(vigil_object_resource_version(o), vigil_object_resource_version(again)));
    VG_MUST(labels.n == vg_object_labels(again).n);
    vigil_object_unref(again);
    for (uint32_t i = 0; i < labels.n; i++)
        VG_MUST(vg_labels_find(&labels, vg_labels_key(&labels, i), NULL));
    struct vigil_text a, b, c;
    (void)vigil_object_controller(o, &a, &b, &c);
    (void)vigil_object_annotation(o, "a");
    check_walk(o, vigil_get(o, ""), 0);
    check_inside(o, vigil_get(o, "spec.containers[0].image"));
    check_inside(o, vigil_get(o, "metadata.annotations[\"a.b/c\"]"));
}

static void try_make(struct vg_slice json, const struct vg_object_type *type)
{
    const struct vigil_object *o;
    if (vg_object_make(json, type, &o) == 0) {
        check_object(o);
        vigil_object_unref(o);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_slice text = vg_slice(data, size);
    struct vg_object_type type = {VG_SLICE_LIT("v1"), VG_SLICE_LIT("Pod")};
    struct vg_watch_frame frame;
    try_make(text, NULL);
    try_make(text, &type);
    if (vg_watch_frame_read(text, &frame) == 0)
        try_make(frame.object, NULL);
    /* A path of any bytes over a fixed object. */
    static const char json[] = "{\"metadata\":{\"name\":\"a\"},\"a\":[{\"b\":[1,2]}]}";
    const struct vigil_object *o = vigil_object_parse(vigil_text(json), NULL);
    char path[64];
    size_t n = VG_MIN(size, sizeof(path) - 1);
    if (o && n)
        memcpy(path, data, n);
    path[n] = '\0';
    if (o)
        check_inside(o, vigil_get(o, path));
    vigil_object_unref(o);
    return 0;
}
