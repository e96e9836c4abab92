/* check.h - what the rules of kinds are written with: places in an object, and errors about them.
 * An object that comes here was decoded by its schema and defaulted: every value has its type, null
 * and unknown members are gone. A place (struct vg_at) is a value and its way from the root; it
 * lies on the stack of whoever looks, and its path becomes a text only when there is something to
 * say. Errors are collected in the order in which they are found, which is the order of
 * kube-apiserver's, with its texts. Thread: one owner. */
#ifndef VG_RULES_CHECK_H
#define VG_RULES_CHECK_H

#include "object/validate_name.h"
#include "server/schema/field_errors.h"
#include "json/json.h"
#include "json/lookup.h"

struct vg_check {
    struct vg_field_errors *errors;
    struct vg_arena *arena; /* for what must outlive a call */
    /* The object as the client gave it, before what is empty was left out: an empty list or map
     * that is blamed is shown as such. NULL: not known. */
    const struct vg_json *given;
    /* Takes warnings; NULL: nobody wants them. The text lives for the call. */
    void (*warn)(void *arg, const char *text);
    void *warn_arg;
};

/* ---- places ---- */

enum vg_step { VG_AT_ROOT, VG_AT_MEMBER, VG_AT_ITEM, VG_AT_KEY };

struct vg_at {
    const struct vg_at *up;
    const struct vg_json *v; /* NULL: not there */
    const char *name;        /* MEMBER */
    struct vg_slice key;     /* KEY: of a map, printed as path[key] */
    uint32_t index;          /* ITEM */
    uint8_t step;            /* enum vg_step */
    bool is_lent;            /* v is another place's */
};

static inline struct vg_at vg_at_root(const struct vg_json *v)
{
    return (struct vg_at){.v = v, .step = VG_AT_ROOT};
}
/* The member of that name, there or not. */
static inline struct vg_at vg_at(const struct vg_at *up, const char *name)
{
    return (struct vg_at){
        .up = up, .v = vg_json_get_str(up->v, name), .name = name, .step = VG_AT_MEMBER};
}
/* The same place with another value: what kube-apiserver blames on a field of another name. */
static inline struct vg_at vg_at_of(const struct vg_at *up, const char *name,
                                    const struct vg_json *v)
{
    return (struct vg_at){.up = up, .v = v, .name = name, .step = VG_AT_MEMBER, .is_lent = true};
}
/* The i-th item; its v is NULL past the end. */
static inline struct vg_at vg_at_item(const struct vg_at *up, size_t i)
{
    return (struct vg_at){
        .up = up, .v = vg_json_at(up->v, i), .index = (uint32_t)i, .step = VG_AT_ITEM};
}
/* A value of a map, and its key. */
static inline struct vg_at vg_at_key(const struct vg_at *up, const struct vg_json_member *m)
{
    return (struct vg_at){.up = up, .v = &m->value, .key = vg_json_key(m), .step = VG_AT_KEY};
}
/* Every item of a list. With a check: as long as there is room for errors. A list that a client has
 * filled with nonsense is not looked through to its end. */
#define VG_CHECK_EACH(c, it, list)                                                                 \
    for (struct vg_at it = vg_at_item((list), 0); it.v && !vg_field_errors_is_full((c)->errors);   \
         it = vg_at_item((list), it.index + 1u))
#define VG_AT_FOREACH(it, list)                                                                    \
    for (struct vg_at it = vg_at_item((list), 0); it.v; it = vg_at_item((list), it.index + 1u))

