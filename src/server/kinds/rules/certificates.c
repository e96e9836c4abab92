/* certificates.c - rules of certificate signing requests.
 * Left out: the request and the certificate are looked at as PEM only, not as ASN.1, and the
 * request's signature is not checked. */
#include <errno.h>

#include "base/base64.h"
#include "defaults.h"
#include "names.h"
#include "rules.h"
#include "json/equal.h"

/* What the server knows better, or what does not change. */
static int prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    static const char *const of_user[] = {"username", "uid", "groups", "extra"};
    struct vg_json *spec = vg_json_get_str(obj, "spec");
    if (!old) {
        for (size_t i = 0; spec && i < VG_ARRAY_LEN(of_user); i++)
            (void)vg_json_object_remove(spec, vg_slice_str(of_user[i]));
        return 0;
    }
    const struct vg_json *was = vg_json_get_str(old, "spec");
    return was ? vg_json_object_set(a, obj, VG_SLICE_LIT("spec"), *was) : 0;
}

static struct vg_slice text_of(const struct vg_json *condition, const char *name)
{
    return vg_json_text(vg_json_get_str(condition, name));
}

/* When a condition came to be what it is: as it is stored, else now. */
static int date(struct vg_arena *a, struct vg_json *condition, const struct vg_json *were)
{
    int err = 0;
    if (text_of(condition, "lastUpdateTime").n == 0)
        err = vg_default_now(a, condition, "lastUpdateTime");
    if (err < 0 || text_of(condition, "lastTransitionTime").n)
        return err;
    if (were)
        VG_JSON_FOREACH_ITEM (it, were) {
            const struct vg_json *since = vg_json_get_str(it, "lastTransitionTime");
            if (vg_json_text(since).n &&
                vg_slice_eq(text_of(it, "type"), text_of(condition, "type")) &&
                vg_slice_eq(text_of(it, "status"), text_of(condition, "status")))
                return vg_json_object_set(a, condition, VG_SLICE_LIT("lastTransitionTime"), *since);
        }
    return vg_default_now(a, condition, "lastTransitionTime");
}

static int date_all(struct vg_arena *a, struct vg_json *conditions, const struct vg_json *were)
{
    int err = 0;
    if (conditions)
        VG_JSON_FOREACH_ITEM (it, conditions)
            if (err == 0)
                err = date(a, it, were);
    return err;
}

static size_t count_of(const struct vg_json *conditions, const char *type)
{
    size_t n = 0;
    if (conditions)
        VG_JSON_FOREACH_ITEM (it, conditions)
            n += vg_slice_eq(text_of(it, "type"), vg_slice_str(type));
    return n;
}

/* What was decided is not the status's writer's to say: it stays, unless there is more or less of
 * it, which is refused. */
static int keep_decided(struct vg_arena *a, struct vg_json *conditions, const struct vg_json *were,
                        const char *type)
{
    uint32_t i = 0;
    int err = 0;
    if (!conditions || !were || count_of(conditions, type) != count_of(were, type))
        return 0;
    VG_JSON_FOREACH_ITEM (it, conditions) {
        if (!vg_slice_eq(text_of(it, "type"), vg_slice_str(type)))
            continue;
        while (!vg_slice_eq(text_of(&were->items[i], "type"), vg_slice_str(type)))
            i++;
        if (err == 0)
            err = vg_json_clone(a, &were->items[i++], it);
    }
    return err;
}

static int prepare_status(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *conditions = vg_json_get_str(vg_json_get_str(obj, "status"), "conditions");
    const struct vg_json *were = vg_json_at_path(old, "status.conditions");
    int err = keep_decided(a, conditions, were, "Approved");
    if (err == 0)
        err = keep_decided(a, conditions, were, "Denied");
    return err < 0 ? err : date_all(a, conditions, were);
}

