/* scan.c - paths and iteration over bytes; see scan.h.
 * Every step either moves forward or fails, so any input ends. Descending along a path does not
 * look for the end of what it descends into: only the value that is asked for is skipped to its
 * end. */
#include "scan.h"

#include <errno.h>

#include "bytes.h"
#include "skip.h"

static inline char peek(const char *p, const char *end)
{
    return p < end ? *p : '\0';
}

/* Numbers and words: up to what may follow a value. NULL when there is nothing. */
static const char *skip_word(const char *p, const char *end)
{
    const char *q = p;
    while (q < end && *q != ',' && *q != ']' && *q != '}' && *q != '"' && !vg_json_is_space(*q))
        q++;
    return q > p ? q : NULL;
}

static const char *skip_value(const char *p, const char *end)
{
    bool escaped;
    switch (peek(p, end)) {
    case '"':
        return vg_json_skip_string(p, end, &escaped);
    case '{':
    case '[':
        if (end - p >= 2 && (p[1] | 0x20) == '}') /* empty; ']' | 0x20 is '}' */
            return p + 2;
        return vg_json_skip_container(p, end);
    default:
        return skip_word(p, end);
    }
}

/* ---- iteration ---- */

int vg_json_iter_init(struct vg_json_iter *it, struct vg_slice text)
{
    const char *p = text.n ? text.p : "";
    const char *end = p + text.n;
    p = vg_json_skip_space(p, end);
    if (p == end)
        return VIGIL_E_JSON_SYNTAX;
    if (*p != '{' && *p != '[')
        return VIGIL_E_JSON_TYPE;
    *it = (struct vg_json_iter){.p = p + 1, .end = end, .is_object = *p == '{', .first = true};
    return 0;
}

/* The key and the colon; it->p is then at the value. */
static int read_key(struct vg_json_iter *it, struct vg_json_raw *ret)
{
    const char *p = it->p;
    if (peek(p, it->end) != '"')
        return VIGIL_E_JSON_SYNTAX;
    const char *q = vg_json_skip_string(p, it->end, &ret->key_is_escaped);
    if (!q)
        return VIGIL_E_JSON_SYNTAX;
    ret->key = vg_slice(p + 1, (size_t)(q - p) - 2);
    q = vg_json_skip_space(q, it->end);
    if (peek(q, it->end) != ':')
        return VIGIL_E_JSON_SYNTAX;
    it->p = vg_json_skip_space(q + 1, it->end);
    return 0;
}

/* Of items there is no key. */
int vg_json_iter_key(struct vg_json_iter *it, struct vg_json_raw *ret)
{
    const char *p = vg_json_skip_space(it->p, it->end);
    char c = peek(p, it->end);
    if (c == (it->is_object ? '}' : ']')) {
        it->p = p + 1;
        return 0;
    }
    if (!it->first) {
        if (c != ',')
            return VIGIL_E_JSON_SYNTAX;
        p = vg_json_skip_space(p + 1, it->end);
    }
    it->first = false;
    it->p = p;
    *ret = (struct vg_json_raw){0};
    int r = it->is_object ? read_key(it, ret) : 0;
    return r < 0 ? r : 1;
}

int vg_json_iter_value(struct vg_json_iter *it, struct vg_slice *ret)
{
    const char *q = skip_value(it->p, it->end);
    if (!q)
        return VIGIL_E_JSON_SYNTAX;
    *ret = vg_slice(it->p, (size_t)(q - it->p));
    it->p = q;
    return 0;
}

int vg_json_iter_next(struct vg_json_iter *it, struct vg_json_raw *ret)
{
    int r = vg_json_iter_key(it, ret);
    if (r <= 0)
        return r;
    r = vg_json_iter_value(it, &ret->value);
    return r < 0 ? r : 1;
}

bool vg_json_iter_down(const struct vg_json_iter *it, struct vg_json_iter *ret)
{
    if (peek(it->p, it->end) != '{')
        return false;
    *ret = (struct vg_json_iter){.p = it->p + 1, .end = it->end, .is_object = true, .first = true};
    return true;
}

