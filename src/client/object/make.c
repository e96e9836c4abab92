/* make.c - from JSON bytes to a block with an index.
 * The bytes are scanned once where they lie: top members, metadata, labels; everything else is
 * jumped over. Only then is the size known, and one allocation and one copy make the block. Of
 * members given twice the first counts, as in vigil_get. */
#include <errno.h>

#include "base/alloc.h"
#include "object_int.h"
#include "json/bytes.h"
#include "json/scan.h"

/* A string as it stands between its quotes. p == NULL: not there. */
struct raw {
    struct vg_slice s;
    bool is_escaped;
};

struct raw_label {
    struct raw key, value;
};

/* Labels without an allocation; real objects have fewer than ten. */
#define LABELS_AT_HAND 24u

struct found {
    struct vg_slice json;
    struct raw kind, api_version, name, ns, uid, version;
    bool has_metadata;
    struct raw_label at_hand[LABELS_AT_HAND];
    struct raw_label *labels; /* at_hand or allocated */
    size_t n_labels, cap_labels;
};

static bool key_is(const struct vg_json_raw *raw, struct vg_slice key)
{
    return raw->key_is_escaped ? vg_json_raw_key_eq(raw->key, key) : vg_slice_eq(raw->key, key);
}

static int read_string(struct vg_slice value, size_t max, struct raw *ret)
{
    if (ret->s.p || vg_slice_eq(value, VG_SLICE_LIT("null")))
        return 0;
    if (value.n < 2 || value.p[0] != '"')
        return VIGIL_E_JSON_TYPE;
    if (value.n - 2 > max)
        return VIGIL_E_TOO_LARGE;
    ret->s = vg_slice(value.p + 1, value.n - 2);
    ret->is_escaped = memchr(ret->s.p, '\\', ret->s.n) != NULL;
    return 0;
}

/* ---- labels ---- */

static int grow_labels(struct found *f)
{
    if (f->n_labels == VG_OBJECT_LABELS_MAX)
        return VIGIL_E_TOO_LARGE;
    size_t cap = f->cap_labels * 4;
    bool was_at_hand = f->labels == f->at_hand;
    struct raw_label *v = vg_reallocarray(was_at_hand ? NULL : f->labels, cap, sizeof(*v));
    if (!v)
        return -ENOMEM;
    if (was_at_hand)
        memcpy(v, f->at_hand, sizeof(f->at_hand));
    f->labels = v;
    f->cap_labels = cap;
    return 0;
}

static int read_labels(struct found *f, struct vg_slice text)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    if (vg_slice_eq(text, VG_SLICE_LIT("null")))
        return 0;
    int r = vg_json_iter_init(&it, text);
    if (r == 0 && !it.is_object)
        r = VIGIL_E_JSON_TYPE;
    while (r >= 0 && (r = vg_json_iter_next(&it, &raw)) > 0) {
        if (f->n_labels == f->cap_labels && (r = grow_labels(f)) < 0)
            break;
        struct raw_label *l = &f->labels[f->n_labels++];
        *l = (struct raw_label){.key = {raw.key, raw.key_is_escaped}};
        if (raw.key.n > VG_OBJECT_TEXT_MAX)
            return VIGIL_E_TOO_LARGE;
        r = read_string(raw.value, VG_OBJECT_TEXT_MAX, &l->value);
        if (r == 0 && !l->value.s.p)
            l->value.s = vg_slice(raw.key.p, 0); /* null reads as the empty text, as in Go */
    }
    return r;
}

/* ---- members ---- */

static int read_metadata_member(struct found *f, const struct vg_json_raw *raw)
{
    if (key_is(raw, VG_SLICE_LIT("name")))
        return read_string(raw->value, VG_OBJECT_TEXT_MAX, &f->name);
    if (key_is(raw, VG_SLICE_LIT("namespace")))
        return read_string(raw->value, VG_OBJECT_TEXT_MAX, &f->ns);
    if (key_is(raw, VG_SLICE_LIT("uid")))
        return read_string(raw->value, VG_OBJECT_TEXT_MAX, &f->uid);
    if (key_is(raw, VG_SLICE_LIT("resourceVersion")))
        return read_string(raw->value, VG_OBJECT_VERSION_MAX, &f->version);
    if (key_is(raw, VG_SLICE_LIT("labels")) && f->n_labels == 0)
        return read_labels(f, raw->value);
    return 0;
}

