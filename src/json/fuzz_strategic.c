/* fuzz_strategic.c - a document and a strategic merge patch, from one input split at the first
 * newline. Checked: inputs are never changed; a refusal says why; the result can be written and
 * read back. */
#include <errno.h>

#include "base/buf.h"
#include "equal.h"
#include "fuzz.h"
#include "strategic.h"
#include "write.h"

static const struct vg_merge_schema root;
static const struct vg_merge_field fields[] = {
    {"l", VG_MERGE_LIST, "k", &root},
    {"s", VG_MERGE_LIST, NULL, NULL},
    {"o", VG_MERGE_REPLACE, NULL, NULL},
    {"m", 0, NULL, &root},
    {0},
};
static const struct vg_merge_schema root = {fields};

static void check_written(struct vg_arena *a, const struct vg_json *v)
{
    VG_AUTO(buf) text = {0};
    struct vg_json *again;
    VG_MUST(vg_json_write(&text, v, 0) == 0);
    VG_MUST(vg_json_parse(a, vg_buf_slice(&text), NULL, &again, NULL) == 0);
    VG_MUST(vg_json_equal(v, again) == 1);
}

static void run(struct vg_slice one, struct vg_slice two)
{
    VG_AUTO(arena) a = {0};
    struct vg_json *d, *p, d_before, p_before, v;
    struct vg_status st = {0};
    if (vg_json_parse(&a, one, NULL, &d, NULL) < 0 || vg_json_parse(&a, two, NULL, &p, NULL) < 0 ||
        !vg_json_is(d, VG_JSON_OBJECT))
        return;
    VG_MUST(vg_json_clone(&a, d, &d_before) == 0);
    VG_MUST(vg_json_clone(&a, p, &p_before) == 0);
    int r = vg_json_strategic_apply(&a, d, p, &root, &v, &st);
    VG_MUST(r == 0 || r == -ENOMEM || st.message[0] != '\0');
    if (r == 0)
        check_written(&a, &v);
    VG_MUST(vg_json_equal(d, &d_before) == 1);
    VG_MUST(vg_json_equal(p, &p_before) == 1);
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
