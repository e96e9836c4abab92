/* parse.c - the door for reading: limits, then nodes, then the tree. */
#include <errno.h>

#include "yaml_int.h"

static struct vg_yaml_opts with_defaults(const struct vg_yaml_opts *opts)
{
    struct vg_yaml_opts o = opts ? *opts : (struct vg_yaml_opts){0};
    o.max_depth = o.max_depth ? o.max_depth : VG_JSON_DEPTH_DEFAULT;
    o.max_depth = VG_MIN(o.max_depth, VG_YAML_DEPTH_MAX);
    o.max_bytes = o.max_bytes ? o.max_bytes : VG_YAML_BYTES_DEFAULT;
    o.max_bytes = VG_MIN(o.max_bytes, VG_JSON_BYTES_MAX);
    o.max_nodes = o.max_nodes ? o.max_nodes : VG_YAML_NODES_DEFAULT;
    return o;
}

int vg_yaml_parse(struct vg_arena *arena, struct vg_slice text, const struct vg_yaml_opts *opts,
                  struct vg_json **ret_root, struct vg_status *reterr_status)
{
    struct vg_yaml_opts o = with_defaults(opts);
    VG_AUTO(arena) nodes = {0};
    struct vg_yaml_node *root = NULL;
    if (text.n > o.max_bytes)
        return vg_fail(reterr_status, VIGIL_E_TOO_LARGE, "yaml: document exceeds %zu bytes",
                       o.max_bytes);
    struct vg_json *v = vg_arena_new(arena, struct vg_json);
    if (!v)
        return -ENOMEM;
    int r = vg_yaml_read(&nodes, arena, text, o.max_depth, o.max_nodes, &root, reterr_status);
    if (r < 0)
        return r;
    *v = vg_json_null();
    if (o.ret_dups)
        *o.ret_dups = (struct vg_json_dups){0};
    if (root)
        r = vg_yaml_decode(arena, root, &o, v, reterr_status);
    if (r == 0)
        *ret_root = v;
    return r;
}
