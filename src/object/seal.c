/* seal.c - from a JSON object to a value and its header; see seal.h.
 * The header is made from the finished text of the value, by one pass over its members that goes
 * down into metadata and where a selectable field may be, and ends when nothing is missing. Texts
 * stay where they are; what is escaped in the value, and what a missing field reads as, is copied
 * to the tail. */
#include "seal.h"

#include <errno.h>
#include <stdlib.h>

#include "header_int.h"
#include "json/scan.h"

/* A text by its place: in the value, or from value.n on in the tail. */
struct ref {
    uint32_t at, n;
};

/* One header in the making. */
struct sealing {
    const struct vg_obj_fields *fields;
    struct vg_slice value;
    struct ref name, ns, uid;
    struct ref field[VG_OBJ_FIELDS_MAX];
    uint32_t found;        /* bit i: field[i] is set */
    struct vg_buf labels;  /* struct vg_label_ref, one after the other */
    struct vg_buf tail;    /* copied texts */
    struct vg_arena arena; /* unescaped texts on their way to the tail */
    uint8_t flags;
    bool has_metadata; /* it was there, and an object */
    struct vg_status *status;
};

static void sealing_init(struct sealing *s, const struct vg_obj_fields *fields,
                         struct vg_slice value, struct vg_status *status)
{
    *s = (struct sealing){.fields = fields, .value = value, .status = status};
    vg_buf_init(&s->labels, VG_OBJ_VALUE_MAX);
    vg_buf_init(&s->tail, VG_OBJ_VALUE_MAX);
    vg_arena_init(&s->arena, 0, 4 * VG_OBJ_VALUE_MAX); /* unescaping takes room for three times */
}

static void sealing_done(struct sealing *s)
{
    vg_buf_done(&s->labels);
    vg_buf_done(&s->tail);
    vg_arena_done(&s->arena);
}

/* ---- texts ---- */

static int copy_to_tail(struct sealing *s, struct vg_slice text, struct ref *ret)
{
    struct ref r = {(uint32_t)(s->value.n + s->tail.n), (uint32_t)text.n};
    int err = vg_buf_append_slice(&s->tail, text);
    if (err == 0)
        *ret = r;
    return err;
}

static struct ref place_in_value(const struct sealing *s, struct vg_slice text)
{
    return (struct ref){(uint32_t)(text.p - s->value.p), (uint32_t)text.n};
}

static bool is_string(struct vg_slice raw)
{
    return raw.n >= 2 && raw.p[0] == '"';
}

static bool is_escaped(struct vg_slice raw)
{
    return raw.n && memchr(raw.p, '\\', raw.n);
}

static int copy_string(struct sealing *s, struct vg_slice raw, struct ref *ret)
{
    struct vg_slice text;
    int err = vg_json_raw_text(&s->arena, raw, &text);
    if (err == 0)
        err = copy_to_tail(s, text, ret);
    vg_arena_reset(&s->arena);
    return err;
}

static int ref_string(struct sealing *s, struct vg_slice raw, struct ref *ret)
{
    if (is_escaped(raw))
        return copy_string(s, raw, ret);
    *ret = place_in_value(s, vg_slice(raw.p + 1, raw.n - 2));
    return 0;
}

static bool is_key(const struct vg_json_raw *raw, struct vg_slice key)
{
    return raw->key_is_escaped ? vg_json_raw_key_eq(raw->key, key) : vg_slice_eq(raw->key, key);
}

/* ---- labels ---- */

static struct vg_labels labels_of(const struct sealing *s)
{
    return (struct vg_labels){
        .base = s->flags & VG_OBJ_LABELS_IN_TAIL ? s->tail.p : s->value.p,
        .v = (const struct vg_label_ref *)(const void *)s->labels.p,
        .n = (uint32_t)(s->labels.n / sizeof(struct vg_label_ref)),
    };
}

