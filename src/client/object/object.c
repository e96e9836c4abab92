/* object.c - references and what the index knows; see vigil/object.h. */
#include "object_int.h"

#include "base/alloc.h"
#include "json/scan.h"

const struct vigil_object *vigil_object_parse(struct vigil_text json, struct vigil_error *err)
{
    const struct vigil_object *o = NULL;
    int r = vg_object_make(vg_slice_of(json), NULL, &o);
    if (r == VIGIL_E_INVALID)
        vg_error_set(err, r, "the object has no metadata with a name");
    else if (r < 0)
        vg_error_set(err, r, "not an object: %s", vg_err_text(r));
    return o;
}

/* Counts are the one thing of an object that changes; a const pointer is a promise about the rest.
 */
static struct vigil_object *counted(const struct vigil_object *o)
{
    return (struct vigil_object *)(uintptr_t)o;
}

const struct vigil_object *vigil_object_ref(const struct vigil_object *o)
{
    if (o)
        atomic_fetch_add_explicit(&counted(o)->refs, 1, memory_order_relaxed);
    return o;
}

void vigil_object_unref(const struct vigil_object *o)
{
    if (!o || atomic_fetch_sub_explicit(&counted(o)->refs, 1, memory_order_release) != 1)
        return;
    /* An acquiring load where a fence would do as well: TSan does not understand fences. */
    (void)atomic_load_explicit(&counted(o)->refs, memory_order_acquire);
    vg_free(counted(o));
}

/* ---- texts ---- */

static struct vigil_text text_at(const struct vigil_object *o, uint32_t at, uint16_t n)
{
    return (struct vigil_text){vg_object_base(o) + at, n};
}

struct vigil_text vigil_object_json(const struct vigil_object *o)
{
    return (struct vigil_text){vg_object_base(o), o->json_n};
}

struct vigil_text vigil_object_kind(const struct vigil_object *o)
{
    return text_at(o, o->kind, o->kind_n);
}

struct vigil_text vigil_object_api_version(const struct vigil_object *o)
{
    return text_at(o, o->api_version, o->api_version_n);
}

struct vigil_text vigil_object_name(const struct vigil_object *o)
{
    struct vg_slice key = vg_object_key(o);
    size_t skip = o->ns_n ? o->ns_n + 1u : 0;
    return (struct vigil_text){key.p + skip, key.n - skip};
}

struct vigil_text vigil_object_namespace(const struct vigil_object *o)
{
    return vg_text_of(vg_object_namespace(o));
}

struct vigil_text vigil_object_uid(const struct vigil_object *o)
{
    return text_at(o, o->uid, o->uid_n);
}

struct vigil_text vigil_object_resource_version(const struct vigil_object *o)
{
    return text_at(o, o->version, o->version_n);
}

struct vigil_text vigil_object_key(const struct vigil_object *o)
{
    return vg_text_of(vg_object_key(o));
}

/* ---- labels, annotations, owners ---- */

struct vigil_text vigil_object_label(const struct vigil_object *o, const char *key)
{
    struct vg_labels labels = vg_object_labels(o);
    struct vg_slice value = {NULL, 0};
    vg_labels_find(&labels, vg_slice_str(key), &value);
    return vg_text_of(value);
}

struct vigil_text vigil_object_annotation(const struct vigil_object *o, const char *key)
{
    const struct vg_json_step path[] = {vg_json_step_key("metadata"),
                                        vg_json_step_key("annotations"), vg_json_step_key(key)};
    struct vg_slice value = {NULL, 0};
    struct vg_slice json = vg_slice_of(vigil_object_json(o));
    if (vg_json_find(json, path, VG_ARRAY_LEN(path), &value) < 0 || value.p[0] != '"')
        return (struct vigil_text){NULL, 0};
    return vigil_value_string((struct vigil_value){VIGIL_STRING, vg_text_of(value)});
}

bool vigil_object_controller(const struct vigil_object *o, struct vigil_text *ret_kind,
                             struct vigil_text *ret_name, struct vigil_text *ret_uid)
{
    struct vigil_value owners = vigil_get(o, "metadata.ownerReferences"), owner;
    struct vigil_iter at = {0};
    while (owners.type == VIGIL_ARRAY && vigil_value_next(owners, &at, NULL, &owner)) {
        if (!vigil_value_bool(vigil_value_get(owner, "controller"), false))
            continue;
        *ret_kind = vigil_value_string(vigil_value_get(owner, "kind"));
        *ret_name = vigil_value_string(vigil_value_get(owner, "name"));
        *ret_uid = vigil_value_string(vigil_value_get(owner, "uid"));
        return true;
    }
    return false;
}
