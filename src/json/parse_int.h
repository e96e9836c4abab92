/* parse_int.h - the parser's state, shared by parse.c, parse_string.c and parse_dup.c.
 * A parsing function takes the position p and returns the position after what it read, or NULL
 * after vg_json_parse_fail(); so the position stays in a register. */
#ifndef VG_JSON_PARSE_INT_H
#define VG_JSON_PARSE_INT_H

#include "json.h"

/* An open container. Its finished children lie on the scratch stacks from its bases upward; the
 * value it will become is the top of its parent's part of the stacks (see slot_of_top in parse.c).
 */
struct vg_json_frame {
    uint32_t items_base;
    uint32_t members_base;
    bool is_object;
};

struct vg_json_parser {
    const char *base; /* the text */
    const char *end;
    struct vg_arena *arena;
    /* Scratch stacks; pointers move when they grow. */
    struct vg_json *items;
    struct vg_json_member *members;
    struct vg_json_frame *frames;
    uint32_t items_n, items_cap;
    uint32_t members_n, members_cap;
    uint32_t depth; /* open containers; frames[0] is the text itself, as an array of one */
    uint32_t frames_cap;
    uint32_t max_depth;
    enum vg_json_on_dup on_dup;
    bool replace_bad_utf8;
    const struct vg_json_path *left;
    struct vg_json_scratch *scratch;
    struct vg_json_dups dups;
    uint32_t dups_looked_at; /* paths built so far, listed or not */
    /* The first failure. */
    int err;
    const char *err_at;
    const char *err_text;     /* static */
    struct vg_slice err_path; /* of a duplicate key */
};

/* Note the failure (the first one stays) and return NULL. err_text is static. */
const char *vg_json_parse_fail(struct vg_json_parser *ps, int err, const char *at,
                               const char *err_text);

/* What a string came to be. */
struct vg_json_string {
    const char *text;
    uint32_t n;
    uint8_t flags;
};

/* The rest of a string of which [begin, p) is plain and p is not: escapes, UTF-8, faults.
 * Returns the position past the closing quote. */
const char *vg_json_parse_string_slow(struct vg_json_parser *ps, const char *begin, const char *p,
                                      struct vg_json_string *ret);

/* parse_left.c: is the container that begins, the topmost child of the current frame, one that is
 * left as text? And: leave it. */
bool vg_json_is_left(const struct vg_json_parser *ps);
const char *vg_json_leave(struct vg_json_parser *ps, const char *p, struct vg_json *slot);

/* Find keys of the object being closed that occur twice: its members are the top of the stack. Of
 * equal keys the last stays. 0, or negative with the failure noted. */
int vg_json_drop_duplicates(struct vg_json_parser *ps);

/* Sort by offset, so that paths read in document order. Called once, at the end. */
void vg_json_sort_dups(struct vg_json_dups *dups);

/* Make *array hold at least `want` elements of `size`; *cap is in elements. 0 or -ENOMEM. */
VG_CHECK int vg_json_grow(void **array, size_t *cap, size_t want, size_t size);

#endif