int vg_json_iter_up(struct vg_json_iter *it, const struct vg_json_iter *inner, bool is_done)
{
    const char *p = is_done ? inner->p : vg_json_skip_rest(inner->p, inner->end);
    if (!p)
        return VIGIL_E_JSON_SYNTAX;
    it->p = p;
    return 0;
}

/* ---- keys and strings ---- */

bool vg_json_raw_key_eq(struct vg_slice raw, struct vg_slice key)
{
    const char *p = raw.p, *end = raw.p + raw.n;
    size_t at = 0;
    while (p < end) {
        char unit[4];
        size_t n = vg_json_decode_unit(&p, end, unit);
        if (n == 0 || n > key.n - at || memcmp(unit, key.p + at, n) != 0)
            return false;
        at += n;
    }
    return at == key.n;
}

static inline bool key_matches(const struct vg_json_raw *raw, struct vg_slice key)
{
    return raw->key_is_escaped ? vg_json_raw_key_eq(raw->key, key) : vg_slice_eq(raw->key, key);
}

/* A bad byte may become three. */
static int unescape(struct vg_arena *a, struct vg_slice raw, struct vg_slice *ret)
{
    char *text = raw.n <= SIZE_MAX / 3 ? vg_arena_alloc(a, raw.n * 3, 1) : NULL;
    if (!text)
        return -ENOMEM;
    const char *p = raw.p, *end = raw.p + raw.n;
    size_t n = 0;
    while (p < end) {
        char unit[4];
        size_t got = vg_json_decode_unit(&p, end, unit);
        if (got == 0)
            return VIGIL_E_JSON_SYNTAX;
        memcpy(text + n, unit, got);
        n += got;
    }
    *ret = vg_slice(text, n);
    return 0;
}

int vg_json_raw_text(struct vg_arena *a, struct vg_slice value, struct vg_slice *ret)
{
    bool escaped;
    if (value.n == 0 || value.p[0] != '"')
        return VIGIL_E_JSON_TYPE;
    const char *end = value.p + value.n;
    if (vg_json_skip_string(value.p, end, &escaped) != end)
        return VIGIL_E_JSON_SYNTAX;
    struct vg_slice raw = vg_slice(value.p + 1, value.n - 2);
    if (escaped)
        return unescape(a, raw, ret);
    *ret = raw;
    return 0;
}

/* ---- paths ---- */

/* From the container at *text to the start of the child that the step names. */
static int descend(struct vg_slice *text, const struct vg_json_step *step)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    int r = vg_json_iter_init(&it, *text);
    if (r < 0)
        return r == VIGIL_E_JSON_TYPE ? VIGIL_E_NOT_FOUND : r;
    bool by_key = step->key.p != NULL;
    if (it.is_object != by_key)
        return VIGIL_E_NOT_FOUND;
    for (size_t i = 0; (r = vg_json_iter_key(&it, &raw)) > 0; i++) {
        if (by_key ? key_matches(&raw, step->key) : i == step->index) {
            *text = vg_slice(it.p, (size_t)(it.end - it.p));
            return 0;
        }
        r = vg_json_iter_value(&it, &raw.value);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : VIGIL_E_NOT_FOUND;
}

int vg_json_find(struct vg_slice text, const struct vg_json_step *path, size_t n,
                 struct vg_slice *ret_value)
{
    struct vg_slice at = text;
    for (size_t i = 0; i < n; i++) {
        int r = descend(&at, &path[i]);
        if (r < 0)
            return r;
    }
    const char *p = at.n ? at.p : "";
    const char *end = p + at.n;
    p = vg_json_skip_space(p, end);
    const char *q = skip_value(p, end);
    if (!q)
        return VIGIL_E_JSON_SYNTAX;
    *ret_value = vg_slice(p, (size_t)(q - p));
    return 0;
}
