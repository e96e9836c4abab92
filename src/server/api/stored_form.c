/* stored_form.c - see stored_form.h. */
#include "stored_form.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "object/seal.h"
#include "protobuf.h"
#include "server/kinds/types.h"
#include "server/schema/decode.h"
#include "server/schema/default.h"
#include "server/schema/proto.h"
#include "versions.h"
#include "json/json.h"

/* What the tree of one stored object may take, as that of a body. */
#define TREE_MAX ((size_t)64 << 20)
#define KINDS_MAX 256u

/* ---- kinds by key ---- */

static const struct vg_kind *by_prefix[KINDS_MAX];
static size_t n_by_prefix;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int order(const void *a, const void *b)
{
    const struct vg_kind *const *x = a, *const *y = b;
    return strcmp((*x)->prefix, (*y)->prefix);
}

static void sort_kinds(void)
{
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    for (size_t i = 0; i < n && n_by_prefix < KINDS_MAX; i++) {
        if (!kinds[i].stored && kinds[i].prefix)
            by_prefix[n_by_prefix++] = &kinds[i];
    }
    qsort(by_prefix, n_by_prefix, sizeof by_prefix[0], order);
}

/* No prefix begins with another one, so it can only be the last that is not behind the key. */
const struct vg_kind *vg_kind_of_key(struct vg_slice key)
{
    size_t low = 0, high;
    pthread_once(&once, sort_kinds);
    high = n_by_prefix;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (vg_slice_cmp(vg_slice_str(by_prefix[mid]->prefix), key) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0 || !vg_slice_has_prefix(key, vg_slice_str(by_prefix[low - 1]->prefix)))
        return NULL;
    return by_prefix[low - 1];
}

/* ---- reading ---- */

static const struct vg_kind *kind_of_meta(struct vg_slice api_version, struct vg_slice kind)
{
    const char *slash = api_version.n ? memchr(api_version.p, '/', api_version.n) : NULL;
    size_t n = slash ? (size_t)(slash - api_version.p) : 0;
    struct vg_slice group = vg_slice(api_version.p, n);
    struct vg_slice version = slash ? vg_slice(slash + 1, api_version.n - n - 1) : api_version;
    return vg_kind_find_kind(slash ? group : VG_SLICE_LIT(""), version, kind);
}

static int read_protobuf(struct vg_arena *a, struct vg_slice bytes, const struct vg_kind **ret_kind,
                         struct vg_json *ret_root, struct vg_status *status)
{
    struct vg_proto_envelope x;
    int r = vg_proto_open(bytes, &x, status);
    if (r < 0)
        return r;
    *ret_kind = kind_of_meta(x.api_version, x.kind);
    if (!*ret_kind)
        return VIGIL_E_UNSUPPORTED;
    return vg_proto_decode(a, vg_kind_type(*ret_kind), &x, ret_root, status);
}

static int read_json(struct vg_arena *a, struct vg_slice bytes, const struct vg_kind **ret_kind,
                     struct vg_json *ret_root, struct vg_status *status)
{
    struct vg_json *root;
    int r = vg_json_parse(a, bytes, NULL, &root, status);
    if (r < 0)
        return r;
    *ret_kind = root->type == VG_JSON_OBJECT
                    ? kind_of_meta(vg_json_text(vg_json_get_str(root, "apiVersion")),
                                   vg_json_text(vg_json_get_str(root, "kind")))
                    : NULL;
    if (!*ret_kind)
        return VIGIL_E_UNSUPPORTED;
    r = vg_schema_decode(a, vg_kind_type(*ret_kind), root, NULL, status);
    *ret_root = *root;
    return r;
}

/* The object as it would be written here. */
static int read_object(struct vg_arena *a, const struct vg_kind *kind, struct vg_slice bytes,
                       struct vg_obj_sealed *sealed, struct vg_status *status)
{
    const struct vg_kind *said = NULL;
    struct vg_json root = {0}, arranged;
    bool is_protobuf = vg_slice_has_prefix(bytes, vg_slice("k8s\0", 4));
    int r = is_protobuf ? read_protobuf(a, bytes, &said, &root, status)
                        : read_json(a, bytes, &said, &root, status);
    if (r == 0 && vg_kind_stored(said) != kind)
        r = vg_fail(status, VIGIL_E_UNSUPPORTED, "it says that it is a %s of %s", said->kind,
                    said->api_version);
    if (r == 0)
        r = vg_schema_default(a, vg_kind_type(said), &root);
    if (r == 0)
        r = vg_version_store(a, said, &root);
    if (r == 0 && said != kind)
        r = vg_schema_default(a, vg_kind_type(kind), &root);
    if (r == 0)
        r = vg_schema_arrange(a, vg_kind_type(kind), &root, &arranged);
    return r < 0 ? r : vg_obj_seal(kind->fields, &arranged, sealed, status);
}

static void tell(struct vg_stored_trouble *t, struct vg_slice key, int err,
                 const struct vg_status *why)
{
    if (!t)
        return;
    atomic_fetch_add_explicit(&t->unreadable, 1, memory_order_relaxed);
    vg_error(t->log, "object_unreadable", "key=%.*s why=%s", VG_SLICE_ARG(key),
             why->err ? why->message : vg_err_text(err));
}

static int keep_raw(struct vg_slice bytes, struct vg_buf *value)
{
    return vg_buf_append_slice(value, bytes);
}

static int from_bytes(void *arg, struct vg_slice key, struct vg_slice bytes, struct vg_buf *header,
                      struct vg_buf *value)
{
    VG_AUTO(arena) arena = {.max = TREE_MAX};
    VG_AUTO(obj_sealed) sealed;
    const struct vg_kind *kind = vg_kind_of_key(key);
    struct vg_status why = {0};
    vg_obj_sealed_init(&sealed);
    if (!kind)
        return keep_raw(bytes, value);
    int r = read_object(&arena, kind, bytes, &sealed, &why);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        tell(arg, key, r, &why);
        return keep_raw(bytes, value);
    }
    r = vg_buf_append_slice(header, vg_buf_slice(&sealed.header));
    return r < 0 ? r : vg_buf_append_slice(value, vg_buf_slice(&sealed.value));
}

/* ---- writing ---- */

static int to_json(void *arg, const struct vg_rec *rec, struct vg_buf *out)
{
    (void)arg;
    return vg_buf_append_slice(out, vg_rec_value(rec));
}

/* A record without a header is what could not be read here, as it was. */
static int to_protobuf(void *arg, const struct vg_rec *rec, struct vg_buf *out)
{
    if (rec->header_len == 0)
        return to_json(arg, rec, out);
    int r = vg_protobuf_of_value(vg_rec_value(rec), 0, VG_PROTOBUF_WHOLE, out);
    /* What has no such form is stored as it is: both are read. */
    return r == 0 || r == -ENOMEM ? r : to_json(arg, rec, out);
}

bool vg_stored_media_find(const char *name, enum vg_stored_media *ret_media)
{
    bool is_protobuf = strcmp(name, VG_PROTOBUF_TYPE) == 0;
    *ret_media = is_protobuf ? VG_STORED_PROTOBUF : VG_STORED_JSON;
    return is_protobuf || strcmp(name, "application/json") == 0;
}

void vg_stored_form(enum vg_stored_media media, struct vg_stored_trouble *trouble,
                    struct vg_stored_form *ret_form)
{
    *ret_form = (struct vg_stored_form){
        .to_bytes = media == VG_STORED_PROTOBUF ? to_protobuf : to_json,
        .from_bytes = from_bytes,
        .arg = trouble,
    };
}
