/* json.h - a JSON text as a tree in an arena: parsing, reading, building.
 *
 * A value is a `struct vg_json` of 24 bytes; the children of a container lie side by side in the
 * arena. Strings without escapes and all numbers point INTO the source text: the source must
 * outlive the tree, unmoved (clone with vg_json_clone to be free of it). Numbers keep their exact
 * text. Invariants of a tree: J1 in a parsed tree begin < end for every value, children lie inside
 * their parent in rising order; a built value has begin == end == 0 (is "not from the source"). J2
 * keys of a parsed object are unique: of duplicates the last stays, at its own place. J3 text of
 * strings and keys is valid UTF-8, unescaped, not NUL-terminated, may hold 0 bytes. J4 a number's
 * text is one RFC 8259 number. J5 a tree is never deeper than VG_JSON_DEPTH_MAX, so that walkers
 * may keep a bounded stack. Copying a node by assignment shares its children: change one of the
 * two, or clone first. Thread: a tree may be read by many threads once nobody changes it. */
#ifndef VG_JSON_JSON_H
#define VG_JSON_JSON_H

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"

enum vg_json_type {
    VG_JSON_NULL, /* 0: a zeroed node is null */
    VG_JSON_BOOL,
    VG_JSON_NUMBER,
    VG_JSON_STRING,
    VG_JSON_ARRAY,
    VG_JSON_OBJECT,
};

enum vg_json_flag {
    VG_JSON_TRUE = 1,    /* BOOL: the value */
    VG_JSON_INTEGER = 2, /* NUMBER: the text has neither fraction nor exponent */
    VG_JSON_PLAIN = 4,   /* STRING: ASCII without quote, backslash or control character */
};

struct vg_json_member;

struct vg_json {
    uint8_t type;      /* enum vg_json_type */
    uint8_t flags;     /* enum vg_json_flag */
    uint8_t room_log2; /* containers: room for 1 << room_log2 children; 0 = for exactly n */
    uint8_t mark;      /* the parser's own while it works; 0 in a finished tree */
    uint32_t n;        /* bytes of text, or number of children */
    union {
        const char *text;               /* STRING unescaped; NUMBER as written */
        struct vg_json *items;          /* ARRAY: n of them */
        struct vg_json_member *members; /* OBJECT: n of them */
    };
    uint32_t begin, end; /* offsets in the source: first byte, and past the last; quotes included */
};

struct vg_json_member {
    const char *key;
    uint32_t key_n;
    uint32_t key_begin; /* offset of the key's opening quote in the source; 0 if built */
    struct vg_json value;
};

/* ---- limits ---- */

/* 512 levels: the deepest real objects (CRD schemas) stay below 60; Go's decoder allows 10000. */
#define VG_JSON_DEPTH_DEFAULT 512u
/* No option can go beyond: bounds every explicit stack and the writer's nesting bits. */
#define VG_JSON_DEPTH_MAX 10000u
/* Default of max_bytes. 64 MiB: a list page of a large cluster; request bodies have caps of their
 * own. */
#define VG_JSON_BYTES_DEFAULT ((size_t)64 << 20)
/* Offsets are 32 bits wide. */
#define VG_JSON_BYTES_MAX ((size_t)UINT32_MAX)
/* Duplicate paths reported per text; as many as Kubernetes' strict decoder keeps. */
#define VG_JSON_DUPS_MAX 100u
/* A duplicate's path longer than this is cut at a step and ends with "...". 1 KiB: more than any
 * path of real objects; keys are as long as a peer likes, and a text can have very many duplicates.
 */
#define VG_JSON_DUP_PATH_MAX 1024u

/* ---- parsing ---- */

enum vg_json_on_dup {
    VG_JSON_DUP_LAST_WINS, /* silently, as Go's encoding/json */
    VG_JSON_DUP_REPORT,    /* last wins, and the paths go to ret_dups */
    VG_JSON_DUP_FAIL,      /* VIGIL_E_JSON_DUPLICATE */
    VG_JSON_DUP_NONE,      /* nobody looks: the text is our own, and has none */
};

/* One key given more than once, as strict decoding names it: spec.containers[0].name */
struct vg_json_dup {
    struct vg_slice path; /* in the arena of the tree */
    uint32_t offset;      /* of the repeated key */
};

struct vg_json_dups {
    struct vg_json_dup *v; /* in the arena of the tree; rising offsets, no path twice */
    uint32_t n;            /* at most VG_JSON_DUPS_MAX; later ones are not listed */
};

/* Where a parse failed. */
struct vg_json_where {
    size_t offset; /* bytes from the start */
    size_t line;   /* from 1 */
    size_t column; /* from 1, in bytes */
};

/* Working memory that a caller may keep between parses so that they stop allocating. Zero to start.
 */
