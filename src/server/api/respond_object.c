/* respond_object.c - answers that are one object.
 * It leaves as slices of its block, which is pinned; only other looks of it (pretty, YAML, a Table,
 * protobuf, another version) are made anew. */
#include "respond.h"
#include "respond_int.h"
#include "versions.h"
#include "json/scan.h"

static void rec_ref(const void *rec)
{
    vg_rec_ref(rec);
}

static void rec_unref(const void *rec)
{
    vg_rec_unref(rec);
}

struct vg_http_pin vg_rec_pin(const struct vg_rec *rec)
{
    return (struct vg_http_pin){rec, rec_ref, rec_unref};
}

void vg_partial_splice(struct vg_obj_splice *s, const struct vg_obj_header *h, vg_rev rev,
                       bool is_v1beta1)
{
    static const struct vg_slice heads[] = {
        VG_SLICE_LIT("{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
                     "\"metadata\":"),
        VG_SLICE_LIT("{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1beta1\","
                     "\"metadata\":"),
    };
    struct vg_json_step path = vg_json_step_key("metadata");
    struct vg_slice value = vg_slice(h->value, h->value_n), meta;
    if (VG_NEVER(vg_json_find(value, &path, 1, &meta) < 0))
        meta = VG_SLICE_LIT("{}"); /* sealing has seen it */
    const char *at = h->value + h->rev_at;
    vg_obj_splice_object(s, h, rev); /* of which the revision is the middle */
    s->v[2] = s->v[1];
    s->v[0] = heads[is_v1beta1];
    s->v[1] = vg_slice(meta.p, (size_t)(at - meta.p));
    s->v[3] = vg_slice(at, (size_t)(meta.p + meta.n - at));
    s->v[4] = VG_SLICE_LIT("}");
    s->n = 5;
}

static void cut(const struct vg_media *m, struct vg_obj_splice *s, const struct vg_obj_header *h,
                vg_rev rev)
{
    if (m->transform == VG_AS_PARTIAL)
        vg_partial_splice(s, h, rev, m->is_v1beta1);
    else
        vg_obj_splice_object(s, h, rev);
}

static void respond_spliced(struct vg_api_call *call, int code, const struct vg_obj_splice *s)
{
    struct vg_buf json = {0};
    int r = vg_obj_splice_append(&json, s);
    if (r < 0)
        vg_respond_unencodable(call, r);
    else if (call->ask->media.transform == VG_AS_TABLE)
        vg_respond_table(call, code, &json);
    else
        vg_respond_json(call, code, &json);
}

static void respond_protobuf(struct vg_api_call *call, int code, struct vg_slice value, vg_rev rev)
{
    struct vg_buf body = {0};
    int r = vg_protobuf_of_value(value, rev, vg_media_protobuf_as(&call->ask->media), &body);
    if (r == 0) {
        vg_respond_bytes(call, code, VG_PROTOBUF_TYPE, &body);
        return;
    }
    vg_buf_done(&body);
    vg_respond_unencodable(call, r);
}

static void respond_rec(struct vg_api_call *call, int code, const struct vg_rec *rec, vg_rev rev)
{
    struct vg_obj_header h;
    struct vg_obj_splice s;
    if (call->ask->media.type == VG_MEDIA_PROTOBUF) {
        respond_protobuf(call, code, vg_rec_value(rec), rev);
        return;
    }
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    cut(&call->ask->media, &s, &h, rev);
    const struct vg_media *m = &call->ask->media;
    if (m->type != VG_MEDIA_JSON || m->is_pretty || m->transform == VG_AS_TABLE) {
        respond_spliced(call, code, &s);
        return;
    }
    struct vg_slice v[VG_OBJ_SLICES_MAX + 1];
    memcpy(v, s.v, s.n * sizeof *v);
    v[s.n] = VG_SLICE_LIT("\n");
    struct vg_http_pin pin = vg_rec_pin(rec);
    struct vg_head_opts opts = {.code = code,
                                .content_type = vg_media_content_type(&call->ask->media)};
    vg_respond_slices(call, &opts, v, s.n + 1, &pin);
}

/* The kind that the client asked for, when it is stored as another; else NULL. A Table is made of
 * what is stored. */
static const struct vg_kind *other_version(const struct vg_api_call *call)
{
    const struct vg_kind *kind = call->ask->target->kind;
    return kind && kind->stored && call->ask->media.transform != VG_AS_TABLE ? kind : NULL;
}

void vg_respond_object(struct vg_api_call *call, int code, const struct vg_rec *rec, vg_rev rev)
{
    struct vg_rec *own = NULL;
    int r = other_version(call) ? vg_version_rec(other_version(call), rec, &own) : 0;
    if (r == 0)
        respond_rec(call, code, own ? own : rec, rev);
    else
        vg_respond_unencodable(call, r);
    vg_rec_unref(own);
}

static void respond_value(struct vg_api_call *call, int code, const struct vg_obj_sealed *sealed,
                          vg_rev rev)
{
    struct vg_obj_header h;
    struct vg_obj_splice s;
    if (call->ask->media.type == VG_MEDIA_PROTOBUF) {
        respond_protobuf(call, code, vg_buf_slice(&sealed->value), rev);
        return;
    }
    vg_obj_header_read(vg_buf_slice(&sealed->header), vg_buf_slice(&sealed->value), &h);
    cut(&call->ask->media, &s, &h, rev);
    if (rev == 0) /* the revision is the slice that lies in the splice itself */
        for (uint32_t i = 0; i < s.n; i++)
            if (s.v[i].p == s.rev)
                s.v[i].n = 0;
    respond_spliced(call, code, &s);
}

void vg_respond_sealed(struct vg_api_call *call, int code, const struct vg_obj_sealed *sealed,
                       vg_rev rev)
{
    VG_AUTO(obj_sealed) own;
    vg_obj_sealed_init(&own);
    const struct vg_kind *other = other_version(call);
    int r = other ? vg_version_seal(other, vg_buf_slice(&sealed->value), &own) : 0;
    if (r == 0)
        respond_value(call, code, other ? &own : sealed, rev);
    else
        vg_respond_unencodable(call, r);
}
