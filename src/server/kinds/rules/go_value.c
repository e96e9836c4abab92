/* go_value.c - values in messages that print a struct of kube-apiserver's own: its fields by their
 * names in Go, none left out; see workload.h. */
#include "base/buf.h"
#include "workload.h"
#include "json/write.h"

static int append(struct vg_buf *b, const struct vg_json *v, const struct vg_go_field *fields);

static int append_list(struct vg_buf *b, const struct vg_json *v, const struct vg_go_field *fields)
{
    int r = vg_buf_append_byte(b, '[');
    for (uint32_t i = 0; i < v->n && r == 0; i++) {
        r = i ? vg_buf_append_byte(b, ',') : 0;
        if (r == 0)
            r = append(b, &v->items[i], fields);
    }
    return r < 0 ? r : vg_buf_append_byte(b, ']');
}

/* Bounded by the nesting of the tables. */
static int append(struct vg_buf *b, const struct vg_json *v, const struct vg_go_field *fields)
{
    if (!fields)
        return vg_json_write(b, v, VG_JSON_ESCAPE_HTML);
    if (v->type == VG_JSON_ARRAY)
        return append_list(b, v, fields);
    int r = vg_buf_append_byte(b, '{');
    for (const struct vg_go_field *f = fields; f->name && r == 0; f++) {
        const struct vg_json *m = vg_json_get_str(v, f->name);
        r = vg_buf_printf(b, "%s\"%s\":", f == fields ? "" : ",", f->go);
        if (r == 0 && (!m || m->type == VG_JSON_NULL))
            r = vg_buf_printf(b, "%s", f->zero);
        else if (r == 0)
            r = append(b, m, f->inner);
    }
    return r < 0 ? r : vg_buf_append_byte(b, '}');
}

struct vg_slice vg_go_value(struct vg_check *c, const struct vg_json *v,
                            const struct vg_go_field *fields)
{
    VG_AUTO(buf) b = {.max = VG_FIELD_VALUE_MAX};
    struct vg_slice ret = VG_SLICE_LIT("null");
    if (!v || v->type == VG_JSON_NULL || vg_field_errors_is_full(c->errors))
        return ret;
    int r = append(&b, v, fields);
    if (r == VIGIL_E_TOO_LARGE)
        return VG_FIELD_VALUE_LONG;
    if (r < 0 || vg_arena_keep(c->arena, vg_buf_slice(&b), &ret) < 0)
        c->errors->failed = true;
    return ret;
}
