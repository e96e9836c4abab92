/* apiregistration.c - rules of API services. */
#include <inttypes.h>

#include "base/buf.h"
#include "object/quote.h"
#include "rules.h"

/* Its name says what it serves. */
static const char *refuse_name(struct vg_field_errors *e, const struct vg_json *obj,
                               struct vg_slice name)
{
    struct vg_slice group = vg_json_text(vg_json_at_path(obj, "spec.group"));
    struct vg_slice version = vg_json_text(vg_json_at_path(obj, "spec.version"));
    VG_AUTO(buf) want = {0};
    VG_AUTO(buf) text = {0};
    if (!vg_validate_path_segment(name, NULL))
        return NULL; /* that is told */
    int err = vg_buf_printf(&want, "%.*s.%.*s", VG_SLICE_ARG(version), VG_SLICE_ARG(group));
    if (err == 0 && vg_slice_eq(name, vg_buf_slice(&want)))
        return NULL;
    if (err == 0)
        err = vg_buf_printf(&text, "must be `spec.version+\".\"+spec.group`: ");
    if (err == 0)
        err = vg_quote_append(&text, vg_buf_slice(&want));
    if (err == 0)
        err = vg_buf_append_byte(&text, '\0');
    const char *kept = err == 0 ? vg_arena_copy(e->arena, text.p, text.n) : NULL;
    e->failed |= !kept;
    return kept;
}

static void check_priority(struct vg_check *c, const struct vg_at *spec, const char *member,
                           int64_t max)
{
    struct vg_at at = vg_at(spec, member);
    if (vg_at_int(&at) <= 0 || vg_at_int(&at) > max)
        vg_bad_int(c, &at, "must be positive and less than %" PRId64, max);
}

/* Bytes of what base64 stands for. */
static size_t decoded_size(struct vg_slice text)
{
    size_t pad = 0;
    while (pad < 2 && pad < text.n && text.p[text.n - 1 - pad] == '=')
        pad++;
    return text.n / 4 * 3 - pad;
}

/* Served here, so nobody is called. */
static void check_local(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at bundle = vg_at(spec, "caBundle"), skip = vg_at(spec, "insecureSkipTLSVerify");
    VG_AUTO(buf) size = {0};
    if (vg_at_text(&bundle).n) {
        if (vg_buf_printf(&size, "\"%zu bytes\"", decoded_size(vg_at_text(&bundle))) < 0)
            c->errors->failed = true;
        vg_bad_value(c, &bundle, vg_buf_slice(&size), "local APIServices may not have a caBundle");
    }
    if (vg_at_is_true(&skip))
        vg_bad(c, &skip, "local APIServices may not have insecureSkipTLSVerify");
}

static void check_service(struct vg_check *c, const struct vg_at *spec)
{
    struct vg_at service = vg_at(spec, "service"), ns = vg_at(&service, "namespace");
    struct vg_at name = vg_at(&service, "name"), port = vg_at(&service, "port");
    struct vg_at bundle = vg_at(spec, "caBundle"), skip = vg_at(spec, "insecureSkipTLSVerify");
    if (!service.v) {
        check_local(c, spec);
        return;
    }
    (void)vg_check_given(c, &ns);
    (void)vg_check_given(c, &name);
    if (vg_at_int(&port) < 1 || vg_at_int(&port) > 65535)
        vg_bad_int(c, &port, "port is not valid: must be between 1 and 65535, inclusive");
    if (vg_at_is_true(&skip) && vg_at_text(&bundle).n)
        vg_bad(c, &skip, "may not be true if caBundle is present");
}

/* A local one is available from the start, since its own creation. */
static int prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    static const char *const texts[][2] = {{"type", "Available"},
                                           {"status", "True"},
                                           {"lastTransitionTime", NULL},
                                           {"reason", "Local"},
                                           {"message", "Local APIServices are always available"}};
    struct vg_slice now = vg_json_text(vg_json_at_path(obj, "metadata.creationTimestamp"));
    struct vg_json status = vg_json_object(), list = vg_json_array(), local = vg_json_object();
    int err = 0;
    if (old || vg_json_at_path(obj, "spec.service"))
        return 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(texts) && err == 0; i++)
        err = vg_json_object_add(a, &local, vg_slice_str(texts[i][0]),
                                 vg_json_string_ref(texts[i][1] ? vg_slice_str(texts[i][1]) : now));
    if (err == 0)
        err = vg_json_array_push(a, &list, local);
    if (err == 0)
        err = vg_json_object_add(a, &status, VG_SLICE_LIT("conditions"), list);
    return err < 0 ? err : vg_json_object_set(a, obj, VG_SLICE_LIT("status"), status);
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), group = vg_at(&spec, "group");
    struct vg_at version = vg_at(&spec, "version");
    struct vg_name_reasons why = {0};
    if (vg_at_text(&group).n)
        (void)vg_check_dns_subdomain(c, &group);
    else if (!vg_at_is(&version, "v1"))
        vg_required(c, &group, "only v1 may have an empty group and it better be legacy kube");
    if (!vg_validate_dns1035_label(vg_at_text(&version), &why))
        (void)vg_check_reasons(c, &version, &why);
    check_priority(c, &spec, "groupPriorityMinimum", 20000);
    check_priority(c, &spec, "versionPriority", 1000);
    check_service(c, &spec);
}

static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at meta = vg_at(obj, "metadata"), name = vg_at(&meta, "name");
    const char *why = refuse_name(c->errors, obj->v, vg_at_text(&name));
    (void)old;
    if (why)
        vg_bad(c, &name, "%s", why);
    check(c, obj);
}

static void check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    static const char *const values[] = {"True", "False", "Unknown", NULL};
    struct vg_at status = vg_at(obj, "status"), list = vg_at(&status, "conditions");
    (void)old;
    VG_CHECK_EACH (c, condition, &list) {
        struct vg_at value = vg_at(&condition, "status");
        (void)vg_check_one_of(c, &value, values);
    }
}

const struct vg_rules vg_rules_api_service = {
    .group = "apiregistration.k8s.io",
    .kind = "APIService",
    .refuse_name = refuse_name,
    .takes_plain_finalizers = true,
    .prepare = prepare,
    .check = check,
    .check_update = check_update,
    .check_status = check_status,
};