/* Of what was sent, the conditions alone. */
static int prepare_approval(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    const struct vg_json *spec = vg_json_get_str(old, "spec");
    const struct vg_json *was = vg_json_get_str(old, "status");
    struct vg_json *conditions = vg_json_get_str(vg_json_get_str(obj, "status"), "conditions");
    struct vg_json status = vg_json_object();
    int err = date_all(a, conditions, vg_json_get_str(was, "conditions"));
    if (err == 0 && was)
        err = vg_json_clone(a, was, &status);
    if (err == 0 && conditions)
        err = vg_json_object_set(a, &status, VG_SLICE_LIT("conditions"), *conditions);
    else if (err == 0)
        (void)vg_json_object_remove(&status, VG_SLICE_LIT("conditions"));
    if (err == 0)
        err = vg_json_object_set(a, obj, VG_SLICE_LIT("status"), status);
    return err < 0 || !spec ? err : vg_json_object_set(a, obj, VG_SLICE_LIT("spec"), *spec);
}

/* ---- the request ---- */

/* The first block of a PEM text is of that type. */
static bool is_pem_of(struct vg_slice text, const char *type)
{
    static const char begin[] = "-----BEGIN ";
    const char *at = text.n ? memmem(text.p, text.n, begin, sizeof begin - 1) : NULL;
    if (!at)
        return false;
    struct vg_slice rest =
        vg_slice(at + sizeof begin - 1, (size_t)(text.p + text.n - at) - (sizeof begin - 1));
    size_t n = strlen(type);
    return rest.n >= n + 5 && memcmp(rest.p, type, n) == 0 && memcmp(rest.p + n, "-----", 5) == 0 &&
           memmem(rest.p, rest.n, "-----END ", 9);
}

static bool has_pem(struct vg_check *c, const struct vg_at *at, const char *type)
{
    struct vg_slice text = vg_at_text(at);
    size_t n = 0;
    char *raw = text.n ? vg_arena_alloc(c->arena, text.n / 4 * 3 + 1, 1) : NULL;
    c->errors->failed |= text.n && !raw;
    return raw && vg_base64_decode(text, raw, &n) && is_pem_of(vg_slice(raw, n), type);
}

static void check_usages(struct vg_check *c, const struct vg_at *at)
{
    static const char *const known[] = {"any",
                                        "cert sign",
                                        "client auth",
                                        "code signing",
                                        "content commitment",
                                        "crl sign",
                                        "data encipherment",
                                        "decipher only",
                                        "digital signature",
                                        "email protection",
                                        "encipher only",
                                        "ipsec end system",
                                        "ipsec tunnel",
                                        "ipsec user",
                                        "key agreement",
                                        "key encipherment",
                                        "microsoft sgc",
                                        "netscape sgc",
                                        "ocsp signing",
                                        "s/mime",
                                        "server auth",
                                        "signing",
                                        "timestamping",
                                        NULL};
    VG_AUTO(names) seen = {0};
    (void)vg_check_given(c, at);
    VG_CHECK_EACH (c, usage, at)
        (void)vg_check_one_of(c, &usage, known);
    VG_CHECK_EACH (c, usage, at)
        if (!vg_names_add(c, &seen, vg_at_text(&usage), NULL))
            vg_duplicate(c, &usage);
}

/* ---- the signer ---- */

typedef bool label_fn(struct vg_slice s, enum vg_name_unit unit, struct vg_name_reasons *ret_why);

/* Its parts between dots, until one is wrong; how many there are. */
static size_t check_parts(struct vg_check *c, const struct vg_at *at, struct vg_slice text,
                          label_fn *is_label)
{
    size_t n = 1, from = 0;
    bool is_bad = false;
    for (size_t i = 0; i <= text.n; i++) {
        if (i < text.n && text.p[i] != '.')
            continue;
        struct vg_slice part = vg_slice(text.p + from, i - from);
        struct vg_name_reasons why = {0};
        if (!is_bad && !is_label(part, VG_NAME_CHARACTERS, &why)) {
            struct vg_slice quoted = vg_json_quoted(c, part);
            for (uint32_t k = 0; k < why.n; k++)
                vg_bad_value(c, at, vg_json_quoted(c, text), "validating label %.*s: %s",
                             VG_SLICE_ARG(quoted), why.v[k]);
            is_bad = true;
        }
        from = i + 1;
        n += i < text.n;
    }
    return n;
}

