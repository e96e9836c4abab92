/* protobuf.c - see protobuf.h. */
#include "protobuf.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"
#include "server/kinds/types.h"
#include "json/scan.h"

/* ---- types ---- */

/* What an object says it is. */
struct type_of {
    struct vg_slice api_version, kind;
    const struct vg_schema_type *type; /* NULL: there is none */
};

static struct vg_slice text_at(struct vg_slice json, const char *name)
{
    struct vg_json_step path = vg_json_step_key(name);
    struct vg_slice v;
    /* Names of kinds and versions have no escapes. */
    return vg_json_find(json, &path, 1, &v) == 0 && v.n >= 2 && v.p[0] == '"'
               ? vg_slice(v.p + 1, v.n - 2)
               : VG_SLICE_LIT("");
}

static const struct vg_schema_type *find_type(struct vg_slice api_version, struct vg_slice kind)
{
    struct vg_slice group = VG_SLICE_LIT(""), version = api_version;
    const char *slash = api_version.n ? memchr(api_version.p, '/', api_version.n) : NULL;
    if (slash) {
        group = vg_slice(api_version.p, (size_t)(slash - api_version.p));
        version = vg_slice(slash + 1, api_version.n - group.n - 1);
    }
    const struct vg_kind *row = vg_kind_find_kind(group, version, kind);
    if (row)
        return vg_kind_type(row);
    const struct vg_schema_type *t = vg_schema_find(group, version, kind);
    /* Status and documents of discovery call themselves v1, or nothing. */
    return t ? t : vg_schema_find(VG_SLICE_LIT("meta.k8s.io"), VG_SLICE_LIT("v1"), kind);
}

static struct type_of type_of(struct vg_slice json)
{
    struct type_of t = {text_at(json, "apiVersion"), text_at(json, "kind"), NULL};
    t.type = find_type(t.api_version, t.kind);
    return t;
}

static const struct vg_schema_type *partial_type(void)
{
    return vg_schema_find(VG_SLICE_LIT("meta.k8s.io"), VG_SLICE_LIT("v1"),
                          VG_SLICE_LIT("PartialObjectMetadata"));
}

/* ---- making ---- */

struct rev_text {
    char text[24];
};

static struct vg_slice print_rev(struct rev_text *t, vg_rev rev)
{
    int n = rev ? snprintf(t->text, sizeof t->text, "%llu", (unsigned long long)rev) : 0;
    return vg_slice(t->text, (size_t)n);
}

int vg_protobuf_of_json(struct vg_slice json, struct vg_buf *out)
{
    return vg_protobuf_of_value(json, 0, VG_PROTOBUF_WHOLE, out);
}

int vg_protobuf_of_value(struct vg_slice value, vg_rev rev, enum vg_protobuf_as as,
                         struct vg_buf *out)
{
    VG_AUTO(proto_encoder) e = {0};
    struct rev_text digits;
    struct type_of t;
    if (as == VG_PROTOBUF_WHOLE)
        t = type_of(value);
    else
        t = (struct type_of){as == VG_PROTOBUF_PARTIAL ? VG_SLICE_LIT("meta.k8s.io/v1")
                                                       : VG_SLICE_LIT("meta.k8s.io/v1beta1"),
                             VG_SLICE_LIT("PartialObjectMetadata"), partial_type()};
    if (!t.type)
        return VIGIL_E_UNSUPPORTED;
    return vg_proto_encode_object(&e, t.type, t.api_version, t.kind, value, print_rev(&digits, rev),
                                  out);
}

static const struct vg_schema_type *item_type(const struct vg_kind *kind, enum vg_protobuf_as as)
{
    return as == VG_PROTOBUF_WHOLE ? vg_kind_type(kind) : partial_type();
}

int vg_protobuf_item(const struct vg_kind *kind, const struct vg_rec *rec, enum vg_protobuf_as as,
                     struct vg_buf *out)
{
    VG_AUTO(proto_encoder) e = {0};
    struct rev_text digits;
    return vg_proto_encode(&e, item_type(kind, as), vg_rec_value(rec), print_rev(&digits, rec->rev),
                           out);
}

