/* pointer.c - parsing, following and explaining JSON pointers; see pointer.h.
 * Tokens are found in one pass; only a token with a '~' is copied, because unescaping shortens it.
 * Nothing here recurses, and nothing allocates except parsing. */
#include "pointer.h"

#include <errno.h>
#include <stdio.h>

/* ---- texts for messages ---- */

static void path_text_cut(struct vg_json_path_text *t, char next)
{
    /* Only when the next byte continues a character is the one before it incomplete. */
    if (((unsigned char)next & 0xC0) == 0x80) {
        while (t->n > 0 && ((unsigned char)t->s[t->n - 1] & 0xC0) == 0x80)
            t->n--;
        t->n = (uint8_t)(t->n > 0 ? t->n - 1 : 0);
    }
    memcpy(t->s + t->n, "...", 4);
    t->n = (uint8_t)(t->n + 3);
    t->cut = true;
}

static void path_text_put(struct vg_json_path_text *t, char c)
{
    if (t->cut)
        return;
    if (t->n + 3u >= VG_JSON_PATH_TEXT_MAX) {
        path_text_cut(t, c);
        return;
    }
    t->s[t->n++] = (unsigned char)c < 0x20 || c == 0x7f ? '?' : c;
    t->s[t->n] = '\0';
}

void vg_json_path_text_add(struct vg_json_path_text *t, struct vg_slice token)
{
    path_text_put(t, '/');
    for (size_t i = 0; i < token.n && !t->cut; i++) {
        char c = token.p[i];
        if (c != '~' && c != '/') {
            path_text_put(t, c);
            continue;
        }
        path_text_put(t, '~');
        path_text_put(t, c == '~' ? '0' : '1');
    }
}

const char *vg_json_pointer_show(const struct vg_json_pointer *p, uint32_t tokens,
                                 struct vg_json_path_text *t)
{
    *t = (struct vg_json_path_text){0};
    for (uint32_t i = 0; i < tokens && i < p->n && !t->cut; i++)
        vg_json_path_text_add(t, p->tokens[i]);
    return t->s;
}

const char *vg_json_key_show(struct vg_slice key, struct vg_json_path_text *t)
{
    *t = (struct vg_json_path_text){0};
    for (size_t i = 0; i < key.n && !t->cut; i++)
        path_text_put(t, key.p[i]);
    return t->s;
}

static void explain_array(const char *where, const char *key, struct vg_slice token, uint32_t n,
                          struct vg_json_pointer_why *why)
{
    uint32_t index;
    if (vg_json_array_index(token, n, VG_JSON_POINTER_NEGATIVE, &index) == VIGIL_E_JSON_POINTER)
        snprintf(why->s, sizeof why->s, "%s is an array and \"%s\" is no index", where, key);
    else
        snprintf(why->s, sizeof why->s, "%s is an array of %u items and has no item %s", where, n,
                 key);
}

const char *vg_json_pointer_explain(const struct vg_json_pointer *p, uint32_t i,
                                    const struct vg_json *at, struct vg_json_pointer_why *why)
{
    struct vg_json_path_text t;
    char where[VG_JSON_PATH_TEXT_MAX + 3];
    vg_json_pointer_show(p, i, &t);
    if (i == 0)
        snprintf(where, sizeof where, "the document");
    else
        snprintf(where, sizeof where, "\"%s\"", t.s);
    vg_json_key_show(p->tokens[i], &t);
    if (at->type == VG_JSON_ARRAY)
        explain_array(where, t.s, p->tokens[i], at->n, why);
    else if (at->type == VG_JSON_OBJECT)
        snprintf(why->s, sizeof why->s, "%s has no member \"%s\"", where, t.s);
    else
        snprintf(why->s, sizeof why->s, "%s is a %s and has no member \"%s\"", where,
                 vg_json_type_name((enum vg_json_type)at->type), t.s);
    return why->s;
}

/* ---- parsing ---- */

/* The n-th token, counted from 1 as people do, is bad. */
static int fail_token(struct vg_slice text, uint32_t n, const char *what, struct vg_status *status)
{
    struct vg_json_path_text t;
    return vg_fail(status, VIGIL_E_JSON_POINTER, "JSON pointer \"%s\": token %u %s",
                   vg_json_key_show(text, &t), n, what);
}

