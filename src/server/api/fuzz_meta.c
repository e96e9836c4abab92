/* fuzz_meta.c - metadata of any shape is refused, or written in a form that reads back the same. */
#include "meta.h"
#include "json/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_and_write(struct vg_arena *a, struct vg_slice text, struct vg_meta *meta,
                          struct vg_buf *out)
{
    struct vg_json *root, tree, unknown = vg_json_array();
    struct vg_status status;
    int err = vg_json_parse(a, text, NULL, &root, NULL);
    if (err == 0)
        err = vg_meta_read(a, root, "Pod", meta, &unknown, &status);
    if (err == 0)
        err = vg_meta_write(a, meta, &tree);
    return err < 0 ? err : vg_json_write(out, &tree, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    VG_AUTO(arena) arena;
    VG_AUTO(buf) first = {0};
    VG_AUTO(buf) second = {0};
    struct vg_meta meta, again;
    struct vg_slice uids;
    vg_arena_init(&arena, 0, 0);
    if (read_and_write(&arena, vg_slice(data, size), &meta, &first) < 0)
        return 0;
    if (read_and_write(&arena, vg_buf_slice(&first), &again, &second) < 0 ||
        !vg_slice_eq(vg_buf_slice(&first), vg_buf_slice(&second)))
        __builtin_trap();
    const struct vg_kind *kind =
        vg_kind_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), VG_SLICE_LIT("pods"));
    struct vg_field_errors e = {.arena = &arena};
    vg_meta_check(&e, &meta, kind, NULL, false);
    vg_meta_check_finalizers(&e, &meta, kind);
    size_t before = e.n;
    vg_meta_check_update(&e, &meta,
                         &meta); /* nothing changed: labels and such alone can be wrong */
    if (before == 0 && e.n != 0)
        __builtin_trap();
    (void)!vg_meta_dedup_owners(&arena, &meta, &uids);
    return 0;
}
