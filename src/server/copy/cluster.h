/* cluster.h - what an etcd cluster needs as the target of a copy: a mark while it is not whole, and
 * revisions above the source's. Thread: main. */
#ifndef VG_COPY_CLUSTER_H
#define VG_COPY_CLUSTER_H

#include "walk_all.h"

/* Revisions that are made by writing, one by one: some minutes' worth. */
#define VG_CLUSTER_RAISE_MAX ((vg_rev)2000000)
/* Above a backup's revision, unless --bump says otherwise. */
#define VG_CLUSTER_RESTORE_BUMP ((vg_rev)10000)

/* May it be written to? It is empty, or has the mark of the same copy that was interrupted, or what
 * it has may go (is_forced). Then it has the mark. VIGIL_E_EXISTS; VIGIL_E_INVALID: its revisions
 * are too far below the source's. */
VG_CHECK int vg_cluster_begin(struct vg_place *p, const struct vg_copy_opts *opts,
                              const struct vg_walk *from, struct vg_status *reterr_status);
/* Bring its revision above the source's. */
VG_CHECK int vg_cluster_raise(struct vg_place *p, const struct vg_copy_opts *opts, vg_rev from,
                              struct vg_status *reterr_status);
/* The copy is whole: the mark goes, and so does the history, so that whoever comes with a revision
 * of the source is told to list anew. */
VG_CHECK int vg_cluster_end(struct vg_place *p, vg_rev *ret_rev, struct vg_status *reterr_status);

#endif
