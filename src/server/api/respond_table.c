/* respond_table.c - an object as a Table with one row. */
#include "respond_int.h"
#include "table.h"

void vg_respond_table_of(struct vg_api_call *call, int code, const struct vg_columns *columns,
                         struct vg_buf *take_object)
{
    struct vg_buf json = {0};
    struct vg_api_status status;
    struct vg_table t = {.kind = call->ask->target->kind,
                         .columns = columns,
                         .is_v1beta1 = call->ask->media.is_v1beta1,
                         .now_ms = vg_clock_wall_ms(call->loop->api->clock),
                         .scratch = &call->loop->scratch};
    int r = vg_table_include(call->ask->target, &call->ask->arena, &t.include, &status);
    if (r == 0) {
        r = vg_table_of(&t, vg_buf_slice(take_object), &json);
        if (r < 0)
            vg_status_from_err(&call->ask->arena, &status, r, NULL);
    }
    vg_buf_done(take_object);
    if (r == 0) {
        vg_respond_json(call, code, &json);
        return;
    }
    vg_buf_done(&json);
    vg_respond_status(call, &status);
}

void vg_respond_table(struct vg_api_call *call, int code, struct vg_buf *take_object)
{
    vg_respond_table_of(call, code, NULL, take_object);
}
