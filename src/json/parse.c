/* parse.c - bytes into a tree, in one pass.
 *
 * There is no recursion. Open containers are frames on a stack; their finished children are pushed
 * on one of two scratch stacks (items, members) and copied to the arena, side by side, when the
 * container closes. So the arena holds nothing but the tree, and a parse with kept scratch
 * allocates only there.
 *
 *     text   {"a":[1,2],"b":{"c"...
 *     frames   [text] [object] [object]
 *     members         a        b c          <- stack; b's value is not there yet
 *     items    root                         <- stack; 1 and 2 are already in the arena, under a
 *
 * Invariants, while parsing:
 *   P1 frames[depth] is the container that the next value belongs to; frames[0] is the text itself.
 *   P2 children of frames[depth] are the top of its stack; the value that an open container will be
 *      is the topmost child of the frame below it.
 *   P3 every byte before p has been checked; no byte at or past `end` is ever read.
 * The loop: a value begins (begin_child), is read or opened (read_value), and ends (end_children),
 * which closes as many containers as end there. */
#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "bytes.h"
#include "parse_int.h"

/* Scratch stacks start with this many elements and double. */
#define STACK_FIRST 64u

/* 1 MiB: scratch that one huge text has blown up beyond this is not kept for the next. */
#define SCRATCH_KEEP_MAX ((size_t)1 << 20)

const char *vg_json_parse_fail(struct vg_json_parser *ps, int err, const char *at,
                               const char *err_text)
{
    if (!ps->err) {
        ps->err = err;
        ps->err_at = at;
        ps->err_text = err_text;
    }
    return NULL;
}

/* ---- scratch ---- */

int vg_json_grow(void **array, size_t *cap, size_t want, size_t size)
{
    if (want <= *cap)
        return 0;
    size_t n = VG_MAX(*cap * 2, VG_MAX(want, (size_t)STACK_FIRST));
    void *p = vg_reallocarray(*array, n, size);
    if (!p)
        return -ENOMEM;
    *array = p;
    *cap = n;
    return 0;
}

void vg_json_scratch_done(struct vg_json_scratch *s)
{
    vg_free(s->frames);
    vg_free(s->items);
    vg_free(s->members);
    vg_free(s->table);
    *s = (struct vg_json_scratch){0};
}

static void trim_scratch(struct vg_json_scratch *s)
{
    size_t held = s->frames_n * sizeof(struct vg_json_frame) + s->items_n * sizeof(struct vg_json) +
                  s->members_n * sizeof(struct vg_json_member) + s->table_n * sizeof(uint32_t);
    if (held > SCRATCH_KEEP_MAX)
        vg_json_scratch_done(s);
}

/* Take the stacks as they now are in the scratch. */
static void load_scratch(struct vg_json_parser *ps)
{
    const struct vg_json_scratch *s = ps->scratch;
    ps->frames = s->frames;
    ps->items = s->items;
    ps->members = s->members;
    ps->frames_cap = (uint32_t)VG_MIN(s->frames_n, UINT32_MAX);
    ps->items_cap = (uint32_t)VG_MIN(s->items_n, UINT32_MAX);
    ps->members_cap = (uint32_t)VG_MIN(s->members_n, UINT32_MAX);
}

/* Room for one more of each. Grows only what is full. */
static __attribute__((noinline)) int grow_stacks(struct vg_json_parser *ps)
{
    struct vg_json_scratch *s = ps->scratch;
    int r =
        vg_json_grow(&s->frames, &s->frames_n, (size_t)ps->depth + 2, sizeof(struct vg_json_frame));
    if (r == 0)
        r = vg_json_grow(&s->items, &s->items_n, (size_t)ps->items_n + 1, sizeof(struct vg_json));
    if (r == 0)
        r = vg_json_grow(&s->members, &s->members_n, (size_t)ps->members_n + 1,
                         sizeof(struct vg_json_member));
    load_scratch(ps);
    if (r < 0)
        vg_json_parse_fail(ps, r, ps->base, "out of memory");
    return r;
}

/* ---- scalars ---- */

static inline char peek(const struct vg_json_parser *ps, const char *p)
{
    return VG_LIKELY(p < ps->end) ? *p : '\0';
}

static inline uint32_t offset_of(const struct vg_json_parser *ps, const char *p)
{
    return (uint32_t)(p - ps->base);
}

/* p is past the opening quote. */
static inline const char *read_string(struct vg_json_parser *ps, const char *p,
                                      struct vg_json_string *ret)
{
    const char *q = vg_json_skip_plain(p, ps->end);
    if (VG_UNLIKELY(q == ps->end || *q != '"'))
        return vg_json_parse_string_slow(ps, p, q, ret);
    *ret = (struct vg_json_string){.text = p, .n = (uint32_t)(q - p), .flags = VG_JSON_PLAIN};
    return q + 1;
}

