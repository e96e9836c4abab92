/* place.h - where objects are: a data directory of vigild, or the servers of an etcd cluster.
 * Thread: main, which turns the loop. */
#ifndef VG_COPY_PLACE_H
#define VG_COPY_PLACE_H

#include "session.h"

#define VG_PLACE_PATH_MAX 4096

/* An open store. */
struct vg_place {
    const char *text; /* as it was said; borrowed */
    struct vg_session s;
    bool is_etcd;
    char dir[VG_PLACE_PATH_MAX];   /* of the store itself */
    char final[VG_PLACE_PATH_MAX]; /* a new directory's name when it is whole; "": it has it */
};

/* http://... or https://...: servers of etcd, parted by commas. */
bool vg_place_is_etcd(const char *text);

/* To read from, or to write into a cluster, for which `etcd` has all but the servers.
 * VIGIL_E_NOT_FOUND and what opening a store says. */
VG_CHECK int vg_place_open(struct vg_place *p, const char *text, const struct vg_etcd_opts *etcd,
                           struct vg_status *reterr_status);
/* To write into: a directory that has no store yet (VIGIL_E_EXISTS) is made, with a store whose
 * first change comes after `rev`, under a name that vg_place_finish changes. What an interrupted
 * copy left there goes first. */
VG_CHECK int vg_place_make(struct vg_place *p, const char *text, vg_rev rev,
                           struct vg_status *reterr_status);
/* Closes a place that was made and gives it its name. */
VG_CHECK int vg_place_finish(struct vg_place *p, struct vg_status *reterr_status);
/* Harmless when zeroed or closed; what was made and not finished is left for the next run to
 * remove. */
void vg_place_close(struct vg_place *p);

/* Where a store can be made: nothing is there yet (VIGIL_E_EXISTS), its parent is. */
VG_CHECK int vg_place_prepare(const char *text, char ret_dir[VG_PLACE_PATH_MAX],
                              struct vg_status *reterr_status);

/* The directory of the store of a data directory; a directory that has one itself is taken as it
 * is. */
VG_CHECK int vg_place_store_dir(const char *text, char ret_dir[VG_PLACE_PATH_MAX],
                                struct vg_status *reterr_status);

#endif
