/* crd.c - rules of custom resource definitions, without their schemas (crd_schema.c).
 * The original knows a schema, subresources, columns and selectable fields that all versions share
 * as one, and blames them there: spec.validation, spec.subresources and so on.
 * Left out: bundles of certificates, warnings. */
#include "crd.h"

#include "admission.h"
#include "base/buf.h"
#include "go_struct.h"
#include "names.h"
#include "rules.h"
#include "server/kinds/types.h"

#define GROUP "apiextensions.k8s.io"

/* What versions may have in common, and how it is called then. */
enum shared { SCHEMA, SUBRESOURCES, COLUMNS, SELECTABLE, N_SHARED };
static const char *const members[N_SHARED] = {"schema", "subresources", "additionalPrinterColumns",
                                              "selectableFields"};
static const char *const tops[N_SHARED] = {"validation", "subresources", "additionalPrinterColumns",
                                           "selectableFields"};

static bool is_shared(struct vg_check *c, const struct vg_at *versions, enum shared what)
{
    const struct vg_json *first = vg_json_get_str(vg_json_at(versions->v, 0), members[what]);
    VG_CHECK_EACH (c, version, versions) {
        if (!vg_check_same(c, vg_json_get_str(version.v, members[what]), first))
            return false;
    }
    return vg_at_n(versions) > 0;
}

/* ---- stored versions ---- */

static int prepare(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    const struct vg_json *versions = vg_json_get_str(vg_json_get_str(obj, "spec"), "versions");
    struct vg_json *status = vg_json_get_str(obj, "status"), list = vg_json_array();
    const struct vg_json *was = vg_json_get_str(status, "storedVersions");
    int err = 0;
    if (!versions || !vg_json_is(status, VG_JSON_OBJECT))
        return 0;
    VG_JSON_FOREACH_ITEM (it, versions) {
        const struct vg_json *name = vg_json_get_str(it, "name");
        bool is_there = false;
        if (!vg_json_is_true(vg_json_get_str(it, "storage")) || !name)
            continue;
        for (uint32_t i = 0; old && vg_json_is(was, VG_JSON_ARRAY) && i < was->n && err == 0; i++) {
            is_there = is_there || vg_slice_eq(vg_json_text(&was->items[i]), vg_json_text(name));
            err = vg_json_array_push(a, &list, was->items[i]);
        }
        if (err == 0 && !is_there)
            err = vg_json_array_push(a, &list, *name);
        return err < 0 ? err : vg_json_object_set(a, status, VG_SLICE_LIT("storedVersions"), list);
    }
    return 0;
}

static void check_stored(struct vg_check *c, const struct vg_at *obj, const struct vg_at *versions)
{
    VG_AUTO(names) known = {0};
    VG_AUTO(names) kept = {0};
    struct vg_at status = vg_at(obj, "status"), stored = vg_at(&status, "storedVersions");
    if (vg_at_n(&stored) == 0) {
        vg_bad(c, &stored, "must have at least one stored version");
        return;
    }
    VG_CHECK_EACH (c, name, &stored)
        (void)vg_names_add(c, &kept, vg_at_text(&name), NULL);
    VG_CHECK_EACH (c, version, versions) {
        struct vg_slice name = vg_json_text(vg_json_get_str(version.v, "name"));
        (void)vg_names_add(c, &known, name, NULL);
        if (vg_json_is_true(vg_json_get_str(version.v, "storage")) && !vg_names_has(&kept, name))
            vg_bad(c, &stored, "must have the storage version %.*s", VG_SLICE_ARG(name));
    }
    VG_CHECK_EACH (c, name, &stored) {
        struct vg_slice n = vg_at_text(&name);
        if (!vg_names_has(&known, n))
            vg_bad(c, &name,
                   "missing from spec.versions; %.*s was previously a storage version, and must "
                   "remain in spec.versions until a storage migration ensures no data remains "
                   "persisted in %.*s and removes %.*s from status.storedVersions",
                   VG_SLICE_ARG(n), VG_SLICE_ARG(n), VG_SLICE_ARG(n));
    }
}

/* ---- names ---- */

