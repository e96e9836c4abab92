/* yaml.h - YAML texts as JSON trees, and JSON trees as YAML text.
 * Reading follows what Kubernetes does: YAML 1.1 scalars (y, no and on are booleans), duplicate
 * keys refused or reported, aliases expanded within limits (libyaml parses; resolving is ours).
 * Keys that are not strings become strings as sigs.k8s.io/yaml makes them. Thread: any; the arena
 * has one owner. */
#ifndef VG_YAML_YAML_H
#define VG_YAML_YAML_H

#include "base/buf.h"
#include "json/json.h"

/* No option can go beyond: decoding and writing recurse, a few hundred bytes of stack per level. */
#define VG_YAML_DEPTH_MAX 1024u
/* As large as a request body may be. */
#define VG_YAML_BYTES_DEFAULT ((size_t)3 << 20)
/* 1 million: three bytes each of the largest body. */
#define VG_YAML_NODES_DEFAULT ((size_t)1000 * 1000)

struct vg_yaml_opts {
    enum vg_json_on_dup on_dup;
    uint32_t max_depth; /* 0 = VG_JSON_DEPTH_DEFAULT, at most VG_YAML_DEPTH_MAX */
    size_t max_bytes;   /* of text; 0 = VG_YAML_BYTES_DEFAULT */
    size_t max_nodes;   /* after expanding aliases; 0 = VG_YAML_NODES_DEFAULT */
    /* With VG_JSON_DUP_REPORT. `path` is the whole text that Kubernetes warns with, such as
     *     line 7: key "a" already set in map
     * and `offset` the line. Strict decoding answers "yaml: unmarshal errors:" and then, each after
     * "\n  ", all of them; VG_JSON_DUP_FAIL has that text as its message. */
    struct vg_json_dups *ret_dups;
};
/* The first document; what follows it is not looked at, no document is null. The tree owes nothing
 * to the text; its values carry no offsets. opts may be NULL. Messages are go-yaml's and begin with
 * "yaml: "; who decodes puts "error converting YAML to JSON: " before where Kubernetes does.
 * 0; VIGIL_E_JSON_SYNTAX, _JSON_UTF8, _JSON_DEPTH, _JSON_DUPLICATE, VIGIL_E_TOO_LARGE with a
 * message; -ENOMEM. */
VG_CHECK int vg_yaml_parse(struct vg_arena *arena, struct vg_slice text,
                           const struct vg_yaml_opts *opts, struct vg_json **ret_root,
                           struct vg_status *reterr_status);
/* Append a tree as YAML the way sigs.k8s.io/yaml writes it: keys sorted, two blanks, block style.
 * 0, -ENOMEM, VIGIL_E_TOO_LARGE, VIGIL_E_JSON_DEPTH; after a failure the buffer is as before. */
VG_CHECK int vg_yaml_write(struct vg_buf *out, const struct vg_json *root);

#endif
