/* fuzz_compact.c - whatever is told to be compact is what we write. */
#include "compact.h"
#include "json.h"
#include "write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_slice text = vg_slice(data, size);
    VG_AUTO(arena) arena;
    VG_AUTO(buf) out = {0};
    struct vg_json *root;
    vg_arena_init(&arena, 0, 0);
    bool is_compact = vg_json_is_compact(text);
    struct vg_json_opts opts = {.on_dup = VG_JSON_DUP_FAIL, .replace_bad_utf8 = true};
    if (!is_compact || vg_json_parse(&arena, text, &opts, &root, NULL) < 0)
        return 0;
    if (vg_json_write(&out, root, VG_JSON_ESCAPE_HTML) < 0)
        return 0;
    if (!vg_slice_eq(vg_buf_slice(&out), text))
        __builtin_trap();
    return 0;
}