static void check_label(struct vg_check *c, const struct vg_at *at, bool may_have_capitals)
{
    struct vg_slice name = vg_at_text(at);
    struct vg_name_reasons why = {0};
    char *low = name.n ? vg_arena_copy(c->arena, name.p, name.n) : NULL;
    c->errors->failed |= name.n && !low;
    for (size_t i = 0; low && may_have_capitals && i < name.n; i++)
        low[i] = (char)(low[i] >= 'A' && low[i] <= 'Z' ? low[i] + 32 : low[i]);
    if (!vg_validate_dns1035_label(vg_slice(low, low ? name.n : 0), &why))
        vg_bad_reasons(c, at, name,
                       may_have_capitals ? "may have mixed case, but should otherwise match: " : "",
                       &why);
}

static void check_names(struct vg_check *c, const struct vg_at *names)
{
    static const char *const one[] = {"plural", "singular", "kind", "listKind"};
    static const char *const many[] = {"shortNames", "categories"};
    struct vg_at kind = vg_at(names, "kind"), list_kind = vg_at(names, "listKind");
    for (size_t i = 0; i < VG_ARRAY_LEN(one); i++) {
        struct vg_at at = vg_at(names, one[i]);
        if (vg_at_text(&at).n)
            check_label(c, &at, i >= 2);
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(many); i++) {
        struct vg_at list = vg_at(names, many[i]);
        VG_CHECK_EACH (c, it, &list)
            check_label(c, &it, false);
        if (i == 0 && vg_at_text(&kind).n && vg_slice_eq(vg_at_text(&kind), vg_at_text(&list_kind)))
            vg_bad(c, &list_kind, "kind and listKind may not be the same");
    }
}

static const char *refuse_name(struct vg_field_errors *e, const struct vg_json *obj,
                               struct vg_slice name)
{
    struct vg_slice plural = vg_json_text(vg_json_at_path(obj, "spec.names.plural"));
    struct vg_slice group = vg_json_text(vg_json_at_path(obj, "spec.group"));
    (void)e;
    bool is_right = name.n == plural.n + 1 + group.n && vg_slice_has_prefix(name, plural) &&
                    name.p[plural.n] == '.' &&
                    vg_slice_eq(vg_slice(name.p + plural.n + 1, group.n), group);
    return is_right ? NULL : "must be spec.names.plural+\".\"+spec.group";
}

/* ---- versions ---- */

/* One of the things that versions may share; at: where it is blamed. */
static void check_part(struct vg_check *c, enum shared what, const struct vg_at *at,
                       const struct vg_json *schema, bool has_status)
{
    switch (what) {
    case SCHEMA:
        vg_check_crd_schema(c, at, has_status);
        break;
    case SUBRESOURCES:
        vg_check_crd_subresources(c, at);
        break;
    case COLUMNS:
        VG_CHECK_EACH (c, column, at)
            vg_check_crd_column(c, &column);
        break;
    case SELECTABLE:
    case N_SHARED:
        vg_check_crd_selectable(c, at, vg_json_get_str(schema, "openAPIV3Schema"));
        break;
    }
}

static void blame_versions(struct vg_check *c, const struct vg_at *versions, const bool *shared,
                           const char *why)
{
    const struct vg_schema_type *type = vg_schema_find(
        VG_SLICE_LIT(GROUP), VG_SLICE_LIT("v1"), VG_SLICE_LIT("CustomResourceDefinitionVersion"));
    VG_AUTO(buf) b = {0};
    int r = vg_buf_append_byte(&b, '[');
    VG_CHECK_EACH (c, version, versions) {
        struct vg_json own = vg_json_object();
        VG_JSON_FOREACH_MEMBER (m, version.v) {
            bool is_above = false;
            for (size_t i = 0; i < N_SHARED; i++)
                is_above = is_above ||
                           (shared[i] && vg_slice_eq(vg_json_key(m), vg_slice_str(members[i])));
            if (!is_above && vg_json_object_add(c->arena, &own, vg_json_key(m), m->value) < 0)
                r = -1;
        }
        if (r == 0)
            r = vg_buf_printf(&b, "%s%.*s", version.index ? "," : "",
                              VG_SLICE_ARG(vg_go_struct(c, type, &own)));
    }
    c->errors->failed |= r < 0 || vg_buf_append_byte(&b, ']') < 0;
    vg_bad_value(c, versions, vg_at_n(versions) ? vg_buf_slice(&b) : VG_SLICE_LIT("null"), "%s",
                 why);
}

