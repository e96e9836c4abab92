/* convert.c - conversion of a kind's objects, and of events: core/v1 is stored, events.k8s.io/v1
 * has the same fields under other names. */
#include "convert.h"

#include "server/schema/decode.h"

static int set_text(struct vg_arena *a, struct vg_json *v, const char *key, const char *text)
{
    return vg_json_object_set(a, v, vg_slice_str(key), vg_json_string_ref(vg_slice_str(text)));
}

static int convert(struct vg_arena *a, vg_convert_fn *fn, const struct vg_kind *to,
                   const struct vg_json *root, struct vg_json *ret)
{
    struct vg_json made;
    int err = fn(a, root, &made);
    if (err == 0)
        err = set_text(a, &made, "kind", to->kind);
    if (err == 0)
        err = set_text(a, &made, "apiVersion", to->api_version);
    return err != 0 ? err : vg_schema_arrange(a, to->type, &made, ret);
}

int vg_kind_from_stored(struct vg_arena *a, const struct vg_kind *kind, const struct vg_json *root,
                        struct vg_json *ret)
{
    return convert(a, kind->conversion->from_stored, kind, root, ret);
}

int vg_kind_to_stored(struct vg_arena *a, const struct vg_kind *kind, const struct vg_json *root,
                      struct vg_json *ret)
{
    return convert(a, kind->conversion->to_stored, kind->stored, root, ret);
}

/* ---- events ---- */

static const struct {
    const char *core, *events;
} names[] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
};

static struct vg_slice other_name(struct vg_slice key, bool is_core)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        if (vg_slice_eq(key, vg_slice_str(is_core ? names[i].core : names[i].events)))
            return vg_slice_str(is_core ? names[i].events : names[i].core);
    return key;
}

static int rename_all(struct vg_arena *a, const struct vg_json *from, bool is_core,
                      struct vg_json *ret)
{
    int err = 0;
    *ret = vg_json_object();
    VG_JSON_FOREACH_MEMBER (m, from) {
        if (err == 0)
            err = vg_json_object_add(a, ret, other_name(vg_json_key(m), is_core), m->value);
    }
    return err;
}

static int event_to_stored(struct vg_arena *a, const struct vg_json *from, struct vg_json *ret)
{
    return rename_all(a, from, false, ret);
}

static int event_from_stored(struct vg_arena *a, const struct vg_json *from, struct vg_json *ret)
{
    return rename_all(a, from, true, ret);
}

const struct vg_conversion vg_conversion_event = {event_to_stored, event_from_stored};
