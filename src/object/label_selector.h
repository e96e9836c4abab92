/* label_selector.h - label selectors: the whole grammar of kube-apiserver, compiled for matching.
 * A selector is the AND of its requirements. It is parsed once into one immutable block that owes
 * nothing to the text; any number of threads may match with it, which allocates nothing.
 * Invariants, checked by vg_label_selector_is_sound():
 *   S1 requirements rise by key; those with the same key keep the order of the text.
 *   S2 the values of a requirement rise strictly: a set, as in apimachinery.
 *   S3 IN and NOT_IN have one value or more, EXISTS and NOT_EXISTS none, the others exactly one.
 *   S4 GREATER and LESS carry their value as a number too. */
#ifndef VG_OBJECT_LABEL_SELECTOR_H
#define VG_OBJECT_LABEL_SELECTOR_H

#include "base/buf.h"
#include "base/err.h"
#include "labels.h"

/* 64 KiB of text: a selector comes in a URL, and servers and proxies cut those long before. It also
 * bounds the values, of which each costs a byte at least. */
#define VG_LABEL_SELECTOR_BYTES_MAX (64u * 1024u)
/* Each is looked up for every object; people write fewer than ten. */
#define VG_LABEL_SELECTOR_REQUIREMENTS_MAX 1024u
/* A message tells of this many bad values of one requirement; kube-apiserver would tell of all,
 * which makes megabytes of the longest text. */
#define VG_LABEL_SELECTOR_COMPLAINTS_MAX 64u

enum vg_label_op {
    VG_LABEL_EXISTS,        /* k */
    VG_LABEL_NOT_EXISTS,    /* !k */
    VG_LABEL_EQUALS,        /* k=v */
    VG_LABEL_DOUBLE_EQUALS, /* k==v: the same, but written back as it came */
    VG_LABEL_NOT_EQUALS,    /* k!=v: matches a missing key too */
    VG_LABEL_IN,            /* k in (a,b) */
    VG_LABEL_NOT_IN,        /* k notin (a,b): matches a missing key too */
    VG_LABEL_GREATER,       /* k>1: the label must be there and be an integer */
    VG_LABEL_LESS,          /* k<1 */
};

struct vg_label_requirement {
    struct vg_slice key;
    const struct vg_slice *values;
    uint32_t values_n;
    enum vg_label_op op;
    int64_t number; /* GREATER, LESS */
};

struct vg_label_selector;

/* Parse text; the empty text, and one of white space, selects everything.
 * 0; VIGIL_E_INVALID: reterr_message (NULL allowed) then holds kube-apiserver's whole message,
 * which may be longer than a vg_status takes and quotes bytes of the text as they are, valid UTF-8
 * or not; VIGIL_E_TOO_LARGE: over a limit above, with a message of ours; -ENOMEM. Free
 * *ret_selector with vg_label_selector_free. */
VG_CHECK int vg_label_selector_parse(struct vg_slice text,
                                     const struct vg_label_selector **ret_selector,
                                     struct vg_buf *reterr_message);
/* The selector of the objects that have all of these labels. Keys and values are not validated.
 * 0; VIGIL_E_TOO_LARGE: more labels than requirements are allowed; -ENOMEM. */
VG_CHECK int vg_label_selector_from_labels(const struct vg_labels *l,
                                           const struct vg_label_selector **ret_selector);
/* NULL allowed, and the two below. */
void vg_label_selector_free(const struct vg_label_selector *s);
static inline void vg_label_selector_freep(const struct vg_label_selector **s)
{
    vg_label_selector_free(*s);
}

/* Static. */
const struct vg_label_selector *vg_label_selector_everything(void);
const struct vg_label_selector *vg_label_selector_nothing(void);

bool vg_label_selector_matches(const struct vg_label_selector *s, const struct vg_labels *l);

/* Does it select all objects because it requires nothing? */
bool vg_label_selector_is_everything(const struct vg_label_selector *s);
/* Is it vg_label_selector_nothing()? Contradictions (a,!a) are not looked for. */
bool vg_label_selector_is_nothing(const struct vg_label_selector *s);
uint32_t vg_label_selector_count(const struct vg_label_selector *s);
const struct vg_label_requirement *vg_label_selector_at(const struct vg_label_selector *s,
                                                        uint32_t i);
/* Does the first requirement about `key` leave it one value only? Then that is in *ret_value. */
bool vg_label_selector_requires(const struct vg_label_selector *s, struct vg_slice key,
                                struct vg_slice *ret_value);
bool vg_label_selector_equal(const struct vg_label_selector *a, const struct vg_label_selector *b);
/* Bytes held, for accounting. */
size_t vg_label_selector_size(const struct vg_label_selector *s);

/* Append the canonical text: by key, values sorted, no spaces but around in and notin. Parsing it
 * gives an equal selector, except that nothing and everything are both written as the empty text.
 * 0, -ENOMEM, VIGIL_E_TOO_LARGE; what was appended before a failure stays. */
VG_CHECK int vg_label_selector_append(struct vg_buf *b, const struct vg_label_selector *s);

/* S1 to S4: asserted by debug builds when a selector is made, and by tests. */
bool vg_label_selector_is_sound(const struct vg_label_selector *s);

#endif
