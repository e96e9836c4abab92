/* unwritten.c - verbs that the room does not have yet, refused; their real ones take precedence. */
#include "server/api/api_int.h"

#define UNWRITTEN(name)                                                                            \
    __attribute__((weak)) void name(struct vg_api_call *call)                                      \
    {                                                                                              \
        struct vg_api_status status;                                                               \
        vg_status_method(&status);                                                                 \
        vg_respond_status(call, &status);                                                          \
    }
UNWRITTEN(vg_api_create)
UNWRITTEN(vg_api_update)
UNWRITTEN(vg_api_patch)
UNWRITTEN(vg_api_delete)
UNWRITTEN(vg_api_deletecollection)
__attribute__((weak)) void vg_respond_scale(struct vg_api_call *call, int code,
                                            const struct vg_rec *rec, vg_rev rev)
{
    vg_respond_object(call, code, rec, rev);
}
