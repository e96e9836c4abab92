/* fuzz_options.c - any query of a list or watch: refused with a Status that can be written, or
 * taken with a predicate. */
#include <stdlib.h>

#include "base/alloc.h"
#include "options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void try_options(const struct vg_target *t)
{
    struct vg_list_options o;
    struct vg_api_status s;
    VG_AUTO(arena) arena;
    VG_AUTO(buf) out = {0};
    vg_arena_init(&arena, 0, 0);
    if (vg_list_options_parse(t, &arena, &o, &s) == 0) {
        if (!o.predicate)
            abort();
        vg_list_options_done(&o);
        return;
    }
    if (s.code < 400 || vg_api_status_write(&out, &s) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const paths[] = {"/api/v1/namespaces/a/pods?", "/api/v1/nodes?",
                                        "/api/v1/watch/namespaces/a/configmaps/x?",
                                        "/apis/batch/v1/jobs?"};
    if (n == 0 || n > 65536)
        return 0;
    VG_AUTO(buf) url = {0};
    const char *path = paths[data[0] % VG_ARRAY_LEN(paths)];
    if (vg_buf_append(&url, path, strlen(path)) < 0 || vg_buf_append(&url, data + 1, n - 1) < 0)
        abort();
    char *decoded = vg_malloc(url.n);
    struct vg_target *t = vg_malloc(sizeof *t);
    if (!decoded || !t)
        abort();
    if (vg_target_parse(VG_HTTP_GET, vg_buf_slice(&url), decoded, t, NULL) == 0 &&
        t->type == VG_TARGET_RESOURCE)
        try_options(t);
    vg_free(t);
    vg_free(decoded);
    return 0;
}
