/* data_dir.h - the directory that holds everything: made 0700, locked by one process, with files
 * that are 0600 and written whole or not at all.
 *     admin.kubeconfig   how an administrator connects
 *     pki/               keys and certificates (pki.h)
 *     store/             the embedded store
 *     vigild.lock        held while vigild runs; its text is the process id */
#ifndef VG_MAIN_DATA_DIR_H
#define VG_MAIN_DATA_DIR_H

#include "base/buf.h"
#include "base/err.h"

struct vg_data_dir {
    char *path; /* absolute */
    int fd;     /* of the directory */
    int lock_fd;
};

/* 0; VIGIL_E_STORE_LOCKED: another process has it; -errno: cannot be made, others may read it.
 * With a sentence. */
VG_CHECK int vg_data_dir_open(const char *path, struct vg_data_dir *ret_dir,
                              struct vg_status *reterr_status);
void vg_data_dir_close(struct vg_data_dir *d);

/* False: its lock, or this directory in it, has been removed, and likely everything else has.
 * Wherever it may have been moved to. Thread: any. */
bool vg_data_dir_is_there(const struct vg_data_dir *d, const char *name);

/* The path of a file in it; NULL: out of memory. The caller frees it. */
VG_CHECK char *vg_data_dir_path(const struct vg_data_dir *d, const char *name);
/* Make a directory in it, 0700, if there is none. */
VG_CHECK int vg_data_dir_make(const struct vg_data_dir *d, const char *name,
                              struct vg_status *reterr_status);
/* The whole file is replaced. Durable: it is there when this returns, whatever happens; else it may
 * be lost or empty after a power cut, which is for files that are made anew when found wanting. */
enum vg_durability { VG_LAZY, VG_DURABLE };
VG_CHECK int vg_data_dir_write(const struct vg_data_dir *d, const char *name,
                               struct vg_slice content, enum vg_durability durability,
                               struct vg_status *reterr_status);
/* Append the content. -ENOENT: there is none. */
VG_CHECK int vg_data_dir_read(const struct vg_data_dir *d, const char *name, struct vg_buf *out,
                              struct vg_status *reterr_status);
/* Write a file unless it holds this already. What it held before stays beside it as NAME.old. A
 * file that is there and cannot be read is left alone, and that is the error. */
VG_CHECK int vg_data_dir_replace(const struct vg_data_dir *d, const char *name,
                                 struct vg_slice content, enum vg_durability durability,
                                 struct vg_status *reterr_status);
/* The same of any file. */
VG_CHECK int vg_read_file(const char *path, struct vg_buf *out, struct vg_status *reterr_status);

#endif
