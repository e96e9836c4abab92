/* respond_constant.c - bodies that are there already, and "not modified". */
#include "respond_int.h"

static void hold_nothing(const void *block)
{
    (void)block;
}
const struct vg_http_pin vg_constant_pin = {NULL, hold_nothing, hold_nothing};

bool vg_respond_not_modified(struct vg_api_call *call, const struct vg_head_opts *opts)
{
    struct vg_head_opts own = *opts;
    struct vg_slice known = vg_http_field(call->x, "if-none-match");
    if (!own.etag || !vg_slice_eq(known, vg_slice_str(own.etag)))
        return false;
    own.code = 304;
    own.content_type = NULL;
    own.is_gzip = false;
    vg_respond_slices(call, &own, NULL, 0, NULL);
    return true;
}

void vg_respond_pinned(struct vg_api_call *call, const struct vg_head_opts *opts,
                       struct vg_slice body, const struct vg_http_pin *pin)
{
    struct vg_head_opts own = *opts;
    own.code = 200;
    vg_respond_slices(call, &own, &body, 1, pin);
}

void vg_respond_constant(struct vg_api_call *call, const struct vg_head_opts *opts,
                         struct vg_slice body)
{
    if (!vg_respond_not_modified(call, opts))
        vg_respond_pinned(call, opts, body, &vg_constant_pin);
}