struct vg_json_scratch {
    void *frames, *items, *members, *table;
    size_t frames_n, items_n, members_n, table_n; /* capacities */
};
void vg_json_scratch_done(struct vg_json_scratch *s);
static inline void vg_json_scratch_cleanup(struct vg_json_scratch *s)
{
    vg_json_scratch_done(s);
}

/* A member by the keys that lead to it, through every item of the lists on the way. */
struct vg_json_path {
    const struct vg_slice *keys;
    uint32_t n;
};

/* All zero is the default: last key wins, bad UTF-8 refused, default limits. */
struct vg_json_opts {
    enum vg_json_on_dup on_dup;
    bool replace_bad_utf8; /* each bad byte becomes U+FFFD, as Go does */
    uint32_t max_depth;    /* nested containers; 0 = VG_JSON_DEPTH_DEFAULT */
    size_t max_bytes;      /* of text; 0 = VG_JSON_BYTES_DEFAULT */
    /* Containers there are not looked into, of text that is our own: each becomes a NUMBER whose
     * text is all of it, for who writes it as it stands or parses it later. NULL: none. */
    const struct vg_json_path *left;
    size_t from; /* where in the text the value begins: offsets are of the whole text */
    struct vg_json_scratch *scratch; /* NULL = allocated for this call */
    struct vg_json_dups *ret_dups;   /* written on success when on_dup is REPORT */
    struct vg_json_where *ret_where; /* NULL allowed; written on syntax, UTF-8, depth, dup errors */
};

/* Parse one JSON text (white space around it allowed) into `arena`. opts may be NULL.
 * 0; VIGIL_E_JSON_SYNTAX, _JSON_UTF8, _JSON_DEPTH, _JSON_DUPLICATE with a message naming line,
 * column and offset; VIGIL_E_TOO_LARGE; -ENOMEM (also when the arena's cap is reached).
 * On failure *ret_root is untouched; what was put into the arena stays until it is reset. */
VG_CHECK int vg_json_parse(struct vg_arena *arena, struct vg_slice text,
                           const struct vg_json_opts *opts, struct vg_json **ret_root,
                           struct vg_status *reterr_status);

/* ---- reading ---- */

static inline bool vg_json_is(const struct vg_json *v, enum vg_json_type type)
{
    return v && v->type == (uint8_t)type;
}
static inline bool vg_json_is_true(const struct vg_json *v)
{
    return vg_json_is(v, VG_JSON_BOOL) && (v->flags & VG_JSON_TRUE);
}
/* The text of a string or number; empty for others. */
static inline struct vg_slice vg_json_text(const struct vg_json *v)
{
    bool has = vg_json_is(v, VG_JSON_STRING) || vg_json_is(v, VG_JSON_NUMBER);
    return has ? (struct vg_slice){v->text, v->n} : (struct vg_slice){"", 0};
}
static inline struct vg_slice vg_json_key(const struct vg_json_member *m)
{
    return (struct vg_slice){m->key, m->key_n};
}
const char *vg_json_type_name(enum vg_json_type type); /* "object", "array", ... for messages */

/* The member with that key, or NULL; NULL too when obj is NULL or no object. Linear. */
struct vg_json_member *vg_json_member(const struct vg_json *obj, struct vg_slice key);
/* Its value, or NULL. Chains: vg_json_get(vg_json_get(o, "metadata"), "name"). */
struct vg_json *vg_json_get(const struct vg_json *obj, struct vg_slice key);
static inline struct vg_json *vg_json_get_str(const struct vg_json *obj, const char *key)
{
    return vg_json_get(obj, vg_slice_str(key)); /* inline: most keys are literals */
}
/* The i-th item, or NULL when out of range or no array. */
struct vg_json *vg_json_at(const struct vg_json *arr, size_t i);

