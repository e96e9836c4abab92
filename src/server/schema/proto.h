/* proto.h - objects in the protobuf form of Kubernetes, by the tables of schema.h.
 * The bytes are those of the original's generated code: fields by rising number, maps by key,
 * values that are no pointers always there. Nothing here knows a kind, does I/O or keeps a tree.
 * Thread: any; an encoder has one owner. */
#ifndef VG_SCHEMA_PROTO_H
#define VG_SCHEMA_PROTO_H

#include "base/buf.h"
#include "schema.h"
#include "json/json.h"

/* Nested messages that are encoded: as deep as a text that can have been stored, else one object
 * would take every list and watch that it is in from those who speak protobuf. */
#define VG_PROTO_DEPTH_MAX VG_JSON_DEPTH_DEFAULT
/* 200 that are decoded: real ones stay below 70 (schemas of custom resources), and as JSON they are
 * at most twice as deep, which a text may be. */
#define VG_PROTO_DECODE_DEPTH_MAX 200u
/* Fields of a type; PodSpec and JSONSchemaProps have the most, 44. tools/schema checks it. */
#define VG_PROTO_FIELDS_MAX 64u
/* Messages that JSON has flattened into one type, itself included; there are three at most. */
#define VG_PROTO_PARTS_MAX 8u
/* 256 MiB: what a length of ours may say; lists are counted by their readers in 64 bits. */
#define VG_PROTO_MESSAGE_MAX ((size_t)256 << 20)

/* ---- encoding ---- */

/* Working memory that a caller keeps between objects, so that encoding stops allocating. Zero to
 * start. */
struct vg_proto_encoder {
    struct vg_buf order, spare;
};
static inline void vg_proto_encoder_done(struct vg_proto_encoder *e)
{
    vg_buf_done(&e->order);
    vg_buf_done(&e->spare);
}
static inline void vg_proto_encoder_cleanup(struct vg_proto_encoder *e)
{
    vg_proto_encoder_done(e);
}

/* Append the bare message of an object. `json` is its text without white space, as it is stored:
 * keys in the order of the table go fast, others are put right. Members that the table does not
 * have (kind and apiVersion among them) are passed over. `revision` becomes
 * metadata.resourceVersion where the text has none; empty: it stays "". 0; VIGIL_E_JSON_SYNTAX,
 * _JSON_TYPE, _JSON_DEPTH: this is not the text of such an object; -ENOMEM; VIGIL_E_TOO_LARGE. On
 * failure the buffer is as before. */
VG_CHECK int vg_proto_encode(struct vg_proto_encoder *e, const struct vg_schema_type *type,
                             struct vg_slice json, struct vg_slice revision, struct vg_buf *out);
/* How many bytes vg_proto_encode would append, for less than its price: a list has to know before
 * its first byte. It depends on the text and the digits of the revision only and may be kept.
 * Errors as above, but for those in what is only measured. */
VG_CHECK int vg_proto_size(struct vg_proto_encoder *e, const struct vg_schema_type *type,
                           struct vg_slice json, struct vg_slice revision, uint64_t *ret);
/* As vg_proto_encode, in its envelope, as a body has it. */
VG_CHECK int vg_proto_encode_object(struct vg_proto_encoder *e, const struct vg_schema_type *type,
                                    struct vg_slice api_version, struct vg_slice kind,
                                    struct vg_slice json, struct vg_slice revision,
                                    struct vg_buf *out);

/* ---- around messages ---- */

/* The envelope before and after a bare message of raw_n bytes. */
#define VG_PROTO_PREFIX VG_SLICE_LIT("k8s\0")
#define VG_PROTO_TAIL VG_SLICE_LIT("\x1a\0\x22\0")
VG_CHECK int vg_proto_put_head(struct vg_buf *out, struct vg_slice api_version,
                               struct vg_slice kind, uint64_t raw_n);
uint64_t vg_proto_envelope_size(struct vg_slice api_version, struct vg_slice kind, uint64_t raw_n);

/* A list is: its head, for each item vg_proto_put_item_head() and the item's bare message, and
 * VG_PROTO_TAIL. items_n is the sum of vg_proto_item_size() over the items. */
struct vg_proto_list {
    struct vg_slice api_version, kind; /* "v1", "PodList" */
    struct vg_slice resource_version, continue_token;
    int64_t remaining; /* items beyond; negative: not told */
};
VG_CHECK int vg_proto_put_list_head(struct vg_buf *out, const struct vg_proto_list *list,
                                    uint64_t items_n);
VG_CHECK int vg_proto_put_item_head(struct vg_buf *out, uint64_t message_n);
uint64_t vg_proto_item_size(uint64_t message_n);

/* What stands before the envelope of envelope_n bytes in a frame of a watch: the frame's length in
 * four bytes, then WatchEvent{type, RawExtension{raw}}; nothing follows it. VIGIL_E_TOO_LARGE
 * above VG_PROTO_MESSAGE_MAX. */
VG_CHECK int vg_proto_put_watch_head(struct vg_buf *out, struct vg_slice type, uint64_t envelope_n);

/* ---- decoding ---- */

struct vg_proto_envelope {
    struct vg_slice api_version, kind;
    struct vg_slice raw;
    struct vg_slice content_encoding, content_type;
};
/* Take the envelope off a body; the slices lie in it. 0, or VIGIL_E_INVALID with what is wrong. */
VG_CHECK int vg_proto_open(struct vg_slice body, struct vg_proto_envelope *ret,
                           struct vg_status *reterr_status);

/* The tree of a bare message, in canonical form: as the text that the original would print for it,
 * parsed. Keys stand in the order of the table, what Go leaves out is left out. Fields that the
 * table does not have are passed over, of a repeated scalar the last counts, repeated messages are
 * merged, bytes of strings that are no UTF-8 become U+FFFD. kind and apiVersion stand first if
 * they are given. Strings point INTO raw, kind, api_version: they must outlive the tree. The tree
 * may need far more memory than the bytes: cap the arena.
 * 0; VIGIL_E_INVALID with what is wrong and in which field; VIGIL_E_JSON_DEPTH; -ENOMEM. */
VG_CHECK int vg_proto_decode(struct vg_arena *arena, const struct vg_schema_type *type,
                             const struct vg_proto_envelope *from, struct vg_json *ret,
                             struct vg_status *reterr_status);

#endif