static inline bool vg_at_is_set(const struct vg_at *at)
{
    return at->v && at->v->type != VG_JSON_NULL;
}
/* Items of a list, or members of a map or object; 0 when absent. */
static inline size_t vg_at_n(const struct vg_at *at)
{
    bool is_container = at->v && (at->v->type == VG_JSON_ARRAY || at->v->type == VG_JSON_OBJECT);
    return is_container ? at->v->n : 0;
}
static inline struct vg_slice vg_at_text(const struct vg_at *at)
{
    return vg_json_text(at->v);
}
static inline bool vg_at_is(const struct vg_at *at, const char *text)
{
    return vg_slice_eq(vg_json_text(at->v), vg_slice_str(text));
}
static inline bool vg_at_is_true(const struct vg_at *at)
{
    return vg_json_is_true(at->v);
}
/* Is it one of these? The list ends with NULL. */
bool vg_text_is_one_of(struct vg_slice text, const char *const *list);
static inline bool vg_text_has_suffix(struct vg_slice text, struct vg_slice suffix)
{
    return text.n >= suffix.n && memcmp(text.p + text.n - suffix.n, suffix.p, suffix.n) == 0;
}
/* 0 when absent. */
int64_t vg_at_int(const struct vg_at *at);
/* spec.template.metadata as a value: NULL when any of it is absent. */
const struct vg_json *vg_json_at_path(const struct vg_json *v, const char *dotted);
/* `to` gets the member that `from` has under that name, or loses it. 0, -ENOMEM. */
VG_CHECK int vg_json_take_member(struct vg_arena *a, struct vg_json *to, const struct vg_json *from,
                                 const char *name);
/* Append the path: spec.containers[0].name. 0, -ENOMEM. */
VG_CHECK int vg_at_append(struct vg_buf *b, const struct vg_at *at);

/* ---- errors ----
 * fmt is the detail; NULL: none. */

/* Invalid value: <the value as JSON, null when absent>: detail. */
void vg_bad(struct vg_check *c, const struct vg_at *at, const char *fmt, ...) VG_PRINTF(3, 4);
/* As text, "" when absent; as number, 0 when absent. */
void vg_bad_text(struct vg_check *c, const struct vg_at *at, const char *fmt, ...) VG_PRINTF(3, 4);
void vg_bad_int(struct vg_check *c, const struct vg_at *at, const char *fmt, ...) VG_PRINTF(3, 4);
/* With a value that is shown instead, as JSON. */
void vg_bad_value(struct vg_check *c, const struct vg_at *at, struct vg_slice json, const char *fmt,
                  ...) VG_PRINTF(4, 5);
/* The same, because it is of another type. */
void vg_bad_type(struct vg_check *c, const struct vg_at *at, struct vg_slice json, const char *fmt,
                 ...) VG_PRINTF(4, 5);
void vg_required(struct vg_check *c, const struct vg_at *at, const char *fmt, ...) VG_PRINTF(3, 4);
void vg_forbidden(struct vg_check *c, const struct vg_at *at, const char *fmt, ...) VG_PRINTF(3, 4);
void vg_duplicate(struct vg_check *c, const struct vg_at *at);
void vg_duplicate_value(struct vg_check *c, const struct vg_at *at, struct vg_slice json);
void vg_duplicate_because(struct vg_check *c, const struct vg_at *at, struct vg_slice json,
                          const char *why);
void vg_not_found(struct vg_check *c, const struct vg_at *at);
void vg_not_found_because(struct vg_check *c, const struct vg_at *at, const char *fmt, ...)
    VG_PRINTF(3, 4);
/* supported ends with NULL and is shown in the order given. */
void vg_unsupported(struct vg_check *c, const struct vg_at *at, const char *const *supported);
void vg_unsupported_value(struct vg_check *c, const struct vg_at *at, struct vg_slice json,
                          const char *const *supported);
void vg_too_long(struct vg_check *c, const struct vg_at *at, size_t max_bytes);
void vg_too_many(struct vg_check *c, const struct vg_at *at, size_t n, size_t max);
void vg_internal(struct vg_check *c, const struct vg_at *at, const char *fmt, ...) VG_PRINTF(3, 4);

/* Warn, and take the object all the same: of nothing in particular; "<path>: <text>". */
void vg_caution(struct vg_check *c, const char *fmt, ...) VG_PRINTF(2, 3);
void vg_caution_at(struct vg_check *c, const struct vg_at *at, const char *fmt, ...)
    VG_PRINTF(3, 4);

