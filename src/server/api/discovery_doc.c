/* discovery_doc.c - see discovery_doc.h. */
#include "discovery_doc.h"

#include <openssl/evp.h>

#include "base/err.h"
#include "protobuf.h"
#include "json/json.h"
#include "json/write.h"

void vg_doc_done(struct vg_doc *d)
{
    vg_buf_done(&d->compact);
    vg_buf_done(&d->pretty);
    vg_buf_done(&d->protobuf);
}

int vg_doc_hash(struct vg_slice bytes, char ret[VG_DOC_HASH_CHARS + 1])
{
    static const char digits[] = "0123456789ABCDEF";
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_Digest(bytes.p, bytes.n, sum, &n, EVP_sha512(), NULL) != 1 ||
        n != VG_DOC_HASH_CHARS / 2)
        return VIGIL_E_INTERNAL;
    for (unsigned i = 0; i < n; i++) {
        ret[2 * i] = digits[sum[i] >> 4];
        ret[2 * i + 1] = digits[sum[i] & 15];
    }
    ret[VG_DOC_HASH_CHARS] = '\0';
    return 0;
}

static int make_pretty(struct vg_doc *d)
{
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 0);
    struct vg_json *root;
    int err = vg_json_parse(&arena, vg_buf_slice(&d->compact), NULL, &root, NULL);
    return err < 0 ? err : vg_json_write(&d->pretty, root, VG_JSON_INDENT);
}

int vg_doc_finish(struct vg_doc *d)
{
    char hash[VG_DOC_HASH_CHARS + 1];
    int err = vg_buf_append_byte(&d->compact, '\n');
    if (err == 0)
        err = make_pretty(d);
    if (err == 0)
        err = vg_doc_hash(vg_buf_slice(&d->compact), hash);
    if (err < 0)
        return err;
    d->etag[0] = '"';
    memcpy(d->etag + 1, hash, VG_DOC_HASH_CHARS);
    memcpy(d->etag + 1 + VG_DOC_HASH_CHARS, "\"", 2);
    return 0;
}

int vg_doc_add_protobuf(struct vg_doc *d)
{
    return vg_protobuf_of_json(vg_slice(d->compact.p, d->compact.n - 1), &d->protobuf);
}
