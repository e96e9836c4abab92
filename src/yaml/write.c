/* write.c - JSON trees as YAML: the block structure.
 * The layout is that of go-yaml v2 as sigs.k8s.io/yaml uses it: sequences in mappings are not
 * indented, empty containers are {} and [], keys are sorted. vg_yaml_out follows that emitter's
 * three facts (column, blank before, only indentation so far), from which every blank and line
 * break follows. Recursion is bounded by VG_YAML_DEPTH_MAX. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "yaml_int.h"

#define INDENT 2

static void write_value(struct vg_yaml_out *o, const struct vg_json *v, bool in_mapping,
                        uint32_t depth);

/* ---- the pen ---- */

void vg_yaml_put(struct vg_yaml_out *o, const char *p, size_t n, uint32_t columns)
{
    if (o->err == 0)
        o->err = vg_buf_append(o->buf, p, n);
    o->column += columns;
}

void vg_yaml_put_break(struct vg_yaml_out *o)
{
    vg_yaml_put(o, "\n", 1, 0);
    o->column = 0;
}

void vg_yaml_put_indent(struct vg_yaml_out *o)
{
    uint32_t indent = o->indent < 0 ? 0 : (uint32_t)o->indent;
    if (!o->is_indention || o->column > indent || (o->column == indent && !o->is_whitespace))
        vg_yaml_put_break(o);
    while (o->column < indent) {
        static const char blanks[] = "                                ";
        uint32_t n = VG_MIN(indent - o->column, (uint32_t)sizeof blanks - 1);
        vg_yaml_put(o, blanks, n, n);
    }
    o->is_whitespace = true;
    o->is_indention = true;
}

void vg_yaml_put_indicator(struct vg_yaml_out *o, const char *text, bool is_whitespace,
                           bool is_indention)
{
    vg_yaml_put(o, text, strlen(text), (uint32_t)strlen(text));
    o->is_whitespace = is_whitespace;
    o->is_indention = o->is_indention && is_indention;
}

static void put_blank_if_due(struct vg_yaml_out *o)
{
    if (!o->is_whitespace)
        vg_yaml_put(o, " ", 1, 1);
}

/* ---- scalars ---- */

static void write_number(struct vg_yaml_out *o, const struct vg_json *v)
{
    char text[VG_YAML_NUMBER_MAX];
    struct vg_yaml_value n;
    int r = vg_yaml_resolve(vg_json_text(v), false, &n);
    if (r < 0) {
        o->err = o->err ? o->err : r;
        return;
    }
    size_t len;
    if (n.type == VG_YAML_INT)
        len = (size_t)snprintf(text, sizeof text, "%s%" PRIu64, n.is_negative ? "-" : "",
                               n.magnitude);
    else if (n.type == VG_YAML_FLOAT)
        len = vg_yaml_format_double(n.number, text);
    else { /* too large for a double: the text is all there is */
        vg_yaml_put_plain(o, vg_json_text(v));
        return;
    }
    vg_yaml_put_plain(o, vg_slice(text, len));
}

/* ---- containers ---- */

static int compare_members(const void *a, const void *b)
{
    const struct vg_json_member *const *x = a, *const *y = b;
    return vg_yaml_key_cmp(vg_json_key(*x), vg_json_key(*y));
}

/* obj's members in order; NULL and an error in o when there is no memory. */
static const struct vg_json_member **sort_members(struct vg_yaml_out *o, const struct vg_json *obj)
{
    const struct vg_json_member **sorted = vg_reallocarray(NULL, obj->n, sizeof(void *));
    if (!sorted) {
        o->err = o->err ? o->err : -ENOMEM;
        return NULL;
    }
    for (uint32_t i = 0; i < obj->n; i++)
        sorted[i] = &obj->members[i];
    qsort(sorted, obj->n, sizeof(void *), compare_members);
    return sorted;
}

static void write_member(struct vg_yaml_out *o, const struct vg_json_member *m, uint32_t depth)
{
    vg_yaml_put_indent(o);
    if (vg_yaml_is_simple_key(vg_json_key(m))) {
        vg_yaml_put_string(o, vg_json_key(m), true);
        vg_yaml_put_indicator(o, ":", false, false);
    } else {
        put_blank_if_due(o);
        vg_yaml_put_indicator(o, "?", false, true);
        vg_yaml_put_string(o, vg_json_key(m), false);
        vg_yaml_put_indent(o);
        put_blank_if_due(o);
        vg_yaml_put_indicator(o, ":", false, true);
    }
    write_value(o, &m->value, true, depth);
}

static void write_object(struct vg_yaml_out *o, const struct vg_json *v, uint32_t depth)
{
    const struct vg_json_member **sorted = sort_members(o, v);
    int32_t indent = o->indent;
    if (!sorted)
        return;
    o->indent = indent < 0 ? 0 : indent + INDENT;
    for (uint32_t i = 0; i < v->n && o->err == 0; i++)
        write_member(o, sorted[i], depth);
    o->indent = indent;
    vg_free(sorted);
}

static void write_array(struct vg_yaml_out *o, const struct vg_json *v, bool in_mapping,
                        uint32_t depth)
{
    int32_t indent = o->indent;
    bool indentless = in_mapping && !o->is_indention;
    o->indent = indent < 0 ? 0 : indentless ? indent : indent + INDENT;
    for (uint32_t i = 0; i < v->n && o->err == 0; i++) {
        vg_yaml_put_indent(o);
        vg_yaml_put_indicator(o, "-", false, true);
        write_value(o, &v->items[i], false, depth);
    }
    o->indent = indent;
}

static void write_container(struct vg_yaml_out *o, const struct vg_json *v, bool in_mapping,
                            uint32_t depth)
{
    bool is_object = v->type == VG_JSON_OBJECT;
    if (v->n == 0) {
        put_blank_if_due(o);
        vg_yaml_put_indicator(o, is_object ? "{}" : "[]", false, false);
    } else if (depth == VG_YAML_DEPTH_MAX) {
        o->err = o->err ? o->err : VIGIL_E_JSON_DEPTH;
    } else if (is_object) {
        write_object(o, v, depth + 1);
    } else {
        write_array(o, v, in_mapping, depth + 1);
    }
}

static void write_value(struct vg_yaml_out *o, const struct vg_json *v, bool in_mapping,
                        uint32_t depth)
{
    switch ((enum vg_json_type)v->type) {
    case VG_JSON_NULL:
        vg_yaml_put_plain(o, VG_SLICE_LIT("null"));
        break;
    case VG_JSON_BOOL:
        vg_yaml_put_plain(o, vg_slice_str(vg_json_is_true(v) ? "true" : "false"));
        break;
    case VG_JSON_NUMBER:
        write_number(o, v);
        break;
    case VG_JSON_STRING:
        vg_yaml_put_string(o, vg_json_text(v), false);
        break;
    case VG_JSON_ARRAY:
    case VG_JSON_OBJECT:
        write_container(o, v, in_mapping, depth);
        break;
    }
}

int vg_yaml_write(struct vg_buf *out, const struct vg_json *root)
{
    struct vg_yaml_out o = {.buf = out, .indent = -1, .is_whitespace = true, .is_indention = true};
    size_t before = out->n;
    write_value(&o, root, false, 0);
    vg_yaml_put_indent(&o);
    if (o.err < 0)
        out->n = before;
    return o.err;
}
