/* yaml.h - YAML texts as JSON trees, and JSON trees as YAML text.
 * Reading follows what Kubernetes does: YAML 1.1 scalars (y, no and on are booleans), duplicate
 * keys refused or reported, aliases expanded within limits (libyaml parses; resolving is ours).
 * Keys that are not strings become strings as sigs.k8s.io/yaml makes them. Thread: any; the arena
 * has one owner. */
#ifndef VG_YAML_YAML_H
#define VG_YAML_YAML_H

#include "base/buf.h"
#include "json/json.h"

struct vg_yaml_opts {
    enum vg_json_on_dup on_dup;
    uint32_t max_depth;            /* 0 = VG_JSON_DEPTH_DEFAULT */
    size_t max_bytes;              /* of text; 0 = 3 MiB */
    size_t max_nodes;              /* after expanding aliases; 0 = 1 million */
    struct vg_json_dups *ret_dups; /* with VG_JSON_DUP_REPORT */
};
/* One document. The tree owes nothing to the text. 0; VIGIL_E_JSON_SYNTAX, _JSON_UTF8, _JSON_DEPTH,
 * _JSON_DUPLICATE, VIGIL_E_TOO_LARGE with a message; -ENOMEM. */
VG_CHECK int vg_yaml_parse(struct vg_arena *arena, struct vg_slice text,
                           const struct vg_yaml_opts *opts, struct vg_json **ret_root,
                           struct vg_status *reterr_status);
/* Append a tree as YAML the way sigs.k8s.io/yaml writes it: keys sorted, two blanks, block style.
 * 0, -ENOMEM, VIGIL_E_TOO_LARGE, VIGIL_E_JSON_DEPTH. */
VG_CHECK int vg_yaml_write(struct vg_buf *out, const struct vg_json *root);

#endif