static int read_metadata(struct found *f, struct vg_slice text)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    if (f->has_metadata)
        return 0;
    f->has_metadata = true;
    int r = vg_json_iter_init(&it, text);
    if (r == 0 && !it.is_object)
        r = VIGIL_E_JSON_TYPE;
    while (r >= 0 && (r = vg_json_iter_next(&it, &raw)) > 0)
        r = read_metadata_member(f, &raw);
    return r;
}

static int read_member(struct found *f, const struct vg_json_raw *raw)
{
    if (key_is(raw, VG_SLICE_LIT("metadata")))
        return read_metadata(f, raw->value);
    if (key_is(raw, VG_SLICE_LIT("kind")))
        return read_string(raw->value, VG_OBJECT_TEXT_MAX, &f->kind);
    if (key_is(raw, VG_SLICE_LIT("apiVersion")))
        return read_string(raw->value, VG_OBJECT_TEXT_MAX, &f->api_version);
    return 0;
}

static int read_object(struct found *f, struct vg_slice json)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    if (json.n > VG_OBJECT_BYTES_MAX)
        return VIGIL_E_TOO_LARGE;
    int r = vg_json_iter_init(&it, json);
    if (r < 0)
        return r;
    if (!it.is_object)
        return VIGIL_E_JSON_TYPE;
    const char *begin = it.p - 1;
    while ((r = vg_json_iter_next(&it, &raw)) > 0)
        if ((r = read_member(f, &raw)) < 0)
            return r;
    if (r < 0)
        return r;
    if (vg_json_skip_space(it.p, it.end) != it.end)
        return VIGIL_E_JSON_SYNTAX;
    f->json = vg_slice(begin, (size_t)(it.p - begin));
    return f->name.s.n ? 0 : VIGIL_E_INVALID;
}

/* ---- the block ---- */

/* Being filled: where the JSON begins, where the tail goes on. */
struct block {
    struct vigil_object *o;
    char *base;
    size_t tail; /* offset of the next text */
    const char *json;
    size_t shift; /* bytes put before what followed the JSON's opening brace */
};

/* Bytes that it may take in the tail: a bad byte may become three. */
static size_t tail_room(const struct raw *raw)
{
    return raw->is_escaped ? raw->s.n * 3 : 0;
}

/* Where the copy ends; NULL: malformed. */
static char *copy_unescaped(char *to, const struct raw *raw)
{
    const char *p = raw->s.p, *end = p + raw->s.n;
    while (p < end) {
        char unit[4];
        size_t n = vg_json_decode_unit(&p, end, unit);
        if (n == 0)
            return NULL;
        memcpy(to, unit, n);
        to += n;
    }
    return to;
}

static char *copy_text(char *to, const struct raw *raw)
{
    if (raw->is_escaped)
        return copy_unescaped(to, raw);
    if (raw->s.n)
        memcpy(to, raw->s.p, raw->s.n);
    return to + raw->s.n;
}

/* A text by offset: where it stands in the JSON, or unescaped in the tail. */
static int place(struct block *b, const struct raw *raw, uint32_t *ret_at, uint16_t *ret_n)
{
    size_t n = raw->s.n, tail = b->tail;
    *ret_at = (uint32_t)tail;
    if (raw->is_escaped) {
        char *end = copy_unescaped(b->base + tail, raw);
        if (!end)
            return VIGIL_E_JSON_SYNTAX;
        b->tail = (size_t)(end - b->base);
        n = b->tail - tail;
    } else if (raw->s.p) {
        *ret_at = (uint32_t)((size_t)(raw->s.p - b->json) + b->shift);
    }
    *ret_n = (uint16_t)n;
    return 0;
}

