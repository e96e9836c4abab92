/* go_struct.h - values as the original shows whole structs in messages: its internal types have no
 * JSON names, so every field is there, by its name in Go. By the tables of the versioned types, and
 * what differs from them by hand. Thread: one owner. */
#ifndef VG_RULES_GO_STRUCT_H
#define VG_RULES_GO_STRUCT_H

#include "check.h"
#include "server/schema/schema.h"

struct vg_schema_type;

/* The value, or a list of such values, as text in the check's arena: {"Name":"x","Other":null}. */
struct vg_slice vg_go_struct(struct vg_check *c, const struct vg_schema_type *type,
                             const struct vg_json *v);
/* The same of the type of that name, in v1; null when v is NULL. */
struct vg_slice vg_go_struct_of(struct vg_check *c, const char *group, const char *type,
                                const struct vg_json *v);
/* Invalid value: {"Name":"x","Other":null}: detail. */
void vg_bad_go(struct vg_check *c, const struct vg_at *at, const struct vg_schema_type *type,
               const char *detail);
/* field is immutable: the value, of a type that is looked up only then, must equal old's. */
bool vg_check_immutable_go(struct vg_check *c, const struct vg_at *at, const struct vg_json *old,
                           const char *group, const char *type);

/* How two of them differ, as unified diff of their indented texts; in the check's arena. Empty for
 * more than VG_GO_DIFF_LINES_MAX lines: real ones have fewer than a hundred, and the time that it
 * takes grows with their square and worse. (line_diff.c) */
#define VG_GO_DIFF_LINES_MAX 500u
struct vg_slice vg_go_diff(struct vg_check *c, const char *group, const char *type,
                           const struct vg_json *old, const struct vg_json *now);

#endif