/* The key or value of a label. A null value reads as the empty text, as in Go. */
static int ref_label(struct sealing *s, struct vg_slice raw, struct ref *ret)
{
    *ret = (struct ref){0};
    if (raw.n && raw.p[0] == 'n')
        return 0;
    if (!is_string(raw))
        return vg_fail(s->status, VIGIL_E_INVALID, "a value in metadata.labels is not a string");
    int err = 0;
    if (s->flags & VG_OBJ_LABELS_IN_TAIL)
        err = copy_string(s, raw, ret);
    else /* nothing is escaped in any of them */
        *ret = place_in_value(s, vg_slice(raw.p + 1, raw.n - 2));
    if (err == 0 && ret->n > VG_LABEL_BYTES_MAX)
        err = vg_fail(s->status, VIGIL_E_TOO_LARGE, "a label has %u bytes, the most is %u", ret->n,
                      VG_LABEL_BYTES_MAX);
    return err;
}

/* The place of a label's text as labels count it, from the base. */
static uint32_t from_base(const struct sealing *s, struct ref r)
{
    bool in_tail = s->flags & VG_OBJ_LABELS_IN_TAIL;
    return r.n == 0 ? 0 : in_tail ? r.at - (uint32_t)s->value.n : r.at;
}

static int add_label(struct sealing *s, const struct vg_json_raw *raw)
{
    struct ref key = {0}, value = {0};
    int err = ref_label(s, vg_slice(raw->key.p - 1, raw->key.n + 2), &key);
    if (err == 0)
        err = ref_label(s, raw->value, &value);
    if (err < 0)
        return err;
    struct vg_label_ref label = {
        .key = from_base(s, key),
        .value = from_base(s, value),
        .key_n = (uint16_t)key.n,
        .value_n = (uint16_t)value.n,
    };
    return vg_buf_append(&s->labels, &label, sizeof label);
}

static int compare_labels(const void *a, const void *b, void *base)
{
    const struct vg_label_ref *x = a, *y = b;
    return vg_slice_cmp(vg_slice((char *)base + x->key, x->key_n),
                        vg_slice((char *)base + y->key, y->key_n));
}

/* Mostly they come sorted. */
static int sort_labels(struct sealing *s)
{
    struct vg_labels l = labels_of(s);
    size_t base_n = s->flags & VG_OBJ_LABELS_IN_TAIL ? s->tail.n : s->value.n;
    if (vg_labels_is_sound(&l, base_n))
        return 0;
    qsort_r(s->labels.p, l.n, sizeof(struct vg_label_ref), compare_labels, (char *)l.base);
    if (!vg_labels_is_sound(&l, base_n))
        return vg_fail(s->status, VIGIL_E_INVALID, "metadata.labels has a key twice");
    return 0;
}

/* One escape among them, and all are copied: they count from one base. For that reason there is one
 * set of labels; text that nobody checked may have more. */
static int put_labels(struct sealing *s, struct vg_slice text)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    if (s->labels.n)
        return vg_fail(s->status, VIGIL_E_INVALID, "metadata.labels is there twice");
    if (vg_slice_eq(text, VG_SLICE_LIT("null")))
        return 0;
    int err = vg_json_iter_init(&it, text);
    if (err < 0 || !it.is_object)
        return vg_fail(s->status, VIGIL_E_INVALID, "metadata.labels is not an object");
    if (is_escaped(text))
        s->flags |= VG_OBJ_LABELS_IN_TAIL;
    while ((err = vg_json_iter_next(&it, &raw)) > 0) {
        err = add_label(s, &raw);
        if (err < 0)
            return err;
    }
    return err < 0 ? err : sort_labels(s);
}

/* ---- metadata ---- */

static int put_meta_text(struct sealing *s, const char *key, struct vg_slice raw, struct ref *ret)
{
    if (vg_slice_eq(raw, VG_SLICE_LIT("null")))
        return 0;
    if (!is_string(raw))
        return vg_fail(s->status, VIGIL_E_INVALID, "metadata.%s is not a string", key);
    return ref_string(s, raw, ret);
}

