/* write.c - the streaming writer, and trees through it.
 * Layout has one place: before_value() puts the comma, the line break and the indent, and checks
 * that a value may stand here. Everything else appends bytes. Invariants: W1 is_object has the kind
 * of each open container, bits 0 .. depth-1; the innermost is depth-1. W2 has_key implies an object
 * is open, and only a value may follow. W3 after the first error nothing is appended any more. */
#include "write.h"

#include "bytes.h"
#include "escape.h"
#include "number.h"

static bool in_object(const struct vg_json_writer *w)
{
    uint32_t level = w->depth - 1;
    return w->depth > 0 && (w->is_object[level / 64] >> (level % 64) & 1);
}

static void note(struct vg_json_writer *w, int r)
{
    if (r < 0 && w->err == 0)
        w->err = r;
}

/* Room for n more bytes, of which the caller writes as many as it then counts; NULL after an error.
 */
static inline char *room(struct vg_json_writer *w, size_t n)
{
    if (VG_UNLIKELY(w->err))
        return NULL;
    if (VG_UNLIKELY(w->out->cap - w->out->n < n)) {
        note(w, vg_buf_reserve(w->out, n));
        if (w->err)
            return NULL;
    }
    return w->out->p + w->out->n;
}

static inline void put(struct vg_json_writer *w, const char *p, size_t n)
{
    char *at = n ? room(w, n) : NULL;
    if (at) {
        memcpy(at, p, n);
        w->out->n += n;
    }
}

/* A new line, indented two spaces for each open container. */
static void put_line(struct vg_json_writer *w)
{
    size_t n = 1 + 2 * (size_t)w->depth;
    char *at = room(w, n);
    if (!at)
        return;
    at[0] = '\n';
    memset(at + 1, ' ', n - 1);
    w->out->n += n;
}

/* What stands between the previous child and the next. */
static inline void put_separator(struct vg_json_writer *w)
{
    if (!w->first)
        put(w, ",", 1);
    w->first = false;
    if (w->flags & VG_JSON_INDENT)
        put_line(w);
}

/* False: nothing may be written here, or an error came before. */
static inline bool before_value(struct vg_json_writer *w)
{
    if (w->has_key)
        w->has_key = false;
    else if (w->done || in_object(w))
        note(w, VIGIL_E_INVALID);
    else if (w->depth > 0)
        put_separator(w);
    return w->err == 0;
}

static inline void after_value(struct vg_json_writer *w)
{
    w->done = w->depth == 0;
}

void vg_json_writer_init(struct vg_json_writer *w, struct vg_buf *out, unsigned flags)
{
    w->out = out;
    w->flags = flags;
    w->err = 0;
    w->depth = 0;
    w->first = true;
    w->has_key = w->done = false;
}

int vg_json_writer_end(struct vg_json_writer *w)
{
    if (w->err == 0 && !w->done)
        w->err = VIGIL_E_INVALID;
    return w->err;
}

/* ---- containers ---- */

