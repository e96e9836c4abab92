/* fuzz_scan.c - any bytes into the scanner, which promises safety where it does not promise order.
 *   S1 every slice it returns lies inside the text.
 *   S2 iteration ends.
 *   S3 the three ways to skip a container agree.
 *   S4 a raw string unescapes to what the parser makes of it. */
#include "fuzz.h"
#include "json/json.h"
#include "json/scan.h"
#include "json/skip.h"

static void check_inside(struct vg_slice part, struct vg_slice text)
{
    VG_MUST(part.p >= text.p && part.n <= text.n &&
            part.p - text.p <= (ptrdiff_t)(text.n - part.n));
}

/* S4 */
static void check_string(struct vg_slice value)
{
    VG_AUTO(arena) a = {0};
    struct vg_slice s;
    struct vg_json *root = NULL;
    if (vg_json_raw_text(&a, value, &s) == 0 && vg_json_parse(&a, value, NULL, &root, NULL) == 0)
        VG_MUST(vg_slice_eq(s, vg_json_text(root)));
}

/* S3 */
static void check_ways(struct vg_slice text)
{
    for (size_t i = 0; i < text.n && i < 200; i++) {
        if (text.p[i] != '{' && text.p[i] != '[')
            continue;
        const char *p = text.p + i, *end = text.p + text.n;
        const char *plain = vg_json_skip_container_by(VG_JSON_SKIP_PLAIN, p, end);
        VG_MUST(vg_json_skip_container_by(VG_JSON_SKIP_SSE2, p, end) == plain);
        VG_MUST(vg_json_skip_container_by(VG_JSON_SKIP_AVX2, p, end) == plain);
        VG_MUST(vg_json_skip_container(p, end) == plain);
    }
}

/* The members of one level; returns the last container among them. */
static struct vg_slice check_level(struct vg_slice text)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    struct vg_slice inner = {NULL, 0};
    if (vg_json_iter_init(&it, text) < 0)
        return inner;
    size_t steps = 0;
    while (vg_json_iter_next(&it, &raw) > 0) {
        VG_MUST(steps++ <= text.n);
        check_inside(raw.value, text);
        VG_MUST(raw.value.n > 0);
        if (raw.key.p) {
            check_inside(raw.key, text);
            (void)vg_json_raw_key_eq(raw.key, VG_SLICE_LIT("metadata"));
        }
        check_string(raw.value);
        if (raw.value.p[0] == '{' || raw.value.p[0] == '[')
            inner = raw.value;
    }
    return inner;
}

static void check_find(struct vg_slice text)
{
    struct vg_json_step path[] = {vg_json_step_key("a"), vg_json_step_index(1),
                                  vg_json_step_key("b")};
    for (size_t n = 0; n <= VG_ARRAY_LEN(path); n++) {
        struct vg_slice found;
        int r = vg_json_find(text, path, n, &found);
        VG_MUST(r == 0 || r == VIGIL_E_NOT_FOUND || r == VIGIL_E_JSON_SYNTAX);
        if (r == 0)
            check_inside(found, text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_slice text = vg_slice(data, size);
    check_find(text);
    check_ways(text);
    for (int level = 0; level < 100 && text.n > 0; level++)
        text = check_level(text);
    return 0;
}
