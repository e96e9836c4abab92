/* pointer.h - JSON Pointer (RFC 6901): the address of a value inside a document.
 * A pointer is parsed once into unescaped tokens and then evaluated any number of times. What goes
 * wrong is always told with the token that failed, in words fit for a person who wrote the pointer;
 * texts shown to people are bounded, because a peer decides how long a pointer is.
 * Thread: a parsed pointer is read only. */
#ifndef VG_JSON_POINTER_H
#define VG_JSON_POINTER_H

#include "base/buf.h"
#include "json.h"

/* A pointer with more tokens than a tree has levels cannot lead anywhere. */
#define VG_JSON_POINTER_TOKENS_MAX VG_JSON_DEPTH_MAX

struct vg_json_pointer {
    const struct vg_slice *tokens; /* unescaped */
    uint32_t n;                    /* 0: the whole document */
};

enum vg_json_pointer_flag {
    /* -1 is the last item of an array, -2 the one before it: not in the RFC, but kube-apiserver's
     * JSON Patch takes it. */
    VG_JSON_POINTER_NEGATIVE = 1,
    /* Indexes as Go reads numbers: 01, +1, -0. Not in the RFC, but kube-apiserver's. */
    VG_JSON_POINTER_LOOSE = 2,
};

/* Parse text such as "/metadata/annotations/example.com~1a". Tokens without escapes point into
 * text, which must outlive the pointer; the rest lies in the arena.
 * 0; VIGIL_E_JSON_POINTER: no slash at the start, a '~' without 0 or 1, or too many tokens, the
 * message names the token; -ENOMEM. */
VG_CHECK int vg_json_pointer_parse(struct vg_arena *arena, struct vg_slice text,
                                   struct vg_json_pointer *ret, struct vg_status *reterr_status);

/* The same as kube-apiserver's JSON Patch reads it: what stands before the first slash is passed
 * over, a '~' without 0 or 1 is itself. VIGIL_E_JSON_POINTER: no slash at all in a text that is not
 * empty, or too many tokens. */
VG_CHECK int vg_json_pointer_parse_loose(struct vg_arena *arena, struct vg_slice text,
                                         struct vg_json_pointer *ret,
                                         struct vg_status *reterr_status);

/* The value that p leads to in root. flags: enum vg_json_pointer_flag.
 * 0; VIGIL_E_NOT_FOUND: no such member or item; VIGIL_E_JSON_TYPE: a value on the way is neither
 * object nor array; VIGIL_E_JSON_POINTER: a token for an array is no index. */
VG_CHECK int vg_json_pointer_get(const struct vg_json_pointer *p, const struct vg_json *root,
                                 unsigned flags, struct vg_json **ret,
                                 struct vg_status *reterr_status);

/* One token of the way; errors as above, without message. */
VG_CHECK int vg_json_pointer_step(const struct vg_json *at, struct vg_slice token, unsigned flags,
                                  struct vg_json **ret);

/* The index that token means in an array of n items.
 * 0; VIGIL_E_JSON_POINTER: not an index (leading zeros and signs are none, unless loose);
 * VIGIL_E_NOT_FOUND: n or
 * beyond, and "-", which the RFC gives to the item after the last. */
VG_CHECK int vg_json_array_index(struct vg_slice token, uint32_t n, unsigned flags, uint32_t *ret);

/* Does `prefix` lead to a container of what p leads to? False when they are the same. */
bool vg_json_pointer_is_above(const struct vg_json_pointer *prefix,
                              const struct vg_json_pointer *p);
bool vg_json_pointer_is_same(const struct vg_json_pointer *a, const struct vg_json_pointer *b);

/* Append "/" and the escaped token: the way to write pointers. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_json_pointer_append(struct vg_buf *b, struct vg_slice token);

/* ---- texts for messages ---- */

/* 120 bytes: three of them and a sentence fit into the message of a vg_status. */
#define VG_JSON_PATH_TEXT_MAX 120u

/* A pointer or key as shown to people: escaped as in RFC 6901, control characters replaced by '?',
 * a long one cut at a character boundary and ended by "...". Zero to start. */
struct vg_json_path_text {
    char s[VG_JSON_PATH_TEXT_MAX + 1]; /* NUL-terminated */
    uint8_t n;
    bool cut;
};
void vg_json_path_text_add(struct vg_json_path_text *t, struct vg_slice token);
/* Fill *t with the first `tokens` tokens of p; returns t->s. */
const char *vg_json_pointer_show(const struct vg_json_pointer *p, uint32_t tokens,
                                 struct vg_json_path_text *t);
/* Fill *t with the bare key; returns t->s. */
const char *vg_json_key_show(struct vg_slice key, struct vg_json_path_text *t);

/* Why token number i of p fails at the value `at`, as a clause to end a message with:
 *     "/spec" has no member "replcas" */
struct vg_json_pointer_why {
    char s[3 * VG_JSON_PATH_TEXT_MAX];
};
const char *vg_json_pointer_explain(const struct vg_json_pointer *p, uint32_t i,
                                    const struct vg_json *at, struct vg_json_pointer_why *why);

#endif
