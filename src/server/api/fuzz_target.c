/* fuzz_target.c - any bytes as a request target: what is found lies where it may. */
#include <stdlib.h>

#include "base/alloc.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(struct vg_slice s, struct vg_slice text, const char *decoded)
{
    bool is_text = s.p >= text.p && s.p + s.n <= text.p + text.n;
    bool is_decoded = s.p >= decoded && s.p + s.n <= decoded + text.n;
    if (s.n && !is_text && !is_decoded)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0 || n > 65536)
        return 0;
    struct vg_slice text = vg_slice((const char *)data + 1, n - 1);
    char *decoded = vg_malloc(text.n + 1);
    struct vg_target *t = vg_malloc(sizeof *t);
    if (!decoded || !t)
        abort();
    if (vg_target_parse((enum vg_http_method)(data[0] % (VG_HTTP_OTHER + 1)), text, decoded, t,
                        NULL) == 0) {
        check(t->path, text, decoded);
        check(t->ns, text, decoded);
        check(t->name, text, decoded);
        check(t->sub_rest, text, decoded);
        for (size_t i = 0; i < t->n_params; i++) {
            check(t->params[i].name, text, decoded);
            check(t->params[i].value, text, decoded);
        }
        if ((t->type == VG_TARGET_RESOURCE) != (t->kind != NULL))
            abort();
    }
    vg_free(t);
    vg_free(decoded);
    return 0;
}