static int put_meta_member(struct sealing *s, const struct vg_json_raw *raw)
{
    if (is_key(raw, VG_SLICE_LIT("name")))
        return put_meta_text(s, "name", raw->value, &s->name);
    if (is_key(raw, VG_SLICE_LIT("namespace")))
        return put_meta_text(s, "namespace", raw->value, &s->ns);
    if (is_key(raw, VG_SLICE_LIT("uid")))
        return put_meta_text(s, "uid", raw->value, &s->uid);
    if (is_key(raw, VG_SLICE_LIT("labels")))
        return put_labels(s, raw->value);
    if (is_key(raw, VG_SLICE_LIT("deletionTimestamp")) && is_string(raw->value))
        s->flags |= VG_OBJ_IS_DELETING;
    return 0;
}

/* ---- fields ---- */

static bool is_path_end(const struct vg_obj_field_def *def, uint32_t depth)
{
    return depth == VG_OBJ_PATH_MAX || !def->path[depth];
}

/* Which of the wanted fields lie at or below this member. */
static uint32_t fields_below(const struct sealing *s, const struct vg_json_raw *raw,
                             uint32_t wanted, uint32_t depth)
{
    uint32_t below = 0;
    char first = raw->key.n ? raw->key.p[0] : '\0';
    for (; wanted; wanted &= wanted - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(wanted);
        const struct vg_obj_field_def *def = &s->fields->v[i];
        if (is_path_end(def, depth) || (def->path[depth][0] != first && !raw->key_is_escaped))
            continue;
        if (is_key(raw, vg_slice_str(def->path[depth])))
            below |= 1u << i;
    }
    return below;
}

/* Strings, numbers and booleans are values; all else reads as if it were missing. */
static int put_field(struct sealing *s, uint32_t i, struct vg_slice raw)
{
    if (raw.n == 0 || raw.p[0] == '{' || raw.p[0] == '[' || raw.p[0] == 'n')
        return 0;
    s->found |= 1u << i;
    if (is_string(raw))
        return ref_string(s, raw, &s->field[i]);
    s->field[i] = place_in_value(s, raw);
    return 0;
}

/* Those that the value is; the others lie below it and stay in *fields. */
static int put_fields_ending(struct sealing *s, struct vg_slice raw, uint32_t *fields,
                             uint32_t depth)
{
    for (uint32_t rest = *fields; rest; rest &= rest - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(rest);
        if (!is_path_end(&s->fields->v[i], depth))
            continue;
        *fields &= ~(1u << i);
        int err = put_field(s, i, raw);
        if (err < 0)
            return err;
    }
    return 0;
}

/* ---- the walk ---- */

/* Where a member is: in metadata more is wanted than fields. */
enum place { TOP, METADATA, ELSEWHERE };

static int put_members(struct sealing *s, struct vg_json_iter *it, uint32_t wanted, uint32_t depth,
                       enum place place);

static int put_whole(struct sealing *s, struct vg_json_iter *it, struct vg_json_raw *raw,
                     uint32_t below, uint32_t depth, enum place place)
{
    struct vg_json_iter inner;
    int err = vg_json_iter_value(it, &raw->value);
    if (err == 0 && below)
        err = put_fields_ending(s, raw->value, &below, depth + 1);
    if (err == 0 && place == METADATA)
        err = put_meta_member(s, raw);
    if (err < 0 || !below || vg_json_iter_init(&inner, raw->value) < 0 || !inner.is_object)
        return err;
    err = put_members(s, &inner, below, depth + 1, ELSEWHERE); /* of something in metadata */
    return err < 0 ? err : 0;
}

