/* server_table.h - tables that a server makes of its objects (meta.k8s.io/v1 Table), as
 * kube-apiserver does for those who ask for them. Thread: any. */
#ifndef VG_CLI_SERVER_TABLE_H
#define VG_CLI_SERVER_TABLE_H

#include "table.h"
#include "vigil/object.h"

/* What to ask with: a table where there is one, else objects. */
#define VG_SERVER_TABLE_ACCEPT                                                                     \
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json, */*;q=0.5"

struct vg_server_table {
    bool has_namespace, is_wide;
    unsigned columns; /* of ours, the namespace included; 0: no table came yet */
};
/* Is an answer a table? */
bool vg_server_table_is(struct vigil_value answer);
/* Put its rows, and before the first of all the head; the first table makes *t, which the caller
 * ends. Rows of later tables go under the columns of the first. 0, or -ENOMEM. */
VG_CHECK int vg_server_table_put(struct vg_server_table *s, struct vigil_value answer,
                                 struct vg_table *t);

#endif
