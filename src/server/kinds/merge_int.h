/* merge_int.h - merge tables that several kinds share. */
#ifndef VG_KINDS_MERGE_INT_H
#define VG_KINDS_MERGE_INT_H

#include "json/strategic.h"

/* The rows of a table:
 *   OBJECT  an object, merged, because something below it asks for more
 *   LIST    a list of objects, merged by key
 *   SET     a list of scalars, merged */
#define OBJECT(name, schema)                                                                       \
    {                                                                                              \
        name, 0, NULL, schema                                                                      \
    }
#define LIST(name, key, schema)                                                                    \
    {                                                                                              \
        name, VG_MERGE_LIST, key, schema                                                           \
    }
#define SET(name)                                                                                  \
    {                                                                                              \
        name, VG_MERGE_LIST, NULL, NULL                                                            \
    }
#define RETAIN(name)                                                                               \
    {                                                                                              \
        name, VG_MERGE_RETAIN_KEYS, NULL, NULL                                                     \
    }
#define LIST_RETAIN(name, key, schema)                                                             \
    {                                                                                              \
        name, VG_MERGE_LIST | VG_MERGE_RETAIN_KEYS, key, schema                                    \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, 0, NULL, NULL                                                                        \
    }
/* A schema of these rows. */
#define SCHEMA(...)                                                                                \
    {                                                                                              \
        (const struct vg_merge_field[])                                                            \
        {                                                                                          \
            __VA_ARGS__, END                                                                       \
        }                                                                                          \
    }

extern const struct vg_merge_schema vg_merge_object_meta;
extern const struct vg_merge_schema vg_merge_conditions; /* of any status */
extern const struct vg_merge_schema vg_merge_pod_spec, vg_merge_pod_status, vg_merge_pod_template;
extern const struct vg_merge_schema vg_merge_with_template; /* any spec with a pod template */

#endif
