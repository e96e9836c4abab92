/* scan.h - finding things in JSON bytes without building a tree.
 * For text that was validated before (stored objects, our own output). On other bytes every
 * function is memory safe and ends, and either reports VIGIL_E_JSON_SYNTAX or returns some slice of
 * the text: what is skipped is not checked beyond its quotes and brackets. Depth costs nothing. Of
 * duplicate keys the first is found. No allocation. Thread: any. */
#ifndef VG_JSON_SCAN_H
#define VG_JSON_SCAN_H

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"

/* One step of a path: a member's key (unescaped), or with key.p == NULL an index of an array. */
struct vg_json_step {
    struct vg_slice key;
    size_t index;
};
static inline struct vg_json_step vg_json_step_key(const char *key)
{
    return (struct vg_json_step){.key = vg_slice_str(key)};
}
static inline struct vg_json_step vg_json_step_index(size_t i)
{
    return (struct vg_json_step){.index = i};
}

/* The bytes of the value at `path` in `text`, without white space around. An empty path gives the
 * text's own value. 0; VIGIL_E_NOT_FOUND (also when a step does not fit the type it meets);
 * VIGIL_E_JSON_SYNTAX. */
VG_CHECK int vg_json_find(struct vg_slice text, const struct vg_json_step *path, size_t n,
                          struct vg_slice *ret_value);

/* A member or item as it stands in the bytes. */
struct vg_json_raw {
    struct vg_slice key;   /* between the quotes, still escaped; {NULL, 0} for items */
    bool key_is_escaped;   /* the key has a backslash: compare with vg_json_raw_key_eq */
    struct vg_slice value; /* without white space around */
};

/* Members of an object, or items of an array, in order:
 *     int r = vg_json_iter_init(&it, text);
 *     while (r >= 0 && (r = vg_json_iter_next(&it, &raw)) > 0) { ... } */
struct vg_json_iter {
    const char *p; /* after the last 0 of next: past the closing bracket */
    const char *end;
    bool is_object;
    bool first;
};
/* 0; VIGIL_E_JSON_TYPE: the text is neither object nor array; VIGIL_E_JSON_SYNTAX: it is empty. */
VG_CHECK int vg_json_iter_init(struct vg_json_iter *it, struct vg_slice text);
/* 1 and *ret; 0: no more; VIGIL_E_JSON_SYNTAX. */
VG_CHECK int vg_json_iter_next(struct vg_json_iter *it, struct vg_json_raw *ret);

/* The two halves of it, for who goes down into a value without knowing its end, so that each byte
 * is looked at once:
 *     vg_json_iter_key      the key; it->p is then at the value. 1, 0: no more, VIGIL_E_JSON_SYNTAX
 *     vg_json_iter_value    the value whole; it->p is then past it. 0, VIGIL_E_JSON_SYNTAX
 *     vg_json_iter_down     into a value that is an object. False: it is none
 *     vg_json_iter_up       past it. is_done: all of its members were seen. 0, VIGIL_E_JSON_SYNTAX
 */
VG_CHECK int vg_json_iter_key(struct vg_json_iter *it, struct vg_json_raw *ret);
VG_CHECK int vg_json_iter_value(struct vg_json_iter *it, struct vg_slice *ret);
bool vg_json_iter_down(const struct vg_json_iter *it, struct vg_json_iter *ret);
VG_CHECK int vg_json_iter_up(struct vg_json_iter *it, const struct vg_json_iter *inner,
                             bool is_done);

/* Does the raw (still escaped) text between quotes mean this key? */
bool vg_json_raw_key_eq(struct vg_slice raw, struct vg_slice key);

/* The text of a raw string value (quotes included). Without escapes it is a part of `value`, else
 * it is unescaped into the arena. 0, VIGIL_E_JSON_TYPE (no string), VIGIL_E_JSON_SYNTAX, -ENOMEM.
 */
VG_CHECK int vg_json_raw_text(struct vg_arena *a, struct vg_slice value, struct vg_slice *ret);

#endif
