/* list_reader.c - see list_reader.h.
 * A state per place: in the head (everything outside the items), between items, inside one. Bytes
 * are looked at once here to find where an item ends; inside an item only quotes and brackets
 * count. */
#include "list_reader.h"

#include <errno.h>

#include "base/alloc.h"
#include "json/scan.h"

enum state { HEAD, BETWEEN, ITEM, ENDED };

/* Both kinds of brackets differ by 0x20 in their code and by 2 between open and close. */
static const uint8_t SPECIAL[256] = {
    ['"'] = 1, ['\\'] = 2, ['{'] = 3, ['['] = 3, ['}'] = 4, [']'] = 4,
};

void vg_list_reader_init(struct vg_list_reader *r, struct vg_slice api_version,
                         struct vg_slice kind,
                         int (*on_item)(void *arg, const struct vigil_object *take_o), void *arg)
{
    *r = (struct vg_list_reader){.state = HEAD, .on_item = on_item, .arg = arg};
    r->rest.max = VG_LIST_ITEM_MAX;
    r->head.max = VG_LIST_HEAD_MAX;
    r->fallback_api_version = api_version;
    r->fallback_kind = kind;
}

void vg_list_reader_done(struct vg_list_reader *r)
{
    vg_buf_done(&r->rest);
    vg_buf_done(&r->head);
    vg_buf_done(&r->type_text);
}

/* The text of a top member of the head that may not be complete, {NULL, 0} when it is not there. */
static struct vg_slice head_text(const struct vg_list_reader *r, const char *name)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    if (vg_json_iter_init(&it, vg_buf_slice(&r->head)) < 0)
        return (struct vg_slice){NULL, 0};
    while (vg_json_iter_next(&it, &raw) > 0)
        if (vg_json_raw_key_eq(raw.key, vg_slice_str(name)) && raw.value.n >= 2 &&
            raw.value.p[0] == '"')
            return vg_slice(raw.value.p + 1, raw.value.n - 2);
    return (struct vg_slice){NULL, 0};
}

/* Learn the items' type from what of the head has come. The head may move: keep copies. */
static int learn_type(struct vg_list_reader *r)
{
    struct vg_slice api = head_text(r, "apiVersion"), kind = head_text(r, "kind");
    kind = kind.n ? vg_object_item_kind(kind) : r->fallback_kind;
    api = api.n ? api : r->fallback_api_version;
    int e = vg_buf_append_slice(&r->type_text, api);
    if (e == 0)
        e = vg_buf_append_slice(&r->type_text, kind);
    if (e < 0)
        return e;
    r->type.api_version = vg_slice(r->type_text.p, api.n);
    r->type.kind = vg_slice(r->type_text.p + api.n, kind.n);
    r->has_type = true;
    return 0;
}

static int give_item(struct vg_list_reader *r, struct vg_slice json)
{
    int e = r->has_type ? 0 : learn_type(r);
    const struct vigil_object *o = NULL;
    if (e == 0)
        e = vg_object_make(json, &r->type, &o);
    return e < 0 ? e : r->on_item(r->arg, o);
}

/* Is the array that opens here the value of the top member "items"? */
static bool opens_items(const struct vg_list_reader *r)
{
    static const char KEY[] = "\"items\"";
    if (r->depth != 1 || r->has_items || r->head.n < r->key_at + sizeof(KEY) - 1)
        return false;
    return memcmp(r->head.p + r->key_at, KEY, sizeof(KEY) - 1) == 0;
}

/* One byte of the head. */
static int head_byte(struct vg_list_reader *r, char c)
{
    size_t at = r->head.n;
    int e = vg_buf_append_byte(&r->head, c);
    if (e < 0)
        return e;
    if (r->in_string) {
        r->in_string = r->in_escape || c != '"';
        r->in_escape = !r->in_escape && c == '\\';
        return 0;
    }
    switch (SPECIAL[(uint8_t)c]) {
    case 1:
        r->in_string = true;
        if (r->depth == 1)
            r->key_at = at;
        return 0;
    case 3:
        if (c == '[' && r->depth == 0)
            return VIGIL_E_JSON_TYPE; /* a list is an object */
        if (c == '[' && opens_items(r)) {
            r->has_items = true;
            r->state = BETWEEN;
        }
        r->depth++;
        return 0;
    case 4:
        if (r->depth == 0)
            return VIGIL_E_JSON_SYNTAX;
        r->state = --r->depth == 0 ? ENDED : HEAD;
        return 0;
    default:
        return r->depth == 0 && c > ' ' ? VIGIL_E_JSON_TYPE : 0;
    }
}