/* A member, at whose value `it` stands. Goes no deeper than the longest path. */
static int put_member(struct sealing *s, struct vg_json_iter *it, struct vg_json_raw *raw,
                      uint32_t below, uint32_t depth, enum place place)
{
    struct vg_json_iter inner;
    bool is_metadata = place == TOP && !s->has_metadata && is_key(raw, VG_SLICE_LIT("metadata"));
    if (place == METADATA || (!below && !is_metadata) || !vg_json_iter_down(it, &inner))
        return put_whole(s, it, raw, below, depth, place);
    s->has_metadata = s->has_metadata || is_metadata;
    int r = put_members(s, &inner, below, depth + 1, is_metadata ? METADATA : ELSEWHERE);
    return r < 0 ? r : vg_json_iter_up(it, &inner, r == 0);
}

/* 0: all of them were seen; 1: nothing more is wanted of the others. */
static int put_members(struct sealing *s, struct vg_json_iter *it, uint32_t wanted, uint32_t depth,
                       enum place place)
{
    struct vg_json_raw raw;
    int r;
    while ((r = vg_json_iter_key(it, &raw)) > 0) {
        uint32_t below = fields_below(s, &raw, wanted, depth);
        wanted &= ~below;
        r = put_member(s, it, &raw, below, depth, place);
        if (r < 0)
            return r;
        if (!wanted && place != METADATA && (place != TOP || s->has_metadata))
            return 1;
    }
    return r;
}

static int put_all_members(struct sealing *s)
{
    uint32_t n = s->fields->n;
    struct vg_json_iter it;
    if (n > VG_OBJ_FIELDS_MAX ||
        (s->fields->trigger >= n && s->fields->trigger != VG_OBJ_NO_TRIGGER))
        return vg_fail(s->status, VIGIL_E_INVALID, "the kind's selectable fields are malformed");
    uint32_t all = n == 32 ? UINT32_MAX : (1u << n) - 1;
    int err = vg_json_iter_init(&it, s->value);
    if (err == 0 && it.is_object)
        err = put_members(s, &it, all, 0, TOP);
    if (err >= 0 && !s->has_metadata)
        return vg_fail(s->status, VIGIL_E_INVALID, "metadata is missing or not an object");
    if (err >= 0 && s->name.n == 0)
        return vg_fail(s->status, VIGIL_E_INVALID, "metadata.name is missing or empty");
    return err < 0 ? err : 0;
}

/* ---- what is read where nothing stands ---- */

static int put_missing(struct sealing *s)
{
    int err = 0;
    for (uint32_t i = 0; i < s->fields->n && err == 0; i++) {
        const char *missing = s->fields->v[i].missing;
        if (!(s->found >> i & 1) && missing && *missing)
            err = copy_to_tail(s, vg_slice_str(missing), &s->field[i]);
    }
    return err;
}

/* After put_missing: both fields then have what they read as. */
static void put_instead(struct sealing *s)
{
    for (uint32_t i = 0; i < s->fields->n; i++) {
        const char *instead = s->fields->v[i].instead;
        if (!instead || s->field[i].n)
            continue;
        uint32_t other = vg_obj_fields_find(s->fields, vg_slice_str(instead));
        if (other != VG_OBJ_NO_TRIGGER)
            s->field[i] = s->field[other];
    }
}

/* ---- the header ---- */

static void write_u32(char *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}

static void write_ref(char *p, struct ref r)
{
    write_u32(p, r.at);
    write_u32(p + 4, r.n);
}

static void write_fixed(const struct sealing *s, struct vg_obj_layout layout, char *p)
{
    p[VG_HEADER_AT_VERSION] = VG_OBJ_HEADER_VERSION;
    p[VG_HEADER_AT_FLAGS] = (char)s->flags;
    p[VG_HEADER_AT_FIELDS_N] = (char)s->fields->n;
    p[VG_HEADER_AT_TRIGGER] = (char)s->fields->trigger;
    write_u32(p + VG_HEADER_AT_VALUE_N, (uint32_t)s->value.n);
    write_u32(p + VG_HEADER_AT_ITEM, layout.item_at);
    write_u32(p + VG_HEADER_AT_REV, layout.rev_at);
    write_u32(p + VG_HEADER_AT_LABELS_N, labels_of(s).n);
    write_ref(p + VG_HEADER_AT_NAME, s->name);
    write_ref(p + VG_HEADER_AT_NAMESPACE, s->ns);
    write_ref(p + VG_HEADER_AT_UID, s->uid);
    for (uint32_t i = 0; i < s->fields->n; i++)
        write_ref(p + VG_HEADER_AT_FIELDS + (size_t)VG_HEADER_REF_SIZE * i, s->field[i]);
}

