/* fuzz_merge.c - two documents, from one input split at the first newline.
 * Checked: apply(a, diff(a, b)) equals b whenever there is a diff; the second document taken as a
 * merge patch applies to the first, twice with the same result; the inputs are never changed; what
 * comes out can be written and read back. */
#include "base/buf.h"
#include "equal.h"
#include "fuzz.h"
#include "patch.h"
#include "write.h"

static void check_written(struct vg_arena *a, const struct vg_json *v)
{
    VG_AUTO(buf) text = {0};
    struct vg_json *again;
    VG_MUST(vg_json_write(&text, v, 0) == 0);
    VG_MUST(vg_json_parse(a, vg_buf_slice(&text), NULL, &again, NULL) == 0);
    VG_MUST(vg_json_equal(v, again) == 1);
}

static void check_diff(struct vg_arena *a, const struct vg_json *from, const struct vg_json *to)
{
    struct vg_json patch, v;
    struct vg_status st = {0};
    int r = vg_json_merge_diff(a, from, to, &patch, &st);
    VG_MUST(r == 0 || r == VIGIL_E_PATCH_FAILED);
    VG_MUST(r == 0 || st.message[0] != '\0');
    if (r < 0)
        return;
    VG_MUST(vg_json_merge_apply(a, from, &patch, &v, NULL) == 0);
    VG_MUST(vg_json_equal(&v, to) == 1);
    check_written(a, &patch);
}

static void check_apply(struct vg_arena *a, const struct vg_json *doc, const struct vg_json *patch)
{
    struct vg_json once, twice;
    VG_MUST(vg_json_merge_apply(a, doc, patch, &once, NULL) == 0);
    VG_MUST(vg_json_merge_apply(a, &once, patch, &twice, NULL) == 0);
    VG_MUST(vg_json_equal(&once, &twice) == 1);
    check_written(a, &once);
}

static void run(struct vg_slice one, struct vg_slice two)
{
    VG_AUTO(arena) a = {0};
    struct vg_json *x, *y, x_before, y_before;
    if (vg_json_parse(&a, one, NULL, &x, NULL) < 0 || vg_json_parse(&a, two, NULL, &y, NULL) < 0)
        return;
    VG_MUST(vg_json_clone(&a, x, &x_before) == 0);
    VG_MUST(vg_json_clone(&a, y, &y_before) == 0);
    check_diff(&a, x, y);
    check_diff(&a, y, x);
    check_apply(&a, x, y);
    VG_MUST(vg_json_equal(x, &x_before) == 1);
    VG_MUST(vg_json_equal(y, &y_before) == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    const char *newline = size ? memchr(p, '\n', size) : NULL;
    if (newline)
        run(vg_slice(p, (size_t)(newline - p)),
            vg_slice(newline + 1, (size_t)(p + size - newline) - 1));
    return 0;
}