static void check_versions(struct vg_check *c, const struct vg_at *versions, const bool *shared)
{
    VG_AUTO(names) seen = {0};
    size_t stored = 0;
    bool is_unique = true;
    VG_CHECK_EACH (c, version, versions) {
        struct vg_at name = vg_at(&version, "name");
        const struct vg_json *schema = vg_json_get_str(version.v, "schema");
        bool has_status = vg_json_at_path(version.v, "subresources.status");
        stored += vg_json_is_true(vg_json_get_str(version.v, "storage"));
        is_unique = vg_names_add(c, &seen, vg_at_text(&name), NULL) && is_unique;
        check_label(c, &name, false);
        vg_check_crd_deprecation(c, &version);
        for (size_t i = 0; i < N_SHARED; i++) {
            struct vg_at at = vg_at(&version, members[i]);
            if (!shared[i])
                check_part(c, (enum shared)i, &at, schema, has_status);
        }
    }
    if (!is_unique)
        blame_versions(c, versions, shared, "must contain unique version names");
    if (stored != 1)
        blame_versions(c, versions, shared,
                       "must have exactly one version marked as storage version");
}

static void check_shared_parts(struct vg_check *c, const struct vg_at *spec, const bool *shared)
{
    const struct vg_json *first = vg_json_at(vg_json_get_str(spec->v, "versions"), 0);
    bool has_status = false;
    struct vg_at versions = vg_at(spec, "versions");
    VG_CHECK_EACH (c, version, &versions)
        has_status = has_status || vg_json_at_path(version.v, "subresources.status");
    for (size_t i = 0; i < N_SHARED; i++) {
        struct vg_at at = vg_at_of(spec, tops[i], vg_json_get_str(first, members[i]));
        if (shared[i])
            check_part(c, (enum shared)i, &at, vg_json_get_str(first, "schema"), has_status);
    }
}

/* ---- conversion ---- */

static void check_conversion(struct vg_check *c, const struct vg_at *at)
{
    static const char *const strategies[] = {"None", "Webhook", NULL};
    struct vg_at strategy = vg_at(at, "strategy"), webhook = vg_at(at, "webhook");
    struct vg_at client =
        vg_at_of(at, "webhookClientConfig", vg_json_get_str(webhook.v, "clientConfig"));
    struct vg_at versions = vg_at_of(at, "conversionReviewVersions",
                                     vg_json_get_str(webhook.v, "conversionReviewVersions"));
    if (vg_check_given(c, &strategy))
        (void)vg_check_one_of(c, &strategy, strategies);
    if (vg_at_is(&strategy, "Webhook")) {
        if (!client.v)
            vg_required(c, &client, "required when strategy is set to Webhook");
        else
            vg_check_webhook_client(c, &client);
        if (vg_check_given(c, &versions))
            vg_check_review_versions(c, &versions);
        return;
    }
    if (client.v)
        vg_forbidden(c, &client, "should not be set when strategy is not set to Webhook");
    if (vg_at_n(&versions))
        vg_forbidden(c, &versions, "should not be set when strategy is not set to Webhook");
}

/* ---- the definition ---- */

static void check_group(struct vg_check *c, const struct vg_at *at)
{
    struct vg_name_reasons why = {0};
    if (!vg_check_given(c, at))
        return;
    if (!vg_validate_dns1123_subdomain(vg_at_text(at), VG_NAME_CHARACTERS, &why))
        vg_bad_reasons(c, at, vg_at_text(at), "", &why);
    else if (!memchr(vg_at_text(at).p, '.', vg_at_text(at).n))
        vg_bad(c, at, "should be a domain with at least one dot");
}

static void check_given_schemas(struct vg_check *c, const struct vg_at *versions)
{
    VG_CHECK_EACH (c, version, versions) {
        struct vg_at schema = vg_at(&version, "schema");
        struct vg_at inner = vg_at(&schema, "openAPIV3Schema");
        if (!inner.v)
            vg_required(c, &inner, NULL);
    }
}