/* raw holds a '~': copy it without escapes. False: a bad escape, unless those are taken as they
 * are; ret->p == NULL: out of memory. */
static bool unescape(struct vg_arena *arena, struct vg_slice raw, bool is_loose,
                     struct vg_slice *ret)
{
    char *out = vg_arena_copy(arena, raw.p, raw.n);
    *ret = (struct vg_slice){out, 0};
    for (size_t i = 0; out && i < raw.n; i++) {
        char c = raw.p[i];
        if (c == '~') {
            char code = i + 1 < raw.n ? raw.p[i + 1] : '\0';
            bool is_escape = code == '0' || code == '1';
            if (!is_escape && !is_loose)
                return false;
            c = code == '1' ? '/' : '~';
            i += is_escape;
        }
        out[ret->n++] = c;
    }
    return true;
}

static uint32_t count_tokens(struct vg_slice text)
{
    uint32_t n = 0;
    for (size_t i = 0; i < text.n && n <= VG_JSON_POINTER_TOKENS_MAX; i++)
        n += text.p[i] == '/';
    return n;
}

/* Split text, which starts with a slash, into the n tokens that were counted. */
static int parse_tokens(struct vg_arena *arena, struct vg_slice text, bool is_loose,
                        struct vg_slice *tokens, uint32_t n, struct vg_status *status)
{
    const char *at = text.p, *end = text.p + text.n;
    for (uint32_t i = 0; i < n; i++) {
        const char *start = at + 1;
        const char *slash = memchr(start, '/', (size_t)(end - start));
        at = slash ? slash : end;
        tokens[i] = (struct vg_slice){start, (size_t)(at - start)};
        if (!memchr(start, '~', tokens[i].n))
            continue;
        if (!unescape(arena, tokens[i], is_loose, &tokens[i]))
            return fail_token(text, i + 1, "has a '~' that is not followed by 0 or 1", status);
        if (!tokens[i].p)
            return vg_fail(status, -ENOMEM, "out of memory");
    }
    return 0;
}

static int parse(struct vg_arena *arena, struct vg_slice text, bool is_loose,
                 struct vg_json_pointer *ret, struct vg_status *reterr_status)
{
    if (text.n == 0) {
        *ret = (struct vg_json_pointer){NULL, 0};
        return 0;
    }
    const char *slash = is_loose ? memchr(text.p, '/', text.n) : text.p;
    if (!slash || *slash != '/') {
        struct vg_json_path_text t;
        return vg_fail(reterr_status, VIGIL_E_JSON_POINTER,
                       "JSON pointer \"%s\": must be empty or start with '/'",
                       vg_json_key_show(text, &t));
    }
    text = vg_slice(slash, (size_t)(text.p + text.n - slash));
    size_t n = count_tokens(text);
    if (n > VG_JSON_POINTER_TOKENS_MAX)
        return fail_token(text, (uint32_t)n, "is one too many", reterr_status);
    struct vg_slice *tokens = vg_arena_array(arena, struct vg_slice, n);
    if (!tokens)
        return vg_fail(reterr_status, -ENOMEM, "out of memory");
    int r = parse_tokens(arena, text, is_loose, tokens, (uint32_t)n, reterr_status);
    if (r == 0)
        *ret = (struct vg_json_pointer){tokens, (uint32_t)n};
    return r;
}

int vg_json_pointer_parse(struct vg_arena *arena, struct vg_slice text, struct vg_json_pointer *ret,
                          struct vg_status *reterr_status)
{
    return parse(arena, text, false, ret, reterr_status);
}

int vg_json_pointer_parse_loose(struct vg_arena *arena, struct vg_slice text,
                                struct vg_json_pointer *ret, struct vg_status *reterr_status)
{
    return parse(arena, text, true, ret, reterr_status);
}

/* ---- following ---- */

/* Decimal digits, without leading zeros unless loose; what does not fit reads as UINT32_MAX. */
static bool parse_digits(struct vg_slice s, unsigned flags, uint32_t *ret)
{
    uint64_t value = 0;
    if (s.n == 0 || (s.p[0] == '0' && s.n > 1 && !(flags & VG_JSON_POINTER_LOOSE)))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        value = VG_MIN(value * 10 + (uint64_t)(s.p[i] - '0'), (uint64_t)UINT32_MAX);
    }
    *ret = (uint32_t)value;
    return true;
}

