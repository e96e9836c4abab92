/* record.h - one change of one key: what storage keeps, hands out and streams.
 * A record is a single block that holds key, header and value. Its maker fills it, hands it to a
 * transaction, and the commit thread stamps the revision; from then on it is sealed and shared by
 * reference. The header is the object header of src/object, opaque here: it lies beside the value
 * so that a start does not parse what it loads. The encoded form is the same in the write-ahead log
 * and in the base; a checksum covers all of it. */
#ifndef VG_STORAGE_RECORD_H
#define VG_STORAGE_RECORD_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/err.h"

/* The store's one clock. 0 = none; a fresh store is at 1, its first change is 2, as in etcd. */
typedef uint64_t vg_rev;
#define VG_REV_EMPTY ((vg_rev)1)
#define VG_REV_MAX ((vg_rev)INT64_MAX)

enum vg_rec_op { VG_REC_PUT = 1, VG_REC_DELETE = 2 };

/* Something that others make of a sealed record and keep with it; the first member of theirs. */
struct vg_rec_hung {
    void (*free)(struct vg_rec_hung *hung); /* the record is going; any thread */
};

struct vg_rec {
    _Atomic uint32_t refs;
    uint16_t key_len;
    uint8_t op;            /* enum vg_rec_op */
    uint8_t is_unreadable; /* what is stored does not read back: key and versions alone are known */
    uint32_t header_len;
    uint32_t value_len;
    uint32_t sub;      /* order among the changes of one revision */
    uint32_t prev_sub; /* of prev_rev */
    vg_rev rev;
    vg_rev create_rev;  /* revision of the put that made the key; 0 in a delete */
    vg_rev prev_rev;    /* the put that this change replaces; 0 when the key was absent */
    uint64_t version;   /* puts since create, 1 for the first; 0 in a delete */
    int64_t time_ms;    /* wall clock at commit */
    int64_t expires_ms; /* wall clock; 0 = never */
    _Atomic(struct vg_rec_hung *) hung; /* NULL: nothing; set once, never part of what is stored */
    char bytes[];                       /* key, header, value */
};

/* An unsealed record with one reference, the bytes copied. -ENOMEM, VIGIL_E_KEY_INVALID,
 * VIGIL_E_VALUE_TOO_LARGE (lengths that cannot be represented). */
VG_CHECK int vg_rec_new(enum vg_rec_op op, struct vg_slice key, struct vg_slice header,
                        struct vg_slice value, struct vg_rec **ret_rec);
/* The same change without header and value. */
VG_CHECK int vg_rec_copy_key(const struct vg_rec *rec, struct vg_rec **ret_rec);
struct vg_rec *vg_rec_ref(const struct vg_rec *rec);
/* Takes NULL; returns NULL. */
struct vg_rec *vg_rec_unref(const struct vg_rec *rec);

static inline struct vg_slice vg_rec_key(const struct vg_rec *r)
{
    return vg_slice(r->bytes, r->key_len);
}
static inline struct vg_slice vg_rec_header(const struct vg_rec *r)
{
    return vg_slice(r->bytes + r->key_len, r->header_len);
}
static inline struct vg_slice vg_rec_value(const struct vg_rec *r)
{
    return vg_slice(r->bytes + r->key_len + r->header_len, r->value_len);
}
/* Bytes of memory that it holds. */
static inline size_t vg_rec_size(const struct vg_rec *r)
{
    return sizeof *r + r->key_len + r->header_len + r->value_len;
}
static inline bool vg_rec_is_delete(const struct vg_rec *r)
{
    return r->op == VG_REC_DELETE;
}

/* What hangs on it; NULL: nothing. It lies as long as the record does. Thread: any. */
static inline struct vg_rec_hung *vg_rec_hung(const struct vg_rec *r)
{
    return atomic_load_explicit(&r->hung, memory_order_acquire);
}
/* Hang it on the record, unless something hangs there already: then take_hung is freed. What hangs
 * there now. Thread: any. */
struct vg_rec_hung *vg_rec_hang(const struct vg_rec *rec, struct vg_rec_hung *take_hung);

/* The encoded form: VG_REC_ENCODED_HEAD bytes, then key, header, value. */
#define VG_REC_ENCODED_HEAD ((size_t)80)
static inline size_t vg_rec_encoded_size(const struct vg_rec *r)
{
    return VG_REC_ENCODED_HEAD + r->key_len + r->header_len + r->value_len;
}
void vg_rec_encode(const struct vg_rec *r, char *ret_bytes);
/* One record at the start of `in`; *ret_used is its length. VIGIL_E_STORE_DAMAGED: short, a length
 * or a field that cannot be, or a wrong checksum; -ENOMEM. */
VG_CHECK int vg_rec_decode(struct vg_slice in, size_t *ret_used, struct vg_rec **ret_rec);
/* The key that an encoded record claims to have, a slice of `in`; empty: it cannot be one. For
 * records that do not decode: nothing says that it is right. */
struct vg_slice vg_rec_claimed_key(struct vg_slice in);

/* What the beginning of a record that may be damaged says of itself, for a person: nothing of it is
 * proven. False: not even that. */
bool vg_rec_guess(struct vg_slice in, struct vg_slice *ret_key, vg_rev *ret_rev);

#endif
