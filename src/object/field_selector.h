/* field_selector.h - field selectors: comma-separated f=v, f==v and f!=v, all of which must hold.
 * Parsed once into one immutable block that owes nothing to the text; any number of threads may
 * match with it, which allocates nothing. Parsing takes any field; resolving is what knows a kind:
 * it refuses fields that the kind does not have, in the words that kube-apiserver has for that
 * kind, and gives each term the kind's index of its field, so that matching compares no names. */
#ifndef VG_OBJECT_FIELD_SELECTOR_H
#define VG_OBJECT_FIELD_SELECTOR_H

#include "base/buf.h"
#include "base/err.h"

/* As for label selectors: it comes in a URL. */
#define VG_FIELD_SELECTOR_BYTES_MAX (64u * 1024u)
/* Each is compared for every object; a kind has a dozen fields at most. */
#define VG_FIELD_SELECTOR_TERMS_MAX 1024u

#define VG_FIELD_UNRESOLVED UINT32_MAX

enum vg_field_op { VG_FIELD_EQUALS, VG_FIELD_NOT_EQUALS };

struct vg_field_term {
    struct vg_slice field, value; /* the value without escapes */
    enum vg_field_op op;
    uint32_t index; /* of the field in its kind; VG_FIELD_UNRESOLVED */
};

struct vg_field_selector;

/* Parse text; empty terms and the empty text restrict nothing, nor does "=", as in apimachinery.
 * 0; VIGIL_E_INVALID: reterr_message (NULL allowed) then holds kube-apiserver's whole message,
 * which may be longer than a vg_status takes and quotes bytes of the text as they are, valid UTF-8
 * or not; VIGIL_E_TOO_LARGE: over a limit above, with a message of ours; -ENOMEM. Free
 * *ret_selector with vg_field_selector_free. */
VG_CHECK int vg_field_selector_parse(struct vg_slice text,
                                     const struct vg_field_selector **ret_selector,
                                     struct vg_buf *reterr_message);
/* A selector of copies of these terms, in this order.
 * 0; VIGIL_E_TOO_LARGE: too many; -ENOMEM. */
VG_CHECK int vg_field_selector_from_terms(const struct vg_field_term *terms, size_t n,
                                          const struct vg_field_selector **ret_selector);
/* NULL allowed, and the two below. */
void vg_field_selector_free(const struct vg_field_selector *s);
static inline void vg_field_selector_freep(const struct vg_field_selector **s)
{
    vg_field_selector_free(*s);
}

/* Static. */
const struct vg_field_selector *vg_field_selector_everything(void);
const struct vg_field_selector *vg_field_selector_nothing(void);

/* ---- the fields of a kind ---- */

/* How kube-apiserver refuses a field, which differs from kind to kind. */
enum vg_field_refusal {
    VG_FIELD_NOT_SUPPORTED,      /* field label not supported: F */
    VG_FIELD_NOT_KNOWN,          /* "F" is not a known field selector: only "metadata.name", ... */
    VG_FIELD_NOT_SUPPORTED_FOR,  /* field label "F" not supported for KIND: Job */
    VG_FIELD_NOT_SUPPORTED_KIND, /* field label not supported for KIND: F: ResourceSlice */
};

struct vg_field_label {
    struct vg_slice name;      /* as clients write it */
    struct vg_slice canonical; /* empty: name itself; else it is an alias (spec.host) of this */
    uint32_t index;            /* goes into the terms; aliases share it */
};

struct vg_field_labels {
    const struct vg_field_label *v;
    uint32_t n;
    enum vg_field_refusal refusal;
    struct vg_slice kind; /* as the last two refusals name it: "Job",
                           * "resource.k8s.io/v1, Kind=ResourceSlice" */
};

/* The same selector with canonical names and the kind's indexes; s stays as it is.
 * 0; VIGIL_E_INVALID: the first term whose field the kind does not have is in reterr_message (NULL
 * allowed); -ENOMEM. */
VG_CHECK int vg_field_selector_resolve(const struct vg_field_selector *s,
                                       const struct vg_field_labels *labels,
                                       const struct vg_field_selector **ret_selector,
                                       struct vg_buf *reterr_message);

/* ---- matching ---- */

/* The value of the term's field (by index, or by name when unresolved); empty when it is unset. */
typedef struct vg_slice vg_field_get_fn(const void *object, const struct vg_field_term *term);

bool vg_field_selector_matches(const struct vg_field_selector *s, vg_field_get_fn *get,
                               const void *object);

/* ---- looking inside ---- */

/* Does it select all objects because it requires nothing? */
bool vg_field_selector_is_everything(const struct vg_field_selector *s);
bool vg_field_selector_is_nothing(const struct vg_field_selector *s);
uint32_t vg_field_selector_count(const struct vg_field_selector *s);
/* Its texts are the selector's. */
struct vg_field_term vg_field_selector_at(const struct vg_field_selector *s, uint32_t i);
/* Is there a term field=value? Then the value of the first one is in *ret_value. */
bool vg_field_selector_requires(const struct vg_field_selector *s, struct vg_slice field,
                                struct vg_slice *ret_value);
/* The same terms, in whatever order. Quadratic. */
bool vg_field_selector_equal(const struct vg_field_selector *a, const struct vg_field_selector *b);
size_t vg_field_selector_size(const struct vg_field_selector *s); /* bytes held */
/* A copy in memory of the caller's: it is one flat block, of so many bytes, aligned as a uint32_t.
 * Not to be freed. */
size_t vg_field_selector_block_size(const struct vg_field_selector *s);
void vg_field_selector_place(const struct vg_field_selector *s, void *block);

/* Append the canonical text: one "=" for "==", values escaped, terms in the order in which the
 * texts of the terms sort. Parsing it gives an equal selector, except that nothing and everything
 * are both written as the empty text. 0, -ENOMEM, VIGIL_E_TOO_LARGE; what was appended before a
 * failure stays. */
VG_CHECK int vg_field_selector_append(struct vg_buf *b, const struct vg_field_selector *s);
/* Append a value with \ before each of \ , = so that it can stand in a field selector. */
VG_CHECK int vg_field_value_append(struct vg_buf *b, struct vg_slice value);

#endif
