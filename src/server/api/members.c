/* members.c - the members of an object beside its metadata, as far as the table of kinds knows
 * them: outermost names and types. What is not known is dropped and told, as the original does;
 * what is null is as good as not there. */
#include <ctype.h>
#include <stdio.h>

#include "gojson.h"
#include "write.h"

static const struct vg_kind_member *member_of(const struct vg_kind *kind, struct vg_slice name)
{
    for (size_t i = 0; i < kind->n_members; i++)
        if (vg_slice_eq(name, vg_slice_str(kind->members[i].name)))
            return &kind->members[i];
    return NULL;
}

/* The Go type of an object's member: the kind's own for spec and status, else by its name. */
static void go_type(const struct vg_kind *kind, const struct vg_kind_member *m, char *out, size_t n)
{
    bool is_own = strcmp(m->name, "spec") == 0 || strcmp(m->name, "status") == 0;
    const char *list = m->type == VG_MEMBER_OBJECTS ? "[]" : "";
    (void)snprintf(out, n, "%sv1.%s%c%s", list, is_own ? kind->kind : "",
                   toupper((unsigned char)m->name[0]), m->name + 1);
}

static int refuse(const struct vg_kind *kind, const struct vg_kind_member *m,
                  const struct vg_json *v, const char *type, struct vg_status *status)
{
    bool is_number = v->type == VG_JSON_NUMBER && m->type == VG_MEMBER_INTEGER;
    return vg_fail(status, VIGIL_E_INVALID,
                   "json: cannot unmarshal %s%s%.*s into Go struct field %s.%s of type %s",
                   vg_gojson_type(v), is_number ? " " : "",
                   VG_SLICE_ARG(is_number ? vg_json_text(v) : VG_SLICE_LIT("")), kind->kind,
                   m->name, type);
}

/* Items of a list, values of a map. */
static int check_texts(const struct vg_kind *kind, const struct vg_kind_member *m,
                       const struct vg_json *v, struct vg_status *status)
{
    VG_JSON_FOREACH_ITEM (it, v)
        if (it->type != VG_JSON_STRING && it->type != VG_JSON_NULL)
            return refuse(kind, m, it, "string", status);
    VG_JSON_FOREACH_MEMBER (e, v)
        if (e->value.type != VG_JSON_STRING && e->value.type != VG_JSON_NULL)
            return refuse(kind, m, &e->value, "string", status);
    return 0;
}

static int check(const struct vg_kind *kind, const struct vg_kind_member *m,
                 const struct vg_json *v, struct vg_status *status)
{
    int64_t i;
    char type[96];
    switch (m->type) {
    case VG_MEMBER_STRING:
        return v->type == VG_JSON_STRING ? 0 : refuse(kind, m, v, "string", status);
    case VG_MEMBER_BOOLEAN:
        return v->type == VG_JSON_BOOL ? 0 : refuse(kind, m, v, "bool", status);
    case VG_MEMBER_INTEGER:
        return vg_json_to_int64(v, &i) == 0 ? 0 : refuse(kind, m, v, "int64", status);
    case VG_MEMBER_STRINGS:
        return v->type == VG_JSON_ARRAY ? check_texts(kind, m, v, status)
                                        : refuse(kind, m, v, "[]string", status);
    case VG_MEMBER_STRING_MAP:
        return v->type == VG_JSON_OBJECT ? check_texts(kind, m, v, status)
                                         : refuse(kind, m, v, "map[string]string", status);
    case VG_MEMBER_TIME:
        return v->type == VG_JSON_STRING ? vg_time_parse(vg_json_text(v), &i, status)
                                         : refuse(kind, m, v, "string", status);
    case VG_MEMBER_OBJECT:
    case VG_MEMBER_OBJECTS:
        break;
    }
    if (v->type == (m->type == VG_MEMBER_OBJECT ? VG_JSON_OBJECT : VG_JSON_ARRAY))
        return 0;
    go_type(kind, m, type, sizeof type);
    return refuse(kind, m, v, type, status);
}

static bool is_frame(struct vg_slice name)
{
    return vg_slice_eq(name, VG_SLICE_LIT("kind")) ||
           vg_slice_eq(name, VG_SLICE_LIT("apiVersion")) ||
           vg_slice_eq(name, VG_SLICE_LIT("metadata"));
}

int vg_members_read(struct vg_arena *a, struct vg_json *root, const struct vg_kind *kind,
                    struct vg_json *unknown, struct vg_status *reterr_status)
{
    uint32_t n = 0;
    int err = 0;
    for (uint32_t i = 0; i < root->n && err == 0; i++) {
        struct vg_json_member *m = &root->members[i];
        const struct vg_kind_member *known = member_of(kind, vg_json_key(m));
        bool is_kept = is_frame(vg_json_key(m));
        if (!is_kept && !known && unknown && unknown->n < VG_UNKNOWN_TOLD_MAX)
            err = vg_json_array_push(a, unknown, vg_json_string_ref(vg_json_key(m)));
        else if (known && m->value.type != VG_JSON_NULL) {
            err = check(kind, known, &m->value, reterr_status);
            is_kept = true;
        }
        if (is_kept)
            root->members[n++] = *m;
    }
    if (err == 0)
        root->n = n;
    return err;
}
