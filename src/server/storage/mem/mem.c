/* mem.c - the engine without a disk: one table and nothing below. For tests, and for stores that
 * are thrown away. */
#include "server/storage/local/engine.h"

int vg_storage_open_mem(const struct vg_storage_opts *opts, struct vg_storage **ret_storage,
                        struct vg_status *reterr_status)
{
    struct vg_storage_opts o = vg_storage_opts_filled(opts);
    struct vg_engine_start start = {.rev = VG_REV_EMPTY};
    int r = vg_table_new(&start.take_active);
    if (r == 0)
        r = vg_engine_open(&o, &start, ret_storage);
    if (r < 0)
        return vg_fail(reterr_status, r, "cannot open a store in memory: %s", vg_err_text(r));
    return 0;
}