static void begin(struct vg_json_writer *w, bool is_object)
{
    if (w->depth >= VG_JSON_DEPTH_MAX)
        note(w, VIGIL_E_JSON_DEPTH);
    if (!before_value(w))
        return;
    put(w, is_object ? "{" : "[", 1);
    uint64_t bit = (uint64_t)1 << (w->depth % 64);
    uint64_t *word = &w->is_object[w->depth / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    w->depth++;
    w->first = true;
}

static void end(struct vg_json_writer *w, bool is_object)
{
    if (w->depth == 0 || w->has_key || in_object(w) != is_object)
        note(w, VIGIL_E_INVALID);
    if (w->err)
        return;
    w->depth--;
    if (!w->first && (w->flags & VG_JSON_INDENT))
        put_line(w);
    put(w, is_object ? "}" : "]", 1);
    w->first = false;
    after_value(w);
}

void vg_json_put_begin_object(struct vg_json_writer *w)
{
    begin(w, true);
}

void vg_json_put_end_object(struct vg_json_writer *w)
{
    end(w, true);
}

void vg_json_put_begin_array(struct vg_json_writer *w)
{
    begin(w, false);
}

void vg_json_put_end_array(struct vg_json_writer *w)
{
    end(w, false);
}

/* ---- scalars ---- */

void vg_json_put_key(struct vg_json_writer *w, struct vg_slice key)
{
    if (!in_object(w) || w->has_key)
        note(w, VIGIL_E_INVALID);
    if (w->err)
        return;
    put_separator(w);
    if (w->err == 0)
        note(w, vg_json_append_quoted(w->out, key, w->flags));
    put(w, ": ", w->flags & VG_JSON_INDENT ? 2 : 1);
    w->has_key = true;
}

void vg_json_put_string(struct vg_json_writer *w, struct vg_slice s)
{
    if (!before_value(w))
        return;
    note(w, vg_json_append_quoted(w->out, s, w->flags));
    after_value(w);
}

void vg_json_put_raw(struct vg_json_writer *w, struct vg_slice text)
{
    if (!before_value(w))
        return;
    put(w, text.p, text.n);
    after_value(w);
}

void vg_json_put_int(struct vg_json_writer *w, int64_t i)
{
    char text[VG_JSON_NUMBER_TEXT_MAX];
    vg_json_put_raw(w, vg_slice(text, vg_json_format_int(i, text)));
}

void vg_json_put_uint(struct vg_json_writer *w, uint64_t u)
{
    char text[VG_JSON_NUMBER_TEXT_MAX];
    vg_json_put_raw(w, vg_slice(text, vg_json_format_uint(u, text)));
}

void vg_json_put_double(struct vg_json_writer *w, double d)
{
    char text[VG_JSON_NUMBER_TEXT_MAX];
    size_t n = vg_json_format_double(d, text);
    if (n == 0)
        note(w, VIGIL_E_INVALID);
    vg_json_put_raw(w, vg_slice(text, n));
}

void vg_json_put_bool(struct vg_json_writer *w, bool b)
{
    vg_json_put_raw(w, b ? VG_SLICE_LIT("true") : VG_SLICE_LIT("false"));
}

void vg_json_put_null(struct vg_json_writer *w)
{
    vg_json_put_raw(w, VG_SLICE_LIT("null"));
}

void vg_json_put_member(struct vg_json_writer *w, const char *key, struct vg_slice s)
{
    vg_json_put_key(w, vg_slice_str(key));
    vg_json_put_string(w, s);
}

/* ---- trees ---- */

/* A plain string needs no look at its bytes unless < > & matter. */
static int append_string(struct vg_buf *out, const struct vg_json *v, unsigned flags)
{
    if (!(v->flags & VG_JSON_PLAIN) || (flags & VG_JSON_ESCAPE_HTML))
        return vg_json_append_quoted(out, vg_json_text(v), flags);
    int r = vg_buf_reserve(out, (size_t)v->n + 2);
    if (r < 0)
        return r;
    char *at = out->p + out->n;
    at[0] = '"';
    memcpy(at + 1, v->text, v->n);
    at[v->n + 1] = '"';
    out->n += (size_t)v->n + 2;
    return 0;
}

static void put_string_node(struct vg_json_writer *w, const struct vg_json *v)
{
    if (!before_value(w))
        return;
    note(w, append_string(w->out, v, w->flags));
    after_value(w);
}

static void put_node(struct vg_json_writer *w, const struct vg_json *v, bool leaving)
{
    switch ((enum vg_json_type)v->type) {
    case VG_JSON_OBJECT:
        (leaving ? end : begin)(w, true);
        break;
    case VG_JSON_ARRAY:
        (leaving ? end : begin)(w, false);
        break;
    case VG_JSON_STRING:
        put_string_node(w, v);
        break;
    case VG_JSON_NUMBER:
        vg_json_put_raw(w, vg_json_text(v));
        break;
    case VG_JSON_BOOL:
        vg_json_put_bool(w, v->flags & VG_JSON_TRUE);
        break;
    case VG_JSON_NULL:
        vg_json_put_null(w);
        break;
    }
}

void vg_json_put_value(struct vg_json_writer *w, const struct vg_json *v)
{
    VG_AUTO(json_walk) walk;
    vg_json_walk_init(&walk, v);
    int r = 0;
    while (w->err == 0 && (r = vg_json_walk_next(&walk)) > 0) {
        if (walk.member && !walk.leaving)
            vg_json_put_key(w, vg_json_key(walk.member));
        put_node(w, walk.node, walk.leaving);
    }
    note(w, r);
}

/* ---- trees without line breaks ---- */

/* 64: nearly all trees are written by plain recursion; deeper ones step by step, on the heap. */
#define COMPACT_LEVELS 64u

static int compact(struct vg_buf *out, const struct vg_json *v, unsigned flags, unsigned levels);

/* A brace, bracket, comma or colon. */
static inline int mark(struct vg_buf *out, char c)
{
    if (VG_UNLIKELY(out->n == out->cap)) {
        int r = vg_buf_reserve(out, 1);
        if (r < 0)
            return r;
    }
    out->p[out->n++] = c;
    return 0;
}

static int compact_object(struct vg_buf *out, const struct vg_json *v, unsigned flags,
                          unsigned levels)
{
    int r = mark(out, '{');
    for (uint32_t i = 0; i < v->n && r == 0; i++) {
        const struct vg_json_member *m = &v->members[i];
        if (i > 0)
            r = mark(out, ',');
        if (r == 0)
            r = vg_json_append_quoted(out, vg_json_key(m), flags);
        if (r == 0)
            r = mark(out, ':');
        if (r == 0)
            r = compact(out, &m->value, flags, levels);
    }
    return r < 0 ? r : mark(out, '}');
}

static int compact_array(struct vg_buf *out, const struct vg_json *v, unsigned flags,
                         unsigned levels)
{
    int r = mark(out, '[');
    for (uint32_t i = 0; i < v->n && r == 0; i++) {
        if (i > 0)
            r = mark(out, ',');
        if (r == 0)
            r = compact(out, &v->items[i], flags, levels);
    }
    return r < 0 ? r : mark(out, ']');
}

/* VIGIL_E_JSON_DEPTH: it has more levels than that. */
static int compact(struct vg_buf *out, const struct vg_json *v, unsigned flags, unsigned levels)
{
    switch ((enum vg_json_type)v->type) {
    case VG_JSON_OBJECT:
        return levels ? compact_object(out, v, flags, levels - 1) : VIGIL_E_JSON_DEPTH;
    case VG_JSON_ARRAY:
        return levels ? compact_array(out, v, flags, levels - 1) : VIGIL_E_JSON_DEPTH;
    case VG_JSON_STRING:
        return append_string(out, v, flags);
    case VG_JSON_NUMBER:
        return vg_buf_append_slice(out, vg_json_text(v));
    case VG_JSON_BOOL:
        return v->flags & VG_JSON_TRUE ? vg_buf_append(out, "true", 4)
                                       : vg_buf_append(out, "false", 5);
    case VG_JSON_NULL:
        break;
    }
    return vg_buf_append(out, "null", 4);
}

int vg_json_write(struct vg_buf *out, const struct vg_json *v, unsigned flags)
{
    struct vg_json_writer w;
    size_t before = out->n;
    if (!(flags & VG_JSON_INDENT)) {
        int err = compact(out, v, flags, COMPACT_LEVELS);
        if (err == 0)
            return 0;
        out->n = before;
        if (err != VIGIL_E_JSON_DEPTH)
            return err;
    }
    vg_json_writer_init(&w, out, flags);
    vg_json_put_value(&w, v);
    int r = vg_json_writer_end(&w);
    if (r < 0)
        out->n = before;
    return r;
}
