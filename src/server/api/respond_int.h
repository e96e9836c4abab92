/* respond_int.h - heads with all that they may say, for the files that answer. */
#ifndef VG_API_RESPOND_INT_H
#define VG_API_RESPOND_INT_H

#include "api_int.h"
#include "protobuf.h"

struct vg_head_opts {
    int code;
    const char *content_type;  /* NULL: no body */
    uint64_t length;           /* or VG_HTTP_STREAMED */
    const char *etag;          /* NULL: none */
    const char *cache_control; /* NULL: no-cache, private */
    uint32_t retry_after_s;    /* 0: none */
    bool is_gzip, is_watch;
    bool is_early; /* the verb goes on: do not finish the call */
};
/* 0; negative: nobody is there, or there was an answer before. */
VG_CHECK int vg_respond_head_opts(struct vg_api_call *call, const struct vg_head_opts *opts);

/* The head and a body of slices, and the end; opts->length is filled in. */
void vg_respond_slices(struct vg_api_call *call, struct vg_head_opts *opts,
                       const struct vg_slice *v, size_t n, const struct vg_http_pin *pin);

/* A body that is constant for the process's life, as it is: 200, or 304 when opts has an ETag that
 * If-None-Match names. What has an ETag says Vary: Accept. opts says the rest of the head. */
void vg_respond_constant(struct vg_api_call *call, const struct vg_head_opts *opts,
                         struct vg_slice body);
/* Those two steps: 304 if it may be, and then true; 200 with a body that the pin holds. */
bool vg_respond_not_modified(struct vg_api_call *call, const struct vg_head_opts *opts);
void vg_respond_pinned(struct vg_api_call *call, const struct vg_head_opts *opts,
                       struct vg_slice body, const struct vg_http_pin *pin);

/* Answer a request whose verb is still under way, as when its time is over. */
void vg_call_answer_early(struct vg_api_call *call, const struct vg_api_status *status);

/* What is stored cannot be shown as it was asked for. */
void vg_respond_unencodable(struct vg_api_call *call, int err);

/* An object, given as its JSON, as a Table of one (respond_table.c). */
void vg_respond_table(struct vg_api_call *call, int code, struct vg_buf *take_object);
/* The same with other columns than the kind's. */
void vg_respond_table_of(struct vg_api_call *call, int code, const struct vg_columns *columns,
                         struct vg_buf *take_object);

/* Slices of an object as PartialObjectMetadata; they borrow from the splice and the record. */
void vg_partial_splice(struct vg_obj_splice *s, const struct vg_obj_header *h, vg_rev rev,
                       bool is_v1beta1);
/* What is made of an object when the media is protobuf. */
static inline enum vg_protobuf_as vg_media_protobuf_as(const struct vg_media *m)
{
    return m->transform != VG_AS_PARTIAL ? VG_PROTOBUF_WHOLE
           : m->is_v1beta1               ? VG_PROTOBUF_PARTIAL_V1BETA1
                                         : VG_PROTOBUF_PARTIAL;
}
/* Pins records by their reference count. */
struct vg_http_pin vg_rec_pin(const struct vg_rec *rec);
/* For constants: nothing to hold. */
extern const struct vg_http_pin vg_constant_pin;

#endif
