/* vigil/object.h - a Kubernetes object: its JSON bytes, and an index of what is asked for often.
 * An object never changes and is shared by reference: what an informer hands out may be kept and
 * read by any thread for as long as a reference is held. Looking something up scans the bytes and
 * makes no tree, no copy and no allocation. Thread: any, for everything here. */
#ifndef VIGIL_OBJECT_H
#define VIGIL_OBJECT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vigil_object;

/* From JSON text, which is copied. NULL: no object with metadata and a name, see err. What lies
 * deeper is checked no further than its quotes and brackets. */
VIGIL_API VIGIL_CHECKED const struct vigil_object *vigil_object_parse(struct vigil_text json,
                                                                      struct vigil_error *err);
VIGIL_API const struct vigil_object *vigil_object_ref(const struct vigil_object *o);
/* NULL allowed. */
VIGIL_API void vigil_object_unref(const struct vigil_object *o);

/* What is known without looking. Empty text: not there. */
/* As received; the items of a list have got their kind and apiVersion from the list. */
VIGIL_API struct vigil_text vigil_object_json(const struct vigil_object *o);
VIGIL_API struct vigil_text vigil_object_kind(const struct vigil_object *o);
VIGIL_API struct vigil_text vigil_object_api_version(const struct vigil_object *o);
VIGIL_API struct vigil_text vigil_object_name(const struct vigil_object *o);
VIGIL_API struct vigil_text vigil_object_namespace(const struct vigil_object *o);
VIGIL_API struct vigil_text vigil_object_uid(const struct vigil_object *o);
VIGIL_API struct vigil_text vigil_object_resource_version(const struct vigil_object *o);
/* "namespace/name", or "name" when there is no namespace: what stores and work queues use. */
VIGIL_API struct vigil_text vigil_object_key(const struct vigil_object *o);
/* The value of a label or an annotation; p is NULL when it is not there. So it is for an annotation
 * that holds escapes: vigil_get finds it, vigil_value_copy unescapes it. */
VIGIL_API struct vigil_text vigil_object_label(const struct vigil_object *o, const char *key);
VIGIL_API struct vigil_text vigil_object_annotation(const struct vigil_object *o, const char *key);
/* The one owner with controller: true: its kind, name and uid. false: none. */
VIGIL_API bool vigil_object_controller(const struct vigil_object *o, struct vigil_text *ret_kind,
                                       struct vigil_text *ret_name, struct vigil_text *ret_uid);

/* ---- looking inside ---- */

enum vigil_type {
    VIGIL_NONE, /* not there */
    VIGIL_NULL,
    VIGIL_BOOL,
    VIGIL_NUMBER,
    VIGIL_STRING,
    VIGIL_ARRAY,
    VIGIL_OBJECT
};

/* A value inside an object; valid while a reference of the object is held. */
struct vigil_value {
    enum vigil_type type;
    struct vigil_text raw; /* its JSON text, quotes and braces included */
};

/* Follow a path: vigil_get(o, "spec.containers[0].image"). Keys that hold a dot, a bracket or a
 * slash are written ["like.this"]. Type VIGIL_NONE: there is no such thing. */
VIGIL_API struct vigil_value vigil_get(const struct vigil_object *o, const char *path);
VIGIL_API struct vigil_value vigil_value_get(struct vigil_value v, const char *path);
/* Step through an array or an object: start with *at zeroed; false: the end. `ret_key` (NULL
 * allowed) is the member's name as written in JSON, without quotes. */
struct vigil_iter {
    size_t at;
};
VIGIL_API bool vigil_value_next(struct vigil_value v, struct vigil_iter *at,
                                struct vigil_text *ret_key, struct vigil_value *ret_value);
/* As C values; `otherwise` when the value is not there or of another type. */
VIGIL_API int64_t vigil_value_int(struct vigil_value v, int64_t otherwise);
VIGIL_API double vigil_value_double(struct vigil_value v, double otherwise);
VIGIL_API bool vigil_value_bool(struct vigil_value v, bool otherwise);
/* A string without its quotes, if it holds no escapes (then it points into the object); else p is
 * NULL and vigil_value_copy unescapes it. */
VIGIL_API struct vigil_text vigil_value_string(struct vigil_value v);
/* Writes the unescaped string and a 0 byte to buf, cut to its size; the length it needs, without
 * the 0 byte; -1: not a string. */
VIGIL_API long vigil_value_copy(struct vigil_value v, char *buf, size_t size);
/* Short for vigil_value_string(vigil_get(o, path)), "" where there is none. */
VIGIL_API struct vigil_text vigil_get_string(const struct vigil_object *o, const char *path);
VIGIL_API int64_t vigil_get_int(const struct vigil_object *o, const char *path, int64_t otherwise);

/* ---- changing: a new object from an old one ---- */

/* Apply a JSON merge patch (RFC 7386) here, not at the server. NULL: see err. */
VIGIL_API VIGIL_CHECKED const struct vigil_object *vigil_object_merge(const struct vigil_object *o,
                                                                      struct vigil_text merge_patch,
                                                                      struct vigil_error *err);

#ifdef __cplusplus
}
#endif

#endif
