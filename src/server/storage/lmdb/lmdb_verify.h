/* lmdb_verify.h - is a data file whole? Asked before LMDB maps it. */
#ifndef VG_STORAGE_LMDB_VERIFY_H
#define VG_STORAGE_LMDB_VERIFY_H

#include "lmdb_int.h"

/* A data file that is looked at, not changed. */
struct vg_data_file {
    int fd;
    const char *map;
    size_t size;
    uint32_t page_size;
    struct vg_lmdb_meta meta[2];
    unsigned newest; /* of the two, the one that LMDB takes */
};

/* Open it and look at its first two pages. VIGIL_E_STORE_FOREIGN, _STORE_VERSION, _STORE_DAMAGED,
 * -errno. */
VG_CHECK int vg_data_file_open(struct vg_data_file *f, const char *path,
                               struct vg_status *reterr_status);
void vg_data_file_close(struct vg_data_file *f);
/* For struct vg_page_walk: arg is the file. */
const char *vg_data_file_pages(const struct vg_data_file *f, uint64_t pgno, uint64_t n);

/* What a file holds, when it is whole. */
struct vg_data_facts {
    struct store_meta meta;
    struct vg_sums sums; /* added up from the entries, and compared with what is stored */
    bool is_marked;      /* they were stored; else an older vigil has written it */
};
/* Every page and every entry, but not the records: they have checksums, and are read one by one.
 * The same errors. */
VG_CHECK int vg_lmdb_inspect(const char *path, struct vg_data_facts *ret_facts,
                             struct vg_status *reterr_status);

/* What a walk's on_entry does to learn the facts; a walk that tolerates damage does it too. */
struct vg_fact_finder {
    struct vg_data_facts facts;
    struct vg_sums_record stored;
    bool has_meta, has_stored;
};
/* NULL, or what is wrong with the entry. */
const char *vg_fact_take(struct vg_fact_finder *f, enum vg_tree tree, struct vg_slice key,
                         struct vg_slice data);
/* NULL, or what does not add up, and in which tree; after all were walked without damage. */
const char *vg_fact_compare(struct vg_fact_finder *f, uint64_t txnid, enum vg_tree *ret_tree);

#endif
