/* resource.c - what claims, classes and slices of resource.k8s.io share; see resource.h. */
#include "resource.h"

#include "names.h"
#include "storage.h"

/* Of a domain (drivers) and of the identifier after it. */
#define IDENTIFIER_MAX 32u
#define PARAMETERS_MAX 10240u
#define BINDING_CONDITIONS_MAX 4u

const char *const vg_taint_effects[] = {"NoExecute", "NoSchedule", "None", NULL};

bool vg_check_items(struct vg_check *c, const struct vg_at *at, size_t max, vg_item_check_fn *check,
                    const void *arg)
{
    if (vg_at_n(at) > max) {
        vg_too_many(c, at, vg_at_n(at), max);
        return false;
    }
    VG_CHECK_EACH (c, it, at)
        check(c, &it, arg);
    return true;
}

void vg_check_unique(struct vg_check *c, const struct vg_at *at, const char *key)
{
    VG_AUTO(names) seen = {0};
    VG_CHECK_EACH (c, it, at) {
        struct vg_slice text = vg_json_text(key ? vg_json_get_str(it.v, key) : it.v);
        if (!vg_names_add(c, &seen, text, NULL))
            vg_duplicate_value(c, &it, vg_json_quoted(c, text));
    }
}

/* ---- names ---- */

void vg_check_pool_name(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice name = vg_at_text(at);
    if (!vg_check_given(c, at))
        return;
    if (name.n > VG_DNS_SUBDOMAIN_MAX)
        vg_too_long(c, at, VG_DNS_SUBDOMAIN_MAX);
    for (size_t from = 0, i = 0; i <= name.n; i++) {
        if (i < name.n && name.p[i] != '/')
            continue;
        struct vg_name_reasons why = {0};
        struct vg_slice part = vg_slice(name.p + from, i - from);
        if (!vg_validate_dns1123_subdomain(part, VG_NAME_CHARACTERS, &why))
            for (uint32_t k = 0; k < why.n; k++)
                vg_bad_value(c, at, vg_json_quoted(c, part), "%s", why.v[k]);
        from = i + 1;
    }
}

static bool is_identifier(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        bool is_letter = ch == '_' || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
        if (!is_letter && (i == 0 || ch < '0' || ch > '9'))
            return false;
    }
    return s.n > 0;
}

static void check_identifier(struct vg_check *c, const struct vg_at *at, struct vg_slice id)
{
    if (id.n > IDENTIFIER_MAX)
        vg_too_long(c, at, IDENTIFIER_MAX);
    if (!is_identifier(id))
        vg_bad_value(c, at, vg_json_quoted(c, id),
                     "a valid C identifier must start with alphabetic character or '_', followed "
                     "by a string of alphanumeric characters or '_' (e.g. 'my_name',  or "
                     "'MY_NAME',  or 'MyName', regex used for validation is "
                     "'[A-Za-z_][A-Za-z0-9_]*')");
}

void vg_check_device_name(struct vg_check *c, const struct vg_at *at, struct vg_slice name)
{
    const char *slash = name.n ? memchr(name.p, '/', name.n) : NULL;
    if (!slash) {
        check_identifier(c, at, name);
        return;
    }
    struct vg_slice domain = vg_slice(name.p, (size_t)(slash - name.p));
    struct vg_slice id = vg_slice(slash + 1, name.n - domain.n - 1);
    if (id.n && memchr(id.p, '/', id.n))
        return; /* the original does not look at more than two parts */
    struct vg_json text = vg_json_string_ref(domain);
    struct vg_at blamed = *at;
    blamed.v = &text;
    if (domain.n == 0)
        vg_bad_value(c, at, VG_SLICE_LIT("\"\""), "the domain must not be empty");
    else
        vg_check_csi_driver_name(c, &blamed);
    if (id.n == 0)
        vg_bad_value(c, at, VG_SLICE_LIT("\"\""), "the name must not be empty");
    else
        check_identifier(c, at, id);
}

/* ---- configuration ---- */

void vg_check_device_config(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at opaque = vg_at(at, "opaque"), driver = vg_at(&opaque, "driver");
    struct vg_at parameters = vg_at(&opaque, "parameters");
    if (!opaque.v) {
        vg_required(c, &opaque, NULL);
        return;
    }
    vg_check_csi_driver_name(c, &driver);
    if (!vg_at_is_set(&parameters))
        vg_required(c, &parameters, NULL);
    else if (vg_json_shown(c, parameters.v).n > PARAMETERS_MAX)
        vg_too_long(c, &parameters, PARAMETERS_MAX);
    else if (parameters.v->type != VG_JSON_OBJECT)
        vg_bad_value(c, &parameters, VG_SLICE_LIT("\"<value omitted>\""),
                     "must be a valid JSON object");
}

static void check_label_name(struct vg_check *c, const struct vg_at *at, const void *arg)
{
    (void)arg;
    (void)vg_check_qualified(c, at);
}

void vg_check_binding_conditions(struct vg_check *c, const struct vg_at *device)
{
    VG_AUTO(names) seen = {0};
    VG_AUTO(names) failed = {0};
    struct vg_at wait = vg_at(device, "bindingConditions");
    struct vg_at fail = vg_at(device, "bindingFailureConditions");
    (void)vg_check_items(c, &wait, BINDING_CONDITIONS_MAX, check_label_name, NULL);
    (void)vg_check_items(c, &fail, BINDING_CONDITIONS_MAX, check_label_name, NULL);
    VG_CHECK_EACH (c, it, &wait)
        if (!vg_names_add(c, &seen, vg_at_text(&it), NULL))
            vg_duplicate(c, &it);
    VG_CHECK_EACH (c, it, &fail) {
        if (!vg_names_add(c, &failed, vg_at_text(&it), NULL))
            vg_duplicate(c, &it);
        if (vg_names_has(&seen, vg_at_text(&it)))
            vg_bad(c, &it, "bindingFailureConditions must not overlap with bindingConditions");
    }
    if (vg_at_n(&wait) == 0 && vg_at_n(&fail))
        vg_bad(c, &wait, "bindingConditions are required to use bindingFailureConditions");
    if (vg_at_n(&fail) == 0 && vg_at_n(&wait))
        vg_bad(c, &fail, "bindingFailureConditions are required to use bindingConditions");
}
