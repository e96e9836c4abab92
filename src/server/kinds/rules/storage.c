/* storage.c - rules of the storage group's classes, capacities and attachments.
 * Left out: warnings about old labels of nodes in topologies; volumes of an attachment that are not
 * of CSI, which are refused as such only. */
#include "storage.h"

#include <stdlib.h>

#include "base/map.h"
#include "claim.h"
#include "go_struct.h"
#include "names.h"
#include "resources.h"
#include "rules.h"

/* Of all keys and values together, and how many there may be. */
#define PARAMETERS_SIZE_MAX ((size_t)256 << 10)
#define PARAMETERS_MAX 512u
#define ERROR_MESSAGE_MAX 1024u

/* ---- shared ---- */

static struct vg_slice lower(struct vg_check *c, struct vg_slice text)
{
    char *low = text.n ? vg_arena_copy(c->arena, text.p, text.n) : NULL;
    c->errors->failed |= text.n && !low;
    for (size_t i = 0; low && i < text.n; i++)
        low[i] = (char)(low[i] >= 'A' && low[i] <= 'Z' ? low[i] + 32 : low[i]);
    return vg_slice(low, low ? text.n : 0);
}

void vg_check_csi_driver_name(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    struct vg_slice name = vg_at_text(at);
    if (!vg_check_given(c, at))
        return;
    if (name.n > 63)
        vg_too_long(c, at, 63);
    if (!vg_validate_dns1123_subdomain(name, VG_NAME_CHARACTERS, NULL) &&
        !vg_validate_dns1123_subdomain(lower(c, name), VG_NAME_CHARACTERS, &why))
        (void)vg_check_reasons(c, at, &why);
}

/* Checked, and shown, in lower case. */
static void check_provisioner(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    if (!vg_check_given(c, at) || vg_validate_label_key(vg_at_text(at), NULL))
        return;
    struct vg_slice low = lower(c, vg_at_text(at));
    if (vg_validate_label_key(low, &why))
        return;
    for (uint32_t i = 0; i < why.n; i++)
        vg_bad_value(c, at, vg_json_quoted(c, low), "%s", why.v[i]);
}

static void check_parameters(struct vg_check *c, const struct vg_at *at, bool may_be_empty)
{
    size_t size = 0;
    if (vg_at_n(at) > PARAMETERS_MAX) {
        vg_too_long(c, at, PARAMETERS_MAX);
        return;
    }
    if (at->v)
        VG_JSON_FOREACH_MEMBER (m, at->v) {
            if (m->key_n == 0)
                vg_bad_value(c, at, VG_SLICE_LIT("\"\""), "field can not be empty.");
            size += m->key_n + vg_json_text(&m->value).n;
        }
    if (size > PARAMETERS_SIZE_MAX)
        vg_too_long(c, at, PARAMETERS_SIZE_MAX);
    if (!may_be_empty && vg_at_n(at) == 0)
        vg_required(c, at, "must contain at least one key/value pair");
}

static void check_same(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old,
                       const char *const *members)
{
    for (const char *const *m = members; *m; m++) {
        struct vg_at at = vg_at(obj, *m);
        (void)vg_check_immutable(c, &at, vg_json_get_str(old, *m));
    }
}

/* ---- StorageClass ---- */

static void check_requirement(struct vg_check *c, const struct vg_at *at)
{
    VG_AUTO(names) seen = {0};
    struct vg_at values = vg_at(at, "values"), key = vg_at(at, "key");
    (void)vg_check_given(c, &values);
    VG_CHECK_EACH (c, value, &values)
        if (!vg_names_add(c, &seen, vg_at_text(&value), NULL))
            vg_duplicate(c, &value);
    (void)vg_check_qualified(c, &key);
}

static void check_term(struct vg_check *c, const struct vg_at *at)
{
    VG_AUTO(names) seen = {0};
    struct vg_at list = vg_at(at, "matchLabelExpressions");
    VG_CHECK_EACH (c, e, &list) {
        struct vg_at key = vg_at(&e, "key");
        check_requirement(c, &e);
        if (!vg_names_add(c, &seen, vg_at_text(&key), NULL))
            vg_duplicate_value(c, &key, vg_json_quoted(c, vg_at_text(&key)));
    }
}

static int by_text(const void *a, const void *b)
{
    return vg_slice_cmp(vg_json_text(a), vg_json_text(b));
}

static int by_key(const void *a, const void *b)
{
    return vg_slice_cmp(vg_json_key(a), vg_json_key(b));
}

/* A list of values as the set that it is: sorted, each once. 0, -ENOMEM. */
static int set_of(struct vg_arena *a, const struct vg_json *values, struct vg_json *ret)
{
    int err = 0;
    *ret = vg_json_array();
    for (uint32_t i = 0; vg_json_is(values, VG_JSON_ARRAY) && i < values->n && err == 0; i++)
        err = vg_json_array_push(a, ret, values->items[i]);
    if (err < 0 || ret->n == 0)
        return err;
    uint32_t n = 1;
    qsort(ret->items, ret->n, sizeof *ret->items, by_text);
    for (uint32_t i = 1; i < ret->n; i++)
        if (by_text(&ret->items[i], &ret->items[n - 1]) != 0)
            ret->items[n++] = ret->items[i];
    ret->n = n;
    return 0;
}

