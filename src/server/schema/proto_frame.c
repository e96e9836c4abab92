/* proto_frame.c - what stands around messages: envelopes, lists, frames of a watch; see proto.h. */
#include "proto_int.h"

/* Tag, length and bytes. */
static int put_field(struct vg_buf *out, unsigned number, struct vg_slice s)
{
    char head[VG_PROTO_TAG_MAX + VG_PROTO_VARINT_MAX];
    char *o = vg_proto_write_varint(vg_proto_write_tag(head, number, VG_PROTO_BYTES), s.n);
    int r = vg_buf_append(out, head, (size_t)(o - head));
    return r < 0 ? r : vg_buf_append_slice(out, s);
}

/* Of a field with a number below 16. */
static uint64_t field_size(uint64_t n)
{
    return 1 + vg_proto_varint_size(n) + n;
}

static int put_length(struct vg_buf *out, unsigned number, uint64_t n)
{
    char head[VG_PROTO_TAG_MAX + VG_PROTO_VARINT_MAX];
    char *o = vg_proto_write_varint(vg_proto_write_tag(head, number, VG_PROTO_BYTES), n);
    return vg_buf_append(out, head, (size_t)(o - head));
}

/* ---- the envelope ---- */

int vg_proto_put_head(struct vg_buf *out, struct vg_slice api_version, struct vg_slice kind,
                      uint64_t raw_n)
{
    size_t was = out->n;
    int r = vg_buf_append_slice(out, VG_PROTO_PREFIX);
    if (r == 0)
        r = put_length(out, 1, field_size(api_version.n) + field_size(kind.n));
    if (r == 0)
        r = put_field(out, 1, api_version);
    if (r == 0)
        r = put_field(out, 2, kind);
    if (r == 0)
        r = put_length(out, 2, raw_n);
    if (r < 0)
        out->n = was;
    return r;
}

uint64_t vg_proto_envelope_size(struct vg_slice api_version, struct vg_slice kind, uint64_t raw_n)
{
    return VG_PROTO_PREFIX.n + field_size(field_size(api_version.n) + field_size(kind.n)) +
           field_size(raw_n) + VG_PROTO_TAIL.n;
}

int vg_proto_encode_object(struct vg_proto_encoder *e, const struct vg_schema_type *type,
                           struct vg_slice api_version, struct vg_slice kind, struct vg_slice json,
                           struct vg_slice revision, struct vg_buf *out)
{
    /* The length is that of two bytes, as nearly always, until it turns out to be another. */
    enum { GUESS = 0x80 };
    size_t was = out->n;
    int r = vg_proto_put_head(out, api_version, kind, GUESS);
    size_t body = out->n;
    if (r == 0)
        r = vg_proto_encode(e, type, json, revision, out);
    if (r < 0) {
        out->n = was;
        return r;
    }
    size_t n = out->n - body, width = vg_proto_varint_size(n);
    r = vg_buf_reserve(out, VG_PROTO_VARINT_MAX + VG_PROTO_TAIL.n);
    if (r < 0) {
        out->n = was;
        return r;
    }
    if (width != 2)
        memmove(out->p + body - 2 + width, out->p + body, n);
    (void)vg_proto_write_varint(out->p + body - 2, n);
    out->n = body - 2 + width + n;
    return vg_buf_append_slice(out, VG_PROTO_TAIL);
}

/* ---- lists ---- */

static uint64_t list_meta_size(const struct vg_proto_list *list)
{
    uint64_t n =
        field_size(0) + field_size(list->resource_version.n) + field_size(list->continue_token.n);
    return list->remaining < 0 ? n : n + 1 + vg_proto_varint_size((uint64_t)list->remaining);
}

/* ListMeta{1 selfLink, 2 resourceVersion, 3 continue, 4 remainingItemCount}. */
static int put_list_meta(struct vg_buf *out, const struct vg_proto_list *list)
{
    int r = put_length(out, 1, list_meta_size(list));
    if (r == 0)
        r = put_field(out, 1, VG_SLICE_LIT(""));
    if (r == 0)
        r = put_field(out, 2, list->resource_version);
    if (r == 0)
        r = put_field(out, 3, list->continue_token);
    if (r < 0 || list->remaining < 0)
        return r;
    char count[VG_PROTO_TAG_MAX + VG_PROTO_VARINT_MAX];
    char *o = vg_proto_write_varint(vg_proto_write_tag(count, 4, VG_PROTO_VARINT),
                                    (uint64_t)list->remaining);
    return vg_buf_append(out, count, (size_t)(o - count));
}

int vg_proto_put_list_head(struct vg_buf *out, const struct vg_proto_list *list, uint64_t items_n)
{
    size_t was = out->n;
    int r = vg_proto_put_head(out, list->api_version, list->kind,
                              field_size(list_meta_size(list)) + items_n);
    if (r == 0)
        r = put_list_meta(out, list);
    if (r < 0)
        out->n = was;
    return r;
}

int vg_proto_put_item_head(struct vg_buf *out, uint64_t message_n)
{
    return put_length(out, 2, message_n);
}

uint64_t vg_proto_item_size(uint64_t message_n)
{
    return field_size(message_n);
}

/* ---- watches ---- */

int vg_proto_put_watch_head(struct vg_buf *out, struct vg_slice type, uint64_t envelope_n)
{
    if (envelope_n > VG_PROTO_MESSAGE_MAX)
        return VIGIL_E_TOO_LARGE;
    size_t was = out->n;
    uint64_t n = field_size(type.n) + field_size(field_size(envelope_n));
    char size[4] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    int r = vg_buf_append(out, size, sizeof size);
    if (r == 0)
        r = put_field(out, 1, type);
    if (r == 0)
        r = put_length(out, 2, field_size(envelope_n));
    if (r == 0)
        r = put_length(out, 1, envelope_n);
    if (r < 0)
        out->n = was;
    return r;
}