/* A text as JSON in the check's arena, for vg_bad_value. */
struct vg_slice vg_json_quoted(struct vg_check *c, struct vg_slice text);
/* A number likewise. */
struct vg_slice vg_json_number(struct vg_check *c, int64_t i);
/* The value at a place likewise, with what is empty as it was given. */
struct vg_slice vg_at_shown(struct vg_check *c, const struct vg_at *at);
/* A value as JSON in the check's arena. */
struct vg_slice vg_json_shown(struct vg_check *c, const struct vg_json *v);

/* ---- checks that many kinds share (common.c); true: nothing to complain about ---- */

/* Invalid value for each reason. */
bool vg_check_reasons(struct vg_check *c, const struct vg_at *at,
                      const struct vg_name_reasons *why);
bool vg_check_dns_label(struct vg_check *c, const struct vg_at *at);
bool vg_check_dns_subdomain(struct vg_check *c, const struct vg_at *at);
/* A qualified name: [subdomain/]name. */
bool vg_check_qualified(struct vg_check *c, const struct vg_at *at);
/* Is it one of these? Unsupported value if not; ends with NULL. */
bool vg_check_one_of(struct vg_check *c, const struct vg_at *at, const char *const *supported);
/* must be greater than or equal to 0 */
bool vg_check_not_negative(struct vg_check *c, const struct vg_at *at);
/* must be between 1 and 65535, inclusive */
bool vg_check_port(struct vg_check *c, const struct vg_at *at);
/* Labels and annotations at that place: a map of strings. */
void vg_check_labels(struct vg_check *c, const struct vg_at *at);
void vg_check_annotations(struct vg_check *c, const struct vg_at *at);
/* A value of a label; each value of a selector. */
bool vg_check_label_value(struct vg_check *c, const struct vg_at *at);
/* The operator of an expression, and as many values as it takes; has_order: of nodes, which may be
 * greater and less than one too. */
void vg_check_selector_operator(struct vg_check *c, const struct vg_at *at, bool has_order);
/* matchLabels and matchExpressions; nothing when absent. */
void vg_check_label_selector(struct vg_check *c, const struct vg_at *at);
/* must be greater than zero */
bool vg_check_positive(struct vg_check *c, const struct vg_at *at);
/* must be between low and high, inclusive */
bool vg_check_range(struct vg_check *c, const struct vg_at *at, int64_t low, int64_t high);
/* The name of a port, such as http-2; and a number or a name. */
bool vg_check_port_name(struct vg_check *c, const struct vg_at *at);
bool vg_check_port_or_name(struct vg_check *c, const struct vg_at *at);
/* A key of a config map or secret. */
bool vg_check_config_key(struct vg_check *c, const struct vg_at *at);
/* A path that stays below where it begins; a path without "..". */
bool vg_check_descending_path(struct vg_check *c, const struct vg_at *at);
bool vg_check_no_backsteps(struct vg_check *c, const struct vg_at *at);
bool vg_path_has_backstep(struct vg_slice path);
/* A domain, and a path below it: acme.io/foo. */
void vg_check_domain_path(struct vg_check *c, const struct vg_at *at);
/* What a map has under a key, NULL when nothing: for loops that ask a map of any size for many
 * keys. hint: where it may be. Without memory the check fails. */
const struct vg_json *vg_check_find(struct vg_check *c, struct vg_json_lookup *map,
                                    struct vg_slice key, uint32_t hint);
/* Are they the same? NULL is null. Without memory the check fails, and they are. */
bool vg_check_same(struct vg_check *c, const struct vg_json *a, const struct vg_json *b);
/* Required value when absent or empty; true when it is there. */
bool vg_check_given(struct vg_check *c, const struct vg_at *at);
/* Conditions of metav1, as new kinds have them; no type twice (policy.c). */
void vg_check_conditions(struct vg_check *c, const struct vg_at *list);
/* field is immutable: `at` (of the new object) must equal old's value. */
bool vg_check_immutable(struct vg_check *c, const struct vg_at *at, const struct vg_json *old);

#endif