static void check_spec(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const scopes[] = {"Cluster", "Namespaced", NULL};
    static const char *const required[] = {"plural", "singular", "kind", "listKind"};
    struct vg_at group = vg_at(spec, "group"), scope = vg_at(spec, "scope");
    struct vg_at versions = vg_at(spec, "versions"), names = vg_at(spec, "names");
    struct vg_at conversion = vg_at(spec, "conversion");
    bool shared[N_SHARED];
    for (size_t i = 0; i < N_SHARED; i++)
        shared[i] = is_shared(c, &versions, (enum shared)i);
    check_group(c, &group);
    if (vg_check_given(c, &scope))
        (void)vg_check_one_of(c, &scope, scopes);
    check_given_schemas(c, &versions);
    check_versions(c, &versions, shared);
    /* The first one is blamed as what it is in older versions of this kind too. */
    struct vg_at first =
        vg_at_of(spec, "version", vg_json_get_str(vg_json_at(versions.v, 0), "name"));
    if (vg_at_text(&first).n)
        check_label(c, &first, false);
    for (size_t i = 0; i < VG_ARRAY_LEN(required); i++) {
        struct vg_at at = vg_at(&names, required[i]);
        (void)vg_check_given(c, &at);
    }
    check_names(c, &names);
    check_shared_parts(c, spec, shared);
    if (conversion.v)
        check_conversion(c, &conversion);
}

/* That domain, or one below it. */
static bool is_below(struct vg_slice name, struct vg_slice domain)
{
    if (name.n < domain.n || memcmp(name.p + name.n - domain.n, domain.p, domain.n) != 0)
        return false;
    return name.n == domain.n || name.p[name.n - domain.n - 1] == '.';
}

/* Groups of Kubernetes itself are protected. */
static void check_approval(struct vg_check *c, const struct vg_at *obj)
{
    static const char key[] = "api-approved.kubernetes.io";
    struct vg_slice group = vg_json_text(vg_json_at_path(obj->v, "spec.group"));
    struct vg_at meta = vg_at(obj, "metadata"), notes = vg_at(&meta, "annotations");
    struct vg_json_member absent = {.key = key, .key_n = sizeof key - 1};
    struct vg_at at = vg_at_key(&notes, &absent);
    bool is_own =
        is_below(group, VG_SLICE_LIT("k8s.io")) || is_below(group, VG_SLICE_LIT("kubernetes.io"));
    if (is_own && vg_json_text(vg_json_get_str(notes.v, key)).n == 0)
        vg_required(c, &at,
                    "protected groups must have approval annotation \"%s\", see "
                    "https://github.com/kubernetes/enhancements/pull/1111",
                    key);
}

static void check_rest(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at status = vg_at(obj, "status"), accepted = vg_at(&status, "acceptedNames");
    struct vg_at spec = vg_at(obj, "spec"), versions = vg_at(&spec, "versions");
    check_names(c, &accepted);
    check_stored(c, obj, &versions);
}

static void check_preserving(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), at = vg_at(&spec, "preserveUnknownFields");
    if (vg_at_is_true(&at))
        vg_bad(c, &at,
               "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
               "spec.versions[*].schema instead");
}

static void check(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec");
    check_spec(c, &spec);
    check_rest(c, obj);
    check_approval(c, obj);
    check_preserving(c, obj);
}

static bool is_established(const struct vg_json *crd)
{
    const struct vg_json *list = vg_json_at_path(crd, "status.conditions");
    if (list)
        VG_JSON_FOREACH_ITEM (it, list)
            if (vg_slice_eq(vg_json_text(vg_json_get_str(it, "type")), VG_SLICE_LIT("Established")))
                return vg_slice_eq(vg_json_text(vg_json_get_str(it, "status")),
                                   VG_SLICE_LIT("True"));
    return false;
}

static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at spec = vg_at(obj, "spec"), names = vg_at(&spec, "names");
    struct vg_at scope = vg_at(&spec, "scope"), kind = vg_at(&names, "kind");
    struct vg_at group = vg_at(&spec, "group"), plural = vg_at(&names, "plural");
    check_spec(c, &spec);
    if (is_established(old)) {
        (void)vg_check_immutable(c, &scope, vg_json_at_path(old, "spec.scope"));
        (void)vg_check_immutable(c, &kind, vg_json_at_path(old, "spec.names.kind"));
    }
    (void)vg_check_immutable(c, &group, vg_json_at_path(old, "spec.group"));
    (void)vg_check_immutable(c, &plural, vg_json_at_path(old, "spec.names.plural"));
    check_rest(c, obj);
}

static void check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at status = vg_at(obj, "status"), accepted = vg_at(&status, "acceptedNames");
    (void)old;
    check_names(c, &accepted);
}

const struct vg_rules vg_rules_custom_resource_definition = {
    .group = GROUP,
    .kind = "CustomResourceDefinition",
    .refuse_name = refuse_name,
    .takes_plain_finalizers = true,
    .prepare = prepare,
    .check = check,
    .check_update = check_update,
    .check_status = check_status,
};
