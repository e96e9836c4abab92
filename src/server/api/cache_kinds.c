/* cache_kinds.c - what the cacher must know of the kinds: keys, fields, bookmarks, other forms. */
#include <errno.h>

#include "base/alloc.h"
#include "respond_int.h"
#include "versions.h"

/* Of a kind that is stored as another there is nothing: its keys are those of no object. */
static int prefix_of(const struct vg_kind *k, const char **ret)
{
    VG_AUTO(buf) text = {0};
    *ret = k->prefix;
    if (!k->stored)
        return 0;
    int r = vg_buf_printf(&text, "/registry/-/%s/%s/", k->api_version, k->resource);
    if (r == 0)
        r = vg_buf_append_byte(&text, '\0');
    if (r == 0)
        *ret = vg_steal(text.p);
    return r;
}

/* What the plugins of admission go by (admission.h) is always there. */
static bool is_needed(const struct vg_kind *k)
{
    static const char *const names[] = {
        "priorityclasses.scheduling.k8s.io",
        "limitranges",
        "resourcequotas",
        "storageclasses.storage.k8s.io",
        "ingressclasses.networking.k8s.io",
        "runtimeclasses.node.k8s.io",
        "serviceaccounts",
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        if (strcmp(vg_kind_qualified(k), names[i]) == 0)
            return true;
    return false;
}

static int init_kind(const struct vg_kind *k, bool is_uncached, struct vg_cache_kind *ret)
{
    VG_AUTO(buf) head = {0};
    VG_AUTO(buf) tail = {0};
    int r = vg_buf_printf(
        &head, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"",
        k->kind, vg_kind_api_version(k));
    const char *prefix = NULL;
    if (r == 0)
        r = prefix_of(k, &prefix);
    if (r == 0)
        r = vg_buf_printf(&tail, "%s}", k->bookmark_tail ? k->bookmark_tail : "");
    if (r == 0)
        r = vg_buf_append_byte(&head, '\0');
    if (r == 0)
        r = vg_buf_append_byte(&tail, '\0');
    if (r < 0)
        return r;
    *ret = (struct vg_cache_kind){
        .name = vg_kind_qualified(k),
        .prefix = prefix,
        .fields = k->fields,
        .is_namespaced = vg_kind_is(k, VG_KIND_NAMESPACED),
        .is_uncached = (is_uncached && !is_needed(k)) || k->stored ||
                       vg_kind_is(k, VG_KIND_UNCACHED) || vg_kind_is(k, VG_KIND_NOT_STORED),
        .bookmark_head = vg_steal(head.p),
        .bookmark_tail = vg_steal(tail.p),
    };
    return 0;
}

/* Made once for the process, as the kinds are; so is what a second call with other sizes would
 * want. */
int vg_api_cache_kinds(const bool *uncached, const struct vg_cache_kind **ret_kinds, size_t *ret_n)
{
    static struct vg_cache_kind *made;
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    if (!made) {
        struct vg_cache_kind *v = vg_calloc(n, sizeof *v);
        if (!v)
            return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
            int r = init_kind(&kinds[i], uncached && uncached[i], &v[i]);
            if (r < 0)
                return r;
        }
        made = v;
    }
    *ret_kinds = made;
    *ret_n = n;
    return 0;
}

static int make_form(uint32_t form, const struct vg_rec *rec, vg_rev rev, struct vg_buf *out)
{
    struct vg_obj_header h;
    struct vg_obj_splice s;
    if (form >= VG_FORM_PROTOBUF)
        return vg_protobuf_of_value(vg_rec_value(rec), rev,
                                    (enum vg_protobuf_as)(form - VG_FORM_PROTOBUF), out);
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    if (form == 0)
        vg_obj_splice_object(&s, &h, rev);
    else
        vg_partial_splice(&s, &h, rev, form == VG_FORM_PARTIAL_V1BETA1);
    return vg_obj_splice_append(out, &s);
}

int vg_api_make_form(void *arg, uint32_t form, const struct vg_rec *rec, vg_rev rev,
                     struct vg_buf *out)
{
    (void)arg;
    if (form == 0 || form >= VG_FORMS_ALL)
        return VIGIL_E_INVALID;
    if (form < VG_FORM_OTHER_VERSION)
        return make_form(form, rec, rev, out);
    const struct vg_kind *other = vg_version_other(vg_rec_value(rec));
    struct vg_rec *own;
    int err = other ? vg_version_rec(other, rec, &own) : VIGIL_E_INVALID;
    if (err < 0)
        return err;
    err = make_form(form - VG_FORM_OTHER_VERSION, own, rev, out);
    vg_rec_unref(own);
    return err;
}

struct vg_slice vg_api_kept_form(void *arg, uint32_t form, const struct vg_rec *rec, bool again)
{
    (void)arg;
    if (form != VG_FORM_PROTOBUF)
        return VG_SLICE_LIT("");
    const struct vg_protobuf_kept *k = again ? vg_protobuf_keep(rec) : vg_protobuf_kept(rec);
    return k ? vg_protobuf_kept_body(k) : VG_SLICE_LIT("");
}

int vg_api_frame_form(void *arg, uint32_t form, enum vg_obj_change change, struct vg_slice body,
                      struct vg_obj_splice *ret)
{
    (void)arg;
    if (form % VG_FORMS >= VG_FORM_PROTOBUF)
        return vg_protobuf_frame(ret, vg_obj_change_name(change), body);
    vg_obj_splice_frame_of(ret, change, body);
    return 0;
}