static void check_signer(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice name = vg_at_text(at);
    if (!vg_check_given(c, at))
        return;
    if (vg_slice_eq(name, VG_SLICE_LIT("kubernetes.io/legacy-unknown"))) {
        vg_bad(c, at, "the legacy signerName is not allowed via this API version");
        return;
    }
    const char *slash = memchr(name.p, '/', name.n);
    size_t left = slash ? (size_t)(slash - name.p) : 0;
    if (!slash || memchr(slash + 1, '/', name.n - left - 1)) {
        vg_bad(c, at,
               "must be a fully qualified domain and path of the form 'example.com/signer-name'");
        return;
    }
    struct vg_slice domain = vg_slice(name.p, left);
    if (domain.n > VG_DNS_SUBDOMAIN_MAX)
        vg_too_long(c, at, VG_DNS_SUBDOMAIN_MAX);
    if (check_parts(c, at, domain, vg_validate_dns1123_label) < 2)
        vg_bad_value(c, at, vg_json_quoted(c, domain),
                     "should be a domain with at least two segments separated by dots");
    (void)check_parts(c, at, vg_slice(slash + 1, name.n - left - 1), vg_validate_dns1123_subdomain);
    if (name.n > 2 * VG_DNS_SUBDOMAIN_MAX + VG_DNS_LABEL_MAX + 2)
        vg_too_long(c, at, 2 * VG_DNS_SUBDOMAIN_MAX + VG_DNS_LABEL_MAX + 2);
}

/* ---- conditions ---- */

static void check_condition(struct vg_check *c, const struct vg_at *at)
{
    static const char *const only_true[] = {"True", NULL};
    static const char *const any[] = {"False", "True", "Unknown", NULL};
    struct vg_at type = vg_at(at, "type"), status = vg_at(at, "status");
    bool is_final =
        vg_at_is(&type, "Approved") || vg_at_is(&type, "Denied") || vg_at_is(&type, "Failed");
    (void)vg_check_given(c, &type);
    if (vg_check_given(c, &status))
        (void)vg_check_one_of(c, &status, is_final ? only_true : any);
}

static void check_conditions(struct vg_check *c, const struct vg_at *list)
{
    VG_AUTO(names) seen = {0};
    bool has_approved = false, has_denied = false;
    VG_CHECK_EACH (c, condition, list) {
        struct vg_at type = vg_at(&condition, "type");
        check_condition(c, &condition);
        bool is_approved = vg_at_is(&type, "Approved"), is_denied = vg_at_is(&type, "Denied");
        has_approved = has_approved || is_approved;
        has_denied = has_denied || is_denied;
        if ((is_approved && has_denied) || (is_denied && has_approved))
            vg_bad_value(c, list, vg_json_quoted(c, vg_at_text(&type)),
                         "Approved and Denied conditions are mutually exclusive");
        if (!vg_names_add(c, &seen, vg_at_text(&type), NULL))
            vg_duplicate_value(c, &type, vg_json_quoted(c, vg_at_text(&type)));
    }
}

static void check_request(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), status = vg_at(obj, "status");
    struct vg_at request = vg_at(&spec, "request"), usages = vg_at(&spec, "usages");
    struct vg_at signer = vg_at(&spec, "signerName"), seconds = vg_at(&spec, "expirationSeconds");
    struct vg_at conditions = vg_at(&status, "conditions");
    struct vg_at certificate = vg_at(&status, "certificate");
    if (!has_pem(c, &request, "CERTIFICATE REQUEST"))
        vg_bad(c, &request, "PEM block type must be CERTIFICATE REQUEST");
    check_usages(c, &usages);
    check_signer(c, &signer);
    if (seconds.v && vg_at_int(&seconds) < 600)
        vg_bad(c, &seconds, "may not specify a duration less than 600 seconds (10 minutes)");
    check_conditions(c, &conditions);
    if (vg_at_text(&certificate).n && !has_pem(c, &certificate, "CERTIFICATE"))
        vg_bad_value(c, &certificate, VG_SLICE_LIT("\"<certificate data>\""),
                     "must contain at least one CERTIFICATE PEM block");
}

