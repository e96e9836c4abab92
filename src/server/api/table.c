/* table.c - see table.h. */
#include "table.h"

#include <errno.h>
#include <stdio.h>

#include "server/kinds/convert.h"
#include "status_int.h"
#include "json/write.h"

#define INITIAL_EVENTS_END "k8s.io/initial-events-end"

static const char *version_of(const struct vg_table *t)
{
    return t->is_v1beta1 ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1";
}

static const struct vg_columns *columns_of(const struct vg_table *t)
{
    return t->columns ? t->columns : &t->kind->columns;
}

int vg_table_include(const struct vg_target *t, struct vg_arena *a, enum vg_table_include *ret,
                     struct vg_api_status *ret_status)
{
    static const char *const names[] = {
        [VG_TABLE_METADATA] = "Metadata", [VG_TABLE_NONE] = "None", [VG_TABLE_OBJECT] = "Object"};
    struct vg_slice word = vg_query_get(t, "includeObject"), quoted;
    *ret = VG_TABLE_METADATA;
    if (word.n == 0)
        return 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        if (vg_slice_eq(word, vg_slice_str(names[i]))) {
            *ret = (enum vg_table_include)i;
            return 0;
        }
    VG_AUTO(buf) b = {0};
    if (vg_json_write_string(&b, word, 0) < 0) {
        vg_status_no_memory(ret_status);
        return -ENOMEM;
    }
    quoted = vg_buf_slice(&b);
    vg_status_bad_request(a, ret_status,
                          "Unable to convert to Table as requested: includeObject: Invalid value: "
                          "%.*s: must be 'Metadata', 'Object', 'None', or empty",
                          VG_SLICE_ARG(quoted));
    return VIGIL_E_INVALID;
}

/* ---- the head ---- */

int vg_table_begin(const struct vg_table *t, struct vg_slice meta, bool with_definitions,
                   struct vg_buf *out)
{
    int r = vg_buf_printf(out,
                          "{\"kind\":\"Table\",\"apiVersion\":\"%s\",\"metadata\":%.*s,"
                          "\"columnDefinitions\":",
                          version_of(t), VG_SLICE_ARG(meta));
    if (r == 0)
        r = with_definitions ? vg_columns_define(columns_of(t), out)
                             : vg_buf_append_slice(out, VG_SLICE_LIT("null"));
    return r < 0 ? r : vg_buf_append_slice(out, VG_SLICE_LIT(",\"rows\":["));
}

/* ---- rows ---- */

static struct vg_slice part(struct vg_slice text, const struct vg_json *v)
{
    return v && v->end > v->begin ? vg_slice(text.p + v->begin, v->end - v->begin)
                                  : VG_SLICE_LIT("{}");
}

/* The one who waits for the end of the state must find the mark. */
static bool is_mark(const struct vg_json *meta)
{
    const struct vg_json *notes = vg_json_get_str(meta, "annotations");
    return vg_slice_eq(vg_json_text(vg_json_get_str(notes, INITIAL_EVENTS_END)),
                       VG_SLICE_LIT("true"));
}

static int write_whole(const struct vg_table *t, struct vg_slice text, const struct vg_json *object,
                       struct vg_arena *a, struct vg_buf *out)
{
    struct vg_json made;
    if (!t->kind->stored)
        return vg_buf_append_slice(out, part(text, object));
    int r = vg_kind_from_stored(a, t->kind, object, &made);
    return r < 0 ? r : vg_json_write(out, &made, VG_JSON_ESCAPE_HTML);
}

static int write_object(const struct vg_table *t, struct vg_slice text,
                        const struct vg_json *object, struct vg_arena *a, struct vg_buf *out)
{
    const struct vg_json *meta = vg_json_get_str(object, "metadata");
    if (t->include == VG_TABLE_OBJECT)
        return write_whole(t, text, object, a, out);
    if (t->include == VG_TABLE_NONE && !is_mark(meta))
        return vg_buf_append_slice(out, VG_SLICE_LIT("null"));
    int r = vg_buf_printf(
        out,
        "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"%s\",\"metadata\":", version_of(t));
    if (r == 0)
        r = vg_buf_append_slice(out, part(text, meta));
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

int vg_table_row(const struct vg_table *t, struct vg_slice text, const struct vg_json *object,
                 struct vg_arena *a, struct vg_buf *out)
{
    int r = vg_buf_append_byte(out, '{');
    if (r == 0)
        r = vg_columns_row(columns_of(t), object, t->now_ms, a, out);
    if (r == 0)
        r = vg_buf_append_slice(out, VG_SLICE_LIT(",\"object\":"));
    if (r == 0)
        r = write_object(t, text, object, a, out);
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

static int parse(const struct vg_table *t, struct vg_slice text, struct vg_arena *a,
                 struct vg_json **ret)
{
    struct vg_json_opts opts = {.scratch = t->scratch};
    int r = vg_json_parse(a, text, &opts, ret, NULL);
    return r < 0 && r != -ENOMEM ? VIGIL_E_STORE_DAMAGED : r;
}

int vg_table_row_of(const struct vg_table *t, struct vg_slice text, struct vg_arena *a,
                    struct vg_buf *out)
{
    struct vg_json *object;
    int r = parse(t, text, a, &object);
    return r < 0 ? r : vg_table_row(t, text, object, a, out);
}

/* ---- a Table of one ---- */

static int write_one(const struct vg_table *t, struct vg_slice text, const struct vg_json *object,
                     bool with_definitions, struct vg_arena *a, struct vg_buf *out)
{
    const struct vg_json *meta = vg_json_get_str(object, "metadata");
    struct vg_slice rev = vg_json_text(vg_json_get_str(meta, "resourceVersion"));
    char own[64];
    int n = rev.n ? snprintf(own, sizeof own, "{\"resourceVersion\":\"%.*s\"}", VG_SLICE_ARG(rev))
                  : snprintf(own, sizeof own, "{}");
    int r =
        vg_table_begin(t, vg_slice(own, VG_MIN((size_t)n, sizeof own - 1)), with_definitions, out);
    if (r == 0)
        r = vg_table_row(t, text, object, a, out);
    return r < 0 ? r : vg_buf_append_slice(out, VG_TABLE_TAIL);
}

int vg_table_of(const struct vg_table *t, struct vg_slice text, struct vg_buf *out)
{
    VG_AUTO(arena) arena = {0};
    struct vg_json *object;
    int r = parse(t, text, &arena, &object);
    return r < 0 ? r : write_one(t, text, object, true, &arena, out);
}

int vg_table_frame(const struct vg_table *t, struct vg_slice frame, bool with_definitions,
                   struct vg_buf *out)
{
    VG_AUTO(arena) arena = {0};
    struct vg_json *event;
    int r = parse(t, frame, &arena, &event);
    if (r < 0)
        return r;
    struct vg_slice type = vg_json_text(vg_json_get_str(event, "type"));
    r = vg_buf_printf(out, "{\"type\":\"%.*s\",\"object\":", VG_SLICE_ARG(type));
    if (r == 0)
        r = write_one(t, frame, vg_json_get_str(event, "object"), with_definitions, &arena, out);
    return r < 0 ? r : vg_buf_append_slice(out, VG_SLICE_LIT("}\n"));
}
