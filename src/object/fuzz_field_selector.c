/* fuzz_field_selector.c - any bytes as a field selector.
 *   F1 parsing ends with a selector, or with an error and a message.
 *   F2 the message is no longer than a bound that follows from the limits.
 *   F3 the canonical text parses to an equal selector.
 *   F4 an object that has the required values matches, unless a term contradicts.
 *   F5 resolving either refuses with a message, or keeps the number of terms and indexes them. */
#include "field_selector.h"
#include "fuzz.h"

/* F3 */
static void check_text(const struct vg_field_selector *s)
{
    VG_AUTO(buf) text = {0};
    const struct vg_field_selector *copy = NULL;
    VG_MUST(vg_field_selector_append(&text, s) == 0);
    if (text.n > VG_FIELD_SELECTOR_BYTES_MAX)
        return; /* U+FFFD is longer than the byte it stands for */
    VG_MUST(vg_field_selector_parse(vg_buf_slice(&text), &copy, NULL) == 0);
    VG_MUST(vg_field_selector_equal(s, copy));
    vg_field_selector_free(copy);
}

/* The object is the selector itself: each field has the value that it requires. */
static struct vg_slice required(const void *object, const struct vg_field_term *term)
{
    struct vg_slice v = vg_slice("", 0);
    (void)vg_field_selector_requires(object, term->field, &v);
    return v;
}

/* F4 */
static void check_match(const struct vg_field_selector *s)
{
    bool all = true;
    for (uint32_t i = 0; i < vg_field_selector_count(s); i++) {
        struct vg_field_term t = vg_field_selector_at(s, i);
        bool same = vg_slice_eq(required(s, &t), t.value);
        all = all && same == (t.op == VG_FIELD_EQUALS);
    }
    VG_MUST(vg_field_selector_matches(s, required, s) == all);
}

/* F5 */
static void check_resolve(const struct vg_field_selector *s, enum vg_field_refusal refusal)
{
    static const struct vg_field_label labels[] = {
        {.name = {"metadata.name", 13}, .index = 0},
        {.name = {"a", 1}, .index = 1},
        {.name = {"b", 1}, .canonical = {"a", 1}, .index = 1},
    };
    struct vg_field_labels kind = {
        .v = labels, .n = VG_ARRAY_LEN(labels), .refusal = refusal, .kind = {"Job", 3}};
    const struct vg_field_selector *resolved = NULL;
    VG_AUTO(buf) message = {0};
    int r = vg_field_selector_resolve(s, &kind, &resolved, &message);
    VG_MUST(r == 0 || (r == VIGIL_E_INVALID && message.n > 0));
    for (uint32_t i = 0; r == 0 && i < vg_field_selector_count(s); i++)
        VG_MUST(vg_field_selector_at(resolved, i).index <= 1);
    VG_MUST(r != 0 || vg_field_selector_count(resolved) == vg_field_selector_count(s));
    vg_field_selector_free(resolved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct vg_field_selector *s = NULL;
    VG_AUTO(buf) message = {0};
    int r = vg_field_selector_parse(vg_slice(data, size), &s, &message);
    if (r != 0) {
        VG_MUST(r == VIGIL_E_INVALID || r == VIGIL_E_TOO_LARGE);
        VG_MUST(message.n > 0 && message.n <= 2 * size + 100);
        return 0;
    }
    if (vg_field_selector_count(s) <= 64) { /* what follows is quadratic */
        check_text(s);
        check_match(s);
    }
    for (int refusal = VG_FIELD_NOT_SUPPORTED; refusal <= VG_FIELD_NOT_SUPPORTED_KIND; refusal++)
        check_resolve(s, (enum vg_field_refusal)refusal);
    vg_field_selector_free(s);
    return 0;
}
