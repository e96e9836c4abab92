/* doc_testing.h - documents for the tests of equality and patches: readable ones and random ones.
 * Tests only; what cannot be made ends the process. */
#ifndef VG_JSON_DOC_TESTING_H
#define VG_JSON_DOC_TESTING_H

#include <stdlib.h>

#include "base/rng.h"
#include "json.h"

static inline void vg_doc_must(int r)
{
    if (r < 0)
        abort();
}

/* Parse a text that has ' for ", so that tables of documents can be read. */
static inline struct vg_json *vg_doc(struct vg_arena *a, const char *text)
{
    static const struct vg_json_opts opts = {.max_depth = VG_JSON_DEPTH_MAX};
    size_t n = strlen(text);
    char *copy = vg_arena_copy(a, text, n);
    struct vg_json *v = NULL;
    vg_doc_must(copy ? 0 : -1);
    for (size_t i = 0; i < n; i++)
        copy[i] = copy[i] == '\'' ? '"' : copy[i];
    vg_doc_must(vg_json_parse(a, vg_slice(copy, n), &opts, &v, NULL));
    return v;
}

/* ---- random documents ----
 * Keys, strings and numbers come from small sets, so that two documents meet in many places. */

struct vg_random_doc {
    struct vg_arena *arena;
    struct vg_rng *rng;
    bool nulls;        /* may there be null members? */
    uint32_t children; /* at most, per container */
};

static const char *const vg_random_keys[] = {"a", "b", "c", "d", "", "x/y", "m~n", "\303\244"};
static const char *const vg_random_numbers[] = {"0", "1",   "1.0",   "10e-1",    "-0",
                                                "2", "2.5", "25e-1", "1e400000", "-7"};

static inline struct vg_json vg_random_scalar(struct vg_random_doc *d)
{
    switch (vg_rng_below(d->rng, d->nulls ? 4 : 3)) {
    case 0: {
        size_t i = vg_rng_below(d->rng, VG_ARRAY_LEN(vg_random_numbers));
        struct vg_json v = vg_json_string_ref(vg_slice_str(vg_random_numbers[i]));
        v.type = VG_JSON_NUMBER;
        return v;
    }
    case 1:
        return vg_json_bool(vg_rng_below(d->rng, 2) != 0);
    case 2: {
        size_t i = vg_rng_below(d->rng, VG_ARRAY_LEN(vg_random_keys));
        return vg_json_string_ref(vg_slice_str(vg_random_keys[i]));
    }
    default:
        return vg_json_null();
    }
}

/* At most `levels` nested containers; recursion is bounded by that. */
static inline struct vg_json vg_random_value(struct vg_random_doc *d, uint32_t levels)
{
    uint64_t kind = vg_rng_below(d->rng, 5);
    if (levels == 0 || kind < 2)
        return vg_random_scalar(d);
    struct vg_json v = kind == 2 ? vg_json_array() : vg_json_object();
    uint64_t n = vg_rng_below(d->rng, d->children + 1);
    for (uint64_t i = 0; i < n; i++) {
        struct vg_json child = vg_random_value(d, levels - 1);
        size_t k = vg_rng_below(d->rng, VG_ARRAY_LEN(vg_random_keys));
        if (v.type == VG_JSON_ARRAY)
            vg_doc_must(vg_json_array_push(d->arena, &v, child));
        else
            vg_doc_must(vg_json_object_set(d->arena, &v, vg_slice_str(vg_random_keys[k]), child));
    }
    return v;
}

static inline struct vg_json vg_random_object(struct vg_random_doc *d, uint32_t levels)
{
    struct vg_json v;
    do
        v = vg_random_value(d, levels);
    while (v.type != VG_JSON_OBJECT);
    return v;
}

#endif