/* No JSON holds the key; name and namespace are read from it. */
static int place_key(struct vigil_object *o, const struct found *f)
{
    char *start = (char *)(o + 1), *p = copy_text(start, &f->ns);
    if (!p)
        return VIGIL_E_JSON_SYNTAX;
    o->ns_n = (uint16_t)(p - start);
    if (o->ns_n)
        *p++ = '/';
    p = copy_text(p, &f->name);
    if (!p)
        return VIGIL_E_JSON_SYNTAX;
    o->key_n = (uint16_t)(p - start);
    return 0;
}

static int place_labels(struct block *b, const struct found *f)
{
    struct vg_label_ref *v = (struct vg_label_ref *)(uintptr_t)vg_object_label_refs(b->o);
    size_t n = 0;
    for (size_t i = 0; i < f->n_labels; i++) {
        uint32_t key, value;
        uint16_t key_n, value_n;
        int r = place(b, &f->labels[i].key, &key, &key_n);
        if (r == 0)
            r = place(b, &f->labels[i].value, &value, &value_n);
        if (r < 0)
            return r;
        /* Insertion keeps them sorted; servers send them so already. */
        struct vg_slice k = vg_slice(b->base + key, key_n);
        struct vg_labels so_far = {b->base, v, (uint32_t)n};
        uint32_t at = (uint32_t)n;
        if (n && vg_slice_cmp(vg_labels_key(&so_far, (uint32_t)n - 1), k) >= 0)
            at = vg_labels_lower_bound(&so_far, k, 0);
        if (at < n && vg_slice_eq(vg_labels_key(&so_far, at), k))
            continue;
        memmove(&v[at + 1], &v[at], (n - at) * sizeof(*v));
        v[at] = (struct vg_label_ref){key, value, key_n, value_n};
        n++;
    }
    b->o->n_labels = (uint16_t)n;
    return 0;
}

/* ---- kind and apiVersion of list items ---- */

/* Both members; kinds have at most 63 bytes, groups 253. */
#define PREFIX_MAX 512u

/* What is put after the opening brace. */
struct prefix {
    size_t n, kind_at, api_version_at; /* offsets of the values; 0: not put */
    char bytes[PREFIX_MAX];
};

static size_t add_member(struct prefix *p, struct vg_slice name, struct vg_slice value)
{
    memcpy(p->bytes + p->n, name.p, name.n);
    p->n += name.n;
    size_t at = p->n;
    memcpy(p->bytes + p->n, value.p, value.n);
    memcpy(p->bytes + p->n + value.n, "\",", 2);
    p->n += value.n + 2;
    return at;
}

static int make_prefix(struct prefix *p, const struct found *f, const struct vg_object_type *type)
{
    p->n = p->kind_at = p->api_version_at = 0;
    if (!type)
        return 0;
    if (type->kind.n + type->api_version.n > PREFIX_MAX - 64)
        return VIGIL_E_TOO_LARGE;
    if (!f->kind.s.p && type->kind.n)
        p->kind_at = add_member(p, VG_SLICE_LIT("\"kind\":\""), type->kind);
    if (!f->api_version.s.p && type->api_version.n)
        p->api_version_at = add_member(p, VG_SLICE_LIT("\"apiVersion\":\""), type->api_version);
    return 0;
}

/* ---- all together ---- */

/* For the key and the tail. */
static size_t texts_room(const struct found *f)
{
    size_t n = 1 + f->name.s.n + tail_room(&f->name) + f->ns.s.n + tail_room(&f->ns);
    n += tail_room(&f->kind) + tail_room(&f->api_version) + tail_room(&f->uid);
    n += tail_room(&f->version);
    for (size_t i = 0; i < f->n_labels; i++)
        n += tail_room(&f->labels[i].key) + tail_room(&f->labels[i].value);
    return n;
}

static int fill(struct block *b, const struct found *f)
{
    struct vigil_object *o = b->o;
    int r = place(b, &f->kind, &o->kind, &o->kind_n);
    if (r == 0)
        r = place(b, &f->api_version, &o->api_version, &o->api_version_n);
    if (r == 0)
        r = place(b, &f->uid, &o->uid, &o->uid_n);
    if (r == 0)
        r = place(b, &f->version, &o->version, &o->version_n);
    return r == 0 ? place_labels(b, f) : r;
}