static inline const char *read_string_value(struct vg_json_parser *ps, const char *p,
                                            struct vg_json *slot)
{
    struct vg_json_string s;
    const char *q = read_string(ps, p + 1, &s);
    if (VG_UNLIKELY(!q))
        return NULL;
    *slot = (struct vg_json){.type = VG_JSON_STRING,
                             .flags = s.flags,
                             .n = s.n,
                             .text = s.text,
                             .begin = offset_of(ps, p),
                             .end = offset_of(ps, q)};
    return q;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline const char *skip_digits(const struct vg_json_parser *ps, const char *p)
{
    while (is_digit(peek(ps, p)))
        p++;
    return p;
}

/* Fraction and exponent, if any; p is past the integer part. */
static const char *read_fraction(struct vg_json_parser *ps, const char *p)
{
    if (peek(ps, p) == '.') {
        if (!is_digit(peek(ps, ++p)))
            return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p, "expected a digit after '.'");
        p = skip_digits(ps, p);
    }
    if (peek(ps, p) == 'e' || peek(ps, p) == 'E') {
        p++;
        if (peek(ps, p) == '+' || peek(ps, p) == '-')
            p++;
        if (!is_digit(peek(ps, p)))
            return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p,
                                      "expected a digit of the exponent");
        p = skip_digits(ps, p);
    }
    return p;
}

static const char *read_number(struct vg_json_parser *ps, const char *p, struct vg_json *slot)
{
    const char *begin = p;
    uint8_t flags = VG_JSON_INTEGER;
    if (peek(ps, p) == '-')
        p++;
    if (!is_digit(peek(ps, p)))
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p,
                                  p > begin ? "expected a digit" : "expected a value");
    if (*p == '0' && is_digit(peek(ps, p + 1)))
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p, "a number has no leading zeros");
    p = skip_digits(ps, p);
    char c = peek(ps, p);
    if (c == '.' || c == 'e' || c == 'E') {
        flags = 0;
        p = read_fraction(ps, p);
        if (!p)
            return NULL;
    }
    *slot = (struct vg_json){.type = VG_JSON_NUMBER,
                             .flags = flags,
                             .n = (uint32_t)(p - begin),
                             .text = begin,
                             .begin = offset_of(ps, begin),
                             .end = offset_of(ps, p)};
    return p;
}

static const char *read_literal(struct vg_json_parser *ps, const char *p, struct vg_slice word,
                                struct vg_json v, struct vg_json *slot)
{
    if ((size_t)(ps->end - p) < word.n || memcmp(p, word.p, word.n) != 0)
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p, "expected a value");
    v.begin = offset_of(ps, p);
    v.end = offset_of(ps, p + word.n);
    *slot = v;
    return p + word.n;
}

/* ---- containers ---- */

static inline char closing(bool is_object)
{
    return is_object ? '}' : ']';
}

/* Where the value of the topmost child of the current frame is kept. */
static inline struct vg_json *slot_of_top(struct vg_json_parser *ps)
{
    return ps->frames[ps->depth].is_object ? &ps->members[ps->members_n - 1].value
                                           : &ps->items[ps->items_n - 1];
}

static inline const char *open_container(struct vg_json_parser *ps, const char *p,
                                         struct vg_json *slot)
{
    bool is_object = *p == '{';
    if (VG_UNLIKELY(ps->depth >= ps->max_depth))
        return vg_json_parse_fail(ps, VIGIL_E_JSON_DEPTH, p, "nested too deeply");
    const char *q = vg_json_skip_space(p + 1, ps->end);
    *slot = (struct vg_json){.type = is_object ? VG_JSON_OBJECT : VG_JSON_ARRAY,
                             .begin = offset_of(ps, p),
                             .end = offset_of(ps, q + 1)};
    if (peek(ps, q) == closing(is_object)) /* empty: managedFields are full of {} */
        return q + 1;
    if (ps->left && vg_json_is_left(ps))
        return vg_json_leave(ps, p, slot);
    if (VG_UNLIKELY(ps->depth + 1 >= ps->frames_cap) && grow_stacks(ps) < 0)
        return NULL;
    ps->frames[++ps->depth] = (struct vg_json_frame){
        .items_base = ps->items_n, .members_base = ps->members_n, .is_object = is_object};
    return q;
}

static inline int take_items(struct vg_json_parser *ps, uint32_t base, struct vg_json *slot)
{
    size_t n = ps->items_n - base;
    struct vg_json *v = vg_arena_array(ps->arena, struct vg_json, n);
    if (!v)
        return -ENOMEM;
    memcpy(v, ps->items + base, n * sizeof *v);
    ps->items_n = base;
    slot->n = (uint32_t)n;
    slot->items = v;
    return 0;
}

