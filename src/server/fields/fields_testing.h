/* fields_testing.h - what the tests of this room share: trees from texts, sets as texts. */
#ifndef VG_FIELDS_TESTING_H
#define VG_FIELDS_TESTING_H

#include "test_support.h"

#include "base/buf.h"
#include "json/json.h"
#include "json/write.h"

/* Single quotes stand for double ones; kept in the arena. */
static inline struct vg_json *vg_tree(struct vg_arena *a, const char *text)
{
    struct vg_json *root = NULL;
    size_t n = strlen(text);
    char *copy = vg_arena_copy(a, text, n + 1);
    assert_non_null(copy);
    for (size_t i = 0; i < n; i++)
        if (copy[i] == '\'')
            copy[i] = '"';
    assert_int_equal(vg_json_parse(a, vg_slice(copy, n), NULL, &root, NULL), 0);
    return root;
}

static inline void vg_assert_tree(const struct vg_json *v, const char *want)
{
    VG_AUTO(buf) out = {0};
    assert_int_equal(vg_json_write(&out, v, 0), 0);
    for (size_t i = 0; i < out.n; i++)
        if (out.p[i] == '"')
            out.p[i] = '\'';
    vg_assert_slice_equal(vg_buf_slice(&out), vg_slice_str(want));
}

#endif