/* What a term asks for, as a text that equal terms share: sets by their keys. Of a key that is
 * there twice the last one counts. */
static struct vg_slice term_text(struct vg_check *c, const struct vg_json *term)
{
    const struct vg_json *list = vg_json_get_str(term, "matchLabelExpressions");
    struct vg_json all = vg_json_object(), set;
    VG_AUTO(names) seen = {0};
    int err = 0;
    for (uint32_t i = vg_json_is(list, VG_JSON_ARRAY) ? list->n : 0; i-- > 0 && err == 0;) {
        struct vg_slice key = vg_json_text(vg_json_get_str(&list->items[i], "key"));
        if (!vg_names_add(c, &seen, key, NULL))
            continue;
        err = set_of(c->arena, vg_json_get_str(&list->items[i], "values"), &set);
        if (err == 0)
            err = vg_json_object_add(c->arena, &all, key, set);
    }
    c->errors->failed |= err < 0;
    if (all.n)
        qsort(all.members, all.n, sizeof *all.members, by_key);
    return vg_json_shown(c, &all);
}

/* One error for each term before that asks for the same. */
static void check_topologies(struct vg_check *c, const struct vg_at *at)
{
    VG_AUTO(map) seen; /* how often a text was there */
    vg_map_init(&seen, VG_MAP_BORROWS_KEYS);
    VG_CHECK_EACH (c, term, at) {
        struct vg_at list = vg_at(&term, "matchLabelExpressions");
        check_term(c, &term);
        if (vg_at_n(at) == 1 || vg_field_errors_is_full(c->errors))
            return;
        struct vg_slice text = term_text(c, term.v);
        uintptr_t n = (uintptr_t)vg_map_get(&seen, text);
        for (uintptr_t i = 0; i < n && !vg_field_errors_is_full(c->errors); i++)
            vg_duplicate_value(c, &list, VG_SLICE_LIT("\"\""));
        c->errors->failed |= vg_map_put(&seen, text, (void *)(n + 1), NULL) < 0;
    }
}

static void check_class(struct vg_check *c, const struct vg_at *obj)
{
    static const char *const policies[] = {"Delete", "Retain", NULL};
    static const char *const modes[] = {"Immediate", "WaitForFirstConsumer", NULL};
    struct vg_at provisioner = vg_at(obj, "provisioner"), parameters = vg_at(obj, "parameters");
    struct vg_at policy = vg_at(obj, "reclaimPolicy"), mode = vg_at(obj, "volumeBindingMode");
    struct vg_at topologies = vg_at(obj, "allowedTopologies");
    check_provisioner(c, &provisioner);
    check_parameters(c, &parameters, true);
    if (vg_at_text(&policy).n)
        (void)vg_check_one_of(c, &policy, policies);
    (void)vg_check_one_of(c, &mode, modes);
    check_topologies(c, &topologies);
}

static void check_class_update(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    static const char *const fixed[] = {"parameters", "provisioner", "reclaimPolicy",
                                        "volumeBindingMode", NULL};
    check_class(c, obj);
    check_same(c, obj, old, fixed);
}

const struct vg_rules vg_rules_storage_class = {
    .group = "storage.k8s.io",
    .kind = "StorageClass",
    .check = check_class,
    .check_update = check_class_update,
};

/* ---- VolumeAttributesClass ---- */

static void check_attributes_class(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at driver = vg_at(obj, "driverName"), parameters = vg_at(obj, "parameters");
    check_provisioner(c, &driver);
    check_parameters(c, &parameters, false);
}

static void check_attributes_class_update(struct vg_check *c, const struct vg_at *obj,
                                          const struct vg_json *old)
{
    static const char *const fixed[] = {"driverName", "parameters"};
    for (size_t i = 0; i < VG_ARRAY_LEN(fixed); i++) {
        struct vg_at at = vg_at(obj, fixed[i]);
        if (!vg_check_same(c, at.v, vg_json_get_str(old, fixed[i])))
            vg_forbidden(c, &at, "updates to %s are forbidden.", fixed[i]);
    }
    check_attributes_class(c, obj);
}

const struct vg_rules vg_rules_volume_attributes_class = {
    .group = "storage.k8s.io",
    .kind = "VolumeAttributesClass",
    .check = check_attributes_class,
    .check_update = check_attributes_class_update,
};

/* ---- CSIStorageCapacity ---- */

static void check_capacity(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at topology = vg_at(obj, "nodeTopology"), name = vg_at(obj, "storageClassName");
    struct vg_at capacity = vg_at(obj, "capacity");
    struct vg_quantity q;
    vg_check_label_selector(c, &topology);
    (void)vg_check_dns_subdomain(c, &name);
    if (vg_at_quantity(&capacity, &q) && vg_quantity_sign(&q) < 0)
        vg_bad(c, &capacity, "must be greater than or equal to 0");
}

