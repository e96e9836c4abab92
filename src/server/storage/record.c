/* record.c - see record.h. Encoded integers are little endian. */
#include "record.h"

#include <endian.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/crc32c.h"

/* The encoded head. The checksum covers everything after itself. */
struct encoded {
    uint32_t crc;
    uint32_t header_len;
    uint32_t value_len;
    uint16_t key_len;
    uint8_t op;
    uint8_t zero;
    uint32_t sub;
    uint32_t prev_sub;
    uint64_t rev;
    uint64_t create_rev;
    uint64_t prev_rev;
    uint64_t version;
    int64_t time_ms;
    int64_t expires_ms;
    uint64_t reserved;
};
_Static_assert(sizeof(struct encoded) == VG_REC_ENCODED_HEAD, "the encoded head has no padding");

static int alloc_rec(size_t key_len, size_t header_len, size_t value_len, struct vg_rec **ret_rec)
{
    if (key_len == 0 || key_len > UINT16_MAX)
        return VIGIL_E_KEY_INVALID;
    if (header_len > UINT32_MAX || value_len > UINT32_MAX)
        return VIGIL_E_VALUE_TOO_LARGE;
    struct vg_rec *r = vg_malloc(sizeof *r + key_len + header_len + value_len);
    if (!r)
        return -ENOMEM;
    memset(r, 0, sizeof *r);
    atomic_init(&r->refs, 1);
    r->key_len = (uint16_t)key_len;
    r->header_len = (uint32_t)header_len;
    r->value_len = (uint32_t)value_len;
    *ret_rec = r;
    return 0;
}

int vg_rec_new(enum vg_rec_op op, struct vg_slice key, struct vg_slice header,
               struct vg_slice value, struct vg_rec **ret_rec)
{
    struct vg_rec *r;
    int err = alloc_rec(key.n, header.n, value.n, &r);
    if (err < 0)
        return err;
    r->op = (uint8_t)op;
    memcpy(r->bytes, key.p, key.n);
    if (header.n)
        memcpy(r->bytes + key.n, header.p, header.n);
    if (value.n)
        memcpy(r->bytes + key.n + header.n, value.p, value.n);
    *ret_rec = r;
    return 0;
}

int vg_rec_copy_key(const struct vg_rec *rec, struct vg_rec **ret_rec)
{
    struct vg_rec *r;
    int err = alloc_rec(rec->key_len, 0, 0, &r);
    if (err < 0)
        return err;
    r->op = rec->op;
    r->is_unreadable = rec->is_unreadable;
    r->sub = rec->sub;
    r->prev_sub = rec->prev_sub;
    r->rev = rec->rev;
    r->create_rev = rec->create_rev;
    r->prev_rev = rec->prev_rev;
    r->version = rec->version;
    r->time_ms = rec->time_ms;
    r->expires_ms = rec->expires_ms;
    memcpy(r->bytes, rec->bytes, rec->key_len);
    *ret_rec = r;
    return 0;
}

struct vg_rec *vg_rec_ref(const struct vg_rec *rec)
{
    struct vg_rec *r = (struct vg_rec *)rec; /* the count is the one part that still changes */
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

struct vg_rec *vg_rec_unref(const struct vg_rec *rec)
{
    struct vg_rec *r = (struct vg_rec *)rec;
    if (r && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_release) == 1) {
        (void)atomic_load_explicit(&r->refs, memory_order_acquire); /* as a fence; TSan sees it */
        struct vg_rec_hung *hung = vg_rec_hung(r);
        if (hung)
            hung->free(hung);
        vg_free(r);
    }
    return NULL;
}

struct vg_rec_hung *vg_rec_hang(const struct vg_rec *rec, struct vg_rec_hung *take_hung)
{
    struct vg_rec *r = (struct vg_rec *)rec; /* as the count, no part of what is sealed */
    struct vg_rec_hung *there = NULL;
    if (atomic_compare_exchange_strong_explicit(&r->hung, &there, take_hung, memory_order_acq_rel,
                                                memory_order_acquire))
        return take_hung;
    take_hung->free(take_hung);
    return there;
}

