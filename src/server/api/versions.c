/* versions.c - see versions.h. */
#include "versions.h"

#include "server/kinds/convert.h"
#include "json/scan.h"
#include "json/write.h"

int vg_version_store(struct vg_arena *a, const struct vg_kind *kind, struct vg_json *root)
{
    struct vg_json made;
    if (!kind || !kind->stored)
        return 0;
    int err = vg_kind_to_stored(a, kind, root, &made);
    if (err == 0)
        *root = made;
    return err;
}

int vg_version_seal(const struct vg_kind *kind, struct vg_slice value, struct vg_obj_sealed *out)
{
    static const struct vg_obj_fields none = {.trigger = VG_OBJ_NO_TRIGGER};
    VG_AUTO(arena) arena = {0};
    VG_AUTO(buf) text = {0};
    struct vg_json *root, made;
    struct vg_status why;
    int err = vg_json_parse(&arena, value, NULL, &root, NULL);
    if (err == 0)
        err = vg_kind_from_stored(&arena, kind, root, &made);
    if (err == 0)
        err = vg_json_write(&text, &made, VG_JSON_ESCAPE_HTML);
    if (err == 0)
        err = vg_obj_seal_text(&none, vg_buf_slice(&text), &arena, out, &why);
    return err;
}

int vg_version_rec(const struct vg_kind *kind, const struct vg_rec *rec, struct vg_rec **ret)
{
    if (!kind->stored) {
        *ret = vg_rec_ref(rec);
        return 0;
    }
    VG_AUTO(obj_sealed) sealed;
    vg_obj_sealed_init(&sealed);
    struct vg_rec *made = NULL;
    int err = vg_version_seal(kind, vg_rec_value(rec), &sealed);
    if (err == 0)
        err = vg_rec_new(VG_REC_PUT, vg_rec_key(rec), vg_buf_slice(&sealed.header),
                         vg_buf_slice(&sealed.value), &made);
    if (err != 0)
        return err;
    made->rev = rec->rev;
    *ret = made;
    return 0;
}

static bool says(struct vg_slice value, const char *key, const char *want)
{
    struct vg_json_step path = vg_json_step_key(key);
    struct vg_slice v;
    return vg_json_find(value, &path, 1, &v) == 0 && v.n >= 2 &&
           vg_slice_eq(vg_slice(v.p + 1, v.n - 2), vg_slice_str(want));
}

const struct vg_kind *vg_version_other(struct vg_slice stored_value)
{
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    for (size_t i = 0; i < n; i++)
        if (kinds[i].stored && says(stored_value, "kind", kinds[i].stored->kind) &&
            says(stored_value, "apiVersion", kinds[i].stored->api_version))
            return &kinds[i];
    return NULL;
}