static void check_capacity_update(struct vg_check *c, const struct vg_at *obj,
                                  const struct vg_json *old)
{
    static const char *const fixed[] = {"nodeTopology", "storageClassName", NULL};
    check_capacity(c, obj);
    check_same(c, obj, old, fixed);
}

const struct vg_rules vg_rules_csi_storage_capacity = {
    .group = "storage.k8s.io",
    .kind = "CSIStorageCapacity",
    .check = check_capacity,
    .check_update = check_capacity_update,
};

/* ---- VolumeAttachment ---- */

/* What a volume may not have that is not stored as an object of its own. */
static void check_not_inline(struct vg_check *c, const struct vg_at *volume,
                             const char *const *members)
{
    for (const char *const *m = members; *m; m++) {
        struct vg_at at = vg_at(volume, *m);
        bool is_given = vg_at_n(&at) || vg_at_text(&at).n || vg_json_is(at.v, VG_JSON_OBJECT);
        bool is_empty_map = strcmp(*m, "capacity") == 0 && vg_at_n(&at) == 0;
        if (is_given && !is_empty_map)
            vg_forbidden(c, &at, "may not be specified in the context of inline volumes");
    }
}

static void check_inline_volume(struct vg_check *c, const struct vg_at *at)
{
    static const char *const first[] = {"claimRef", "capacity", NULL};
    static const char *const second[] = {"nodeAffinity", NULL};
    static const char *const last[] = {"storageClassName", NULL};
    struct vg_at csi = vg_at(at, "csi"), policy = vg_at(at, "persistentVolumeReclaimPolicy");
    struct vg_at driver = vg_at(&csi, "driver"), handle = vg_at(&csi, "volumeHandle");
    struct vg_at mode = vg_at(at, "volumeMode"), modes = vg_at(at, "accessModes");
    check_not_inline(c, at, first);
    if (!csi.v)
        vg_required(c, &csi, "has to be specified in the context of inline volumes");
    (void)vg_check_given(c, &modes);
    vg_check_access_modes(c, &modes);
    if (vg_at_text(&policy).n && !vg_at_is(&policy, "Retain"))
        vg_forbidden(c, &policy, "may only be Retain in the context of inline volumes");
    check_not_inline(c, at, second);
    if (csi.v) {
        vg_check_csi_driver_name(c, &driver);
        (void)vg_check_given(c, &handle);
    } else {
        vg_required(c, at, "must specify a volume type");
    }
    check_not_inline(c, at, last);
    if (mode.v && !vg_at_is(&mode, "Filesystem"))
        vg_forbidden(c, &mode,
                     "may not specify volumeMode other than Filesystem in the context of inline "
                     "volumes");
}

static void check_source(struct vg_check *c, const struct vg_at *at)
{
    static const char one[] =
        "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    struct vg_at name = vg_at(at, "persistentVolumeName"), spec = vg_at(at, "inlineVolumeSpec");
    if (!name.v && !spec.v)
        vg_required(c, at, "%s", one);
    else if (name.v && spec.v)
        vg_forbidden(c, at, "%s", one);
    else if (name.v && vg_at_text(&name).n == 0)
        vg_required(c, &name, "must specify non empty persistentVolumeName");
    else if (spec.v)
        check_inline_volume(c, &spec);
}

static void check_volume_error(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at message = vg_at(at, "message"), code = vg_at(at, "errorCode");
    if (vg_at_text(&message).n > ERROR_MESSAGE_MAX)
        vg_too_long(c, &message, PARAMETERS_SIZE_MAX); /* as the original has it */
    if (code.v)
        (void)vg_check_range(c, &code, 0, INT32_MAX);
}

static void check_attachment(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), status = vg_at(obj, "status");
    struct vg_at attacher = vg_at(&spec, "attacher"), source = vg_at(&spec, "source");
    struct vg_at node = vg_at(&spec, "nodeName"), name = vg_at(&source, "persistentVolumeName");
    struct vg_at metadata = vg_at(&status, "attachmentMetadata");
    struct vg_at attach = vg_at(&status, "attachError"), detach = vg_at(&status, "detachError");
    size_t size = 0;
    vg_check_csi_driver_name(c, &attacher);
    check_source(c, &source);
    (void)vg_check_dns_subdomain(c, &node);
    if (metadata.v)
        VG_JSON_FOREACH_MEMBER (m, metadata.v)
            size += m->key_n + vg_json_text(&m->value).n;
    if (size > PARAMETERS_SIZE_MAX)
        vg_too_long(c, &metadata, PARAMETERS_SIZE_MAX);
    check_volume_error(c, &attach);
    check_volume_error(c, &detach);
    if (name.v)
        (void)vg_check_dns_subdomain(c, &name);
}

static void check_attachment_update(struct vg_check *c, const struct vg_at *obj,
                                    const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec");
    check_attachment(c, obj);
    (void)vg_check_immutable_go(c, &spec, vg_json_get_str(old, "spec"), "storage.k8s.io",
                                "VolumeAttachmentSpec");
}

const struct vg_rules vg_rules_volume_attachment = {
    .group = "storage.k8s.io",
    .kind = "VolumeAttachment",
    .check = check_attachment,
    .check_update = check_attachment_update,
    .check_status = check_attachment_update,
};
