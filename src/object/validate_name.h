/* validate_name.h - is this text a name that Kubernetes takes, and if not, why not?
 * Every reason is a constant text, in the words of apimachinery, so validating allocates nothing
 * and the reasons can be kept. One text can be wrong in several ways; the reasons come in
 * apimachinery's order. Lengths count bytes. Thread: any. */
#ifndef VG_OBJECT_VALIDATE_NAME_H
#define VG_OBJECT_VALIDATE_NAME_H

#include "base/buf.h"

#define VG_DNS_LABEL_MAX 63u
#define VG_DNS_SUBDOMAIN_MAX 253u
#define VG_LABEL_VALUE_MAX 63u
#define VG_LABEL_NAME_MAX 63u /* the part of a key after its slash */
#define VG_LABEL_KEY_MAX (VG_DNS_SUBDOMAIN_MAX + 1u + VG_LABEL_NAME_MAX)

/* No text is wrong in more ways: two for a prefix and two for a name. */
#define VG_NAME_REASONS_MAX 4u

struct vg_name_reasons {
    const char *v[VG_NAME_REASONS_MAX]; /* static texts */
    uint32_t n;
};

/* What a length limit is said to count. Hand-written validation, which is what checks
 * metadata.name, says characters; generated validation and labels say bytes. */
enum vg_name_unit { VG_NAME_CHARACTERS, VG_NAME_BYTES };

/* Each: true when s is valid. Otherwise false, and the reasons are in *ret_why (NULL allowed). */

/* [subdomain/]name: keys of labels and annotations, finalizers, taints. */
bool vg_validate_label_key(struct vg_slice s, struct vg_name_reasons *ret_why);
/* May be empty. */
bool vg_validate_label_value(struct vg_slice s, struct vg_name_reasons *ret_why);
bool vg_validate_dns1123_label(struct vg_slice s, enum vg_name_unit unit,
                               struct vg_name_reasons *ret_why);
bool vg_validate_dns1123_subdomain(struct vg_slice s, enum vg_name_unit unit,
                                   struct vg_name_reasons *ret_why);
bool vg_validate_dns1035_label(struct vg_slice s, struct vg_name_reasons *ret_why);
/* May stand between two slashes of a URL: the only rule for the names of some kinds (roles). */
bool vg_validate_path_segment(struct vg_slice s, struct vg_name_reasons *ret_why);

/* Append the reasons, joined by "; " as messages do. 0, -ENOMEM, VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_name_reasons_append(struct vg_buf *b, const struct vg_name_reasons *why);

#endif