static size_t body_len(const struct vg_rec *r)
{
    return (size_t)r->key_len + r->header_len + r->value_len;
}

void vg_rec_encode(const struct vg_rec *r, char *ret_bytes)
{
    struct encoded e = {
        .header_len = htole32(r->header_len),
        .value_len = htole32(r->value_len),
        .key_len = htole16(r->key_len),
        .op = r->op,
        .sub = htole32(r->sub),
        .prev_sub = htole32(r->prev_sub),
        .rev = htole64(r->rev),
        .create_rev = htole64(r->create_rev),
        .prev_rev = htole64(r->prev_rev),
        .version = htole64(r->version),
        .time_ms = (int64_t)htole64((uint64_t)r->time_ms),
        .expires_ms = (int64_t)htole64((uint64_t)r->expires_ms),
    };
    memcpy(ret_bytes + sizeof e, r->bytes, body_len(r));
    memcpy(ret_bytes, &e, sizeof e);
    uint32_t crc =
        htole32(vg_crc32c(0, ret_bytes + sizeof e.crc, vg_rec_encoded_size(r) - sizeof e.crc));
    memcpy(ret_bytes, &crc, sizeof crc);
}

static bool lengths_fit(const struct encoded *e, size_t room, size_t *ret_body)
{
    uint64_t body = (uint64_t)le16toh(e->key_len) + le32toh(e->header_len) + le32toh(e->value_len);
    *ret_body = (size_t)body;
    return body <= room && le16toh(e->key_len) > 0;
}

static void fill_from(struct vg_rec *r, const struct encoded *e)
{
    r->op = e->op;
    r->sub = le32toh(e->sub);
    r->prev_sub = le32toh(e->prev_sub);
    r->rev = le64toh(e->rev);
    r->create_rev = le64toh(e->create_rev);
    r->prev_rev = le64toh(e->prev_rev);
    r->version = le64toh(e->version);
    r->time_ms = (int64_t)le64toh((uint64_t)e->time_ms);
    r->expires_ms = (int64_t)le64toh((uint64_t)e->expires_ms);
}

struct vg_slice vg_rec_claimed_key(struct vg_slice in)
{
    struct encoded e;
    if (in.n < sizeof e)
        return vg_slice(NULL, 0);
    memcpy(&e, in.p, sizeof e);
    return vg_slice(in.p + sizeof e, VG_MIN((size_t)le16toh(e.key_len), in.n - sizeof e));
}

int vg_rec_decode(struct vg_slice in, size_t *ret_used, struct vg_rec **ret_rec)
{
    struct encoded e;
    size_t body;
    if (in.n < sizeof e)
        return VIGIL_E_STORE_DAMAGED;
    memcpy(&e, in.p, sizeof e);
    if (!lengths_fit(&e, in.n - sizeof e, &body))
        return VIGIL_E_STORE_DAMAGED;
    if (vg_crc32c(0, in.p + sizeof e.crc, sizeof e - sizeof e.crc + body) != le32toh(e.crc))
        return VIGIL_E_STORE_DAMAGED;
    if ((e.op != VG_REC_PUT && e.op != VG_REC_DELETE) || e.zero || e.reserved)
        return VIGIL_E_STORE_DAMAGED;
    struct vg_rec *r;
    int err = alloc_rec(le16toh(e.key_len), le32toh(e.header_len), le32toh(e.value_len), &r);
    if (err < 0)
        return err;
    fill_from(r, &e);
    memcpy(r->bytes, in.p + sizeof e, body);
    *ret_used = sizeof e + body;
    *ret_rec = r;
    return 0;
}

bool vg_rec_guess(struct vg_slice in, struct vg_slice *ret_key, vg_rev *ret_rev)
{
    struct encoded e;
    if (in.n < sizeof e)
        return false;
    memcpy(&e, in.p, sizeof e);
    size_t n = le16toh(e.key_len);
    if (n == 0 || n > in.n - sizeof e)
        return false;
    *ret_key = vg_slice(in.p + sizeof e, n);
    *ret_rev = le64toh(e.rev);
    return true;
}