int vg_protobuf_item_size(const struct vg_kind *kind, const struct vg_rec *rec,
                          enum vg_protobuf_as as, uint64_t *ret)
{
    VG_AUTO(proto_encoder) e = {0};
    struct rev_text digits;
    return vg_proto_size(&e, item_type(kind, as), vg_rec_value(rec), print_rev(&digits, rec->rev),
                         ret);
}

/* ---- keeping ---- */

struct vg_protobuf_kept {
    struct vg_rec_hung hung; /* first */
    uint32_t n;
    uint32_t item_at;
    char bytes[]; /* an envelope */
};

/* Of the process, since records outlive whoever hangs something on them. */
static _Atomic size_t kept_bytes;

size_t vg_protobuf_kept_bytes(void)
{
    return atomic_load_explicit(&kept_bytes, memory_order_relaxed);
}

static size_t size_of(size_t n)
{
    return sizeof(struct vg_protobuf_kept) + n;
}

static bool take_room(size_t size)
{
    if (atomic_fetch_add_explicit(&kept_bytes, size, memory_order_relaxed) + size <=
        VG_PROTOBUF_KEPT_MAX)
        return true;
    atomic_fetch_sub_explicit(&kept_bytes, size, memory_order_relaxed);
    return false;
}

static void free_kept(struct vg_rec_hung *hung)
{
    struct vg_protobuf_kept *k = (struct vg_protobuf_kept *)hung;
    atomic_fetch_sub_explicit(&kept_bytes, size_of(k->n), memory_order_relaxed);
    vg_free(k);
}

const struct vg_protobuf_kept *vg_protobuf_kept(const struct vg_rec *rec)
{
    return (const struct vg_protobuf_kept *)vg_rec_hung(rec);
}

/* NULL: it cannot be. */
static struct vg_protobuf_kept *make_kept(const struct vg_rec *rec)
{
    VG_AUTO(buf) body = {0};
    struct vg_proto_envelope x;
    /* Protobuf is the shorter one of the two, so this is the one allocation. */
    if (vg_buf_reserve(&body, rec->value_len) < 0 ||
        vg_protobuf_of_value(vg_rec_value(rec), rec->rev, VG_PROTOBUF_WHOLE, &body) < 0 ||
        vg_proto_open(vg_buf_slice(&body), &x, NULL) < 0 || !take_room(size_of(body.n)))
        return NULL;
    struct vg_protobuf_kept *k = vg_malloc(size_of(body.n));
    if (!k) {
        atomic_fetch_sub_explicit(&kept_bytes, size_of(body.n), memory_order_relaxed);
        return NULL;
    }
    k->hung.free = free_kept;
    k->n = (uint32_t)body.n;
    k->item_at = (uint32_t)(x.raw.p - body.p);
    memcpy(k->bytes, body.p, body.n);
    return k;
}

const struct vg_protobuf_kept *vg_protobuf_keep(const struct vg_rec *rec)
{
    const struct vg_protobuf_kept *k = vg_protobuf_kept(rec);
    if (k || vg_protobuf_kept_bytes() + rec->value_len / 2 > VG_PROTOBUF_KEPT_MAX)
        return k; /* without room nothing is made in vain */
    struct vg_protobuf_kept *mine = make_kept(rec);
    return mine ? (const struct vg_protobuf_kept *)vg_rec_hang(rec, &mine->hung) : NULL;
}

struct vg_slice vg_protobuf_kept_body(const struct vg_protobuf_kept *k)
{
    return vg_slice(k->bytes, k->n);
}

struct vg_slice vg_protobuf_kept_item(const struct vg_protobuf_kept *k)
{
    return vg_slice(k->bytes + k->item_at, k->n - k->item_at - VG_PROTO_TAIL.n);
}

/* ---- frames ---- */

int vg_protobuf_frame(struct vg_obj_splice *s, const char *type, struct vg_slice body)
{
    /* The lengths stand where a revision would: 4 bytes, and three fields of at most 11. */
    struct vg_buf head = {.p = s->rev, .cap = sizeof s->rev - 1, .max = sizeof s->rev - 1};
    int r = vg_proto_put_watch_head(&head, vg_slice_str(type), body.n);
    s->v[0] = vg_slice(s->rev, head.n);
    s->v[1] = body;
    s->n = 2;
    return r;
}
