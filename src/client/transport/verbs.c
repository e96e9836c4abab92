/* verbs.c - vigil/client.h: the verbs on one object, each waiting for its answer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/object/object_int.h"
#include "request.h"
#include "transport.h"
#include "json/write.h"

#define JSON "application/json"

static int no_memory(struct vigil_error *err)
{
    return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
}

/* The path, ended by 0. Objects of a namespace need one, or the server would be asked for another
 * thing altogether. */
static int make_path(struct vg_buf *out, const struct vigil_resource *r, const char *ns,
                     const char *name, const char *sub, struct vigil_error *err)
{
    if (r->namespaced && (!ns || !*ns))
        return vg_error_set(err, VIGIL_E_INVALID, "%s have a namespace: name it", r->plural);
    if (name && !*name)
        return vg_error_set(err, VIGIL_E_INVALID, "the name is empty");
    return vg_path_resource(out, r, ns, name, sub) < 0 ? no_memory(err) : 0;
}

/* Make the call and, where the caller wants it, an object of its answer. */
static int call_object(struct vigil_client *c, struct vg_buf *path, struct vg_call *call,
                       const struct vigil_object **ret, struct vigil_error *err)
{
    int r = vg_buf_append_byte(path, 0);
    if (r < 0)
        return no_memory(err);
    call->path = path->p;
    call->answer.max = VG_OBJECT_BYTES_MAX;
    r = vg_call(c, call);
    const struct vigil_object *o = NULL;
    if (r == 0 && ret) {
        r = vg_object_make(vg_buf_slice(&call->answer), NULL, &o);
        if (r < 0)
            r = vg_error_set(&call->err, r, "the server's answer is no object: %s", vg_err_text(r));
    }
    vg_buf_done(&call->answer);
    if (r < 0 && err)
        *err = call->err;
    if (r == 0 && ret)
        *ret = o;
    return r;
}

int vigil_read(struct vigil_client *c, const struct vigil_resource *r, const char *ns,
               const char *name, const struct vigil_object **ret, struct vigil_error *err)
{
    VG_AUTO(buf) path = {0};
    int e = make_path(&path, r, ns, name, NULL, err);
    struct vg_call call = {.method = "GET"};
    return e < 0 ? e : call_object(c, &path, &call, ret, err);
}

int vigil_create(struct vigil_client *c, const struct vigil_resource *r, const char *ns,
                 struct vigil_text json, const struct vigil_object **ret, struct vigil_error *err)
{
    VG_AUTO(buf) path = {0};
    int e = make_path(&path, r, ns, NULL, NULL, err);
    struct vg_call call = {.method = "POST", .content_type = JSON, .body = json};
    return e < 0 ? e : call_object(c, &path, &call, ret, err);
}

int vigil_update(struct vigil_client *c, const struct vigil_resource *r, const char *ns,
                 const char *name, const char *subresource, struct vigil_text json,
                 const struct vigil_object **ret, struct vigil_error *err)
{
    VG_AUTO(buf) path = {0};
    int e = make_path(&path, r, ns, name, subresource, err);
    struct vg_call call = {.method = "PUT", .content_type = JSON, .body = json};
    return e < 0 ? e : call_object(c, &path, &call, ret, err);
}

int vigil_call(struct vigil_client *c, const struct vigil_resource *r, const char *ns,
               const char *name, const char *subresource, struct vigil_text json,
               const struct vigil_object **ret, struct vigil_error *err)
{
    VG_AUTO(buf) path = {0};
    int e = make_path(&path, r, ns, name, subresource, err);
    struct vg_call call = {.method = "POST", .content_type = JSON, .body = json};
    return e < 0 ? e : call_object(c, &path, &call, ret, err);
}

int vigil_patch(struct vigil_client *c, const struct vigil_resource *r, const char *ns,
                const char *name, struct vigil_text patch, const struct vigil_patch_opts *opts,
                const struct vigil_object **ret, struct vigil_error *err)
{
    static const char *const TYPES[] = {
        [VIGIL_PATCH_JSON] = "application/json-patch+json",
        [VIGIL_PATCH_MERGE] = "application/merge-patch+json",
        [VIGIL_PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
        [VIGIL_PATCH_APPLY] = "application/apply-patch+yaml",
    };
    struct vigil_patch_opts o = {0};
    if (opts->size == 0)
        return vg_error_set(err, VIGIL_E_INVALID, VG_NO_SIZE);
    memcpy(&o, opts, VG_MIN(opts->size, sizeof(o))); /* of an older program: shorter */
    if ((unsigned)o.type >= VG_ARRAY_LEN(TYPES))
        return vg_error_set(err, VIGIL_E_INVALID, "no such type of patch: %d", (int)o.type);
    if (o.type == VIGIL_PATCH_APPLY && (!o.field_manager || !*o.field_manager))
        return vg_error_set(err, VIGIL_E_INVALID, "apply needs a field_manager: who applies");
    VG_AUTO(buf) path = {0};
    int e = make_path(&path, r, ns, name, o.subresource, err);
    if (e < 0)
        return e;
    if (vg_path_query(&path, "fieldManager", o.field_manager) < 0 ||
        vg_path_query(&path, "force", o.force ? "true" : NULL) < 0 ||
        vg_path_query(&path, "dryRun", o.dry_run ? "All" : NULL) < 0)
        return no_memory(err);
    struct vg_call call = {.method = "PATCH", .content_type = TYPES[o.type], .body = patch};
    return call_object(c, &path, &call, ret, err);
}

static int put_string(struct vg_buf *out, const char *sep, const char *name, const char *value)
{
    int r = vg_buf_printf(out, "%s\"%s\":", sep, name);
    return r < 0 ? r : vg_json_write_string(out, vg_slice_str(value), 0);
}

static int delete_body(struct vg_buf *out, const struct vigil_delete_opts *o)
{
    int r = vg_buf_printf(out, "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\"");
    if (r == 0 && o->grace_period_s >= 0)
        r = vg_buf_printf(out, ",\"gracePeriodSeconds\":%lld", (long long)o->grace_period_s);
    if (r == 0 && o->propagation)
        r = put_string(out, ",", "propagationPolicy", o->propagation);
    if (r == 0 && (o->uid || o->resource_version)) {
        r = vg_buf_printf(out, ",\"preconditions\":{");
        if (r == 0 && o->uid)
            r = put_string(out, "", "uid", o->uid);
        if (r == 0 && o->resource_version)
            r = put_string(out, o->uid ? "," : "", "resourceVersion", o->resource_version);
        if (r == 0)
            r = vg_buf_append_byte(out, '}');
    }
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

int vigil_delete(struct vigil_client *c, const struct vigil_resource *r, const char *ns,
                 const char *name, const struct vigil_delete_opts *opts, struct vigil_error *err)
{
    VG_AUTO(buf) path = {0};
    VG_AUTO(buf) body = {0};
    struct vigil_delete_opts o = {.grace_period_s = -1};
    if (opts && opts->size == 0)
        return vg_error_set(err, VIGIL_E_INVALID, VG_NO_SIZE);
    if (opts)
        memcpy(&o, opts, VG_MIN(opts->size, sizeof(o))); /* of an older program: shorter */
    int e = make_path(&path, r, ns, name, NULL, err);
    if (e < 0)
        return e;
    if (opts && delete_body(&body, &o) < 0)
        return no_memory(err);
    struct vg_call call = {
        .method = "DELETE", .content_type = opts ? JSON : NULL, .body = {body.p, body.n}};
    return call_object(c, &path, &call, NULL, err);
}
