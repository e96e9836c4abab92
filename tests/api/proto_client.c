/* proto_client.c - see proto_client.h. Messages are taken apart here by hand, so that what the
 * server has put around objects is not read with the code that wrote it. */
#include "proto_client.h"

#include "server/kinds/types.h"
#include "server/schema/proto.h"
#include "test_support.h"
#include "json/scan.h"
#include "json/write.h"

/* ---- messages ---- */

static uint64_t varint(struct vg_slice m, size_t *at)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(*at < m.n && shift < 64);
        unsigned char c = (unsigned char)m.p[(*at)++];
        v |= (uint64_t)(c & 127) << shift;
        if (c < 128)
            return v;
    }
}

struct vg_slice vg_proto_client_field(struct vg_slice message, unsigned number, size_t *at)
{
    while (*at < message.n) {
        uint64_t tag = varint(message, at);
        uint64_t n = varint(message, at);
        assert_true((tag & 7) == 2 || (tag & 7) == 0);
        if ((tag & 7) == 0)
            continue;
        assert_true(n <= message.n - *at);
        struct vg_slice v = {message.p + *at, n};
        *at += n;
        if (tag >> 3 == number)
            return v;
    }
    return vg_slice(NULL, 0);
}

static struct vg_slice field(struct vg_slice message, unsigned number)
{
    size_t at = 0;
    return vg_proto_client_field(message, number, &at);
}

static struct vg_slice raw_of(struct vg_slice body, struct vg_slice *ret_version,
                              struct vg_slice *ret_kind)
{
    assert_true(body.n > 4 && memcmp(body.p, "k8s\0", 4) == 0);
    struct vg_slice unknown = {body.p + 4, body.n - 4}, type = field(unknown, 1);
    *ret_version = field(type, 1);
    *ret_kind = field(type, 2);
    assert_int_equal(field(unknown, 3).n, 0);
    assert_int_equal(field(unknown, 4).n, 0);
    return field(unknown, 2);
}

/* ---- objects ---- */

static const struct vg_schema_type *type_of(struct vg_slice version, struct vg_slice kind)
{
    const char *slash = version.n ? memchr(version.p, '/', version.n) : NULL;
    struct vg_slice group = {"", 0}, rest = version;
    if (slash) {
        group = vg_slice(version.p, (size_t)(slash - version.p));
        rest = vg_slice(slash + 1, version.n - group.n - 1);
    }
    const struct vg_schema_type *t = vg_schema_find(group, rest, kind);
    return t ? t : vg_schema_find(VG_SLICE_LIT("meta.k8s.io"), VG_SLICE_LIT("v1"), kind);
}

static void append_message(struct vg_slice raw, struct vg_slice version, struct vg_slice kind,
                           const struct vg_schema_type *type, struct vg_buf *out)
{
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 0);
    struct vg_proto_envelope x = {.api_version = version, .kind = kind, .raw = raw};
    struct vg_json v;
    struct vg_status why;
    int r = vg_proto_decode(&arena, type, &x, &v, &why);
    if (r < 0)
        print_error("%s\n", why.message);
    assert_int_equal(r, 0);
    assert_int_equal(vg_json_write(out, &v, VG_JSON_ESCAPE_HTML), 0);
}

static bool is_list(struct vg_slice kind)
{
    return kind.n > 4 && memcmp(kind.p + kind.n - 4, "List", 4) == 0 &&
           memcmp(kind.p, "API", 3) != 0;
}

static void append_list(struct vg_slice raw, struct vg_slice version, struct vg_slice kind,
                        struct vg_buf *out)
{
    struct vg_slice none = {"", 0}, item;
    struct vg_slice one = {kind.p, kind.n - 4};
    const struct vg_schema_type *meta =
        vg_schema_find(VG_SLICE_LIT("meta.k8s.io"), VG_SLICE_LIT("v1"), VG_SLICE_LIT("ListMeta"));
    assert_int_equal(vg_buf_printf(out, "{\"kind\":\"%.*s\",\"apiVersion\":\"%.*s\",\"metadata\":",
                                   VG_SLICE_ARG(kind), VG_SLICE_ARG(version)),
                     0);
    append_message(field(raw, 1), none, none, meta, out);
    assert_int_equal(vg_buf_printf(out, ",\"items\":["), 0);
    size_t at = 0, n = 0;
    while ((item = vg_proto_client_field(raw, 2, &at)).p) {
        assert_int_equal(vg_buf_printf(out, "%s", n++ ? "," : ""), 0);
        append_message(item, none, none, type_of(version, one), out);
    }
    assert_int_equal(vg_buf_printf(out, "]}"), 0);
}

void vg_proto_client_json(struct vg_slice body, struct vg_buf *ret)
{
    struct vg_slice version, kind, raw = raw_of(body, &version, &kind);
    vg_buf_clear(ret);
    if (is_list(kind))
        append_list(raw, version, kind, ret);
    else
        append_message(raw, version, kind, type_of(version, kind), ret);
    assert_int_equal(vg_buf_append_byte(ret, '\0'), 0);
    ret->n--;
}

static struct vg_slice member(struct vg_slice json, const char *name)
{
    struct vg_json_step path = vg_json_step_key(name);
    struct vg_slice v;
    assert_int_equal(vg_json_find(json, &path, 1, &v), 0);
    return vg_slice(v.p + 1, v.n - 2);
}

void vg_proto_client_body(struct vg_slice json, struct vg_buf *ret)
{
    VG_AUTO(proto_encoder) e = {0};
    struct vg_slice version = member(json, "apiVersion"), kind = member(json, "kind");
    vg_buf_clear(ret);
    assert_int_equal(vg_proto_encode_object(&e, type_of(version, kind), version, kind, json,
                                            VG_SLICE_LIT(""), ret),
                     0);
}

/* ---- events ---- */

void vg_proto_client_event(struct vg_slice frame, struct vg_slice *ret_type,
                           struct vg_slice *ret_body)
{
    *ret_type = field(frame, 1);
    *ret_body = field(field(frame, 2), 1);
}

void vg_proto_client_event_json(struct vg_slice frame, struct vg_buf *ret)
{
    VG_AUTO(buf) object = {0};
    struct vg_slice type, body;
    vg_proto_client_event(frame, &type, &body);
    vg_proto_client_json(body, &object);
    vg_buf_clear(ret);
    assert_int_equal(vg_buf_printf(ret, "{\"type\":\"%.*s\",\"object\":%s}%c", VG_SLICE_ARG(type),
                                   object.p, '\0'),
                     0);
    ret->n--;
}
