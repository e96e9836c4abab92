/* vigil/store.h - objects by key, with indexes: what an informer keeps, and stores of your own.
 * Every query sees one consistent state. What is returned holds references; objects are shared and
 * never change. Thread: any, for everything here unless said otherwise. */
#ifndef VIGIL_STORE_H
#define VIGIL_STORE_H

#include "object.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vigil_store;

/* Calls emit(emit_arg, value) for each value under which the object shall be found. Must depend on
 * the object alone, and must not call the store. */
typedef void vigil_index_fn(void *arg, const struct vigil_object *o,
                            void (*emit)(void *emit_arg, struct vigil_text value), void *emit_arg);
struct vigil_index {
    const char *name;
    vigil_index_fn *fn;
    void *arg;
};
/* By metadata.namespace; every store has it, so the name is taken. */
#define VIGIL_BY_NAMESPACE "namespace"

VIGIL_API VIGIL_CHECKED int vigil_store_new(const struct vigil_index *indexes, size_t n,
                                            struct vigil_store **ret, struct vigil_error *err);
VIGIL_API void vigil_store_free(struct vigil_store *s);
/* Also with data present: it is indexed at once. VIGIL_E_EXISTS: the name is taken. */
VIGIL_API VIGIL_CHECKED int vigil_store_add_indexes(struct vigil_store *s,
                                                    const struct vigil_index *indexes, size_t n,
                                                    struct vigil_error *err);

/* ---- writing (stores of your own; an informer's store is written by the informer) ----
 * 0, or VIGIL_E_MEMORY: nothing changed. The store takes references of its own. */
VIGIL_API VIGIL_CHECKED int vigil_store_put(struct vigil_store *s, const struct vigil_object *o);
/* Fine when it is not there. */
VIGIL_API VIGIL_CHECKED int vigil_store_delete(struct vigil_store *s, const struct vigil_object *o);
VIGIL_API VIGIL_CHECKED int vigil_store_delete_key(struct vigil_store *s, struct vigil_text key);
/* These objects and no others; of two with one key the later counts. VIGIL_E_TOO_LARGE: no
 * resourceVersion is as long. */
VIGIL_API VIGIL_CHECKED int vigil_store_replace(struct vigil_store *s,
                                                const struct vigil_object *const *objects, size_t n,
                                                struct vigil_text resource_version);

/* ---- reading ---- */
/* A reference, or NULL. */
VIGIL_API const struct vigil_object *vigil_store_get(struct vigil_store *s, struct vigil_text key);
VIGIL_API size_t vigil_store_count(struct vigil_store *s);
/* The resourceVersion that the store has reached: of the last write, whatever came before. Copied
 * to buf with a 0 byte, cut to its size; its length. */
VIGIL_API size_t vigil_store_resource_version(struct vigil_store *s, char *buf, size_t size);

/* A consistent state that stays as it is; costs a reference, no copy. NULL: no memory. */
struct vigil_snapshot;
VIGIL_API const struct vigil_snapshot *vigil_store_snapshot(struct vigil_store *s);
VIGIL_API const struct vigil_snapshot *vigil_snapshot_ref(const struct vigil_snapshot *s);
VIGIL_API void vigil_snapshot_unref(const struct vigil_snapshot *s);
VIGIL_API size_t vigil_snapshot_count(const struct vigil_snapshot *s);
/* Borrowed while the snapshot is held; NULL: not there. */
VIGIL_API const struct vigil_object *vigil_snapshot_get(const struct vigil_snapshot *s,
                                                        struct vigil_text key);
/* In the order of keys; borrowed while the snapshot is held. Start with *at zeroed; NULL: the end.
 */
VIGIL_API const struct vigil_object *vigil_snapshot_next(const struct vigil_snapshot *s,
                                                         struct vigil_iter *at);

/* Objects under a value of an index, in the order of keys. VIGIL_E_NOT_FOUND: there is no such
 * index. each() gets borrowed objects and may return false to stop. */
VIGIL_API VIGIL_CHECKED int
vigil_store_by_index(struct vigil_store *s, const char *index, struct vigil_text value,
                     bool (*each)(void *arg, const struct vigil_object *o), void *arg);
/* The values of an index that have objects. */
VIGIL_API VIGIL_CHECKED int
vigil_store_index_values(struct vigil_store *s, const char *index,
                         bool (*each)(void *arg, struct vigil_text value), void *arg);

/* ---- listers: reading by namespace and label selector ---- */
struct vigil_lister {
    struct vigil_store *store;
    const char *ns; /* NULL or "": all */
};
/* In the order of keys; objects are borrowed for the call of each(), which may return false to
 * stop. VIGIL_E_INVALID: a malformed selector. selector NULL or "": everything. */
VIGIL_API VIGIL_CHECKED int vigil_lister_list(const struct vigil_lister *l, const char *selector,
                                              bool (*each)(void *arg, const struct vigil_object *o),
                                              void *arg, struct vigil_error *err);
/* A reference, or NULL: not there. */
VIGIL_API const struct vigil_object *vigil_lister_get(const struct vigil_lister *l,
                                                      const char *name);

/* ---- objects that expire ---- */

/* Objects by key that are forgotten when they were not put for longer than a time. Nothing is done
 * in the background: what has expired goes when somebody looks. */
struct vigil_expiring;
/* ttl_ms 0: never. */
VIGIL_API VIGIL_CHECKED int vigil_expiring_new(uint64_t ttl_ms, struct vigil_expiring **ret,
                                               struct vigil_error *err);
VIGIL_API void vigil_expiring_free(struct vigil_expiring *x);
/* Its time begins anew. 0 or VIGIL_E_MEMORY. */
VIGIL_API VIGIL_CHECKED int vigil_expiring_put(struct vigil_expiring *x,
                                               const struct vigil_object *o);
/* These and no others. On failure nothing changed. */
VIGIL_API VIGIL_CHECKED int vigil_expiring_replace(struct vigil_expiring *x,
                                                   const struct vigil_object *const *objects,
                                                   size_t n);
VIGIL_API void vigil_expiring_delete(struct vigil_expiring *x, struct vigil_text key);
/* A reference, or NULL: not there, or expired. */
VIGIL_API const struct vigil_object *vigil_expiring_get(struct vigil_expiring *x,
                                                        struct vigil_text key);
/* All that have not expired, in no order, borrowed for the call. 0 or VIGIL_E_MEMORY. */
VIGIL_API VIGIL_CHECKED int
vigil_expiring_list(struct vigil_expiring *x, bool (*each)(void *arg, const struct vigil_object *o),
                    void *arg);
/* Held now, those that have expired and were not looked at included. */
VIGIL_API size_t vigil_expiring_count(struct vigil_expiring *x);

#ifdef __cplusplus
}
#endif

#endif
