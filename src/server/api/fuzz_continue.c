/* fuzz_continue.c - any bytes as a continue token: what is accepted stays below the list's root and
 * survives being encoded again. */
#include <stdlib.h>

#include "continue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct vg_slice root = VG_SLICE_LIT("/registry/pods/default/");
    struct vg_continue c, again;
    struct vg_slice why, token;
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 0);
    if (vg_continue_decode(&arena, vg_slice(data, n), root, &c, &why) < 0)
        return 0;
    struct vg_slice start = vg_obj_key_slice(&c.start);
    if (!vg_slice_has_prefix(start, root) || c.rev == 0 || c.rev < -1)
        abort();
    if (vg_continue_encode(&arena, c.rev, root, start, &token) < 0 ||
        vg_continue_decode(&arena, token, root, &again, &why) < 0 || again.rev != c.rev ||
        !vg_slice_eq(vg_obj_key_slice(&again.start), start))
        abort();
    return 0;
}