static int between_byte(struct vg_list_reader *r, char c)
{
    if (c == ']') {
        r->state = HEAD;
        r->depth--;
        return vg_buf_append_byte(&r->head, c);
    }
    if (c == '{') {
        r->state = ITEM;
        r->depth = 0; /* inside an item it counts from the item; always 2 outside */
        return 0;
    }
    return c == ',' || (uint8_t)c <= ' ' ? 0 : VIGIL_E_JSON_TYPE;
}

/* Past the end of the item that goes on at p, or `end` when it goes on beyond; *ret_ended tells. */
static const char *item_end(struct vg_list_reader *r, const char *p, const char *end,
                            bool *ret_ended)
{
    while (p < end) {
        if (r->in_escape) {
            r->in_escape = false;
            p++;
            continue;
        }
        if (r->in_string) {
            while (p < end && *p != '"' && *p != '\\')
                p++;
            if (p < end) {
                r->in_escape = *p == '\\';
                r->in_string = *p == '\\';
                p++;
            }
            continue;
        }
        uint8_t kind = SPECIAL[(uint8_t)*p++];
        if (kind == 1)
            r->in_string = true;
        else if (kind == 3)
            r->depth++;
        else if (kind == 4 && --r->depth == 0) {
            *ret_ended = true;
            return p;
        }
    }
    return end;
}

/* From within an item on: an item that lies whole in the bytes is not copied. */
static int item_bytes(struct vg_list_reader *r, const char **p, const char *end)
{
    bool ended = false;
    const char *start = *p;
    *p = item_end(r, start, end, &ended);
    struct vg_slice piece = vg_slice(start, (size_t)(*p - start));
    if (!ended || r->rest.n) {
        int e = vg_buf_append_slice(&r->rest, piece);
        if (e < 0 || !ended)
            return e;
        piece = vg_buf_slice(&r->rest);
    }
    int e = give_item(r, piece);
    vg_buf_clear(&r->rest);
    r->state = BETWEEN;
    r->depth = 2;
    return e;
}

int vg_list_reader_feed(struct vg_list_reader *r, struct vg_slice bytes)
{
    const char *p = bytes.p, *end = bytes.p + bytes.n;
    int most = 0;
    while (p < end) {
        int e = 0;
        if (r->state == HEAD)
            e = head_byte(r, *p++);
        else if (r->state == ITEM)
            e = item_bytes(r, &p, end);
        else if (r->state == ENDED)
            e = (uint8_t)*p++ <= ' ' ? 0 : VIGIL_E_JSON_SYNTAX;
        else {
            e = between_byte(r, *p);
            p += r->state != ITEM; /* an item begins with its bracket */
        }
        if (e < 0)
            return e;
        most = VG_MAX(most, e);
    }
    return most;
}

static int head_meta(struct vg_list_reader *r, const char *name, struct vg_slice *ret)
{
    const struct vg_json_step path[] = {vg_json_step_key("metadata"), vg_json_step_key(name)};
    struct vg_slice raw;
    int e = vg_json_find(vg_buf_slice(&r->head), path, 2, &raw);
    *ret = VG_SLICE_LIT("");
    if (e == 0 && raw.n >= 2 && raw.p[0] == '"')
        *ret = vg_slice(raw.p + 1, raw.n - 2);
    return e == VIGIL_E_NOT_FOUND ? 0 : e;
}

int vg_list_reader_end(struct vg_list_reader *r, struct vg_slice *ret_version,
                       struct vg_slice *ret_continue)
{
    if (r->state != ENDED)
        return VIGIL_E_JSON_SYNTAX;
    /* {"items":null} is a list; something without items is not, unless it calls itself one. */
    struct vg_slice kind = head_text(r, "kind");
    bool is_list = r->has_items || (kind.n > 4 && memcmp(kind.p + kind.n - 4, "List", 4) == 0);
    if (!is_list)
        return VIGIL_E_INVALID;
    int e = head_meta(r, "resourceVersion", ret_version);
    return e < 0 ? e : head_meta(r, "continue", ret_continue);
}