static int write_header(const struct sealing *s, struct vg_obj_layout layout, struct vg_buf *out)
{
    size_t fixed = VG_HEADER_AT_FIELDS + (size_t)VG_HEADER_REF_SIZE * s->fields->n;
    int err = vg_buf_reserve(out, fixed + s->labels.n + s->tail.n);
    if (err < 0)
        return err;
    write_fixed(s, layout, out->p + out->n);
    out->n += fixed;
    err = vg_buf_append_slice(out, vg_buf_slice(&s->labels)); /* these two have their room */
    return err < 0 ? err : vg_buf_append_slice(out, vg_buf_slice(&s->tail));
}

int vg_obj_make_header(const struct vg_obj_fields *fields, struct vg_slice value,
                       struct vg_obj_layout layout, struct vg_buf *out,
                       struct vg_status *reterr_status)
{
    struct sealing s;
    if (value.n > VG_OBJ_VALUE_MAX)
        return vg_fail(reterr_status, VIGIL_E_TOO_LARGE, "the object has %zu bytes", value.n);
    sealing_init(&s, fields, value, reterr_status);
    int err = put_all_members(&s);
    if (err == 0)
        err = put_missing(&s);
    if (err == 0)
        put_instead(&s);
    if (err == 0)
        err = write_header(&s, layout, out);
    sealing_done(&s);
    return err;
}

/* ---- both steps ---- */

void vg_obj_sealed_done(struct vg_obj_sealed *s)
{
    vg_buf_done(&s->value);
    vg_buf_done(&s->header);
}

static int seal(const struct vg_obj_fields *fields, const struct vg_json *object,
                struct vg_slice source, struct vg_obj_sealed *s, struct vg_status *status)
{
    struct vg_obj_layout layout;
    int err = vg_obj_write_canonical(&s->value, object, source, &layout, status);
    if (err < 0)
        return err;
    return vg_obj_make_header(fields, vg_buf_slice(&s->value), layout, &s->header, status);
}

int vg_obj_seal_from(const struct vg_obj_fields *fields, const struct vg_json *object,
                     struct vg_slice source, struct vg_obj_sealed *s,
                     struct vg_status *reterr_status)
{
    vg_buf_clear(&s->value);
    vg_buf_clear(&s->header);
    int err = seal(fields, object, source, s, reterr_status);
    if (err < 0) {
        vg_buf_clear(&s->value);
        vg_buf_clear(&s->header);
    }
    return err;
}

int vg_obj_seal(const struct vg_obj_fields *fields, const struct vg_json *object,
                struct vg_obj_sealed *s, struct vg_status *reterr_status)
{
    return vg_obj_seal_from(fields, object, (struct vg_slice){0}, s, reterr_status);
}

int vg_obj_seal_text(const struct vg_obj_fields *fields, struct vg_slice text,
                     struct vg_arena *arena, struct vg_obj_sealed *s,
                     struct vg_status *reterr_status)
{
    struct vg_json *object;
    vg_buf_clear(&s->value);
    vg_buf_clear(&s->header);
    int err = vg_json_parse(arena, text, NULL, &object, reterr_status);
    return err < 0 ? err : vg_obj_seal(fields, object, s, reterr_status);
}

uint32_t vg_obj_fields_find(const struct vg_obj_fields *fields, struct vg_slice label)
{
    for (uint32_t i = 0; i < fields->n; i++)
        if (vg_slice_eq(label, vg_slice_str(fields->v[i].label)))
            return i;
    return VG_OBJ_NO_TRIGGER;
}
