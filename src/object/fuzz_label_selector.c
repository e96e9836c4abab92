/* fuzz_label_selector.c - any bytes as a label selector, matched against labels made of them too.
 *   F1 parsing ends with a selector that is sound, or with an error and a message.
 *   F2 the message is no longer than a bound that follows from the limits.
 *   F3 the canonical text parses to an equal selector and is its own canonical text.
 *   F4 matching agrees with asking each requirement in turn, by linear search.
 * The input is the selector, a newline, and labels k=v,k=v; without a newline there are no labels.
 */
#include "fuzz.h"
#include "label_selector.h"
#include "label_selector_int.h"

#define LABELS_MAX 64u

/* ---- labels ---- */

struct labels {
    struct vg_labels set;
    struct vg_label_ref v[LABELS_MAX];
};

/* The first with a key wins; the rest are left out, so that the set is sound. */
static void add_label(struct labels *l, size_t key, size_t key_n, size_t value, size_t value_n)
{
    struct vg_slice k = vg_slice(l->set.base + key, key_n);
    uint32_t at = vg_labels_lower_bound(&l->set, k, 0);
    if (l->set.n == LABELS_MAX || key_n > VG_LABEL_BYTES_MAX || value_n > VG_LABEL_BYTES_MAX ||
        (at < l->set.n && vg_slice_eq(vg_labels_key(&l->set, at), k)))
        return;
    memmove(l->v + at + 1, l->v + at, (l->set.n - at) * sizeof l->v[0]);
    l->v[at] = (struct vg_label_ref){.key = (uint32_t)key,
                                     .value = (uint32_t)value,
                                     .key_n = (uint16_t)key_n,
                                     .value_n = (uint16_t)value_n};
    l->set.n++;
}

static void read_labels(struct labels *l, struct vg_slice text)
{
    l->set = (struct vg_labels){.base = text.p, .v = l->v};
    for (size_t at = 0; at < text.n;) {
        const char *comma = memchr(text.p + at, ',', text.n - at);
        size_t end = comma ? (size_t)(comma - text.p) : text.n;
        const char *equals = memchr(text.p + at, '=', end - at);
        size_t key_n = equals ? (size_t)(equals - text.p) - at : end - at;
        size_t value = equals ? at + key_n + 1 : end;
        add_label(l, at, key_n, value, end - value);
        at = end + 1;
    }
    VG_MUST(vg_labels_is_sound(&l->set, text.n));
}

/* ---- F4 ---- */

static const struct vg_slice *find_value(const struct vg_label_requirement *r, struct vg_slice v)
{
    for (uint32_t i = 0; i < r->values_n; i++) {
        if (vg_slice_eq(r->values[i], v))
            return &r->values[i];
    }
    return NULL;
}

static bool holds(const struct vg_label_requirement *r, const struct vg_labels *l)
{
    uint32_t i = 0;
    while (i < l->n && !vg_slice_eq(vg_labels_key(l, i), r->key))
        i++;
    bool has = i < l->n;
    struct vg_slice v = has ? vg_labels_value(l, i) : vg_slice("", 0);
    int64_t number = 0, bound = 0;
    switch (r->op) {
    case VG_LABEL_EXISTS:
        return has;
    case VG_LABEL_NOT_EXISTS:
        return !has;
    case VG_LABEL_NOT_EQUALS:
    case VG_LABEL_NOT_IN:
        return !has || !find_value(r, v);
    case VG_LABEL_GREATER:
    case VG_LABEL_LESS:
        VG_MUST(vg_label_parse_int(r->values[0], &bound));
        return has && vg_label_parse_int(v, &number) &&
               (r->op == VG_LABEL_GREATER ? number > bound : number < bound);
    default:
        return has && find_value(r, v);
    }
}

static void check_match(const struct vg_label_selector *s, const struct vg_labels *l)
{
    bool all = true;
    for (uint32_t i = 0; i < vg_label_selector_count(s); i++)
        all = holds(vg_label_selector_at(s, i), l) && all;
    VG_MUST(vg_label_selector_matches(s, l) == all);
}

/* ---- F3 ---- */

static void check_text(const struct vg_label_selector *s)
{
    VG_AUTO(buf) text = {0};
    VG_AUTO(buf) again = {0};
    const struct vg_label_selector *copy = NULL;
    VG_MUST(vg_label_selector_append(&text, s) == 0);
    if (text.n > VG_LABEL_SELECTOR_BYTES_MAX)
        return; /* spaces around `in` can make it longer than what it came from */
    VG_MUST(vg_label_selector_parse(vg_buf_slice(&text), &copy, NULL) == 0);
    VG_MUST(vg_label_selector_equal(s, copy));
    VG_MUST(vg_label_selector_append(&again, copy) == 0);
    VG_MUST(vg_slice_eq(vg_buf_slice(&text), vg_buf_slice(&again)));
    vg_label_selector_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_slice text = vg_slice(data, size), rest = vg_slice("", 0);
    const char *newline = size ? memchr(text.p, '\n', size) : NULL;
    if (newline) {
        rest = vg_slice(newline + 1, size - (size_t)(newline - text.p) - 1);
        text.n = (size_t)(newline - text.p);
    }
    struct labels labels;
    VG_AUTO(buf) message = {0};
    const struct vg_label_selector *s = NULL;
    read_labels(&labels, rest);
    int r = vg_label_selector_parse(text, &s, &message);
    if (r == 0) {
        VG_MUST(vg_label_selector_is_sound(s));
        check_text(s);
        check_match(s, &labels.set);
        vg_label_selector_free(s);
    } else {
        VG_MUST(r == VIGIL_E_INVALID || r == VIGIL_E_TOO_LARGE);
        VG_MUST(message.n > 0 && message.n <= 4 * text.n + 2000 * VG_LABEL_SELECTOR_COMPLAINTS_MAX);
    }
    return 0;
}