static void fill_type(struct vigil_object *o, const struct prefix *p,
                      const struct vg_object_type *type)
{
    if (p->kind_at) {
        o->kind = (uint32_t)p->kind_at + 1; /* after the brace */
        o->kind_n = (uint16_t)type->kind.n;
    }
    if (p->api_version_at) {
        o->api_version = (uint32_t)p->api_version_at + 1;
        o->api_version_n = (uint16_t)type->api_version.n;
    }
}

/* The JSON, with the prefix after its brace. */
static void copy_json(struct block *b, const struct found *f, const struct prefix *prefix)
{
    b->base = (char *)(uintptr_t)vg_object_base(b->o);
    b->base[0] = '{';
    memcpy(b->base + 1, prefix->bytes, prefix->n);
    memcpy(b->base + 1 + prefix->n, f->json.p + 1, f->json.n - 1);
    b->o->json_n = (uint32_t)(f->json.n + prefix->n);
    b->tail = b->o->json_n;
}

static int make_block(const struct found *f, const struct vg_object_type *type,
                      const struct vigil_object **ret)
{
    struct prefix prefix;
    int r = make_prefix(&prefix, f, type);
    if (r < 0)
        return r;
    size_t size = sizeof(struct vigil_object) + f->n_labels * sizeof(struct vg_label_ref);
    struct vigil_object *o = vg_malloc(size + f->json.n + prefix.n + texts_room(f));
    if (!o)
        return -ENOMEM;
    memset(o, 0, sizeof(*o));
    atomic_init(&o->refs, 1);
    o->n_slots = (uint16_t)f->n_labels;
    struct block b = {.o = o, .json = f->json.p, .shift = prefix.n};
    r = place_key(o, f);
    if (r == 0) {
        copy_json(&b, f, &prefix);
        r = fill(&b, f);
    }
    fill_type(o, &prefix, type);
    if (r < 0)
        vg_free(o);
    else
        *ret = o;
    return r;
}

int vg_object_make(struct vg_slice json, const struct vg_object_type *type,
                   const struct vigil_object **ret)
{
    struct found f;
    memset(&f, 0, offsetof(struct found, at_hand));
    f.labels = f.at_hand;
    f.n_labels = 0;
    f.cap_labels = LABELS_AT_HAND;
    int r = read_object(&f, json);
    if (r == 0)
        r = make_block(&f, type, ret);
    if (f.labels != f.at_hand)
        vg_free(f.labels);
    return r;
}

int vg_watch_frame_read(struct vg_slice line, struct vg_watch_frame *ret)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    struct raw type = {.s = {NULL, 0}};
    struct vg_slice object = {NULL, 0};
    int r = vg_json_iter_init(&it, line);
    if (r == 0 && !it.is_object)
        r = VIGIL_E_JSON_TYPE;
    while (r >= 0 && (r = vg_json_iter_next(&it, &raw)) > 0) {
        if (key_is(&raw, VG_SLICE_LIT("type")))
            r = read_string(raw.value, VG_OBJECT_TEXT_MAX, &type);
        else if (key_is(&raw, VG_SLICE_LIT("object")) && !object.p)
            object = raw.value;
    }
    if (r < 0)
        return r;
    if (vg_json_skip_space(it.p, it.end) != it.end)
        return VIGIL_E_JSON_SYNTAX;
    if (!type.s.p || !object.p || object.p[0] != '{')
        return VIGIL_E_JSON_TYPE;
    *ret = (struct vg_watch_frame){type.s, object};
    return 0;
}

struct vg_slice vg_object_item_kind(struct vg_slice list_kind)
{
    struct vg_slice list = VG_SLICE_LIT("List");
    if (list_kind.n <= list.n || memcmp(list_kind.p + list_kind.n - list.n, list.p, list.n) != 0)
        return list_kind;
    return vg_slice(list_kind.p, list_kind.n - list.n);
}