/* for (m over members), for (it over items); nothing when v is of another type. */
#define VG_JSON_FOREACH_MEMBER(m, v)                                                               \
    for (struct vg_json_member *m = (v)->type == VG_JSON_OBJECT ? (v)->members : NULL,             \
                               *m##_end = m ? m + (v)->n : NULL;                                   \
         m != m##_end; m++)
#define VG_JSON_FOREACH_ITEM(it, v)                                                                \
    for (struct vg_json *it = (v)->type == VG_JSON_ARRAY ? (v)->items : NULL,                      \
                        *it##_end = it ? it + (v)->n : NULL;                                       \
         it != it##_end; it++)

/* Numbers on demand. 0; VIGIL_E_JSON_TYPE: v is no number, or (integers) has a fraction or
 * exponent; -ERANGE: does not fit (double: would be infinite). double rounds to nearest, whatever
 * the locale. */
VG_CHECK int vg_json_to_int64(const struct vg_json *v, int64_t *ret);
VG_CHECK int vg_json_to_uint64(const struct vg_json *v, uint64_t *ret);
VG_CHECK int vg_json_to_double(const struct vg_json *v, double *ret);

/* ---- walking without recursion ---- */

struct vg_json_walk_frame;

/* Pre-order over a tree with an explicit stack. Start with vg_json_walk_init(); then
 *     while ((r = vg_json_walk_next(&w)) > 0) { ... w.node, w.key, w.leaving ... }
 * Containers are seen twice: entering (leaving == false) and leaving. */
struct vg_json_walk {
    struct vg_json *node;
    const struct vg_json_member *member; /* the member that holds node, or NULL */
    uint32_t depth;                      /* containers around node */
    uint32_t index;                      /* of node in its container */
    bool leaving;
    bool skip; /* set it on entering a container: its children are not visited */
    /* private */
    struct vg_json_walk_frame *frames;
    uint32_t frames_cap;
    bool started;
};
static inline void vg_json_walk_init(struct vg_json_walk *w, const struct vg_json *root)
{
    *w = (struct vg_json_walk){.node = (struct vg_json *)(uintptr_t)root};
}
/* 1: a value; 0: the walk is over; -ENOMEM; VIGIL_E_JSON_DEPTH: deeper than VG_JSON_DEPTH_MAX. */
VG_CHECK int vg_json_walk_next(struct vg_json_walk *w);
void vg_json_walk_done(struct vg_json_walk *w);
static inline void vg_json_walk_cleanup(struct vg_json_walk *w)
{
    vg_json_walk_done(w);
}

/* ---- building ----
 * Values are made by value; what they point to lies in the arena or is borrowed as said. */

static inline struct vg_json vg_json_null(void)
{
    return (struct vg_json){.type = VG_JSON_NULL};
}
static inline struct vg_json vg_json_bool(bool b)
{
    return (struct vg_json){.type = VG_JSON_BOOL, .flags = b ? VG_JSON_TRUE : 0};
}
/* Borrow s (valid UTF-8, at most UINT32_MAX bytes), which must outlive the tree. */
static inline struct vg_json vg_json_string_ref(struct vg_slice s)
{
    return (struct vg_json){.type = VG_JSON_STRING, .n = (uint32_t)s.n, .text = s.p};
}
static inline struct vg_json vg_json_array(void)
{
    return (struct vg_json){.type = VG_JSON_ARRAY};
}
static inline struct vg_json vg_json_object(void)
{
    return (struct vg_json){.type = VG_JSON_OBJECT};
}
/* Copies of the text are put into the arena. 0, -ENOMEM, VIGIL_E_TOO_LARGE (over UINT32_MAX bytes).
 */
VG_CHECK int vg_json_make_string(struct vg_arena *a, struct vg_slice s, struct vg_json *ret);
VG_CHECK int vg_json_make_int(struct vg_arena *a, int64_t i, struct vg_json *ret);
VG_CHECK int vg_json_make_uint(struct vg_arena *a, uint64_t u, struct vg_json *ret);
/* The shortest text that reads back the same, formatted as Go does. VIGIL_E_INVALID: not finite. */
VG_CHECK int vg_json_make_double(struct vg_arena *a, double d, struct vg_json *ret);
/* A deep copy that owes nothing to the source text or the other arena; offsets are kept. */
VG_CHECK int vg_json_clone(struct vg_arena *a, const struct vg_json *v, struct vg_json *ret);

/* Append at the end / insert before index i (i == n appends). v is copied by assignment.
 * 0, -ENOMEM, VIGIL_E_JSON_TYPE (no array), VIGIL_E_INVALID (i > n). Pointers to items may move. */
VG_CHECK int vg_json_array_push(struct vg_arena *a, struct vg_json *arr, struct vg_json v);
VG_CHECK int vg_json_array_insert(struct vg_arena *a, struct vg_json *arr, size_t i,
                                  struct vg_json v);
/* Later items move down. Returns whether i was there. */
bool vg_json_array_remove(struct vg_json *arr, size_t i);
/* Replace the value of key, keeping its place, or append a member. The key's bytes are borrowed:
 * they must outlive the tree (vg_arena_copy them when in doubt). 0, -ENOMEM, VIGIL_E_JSON_TYPE. */
VG_CHECK int vg_json_object_set(struct vg_arena *a, struct vg_json *obj, struct vg_slice key,
                                struct vg_json v);
/* As above without looking for the key: the caller knows that it is new. */
VG_CHECK int vg_json_object_add(struct vg_arena *a, struct vg_json *obj, struct vg_slice key,
                                struct vg_json v);
/* Later members move down, order is kept. Returns whether the key was there. */
bool vg_json_object_remove(struct vg_json *obj, struct vg_slice key);

#endif
