/* fuzz_backup.c - a backup that anybody may have written is read to its end or refused. */
#include <stdio.h>
#include <stdlib.h>

#include "backup_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_backup_reader r;
    struct vg_status status = {0};
    if (size == 0)
        return 0;
    FILE *file = fmemopen((void *)data, size, "rb");
    if (!file || vg_backup_reader_begin(&r, file, "fuzz", &status) < 0)
        return 0;
    struct vg_rec *rec;
    int got;
    while ((got = vg_backup_reader_next(&r, &rec, &status)) > 0) {
        if (vg_rec_key(rec).n == 0 || vg_rec_is_delete(rec))
            abort();
        vg_rec_unref(rec);
    }
    if (got == 0 && r.keys != r.head.keys)
        abort();
    vg_backup_reader_close(&r);
    return 0;
}
