/* disk_shadow_int.h - what the two halves of the shadow share: disk_shadow.c keeps it up to date,
 * disk_image.c writes a possible outcome of a cut. */
#ifndef VG_TESTS_DISK_SHADOW_INT_H
#define VG_TESTS_DISK_SHADOW_INT_H

#include "disk_shadow.h"

#define SHADOW_PAGE ((uint64_t)4096)
#define SHADOW_SECTOR ((uint64_t)512)
#define SHADOW_NAME_MAX 64

/* Bytes of a file, sparse: a NULL page is zeros. */
struct shadow_bytes {
    uint64_t size;
    char **pages;
    size_t n_pages;
};

/* A write, or (bytes == NULL) a change of size to `off`. */
struct shadow_change {
    struct shadow_change *next;
    uint64_t seq;
    uint64_t off;
    size_t n;
    char *bytes;
};

struct vg_shadow_file {
    struct vg_shadow_file *next;
    dev_t dev;
    ino_t ino;
    bool is_named; /* an inode without a name may be given to another file */
    uint64_t live_size;
    struct shadow_bytes durable;
    struct shadow_change *first, **last; /* since the last sync, in order */
};

struct shadow_name {
    char name[SHADOW_NAME_MAX];
    struct vg_shadow_file *file;
};
struct shadow_names {
    struct shadow_name *at;
    size_t n;
};

/* Takes `gone` away and gives `name` to `file`; either may be empty. */
struct shadow_name_change {
    char gone[SHADOW_NAME_MAX];
    char name[SHADOW_NAME_MAX];
    struct vg_shadow_file *file;
};

struct vg_shadow {
    char *dir;
    dev_t dev, parent_dev;
    ino_t ino, parent_ino;
    bool is_there, is_durable; /* the directory itself */
    uint64_t seq;
    struct vg_shadow_file *files;
    struct shadow_names live, durable;
    struct shadow_name_change *changes; /* since the last sync of the directory */
    size_t n_changes;
};

void *vg_shadow_alloc(void *old, size_t size); /* realloc that does not fail */

void vg_shadow_bytes_done(struct shadow_bytes *b);
void vg_shadow_bytes_resize(struct shadow_bytes *b, uint64_t size);
void vg_shadow_bytes_write(struct shadow_bytes *b, uint64_t off, const char *p, size_t n);
void vg_shadow_bytes_apply(struct shadow_bytes *b, const struct shadow_change *c);
/* There, absent or torn, as the dice fall. */
void vg_shadow_bytes_apply_maybe(struct shadow_bytes *b, const struct shadow_change *c,
                                 struct vg_rng *rng);
void vg_shadow_names_apply(struct shadow_names *names, const struct shadow_name_change *c);

#endif
