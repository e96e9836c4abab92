/* fuzz_gojson.c - the complaints and the parser agree on what JSON is. */
#include <errno.h>

#include "gojson.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_slice text = vg_slice(data, size);
    struct vg_status status;
    VG_AUTO(arena) arena;
    struct vg_json *root;
    vg_arena_init(&arena, 0, 0);
    struct vg_json_opts opts = {.replace_bad_utf8 = true};
    int err = vg_json_parse(&arena, text, &opts, &root, NULL);
    if (err != -ENOMEM && vg_gojson_complain(text, VG_JSON_DEPTH_DEFAULT, &status) != (err < 0))
        __builtin_trap();
    return 0;
}