/* What was decided stays decided. An approval decides; the certificate is set once, by a write of
 * the status. */
static void check_change(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old,
                         bool may_certify, bool may_decide)
{
    static const char *const final[] = {"Approved", "Denied", "Failed"};
    struct vg_at status = vg_at(obj, "status"), conditions = vg_at(&status, "conditions");
    struct vg_at certificate = vg_at(&status, "certificate");
    const struct vg_json *were = vg_json_at_path(old, "status.conditions");
    struct vg_slice was = vg_json_text(vg_json_at_path(old, "status.certificate"));
    check_request(c, obj);
    for (size_t i = 0; i < VG_ARRAY_LEN(final); i++)
        if (count_of(conditions.v, final[i]) < count_of(were, final[i]))
            vg_forbidden(c, &conditions, "updates may not remove a condition of type \"%s\"",
                         final[i]);
    for (size_t i = 0; i < 2 && !may_decide; i++)
        if (count_of(conditions.v, final[i]) > count_of(were, final[i]))
            vg_forbidden(c, &conditions, "updates may not add a condition of type \"%s\"",
                         final[i]);
    if (vg_slice_eq(vg_at_text(&certificate), was))
        return;
    if (!may_certify)
        vg_forbidden(c, &certificate, "updates may not set certificate content");
    else if (was.n)
        vg_forbidden(c, &certificate, "updates may not modify existing certificate content");
}

static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    check_change(c, obj, old, false, false);
}

static void check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    check_change(c, obj, old, true, false);
}

static void check_approval(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    check_change(c, obj, old, false, true);
}

static const struct vg_rules_part parts[] = {
    {.sub = "approval", .prepare = prepare_approval, .check = check_approval},
    {.sub = NULL},
};

static int sign_extra(struct vg_arena *a, struct vg_json *spec, const struct vg_rules_user *user)
{
    struct vg_json all = vg_json_object();
    int err = 0;
    (void)vg_json_object_remove(spec, VG_SLICE_LIT("extra"));
    for (size_t i = 0; i < user->n_extra && err == 0; i++) {
        struct vg_json values = vg_json_array();
        err = vg_json_array_push(a, &values, vg_json_string_ref(user->extra[i].value));
        if (err == 0)
            err = vg_json_object_add(a, &all, user->extra[i].key, values);
    }
    return err < 0 || all.n == 0 ? err : vg_json_object_set(a, spec, VG_SLICE_LIT("extra"), all);
}

/* The requester is who asks, whoever the body says. */
static int sign(struct vg_arena *a, struct vg_json *obj, const struct vg_rules_user *user)
{
    struct vg_json *spec = vg_json_get_str(obj, "spec"), groups = vg_json_array();
    int err = 0;
    for (size_t i = 0; i < user->n_groups && err == 0; i++)
        err = vg_json_array_push(a, &groups, vg_json_string_ref(user->groups[i]));
    if (err == 0 && spec)
        err = vg_json_object_set(a, spec, VG_SLICE_LIT("groups"), groups);
    if (err == 0 && spec)
        err = vg_json_object_set(a, spec, VG_SLICE_LIT("username"), vg_json_string_ref(user->name));
    if (err == 0 && spec)
        err = vg_json_object_set(a, spec, VG_SLICE_LIT("uid"), vg_json_string_ref(user->uid));
    if (err == 0 && spec)
        err = sign_extra(a, spec, user);
    return err;
}

const struct vg_rules vg_rules_certificate_signing_request = {
    .group = "certificates.k8s.io",
    .kind = "CertificateSigningRequest",
    .prepare = prepare,
    .prepare_status = prepare_status,
    .parts = parts,
    .sign = sign,
    .check = check_request,
    .check_update = check_update,
    .check_status = check_status,
};