static int from_the_end(struct vg_slice digits, uint32_t n, unsigned flags, uint32_t *ret)
{
    uint32_t back;
    if (!parse_digits(digits, flags, &back) || (back == 0 && !(flags & VG_JSON_POINTER_LOOSE)))
        return VIGIL_E_JSON_POINTER;
    if (back > n || n == 0)
        return VIGIL_E_NOT_FOUND;
    *ret = back ? n - back : 0;
    return 0;
}

int vg_json_array_index(struct vg_slice token, uint32_t n, unsigned flags, uint32_t *ret)
{
    if (token.n > 0 && token.p[0] == '-') {
        if (token.n == 1)
            return VIGIL_E_NOT_FOUND;
        if (flags & VG_JSON_POINTER_NEGATIVE)
            return from_the_end(vg_slice(token.p + 1, token.n - 1), n, flags, ret);
    }
    uint32_t index;
    if ((flags & VG_JSON_POINTER_LOOSE) && token.n > 1 && token.p[0] == '+')
        token = vg_slice(token.p + 1, token.n - 1);
    if (!parse_digits(token, flags, &index))
        return VIGIL_E_JSON_POINTER;
    if (index >= n)
        return VIGIL_E_NOT_FOUND;
    *ret = index;
    return 0;
}

int vg_json_pointer_step(const struct vg_json *at, struct vg_slice token, unsigned flags,
                         struct vg_json **ret)
{
    if (at->type == VG_JSON_OBJECT) {
        struct vg_json *v = vg_json_get(at, token);
        if (!v)
            return VIGIL_E_NOT_FOUND;
        *ret = v;
        return 0;
    }
    if (at->type != VG_JSON_ARRAY)
        return VIGIL_E_JSON_TYPE;
    uint32_t index;
    int r = vg_json_array_index(token, at->n, flags, &index);
    if (r == 0)
        *ret = &at->items[index];
    return r;
}

int vg_json_pointer_get(const struct vg_json_pointer *p, const struct vg_json *root, unsigned flags,
                        struct vg_json **ret, struct vg_status *reterr_status)
{
    struct vg_json *at = (struct vg_json *)(uintptr_t)root;
    for (uint32_t i = 0; i < p->n; i++) {
        int r = vg_json_pointer_step(at, p->tokens[i], flags, &at);
        if (r < 0) {
            struct vg_json_path_text t;
            struct vg_json_pointer_why why;
            return vg_fail(reterr_status, r, "JSON pointer \"%s\": token %u: %s",
                           vg_json_pointer_show(p, p->n, &t), i + 1,
                           vg_json_pointer_explain(p, i, at, &why));
        }
    }
    *ret = at;
    return 0;
}

/* ---- comparing and writing ---- */

static bool has_prefix(const struct vg_json_pointer *prefix, const struct vg_json_pointer *p)
{
    if (prefix->n > p->n)
        return false;
    for (uint32_t i = 0; i < prefix->n; i++) {
        if (!vg_slice_eq(prefix->tokens[i], p->tokens[i]))
            return false;
    }
    return true;
}

bool vg_json_pointer_is_above(const struct vg_json_pointer *prefix, const struct vg_json_pointer *p)
{
    return prefix->n < p->n && has_prefix(prefix, p);
}

bool vg_json_pointer_is_same(const struct vg_json_pointer *a, const struct vg_json_pointer *b)
{
    return a->n == b->n && has_prefix(a, b);
}

int vg_json_pointer_append(struct vg_buf *b, struct vg_slice token)
{
    size_t before = b->n;
    int r = vg_buf_append_byte(b, '/');
    for (size_t i = 0; r == 0 && i < token.n; i++) {
        if (token.p[i] == '~')
            r = vg_buf_append(b, "~0", 2);
        else if (token.p[i] == '/')
            r = vg_buf_append(b, "~1", 2);
        else
            r = vg_buf_append_byte(b, token.p[i]);
    }
    if (r < 0)
        b->n = before; /* an append changes all or nothing */
    return r;
}