static inline int take_members(struct vg_json_parser *ps, uint32_t base, struct vg_json *slot)
{
    size_t n = ps->members_n - base;
    struct vg_json_member *v = vg_arena_array(ps->arena, struct vg_json_member, n);
    if (!v)
        return -ENOMEM;
    memcpy(v, ps->members + base, n * sizeof *v);
    ps->members_n = base;
    slot->n = (uint32_t)n;
    slot->members = v;
    return 0;
}

/* p is the closing bracket of the current frame. */
static inline const char *close_container(struct vg_json_parser *ps, const char *p)
{
    struct vg_json_frame f = ps->frames[ps->depth];
    struct vg_json made;
    if (f.is_object && ps->members_n - f.members_base > 1 && ps->on_dup != VG_JSON_DUP_NONE &&
        vg_json_drop_duplicates(ps) < 0)
        return NULL;
    int r =
        f.is_object ? take_members(ps, f.members_base, &made) : take_items(ps, f.items_base, &made);
    if (VG_UNLIKELY(r < 0))
        return vg_json_parse_fail(ps, r, p, "out of memory");
    ps->depth--;
    struct vg_json *slot = slot_of_top(ps);
    slot->n = made.n;
    slot->items = made.items;
    slot->end = offset_of(ps, p + 1);
    return p + 1;
}

/* ---- the loop ---- */

/* A member's key and colon. */
static inline const char *begin_member(struct vg_json_parser *ps, const char *p)
{
    if (VG_UNLIKELY(peek(ps, p) != '"'))
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p, "expected a key in quotes");
    if (VG_UNLIKELY(ps->members_n == ps->members_cap) && grow_stacks(ps) < 0)
        return NULL;
    struct vg_json_string key;
    struct vg_json_member *m = &ps->members[ps->members_n];
    uint32_t begin = offset_of(ps, p);
    p = read_string(ps, p + 1, &key);
    if (VG_UNLIKELY(!p))
        return NULL;
    m->key = key.text;
    m->key_n = key.n;
    m->key_begin = begin;
    ps->members_n++;
    p = vg_json_skip_space(p, ps->end);
    if (VG_UNLIKELY(peek(ps, p) != ':'))
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p, "expected ':' after a key");
    return vg_json_skip_space(p + 1, ps->end);
}

/* The next child of the current frame: it is then the topmost, and has no value yet. */
static inline const char *begin_child(struct vg_json_parser *ps, const char *p)
{
    if (ps->frames[ps->depth].is_object)
        return begin_member(ps, p);
    if (VG_UNLIKELY(ps->items_n == ps->items_cap) && grow_stacks(ps) < 0)
        return NULL;
    ps->items_n++;
    return p;
}

/* Numbers and the three words. */
static __attribute__((noinline)) const char *read_other(struct vg_json_parser *ps, const char *p,
                                                        struct vg_json *slot)
{
    switch (peek(ps, p)) {
    case 't':
        return read_literal(ps, p, VG_SLICE_LIT("true"), vg_json_bool(true), slot);
    case 'f':
        return read_literal(ps, p, VG_SLICE_LIT("false"), vg_json_bool(false), slot);
    case 'n':
        return read_literal(ps, p, VG_SLICE_LIT("null"), vg_json_null(), slot);
    default:
        return read_number(ps, p, slot);
    }
}

/* A scalar or an empty container is read whole; another container is opened, which makes it the
 * current frame. */
static inline const char *read_value(struct vg_json_parser *ps, const char *p, struct vg_json *slot)
{
    char c = peek(ps, p);
    if (VG_LIKELY(c == '"'))
        return read_string_value(ps, p, slot);
    if (c == '{' || c == '[')
        return open_container(ps, p, slot);
    return read_other(ps, p, slot);
}

/* After a value: close every container that ends here, and stop before the next child or when the
 * text's own value is complete (depth 0). */
static inline const char *end_children(struct vg_json_parser *ps, const char *p)
{
    while (ps->depth > 0) {
        p = vg_json_skip_space(p, ps->end);
        bool is_object = ps->frames[ps->depth].is_object;
        char c = peek(ps, p);
        if (c == ',')
            return vg_json_skip_space(p + 1, ps->end);
        if (VG_UNLIKELY(c != closing(is_object)))
            return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p,
                                      is_object ? "expected ',' or '}'" : "expected ',' or ']'");
        p = close_container(ps, p);
        if (VG_UNLIKELY(!p))
            return NULL;
    }
    return p;
}

