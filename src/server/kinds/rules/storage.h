/* storage.h - what the files of the storage group share, and others use. Thread: any. */
#ifndef VG_RULES_STORAGE_H
#define VG_RULES_STORAGE_H

#include "check.h"

/* The name of a CSI driver: a subdomain of at most 63 bytes, in any case. */
void vg_check_csi_driver_name(struct vg_check *c, const struct vg_at *at);

#endif
