/* component.c - ComponentStatus: is the control plane well? The original asks its etcd servers, a
 * scheduler and a controller manager on the same machine. Ours has one component that it knows of,
 * the store, and shows it under the name that clients look for. Nothing of it is stored. */
#include <errno.h>

#include "access.h"
#include "meta.h"
#include "options.h"
#include "respond_int.h"
#include "server/schema/proto.h"
#include "status_int.h"
#include "table.h"
#include "json/write.h"

#define STORE VG_SLICE_LIT("etcd-0")

/* One component; kind and apiVersion stand before it unless it is an item. */
static int write_store(struct vg_api_call *call, bool is_item, struct vg_buf *out)
{
    const char *trouble =
        vg_call_ops(call)->access ? vg_call_ops(call)->access->store_trouble(call) : NULL;
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, VG_JSON_ESCAPE_HTML);
    vg_json_put_begin_object(&w);
    if (!is_item) {
        vg_json_put_member(&w, "kind", VG_SLICE_LIT("ComponentStatus"));
        vg_json_put_member(&w, "apiVersion", VG_SLICE_LIT("v1"));
    }
    vg_json_put_key(&w, VG_SLICE_LIT("metadata"));
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "name", STORE);
    vg_json_put_end_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("conditions"));
    vg_json_put_begin_array(&w);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "type", VG_SLICE_LIT("Healthy"));
    vg_json_put_member(&w, "status", trouble ? VG_SLICE_LIT("False") : VG_SLICE_LIT("True"));
    vg_json_put_member(&w, "message", vg_slice_str(trouble ? trouble : "ok"));
    vg_json_put_end_object(&w);
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

static void fail(struct vg_api_call *call, struct vg_buf *take, int err)
{
    struct vg_api_status status;
    vg_buf_done(take);
    vg_status_from_err(&call->ask->arena, &status, err, NULL);
    vg_respond_status(call, &status);
}

void vg_api_get_component(struct vg_api_call *call)
{
    struct vg_slice name = call->ask->target->name;
    struct vg_buf json = {0};
    if (!vg_slice_eq(name, STORE)) {
        struct vg_api_status status = {.code = 404,
                                       .reason = "NotFound",
                                       .has_details = true,
                                       .name = name,
                                       .kind = VG_SLICE_LIT("componentstatus")};
        struct vg_arena *a = &call->ask->arena;
        if (vg_arena_printf(a, &status.message, "componentstatus %.*s not found",
                            VG_SLICE_ARG(vg_api_quote(a, name))) < 0)
            vg_status_no_memory(&status);
        vg_respond_status(call, &status);
        return;
    }
    int err = write_store(call, false, &json);
    if (err < 0)
        fail(call, &json, err);
    else if (call->ask->media.transform == VG_AS_TABLE)
        vg_respond_table(call, 200, &json);
    else
        vg_respond_json(call, 200, &json);
}

/* ---- lists ---- */

static int matches(const struct vg_api_call *call, const struct vg_list_options *o,
                   struct vg_slice json)
{
    VG_AUTO(arena) arena = {0};
    VG_AUTO(obj_sealed) sealed;
    struct vg_obj_header h;
    vg_obj_sealed_init(&sealed);
    int err = vg_obj_seal_text(call->ask->target->kind->fields, json, &arena, &sealed, NULL);
    if (err < 0)
        return err;
    vg_obj_header_read(vg_buf_slice(&sealed.header), vg_buf_slice(&sealed.value), &h);
    return vg_obj_predicate_matches(o->predicate, &h);
}

/* whole: of the object, with its kind; n 0: it does not match. */
static void list_table(struct vg_api_call *call, struct vg_slice whole)
{
    VG_AUTO(arena) arena = {0};
    struct vg_buf json = {0};
    struct vg_api_status status;
    struct vg_table t = {.kind = call->ask->target->kind,
                         .is_v1beta1 = call->ask->media.is_v1beta1,
                         .now_ms = vg_clock_wall_ms(call->loop->api->clock)};
    if (vg_table_include(call->ask->target, &call->ask->arena, &t.include, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    int err = vg_table_begin(&t, VG_SLICE_LIT("{}"), true, &json);
    if (err == 0 && whole.n)
        err = vg_table_row_of(&t, whole, &arena, &json);
    if (err == 0)
        err = vg_buf_append_slice(&json, VG_TABLE_TAIL);
    if (err < 0)
        fail(call, &json, err);
    else
        vg_respond_json(call, 200, &json);
}

static void list_json(struct vg_api_call *call, struct vg_slice items)
{
    struct vg_buf json = {0};
    int err = vg_buf_printf(&json,
                            "{\"kind\":\"ComponentStatusList\",\"apiVersion\":\"v1\","
                            "\"metadata\":{},\"items\":[%.*s]}",
                            VG_SLICE_ARG(items));
    if (err < 0)
        fail(call, &json, err);
    else
        vg_respond_json(call, 200, &json);
}

static void list_protobuf(struct vg_api_call *call, struct vg_slice item)
{
    VG_AUTO(proto_encoder) e = {0};
    VG_AUTO(buf) message = {0};
    struct vg_buf out = {0};
    struct vg_proto_list list = {.api_version = VG_SLICE_LIT("v1"),
                                 .kind = VG_SLICE_LIT("ComponentStatusList"),
                                 .remaining = -1};
    int err = item.n ? vg_proto_encode(&e, call->ask->target->kind->type, item, VG_SLICE_LIT(""),
                                       &message)
                     : 0;
    if (err == 0)
        err = vg_proto_put_list_head(&out, &list, item.n ? vg_proto_item_size(message.n) : 0);
    if (err == 0 && item.n)
        err = vg_proto_put_item_head(&out, message.n);
    if (err == 0)
        err = vg_buf_append_slice(&out, vg_buf_slice(&message));
    if (err == 0)
        err = vg_buf_append_slice(&out, VG_PROTO_TAIL);
    if (err < 0)
        fail(call, &out, err);
    else
        vg_respond_bytes(call, 200, VG_PROTOBUF_TYPE, &out);
}

static void refuse_watch(struct vg_api_call *call)
{
    struct vg_api_status status = {.code = 405,
                                   .reason = "MethodNotAllowed",
                                   .has_details = true,
                                   .kind = VG_SLICE_LIT("componentstatuses"),
                                   .message = VG_SLICE_LIT("watch is not supported on resources of "
                                                           "kind \"componentstatuses\"")};
    vg_respond_status(call, &status);
}

void vg_api_list_components(struct vg_api_call *call)
{
    struct vg_list_options opts;
    struct vg_api_status status;
    VG_AUTO(buf) whole = {0};
    VG_AUTO(buf) item = {0};
    if (vg_list_options_parse(call->ask->target, &call->ask->arena, &opts, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    if (opts.is_watch) {
        vg_list_options_done(&opts);
        refuse_watch(call);
        return;
    }
    int err = write_store(call, false, &whole);
    if (err == 0)
        err = matches(call, &opts, vg_buf_slice(&whole));
    if (err > 0)
        err = write_store(call, true, &item);
    vg_list_options_done(&opts);
    if (err < 0)
        fail(call, &whole, err);
    else if (call->ask->media.transform == VG_AS_TABLE)
        list_table(call, item.n ? vg_buf_slice(&whole) : VG_SLICE_LIT(""));
    else if (call->ask->media.type == VG_MEDIA_PROTOBUF)
        list_protobuf(call, vg_buf_slice(&item));
    else
        list_json(call, vg_buf_slice(&item));
}
