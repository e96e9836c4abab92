/* fuzz_patch.c - a document and a JSON Patch, from one input.
 * The input is "<document>\n<patch>" split at the first newline; its first byte, when it is 'S',
 * asks for the strict mode and is not part of the document. Checked: nothing crashes; document and
 * patch are never changed; a patch of tests alone gives the document itself; whatever comes out can
 * be written and read back, so it keeps the invariants of a tree, and is no longer than promised.
 */
#include "base/buf.h"
#include "equal.h"
#include "fuzz.h"
#include "patch.h"
#include "tree_edit.h"
#include "write.h"

static bool is_test_only(const struct vg_json *patch)
{
    VG_JSON_FOREACH_ITEM (op, patch) {
        if (!vg_slice_eq(vg_json_text(vg_json_get_str(op, "op")), VG_SLICE_LIT("test")))
            return false;
    }
    return true;
}

static void check_result(struct vg_arena *a, const struct vg_json *v, size_t max)
{
    VG_AUTO(buf) text = {0};
    struct vg_json *again;
    struct vg_json_measure m;
    VG_MUST(vg_json_measure(v, &m) == 0);
    VG_MUST(m.bytes <= max);
    VG_MUST(vg_json_write(&text, v, 0) == 0);
    VG_MUST(vg_json_parse(a, vg_buf_slice(&text), NULL, &again, NULL) == 0);
    VG_MUST(vg_json_equal(v, again) == 1);
}

static void run(struct vg_slice doc_text, struct vg_slice patch_text, bool strict)
{
    /* Small limits, so that the fuzzer reaches them. */
    const struct vg_json_patch_opts opts = {
        .strict = strict, .max_ops = 50, .max_copy_bytes = 4096, .max_steps = 100000};
    VG_AUTO(arena) a = {0};
    struct vg_json *doc, *patch, doc_before, patch_before, v;
    struct vg_status st = {0};
    if (vg_json_parse(&a, doc_text, NULL, &doc, NULL) < 0 ||
        vg_json_parse(&a, patch_text, NULL, &patch, NULL) < 0)
        return;
    VG_MUST(vg_json_clone(&a, doc, &doc_before) == 0);
    VG_MUST(vg_json_clone(&a, patch, &patch_before) == 0);
    int r = vg_json_patch_apply(&a, doc, patch, &opts, &v, &st);
    VG_MUST(vg_json_equal(doc, &doc_before) == 1);
    VG_MUST(vg_json_equal(patch, &patch_before) == 1);
    VG_MUST(r == 0 || (st.err == r && st.message[0] != '\0'));
    if (r == 0)
        check_result(&a, &v, doc_text.n + patch_text.n + opts.max_copy_bytes);
    if (r == 0 && is_test_only(patch))
        VG_MUST(vg_json_equal(&v, doc) == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data, *end = p + size;
    bool strict = size > 0 && *p == 'S';
    p += strict;
    const char *newline = size ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    if (newline)
        run(vg_slice(p, (size_t)(newline - p)), vg_slice(newline + 1, (size_t)(end - newline - 1)),
            strict);
    return 0;
}