static __attribute__((noinline)) const char *parse_text(struct vg_json_parser *ps, const char *p)
{
    p = vg_json_skip_space(p, ps->end);
    do {
        uint32_t depth = ps->depth;
        p = begin_child(ps, p);
        if (VG_UNLIKELY(!p))
            return NULL;
        p = read_value(ps, p, slot_of_top(ps));
        if (VG_UNLIKELY(!p))
            return NULL;
        if (ps->depth == depth)
            p = end_children(ps, p);
        if (VG_UNLIKELY(!p))
            return NULL;
    } while (ps->depth > 0);
    p = vg_json_skip_space(p, ps->end);
    if (p < ps->end)
        return vg_json_parse_fail(ps, VIGIL_E_JSON_SYNTAX, p, "text goes on after its value");
    return p;
}

/* ---- the outside ---- */

static struct vg_json_where locate(const struct vg_json_parser *ps)
{
    struct vg_json_where w = {.offset = (size_t)(ps->err_at - ps->base), .line = 1, .column = 1};
    for (const char *p = ps->base; p < ps->err_at; p++) {
        w.column++;
        if (*p == '\n') {
            w.line++;
            w.column = 1;
        }
    }
    return w;
}

/* Tell the failure: "line 1, column 5 (offset 4): expected ':' after a key, found 'x'". */
static int report(const struct vg_json_parser *ps, const struct vg_json_opts *o,
                  struct vg_status *status)
{
    if (ps->err == -ENOMEM)
        return vg_fail(status, ps->err, "out of memory while parsing JSON");
    struct vg_json_where w = locate(ps);
    if (o->ret_where)
        *o->ret_where = w;
    char found[32] = "the end of the text";
    unsigned char c = ps->err_at < ps->end ? (unsigned char)*ps->err_at : 0;
    if (c >= 0x20 && c < 0x7f)
        snprintf(found, sizeof found, "'%c'", c);
    else if (ps->err_at < ps->end)
        snprintf(found, sizeof found, "byte 0x%02x", c);
    if (ps->err == VIGIL_E_JSON_DUPLICATE)
        return vg_fail(status, ps->err, "line %zu, column %zu (offset %zu): %s \"%.*s\"", w.line,
                       w.column, w.offset, ps->err_text, VG_SLICE_ARG(ps->err_path));
    return vg_fail(status, ps->err, "line %zu, column %zu (offset %zu): %s, found %s", w.line,
                   w.column, w.offset, ps->err_text, found);
}

static int parse_into(struct vg_json_parser *ps, size_t from, struct vg_json **ret_root)
{
    load_scratch(ps);
    if (grow_stacks(ps) < 0)
        return ps->err;
    ps->frames[0] = (struct vg_json_frame){0};
    if (!parse_text(ps, ps->base + VG_MIN(from, (size_t)(ps->end - ps->base))))
        return ps->err;
    struct vg_json *root = vg_arena_new(ps->arena, struct vg_json);
    if (!root) {
        vg_json_parse_fail(ps, -ENOMEM, ps->base, "out of memory");
        return ps->err;
    }
    *root = ps->items[0];
    *ret_root = root;
    return 0;
}

int vg_json_parse(struct vg_arena *arena, struct vg_slice text, const struct vg_json_opts *opts,
                  struct vg_json **ret_root, struct vg_status *reterr_status)
{
    static const struct vg_json_opts defaults;
    const struct vg_json_opts *o = opts ? opts : &defaults;
    size_t max = VG_MIN(o->max_bytes ? o->max_bytes : VG_JSON_BYTES_DEFAULT, VG_JSON_BYTES_MAX);
    if (text.n > max)
        return vg_fail(reterr_status, VIGIL_E_TOO_LARGE,
                       "the JSON text has %zu bytes, more than the limit of %zu", text.n, max);
    VG_AUTO(json_scratch) own = {0};
    uint32_t depth = o->max_depth ? o->max_depth : VG_JSON_DEPTH_DEFAULT;
    struct vg_json_parser ps = {.base = text.n ? text.p : "",
                                .arena = arena,
                                .max_depth = VG_MIN(depth, VG_JSON_DEPTH_MAX),
                                .on_dup = o->on_dup,
                                .replace_bad_utf8 = o->replace_bad_utf8,
                                .left = o->left,
                                .scratch = o->scratch ? o->scratch : &own};
    ps.end = ps.base + text.n;
    int r = parse_into(&ps, o->from, ret_root);
    trim_scratch(ps.scratch);
    if (r < 0)
        return report(&ps, o, reterr_status);
    if (o->ret_dups && o->on_dup == VG_JSON_DUP_REPORT) {
        vg_json_sort_dups(&ps.dups);
        *o->ret_dups = ps.dups;
    }
    return 0;
}
