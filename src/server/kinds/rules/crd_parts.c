/* crd_parts.c - what versions of a custom resource have beside a schema: subresources, columns,
 * selectable fields, a warning. */
#include "admission.h"
#include "cel.h"
#include "crd.h"
#include "go_struct.h"
#include "names.h"

#define WARNING_MAX 256u
#define SELECTABLE_MAX 8u
/* Paths are looked for among the properties as long as there may be so many of them. */
#define SELECTABLE_LOOKED_MAX 64u

/* Below `first`, or `second` (NULL: there is none). */
static void check_path(struct vg_check *c, const struct vg_at *at, const char *first,
                       const char *second, const char *where)
{
    struct vg_slice path = vg_at_text(at);
    if (path.p[0] != '.')
        vg_bad(c, at, "must be a simple json path starting with .");
    else if (!vg_slice_has_prefix(path, vg_slice_str(first)) &&
             !(second && vg_slice_has_prefix(path, vg_slice_str(second))))
        vg_bad(c, at, "should be a json path under %s", where);
}

void vg_check_crd_subresources(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at scale = vg_at(at, "scale"), spec = vg_at(&scale, "specReplicasPath");
    struct vg_at status = vg_at(&scale, "statusReplicasPath");
    struct vg_at selector = vg_at(&scale, "labelSelectorPath");
    if (!scale.v)
        return;
    if (vg_check_given(c, &spec))
        check_path(c, &spec, ".spec.", NULL, ".spec");
    if (vg_check_given(c, &status))
        check_path(c, &status, ".status.", NULL, ".status");
    if (vg_at_text(&selector).n)
        check_path(c, &selector, ".spec.", ".status.", "either .spec or .status");
}

void vg_check_crd_column(struct vg_check *c, const struct vg_at *at)
{
    static const char *const types[] = {"boolean", "date", "integer", "number", "string", NULL};
    static const char *const formats[] = {"byte",  "date",  "date-time", "double", "float",
                                          "int32", "int64", "password",  NULL};
    static const char one[] = "must be one of boolean,date,integer,number,string";
    struct vg_at name = vg_at(at, "name"), type = vg_at(at, "type"), format = vg_at(at, "format");
    struct vg_at path = vg_at_of(at, "JSONPath", vg_json_get_str(at->v, "jsonPath"));
    const char *const *it = types;
    (void)vg_check_given(c, &name);
    while (*it && !vg_at_is(&type, *it))
        it++;
    if (vg_at_text(&type).n == 0)
        vg_required(c, &type, "%s", one);
    else if (!*it)
        vg_bad(c, &type, "%s", one);
    for (it = formats; *it && !vg_at_is(&format, *it);)
        it++;
    if (vg_at_text(&format).n && !*it)
        vg_bad(c, &format, "must be one of byte,date,date-time,double,float,int32,int64,password");
    if (vg_check_given(c, &path) && vg_at_text(&path).p[0] != '.')
        vg_bad(c, &path, "must be a simple json path starting with .");
}

void vg_check_crd_selectable(struct vg_check *c, const struct vg_at *list,
                             const struct vg_json *schema)
{
    VG_AUTO(names) seen = {0};
    size_t n = 0;
    VG_CHECK_EACH (c, it, list) {
        struct vg_at path = vg_at(&it, "jsonPath");
        struct vg_slice text = vg_at_text(&path);
        const struct vg_json *field = NULL;
        if (!vg_check_given(c, &path))
            continue;
        if (it.index >= SELECTABLE_LOOKED_MAX) {
            n += vg_names_add(c, &seen, text, NULL);
            continue;
        }
        const char *why = vg_crd_field(schema, text, NULL, &field);
        if (why) {
            bool is_begin = text.p[0] != '.' && text.p[0] != '[';
            vg_bad(c, &path, "is an invalid path: %s%.*s", why, (int)(is_begin ? text.n : 0),
                   text.p);
            continue;
        }
        struct vg_at type = vg_at_root(vg_json_get_str(field, "type"));
        if (vg_slice_has_prefix(text, VG_SLICE_LIT(".metadata")) &&
            (text.n == 9 || text.p[9] == '.'))
            vg_bad(c, &path, "must not point to fields in metadata");
        if (!vg_at_is(&type, "string") && !vg_at_is(&type, "boolean") &&
            !vg_at_is(&type, "integer"))
            vg_bad(c, &path,
                   "must point to a field of type string, boolean or integer. Enum string fields "
                   "and strings with formats are allowed.");
        if (vg_names_add(c, &seen, text, NULL))
            n++;
        else
            vg_duplicate(c, &path);
    }
    if (n > SELECTABLE_MAX)
        vg_too_many(c, list, n, SELECTABLE_MAX);
}

void vg_check_crd_deprecation(struct vg_check *c, const struct vg_at *version)
{
    struct vg_at deprecated = vg_at(version, "deprecated");
    struct vg_at warning = vg_at(version, "deprecationWarning");
    struct vg_slice text = vg_at_text(&warning);
    if (!warning.v)
        return;
    if (!vg_at_is_true(&deprecated)) {
        vg_bad(c, &warning, "can only be set for deprecated versions");
        return;
    }
    if (text.n > WARNING_MAX)
        vg_bad(c, &warning, "must be <= 256 characters long");
    if (text.n == 0)
        vg_bad(c, &warning, "must not be an empty string");
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f) {
            vg_bad(c, &warning,
                   "must only contain printable UTF-8 characters; non-printable character found at "
                   "index %zu",
                   i);
            break;
        }
}

static struct vg_slice show_rule(struct vg_check *c, const struct vg_at *at)
{
    return vg_go_struct_of(c, "apiextensions.k8s.io", "ValidationRule", at->up->v);
}

void vg_check_crd_expressions(struct vg_check *c, const struct vg_at *rules)
{
    static const char *const variables[] = {"self", "oldSelf", NULL};
    static const struct vg_cel_use use = {variables, "bool",
                                          "cel expression must evaluate to a bool"};
    VG_CHECK_EACH (c, rule, rules) {
        struct vg_at text = vg_at(&rule, "rule");
        if (vg_trimmed(vg_at_text(&text)).n)
            vg_check_cel(c, &text, &use, show_rule);
    }
}
