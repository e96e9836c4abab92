/* lmdb_open.h - an LMDB base before it is an engine. */
#ifndef VG_STORAGE_LMDB_OPEN_H
#define VG_STORAGE_LMDB_OPEN_H

#include "lmdb_int.h"

/* Address space for checking a backup: as much as any store may have. */
#define VG_RESTORE_MAP_SIZE ((size_t)256 << 30)

/* Nothing is opened yet. */
VG_CHECK int vg_lmdb_new(const char *path, size_t map_size, struct vg_lmdb **ret_lmdb);
/* Closes what is open; NULL allowed. */
void vg_lmdb_free(struct vg_lmdb *l);

#endif
