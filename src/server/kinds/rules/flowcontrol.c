/* flowcontrol.c - rules of flow schemas and priority levels. */
#include "go_struct.h"
#include "names.h"
#include "rules.h"
#include "server/kinds/types.h"

#define GROUP "flowcontrol.apiserver.k8s.io"
#define PRECEDENCE_MAX 10000
#define QUEUES_MAX 10000000
/* A hand is dealt from a hash of so many bits. */
#define HASH_BITS 60u

static const struct vg_schema_type *type_of(const char *name)
{
    return vg_schema_find(VG_SLICE_LIT(GROUP), VG_SLICE_LIT("v1"), vg_slice_str(name));
}

/* ---- what must be there, as it is ---- */

#define EVERYTHING                                                                                 \
    "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"           \
    "\"clusterScope\":true,\"namespaces\":[\"*\"]}],"                                              \
    "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]"

struct mandatory {
    const char *name, *spec;
};
static const struct mandatory mandatory_schemas[] = {
    {"exempt", "{\"priorityLevelConfiguration\":{\"name\":\"exempt\"},\"matchingPrecedence\":1,"
               "\"rules\":[{\"subjects\":[{\"kind\":\"Group\",\"group\":{\"name\":"
               "\"system:masters\"}}]," EVERYTHING "}]}"},
    {"catch-all",
     "{\"priorityLevelConfiguration\":{\"name\":\"catch-all\"},\"matchingPrecedence\":10000,"
     "\"distinguisherMethod\":{\"type\":\"ByUser\"},"
     "\"rules\":[{\"subjects\":[{\"kind\":\"Group\",\"group\":{\"name\":"
     "\"system:unauthenticated\"}},{\"kind\":\"Group\",\"group\":{\"name\":"
     "\"system:authenticated\"}}]," EVERYTHING "}]}"},
};
/* What is exempt may be exempt in another way. */
static const struct mandatory mandatory_levels[] = {
    {"exempt", "{\"type\":\"Exempt\"}"},
    {"catch-all", "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":5,"
                  "\"limitResponse\":{\"type\":\"Reject\"},\"lendablePercent\":0}}"},
};

/* The spec that an object of that name must have; NULL: any. */
static const struct vg_json *fixed_spec(struct vg_check *c, const struct vg_at *obj,
                                        const struct mandatory *list)
{
    struct vg_slice name = vg_json_text(vg_json_at_path(obj->v, "metadata.name"));
    struct vg_json *spec = NULL;
    for (size_t i = 0; i < VG_ARRAY_LEN(mandatory_schemas); i++)
        if (vg_slice_eq(name, vg_slice_str(list[i].name)) &&
            vg_json_parse(c->arena, vg_slice_str(list[i].spec), NULL, &spec, NULL) < 0)
            c->errors->failed = true;
    return spec;
}

/* ---- conditions ---- */

static void check_status_of(struct vg_check *c, const struct vg_at *obj)
{
    VG_AUTO(names) seen = {0};
    struct vg_at status = vg_at(obj, "status"), list = vg_at(&status, "conditions");
    VG_CHECK_EACH (c, condition, &list) {
        struct vg_at type = vg_at(&condition, "type");
        if (!vg_names_add(c, &seen, vg_at_text(&type), NULL))
            vg_duplicate_value(c, &type, vg_json_quoted(c, vg_at_text(&type)));
        (void)vg_check_given(c, &type);
    }
}

static void check_status(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    (void)old;
    check_status_of(c, obj);
}

/* ---- subjects ---- */

static bool check_namespace(struct vg_check *c, const struct vg_at *at, const char *before)
{
    struct vg_name_reasons why = {0};
    if (vg_validate_dns1123_label(vg_at_text(at), VG_NAME_CHARACTERS, &why))
        return true;
    for (uint32_t i = 0; i < why.n; i++)
        vg_bad_text(c, at, "%s%s", before, why.v[i]);
    return false;
}

static void check_account(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at name = vg_at(at, "name"), ns = vg_at(at, "namespace");
    if (vg_check_given(c, &name) && !vg_at_is(&name, "*"))
        (void)vg_check_dns_subdomain(c, &name);
    if (vg_at_text(&ns).n == 0)
        vg_required(c, &ns, "must specify namespace for service account");
    else
        (void)check_namespace(c, &ns, "");
}

static void check_subject(struct vg_check *c, const struct vg_at *at)
{
    static const char *const kinds[] = {"Group", "ServiceAccount", "User", NULL};
    /* In the order in which the others are refused. */
    static const struct {
        const char *kind, *member;
    } parts[] = {{"ServiceAccount", "serviceAccount"}, {"User", "user"}, {"Group", "group"}};
    struct vg_at kind = vg_at(at, "kind");
    if (!vg_check_one_of(c, &kind, kinds))
        return;
    for (size_t i = 0; i < VG_ARRAY_LEN(parts); i++) {
        struct vg_at own = vg_at(at, parts[i].member), name = vg_at(&own, "name");
        if (!vg_at_is(&kind, parts[i].kind))
            continue;
        if (!own.v)
            vg_required(c, &own, "%s is required when subject kind is '%s'", parts[i].member,
                        parts[i].kind);
        else if (i == 0)
            check_account(c, &own);
        else
            (void)vg_check_given(c, &name);
    }
    for (size_t i = 0; i < VG_ARRAY_LEN(parts); i++) {
        struct vg_at other = vg_at(at, parts[i].member);
        if (other.v && !vg_at_is(&kind, parts[i].kind))
            vg_forbidden(c, &other, "%s is forbidden when subject kind is not '%s'",
                         parts[i].member, parts[i].kind);
    }
}

/* ---- rules ---- */

static bool has_wildcard(const struct vg_at *list)
{
    VG_AT_FOREACH (it, list)
        if (vg_at_is(&it, "*"))
            return true;
    return false;
}

/* A list that is not empty, and "*" alone when it is there. */
static bool check_list(struct vg_check *c, const struct vg_at *at, const char *required,
                       const char *others)
{
    size_t n = vg_at_n(at);
    if (n == 0)
        vg_required(c, at, "%s", required);
    else if (n > 1 && has_wildcard(at))
        vg_bad(c, at, "if '*' is present, must not specify other %s", others);
    return n && !has_wildcard(at);
}

static void check_verbs(struct vg_check *c, const struct vg_at *rule)
{
    static const char *const verbs[] = {"create", "delete", "deletecollection", "get",   "list",
                                        "patch",  "proxy",  "update",           "watch", NULL};
    struct vg_at at = vg_at(rule, "verbs");
    if (!check_list(c, &at, "verbs must contain at least one value", "verbs"))
        return;
    VG_CHECK_EACH (c, verb, &at) {
        const char *const *v = verbs;
        while (*v && !vg_at_is(&verb, *v))
            v++;
        if (*v)
            continue;
        vg_unsupported_value(c, &at, vg_json_shown(c, at.v), verbs);
        return;
    }
}

static void check_url(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    size_t stars = 0;
    for (size_t i = 0; i < s.n; i++)
        stars += s.p[i] == '*';
    bool is_tail = s.n >= 2 && s.p[s.n - 2] == '/' && s.p[s.n - 1] == '*';
    if (s.n == 0)
        vg_bad_text(c, at, "must not be empty");
    else if (s.p[0] != '/')
        vg_bad_text(c, at, "must start with slash");
    else if (memchr(s.p, ' ', s.n))
        vg_bad_text(c, at, "must not contain white-space");
    else if (memmem(s.p, s.n, "//", 2))
        vg_bad_text(c, at, "must not contain double slash");
    else if (stars > 1 || (stars == 1 && !is_tail))
        vg_bad_text(c, at, "wildcard can only do suffix matching");
}

static void check_other_rule(struct vg_check *c, const struct vg_at *rule)
{
    struct vg_at urls = vg_at(rule, "nonResourceURLs");
    check_verbs(c, rule);
    if (!check_list(c, &urls, "nonResourceURLs must contain at least one value",
                    "non-resource URLs"))
        return;
    VG_CHECK_EACH (c, url, &urls)
        check_url(c, &url);
}

static void check_resource_rule(struct vg_check *c, const struct vg_at *rule)
{
    struct vg_at groups = vg_at(rule, "apiGroups"), resources = vg_at(rule, "resources");
    struct vg_at namespaces = vg_at(rule, "namespaces"), scope = vg_at(rule, "clusterScope");
    check_verbs(c, rule);
    (void)check_list(c, &groups, "resource rules must supply at least one api group", "api groups");
    (void)check_list(c, &resources, "resource rules must supply at least one resource",
                     "resources");
    if (vg_at_n(&namespaces) == 0 && vg_at_is_true(&scope))
        return;
    if (!check_list(c, &namespaces,
                    "resource rules that are not cluster scoped must supply at least one namespace",
                    "namespaces"))
        return;
    VG_CHECK_EACH (c, ns, &namespaces)
        (void)check_namespace(c, &ns, "each member of this list must be '*' or a DNS-1123 label; ");
}

static void check_rule(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at subjects = vg_at(at, "subjects"), resources = vg_at(at, "resourceRules");
    struct vg_at others = vg_at(at, "nonResourceRules");
    if (vg_at_n(&subjects) == 0)
        vg_required(c, &subjects, "subjects must contain at least one value");
    VG_CHECK_EACH (c, subject, &subjects)
        check_subject(c, &subject);
    if (vg_at_n(&resources) == 0 && vg_at_n(&others) == 0)
        vg_required(c, at,
                    "at least one of resourceRules and nonResourceRules has to be non-empty");
    VG_CHECK_EACH (c, rule, &resources)
        check_resource_rule(c, &rule);
    VG_CHECK_EACH (c, rule, &others)
        check_other_rule(c, &rule);
}

/* ---- FlowSchema ---- */

static void check_precedence(struct vg_check *c, const struct vg_at *at, bool is_exempt)
{
    int64_t i = vg_at_int(at);
    if (i <= 0)
        vg_bad_int(c, at, "must be a positive value");
    if (i > PRECEDENCE_MAX)
        vg_bad_int(c, at, "must not be greater than %d", PRECEDENCE_MAX);
    if (i == 1 && !is_exempt)
        vg_bad_int(c, at, "only the schema named 'exempt' may have matchingPrecedence 1");
}

static void check_schema(struct vg_check *c, const struct vg_at *obj)
{
    static const char *const methods[] = {"ByNamespace", "ByUser", NULL};
    struct vg_at spec = vg_at(obj, "spec"), precedence = vg_at(&spec, "matchingPrecedence");
    struct vg_at method = vg_at(&spec, "distinguisherMethod"), type = vg_at(&method, "type");
    struct vg_at level = vg_at(&spec, "priorityLevelConfiguration"), name = vg_at(&level, "name");
    struct vg_at rules = vg_at(&spec, "rules");
    struct vg_slice own = vg_json_text(vg_json_at_path(obj->v, "metadata.name"));
    check_precedence(c, &precedence, vg_slice_eq(own, VG_SLICE_LIT("exempt")));
    if (method.v && !vg_at_is(&type, methods[0]) && !vg_at_is(&type, methods[1]))
        vg_unsupported_value(
            c, &type, vg_go_struct(c, type_of("FlowDistinguisherMethod"), method.v), methods);
    if (vg_at_text(&name).n)
        (void)vg_check_dns_subdomain(c, &name);
    else
        vg_required(c, &name, "must reference a priority level");
    VG_CHECK_EACH (c, rule, &rules)
        check_rule(c, &rule);
    const struct vg_json *fixed = fixed_spec(c, obj, mandatory_schemas);
    if (fixed && !vg_check_same(c, spec.v, fixed))
        vg_bad_value(c, &spec, vg_go_struct(c, type_of("FlowSchemaSpec"), spec.v),
                     "spec of '%.*s' must equal the fixed value", VG_SLICE_ARG(own));
    check_status_of(c, obj);
}

static void check_schema_update(struct vg_check *c, const struct vg_at *obj,
                                const struct vg_json *old)
{
    (void)old;
    check_schema(c, obj);
}

const struct vg_rules vg_rules_flow_schema = {
    .group = GROUP,
    .kind = "FlowSchema",
    .check = check_schema,
    .check_update = check_schema_update,
    .check_status = check_status,
};

/* ---- PriorityLevelConfiguration ---- */

/* Does the hash have bits enough to deal so many of so many? */
static bool is_dealable(int64_t queues, int64_t hand)
{
    uint64_t deals = 1;
    for (int64_t i = 0; i < hand && queues > 1; i++) {
        if (deals > (UINT64_C(1) << HASH_BITS) / (uint64_t)queues)
            return false;
        deals *= (uint64_t)queues;
    }
    return true;
}

static void check_queuing(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at limit = vg_at(at, "queueLengthLimit"), queues = vg_at(at, "queues");
    struct vg_at hand = vg_at(at, "handSize");
    int64_t n = vg_at_int(&queues), h = vg_at_int(&hand);
    if (vg_at_int(&limit) <= 0)
        vg_bad_int(c, &limit, "must be positive");
    if (n <= 0)
        vg_bad_int(c, &queues, "must be positive");
    else if (n > QUEUES_MAX)
        vg_bad_int(c, &queues, "must not be greater than %d", QUEUES_MAX);
    if (h <= 0)
        vg_bad_int(c, &hand, "must be positive");
    else if (h > n)
        vg_bad_int(c, &hand, "should not be greater than queues (%lld)", (long long)n);
    else if (!is_dealable(n, h))
        vg_bad_int(c, &hand,
                   "required entropy bits of deckSize %lld and handSize %lld should not be "
                   "greater than %u",
                   (long long)n, (long long)h, HASH_BITS);
}

static void check_response(struct vg_check *c, const struct vg_at *at)
{
    static const char *const types[] = {"Queue", "Reject", NULL};
    struct vg_at type = vg_at(at, "type"), queuing = vg_at(at, "queuing");
    if (vg_at_is(&type, "Reject")) {
        if (queuing.v)
            vg_forbidden(c, &queuing, "must be nil if limited.limitResponse.type is not Limited");
    } else if (vg_at_is(&type, "Queue")) {
        if (queuing.v)
            check_queuing(c, &queuing);
        else
            vg_required(c, &queuing, "must not be empty if limited.limitResponse.type is Limited");
    } else if (vg_check_given(c, &type)) {
        vg_unsupported(c, &type, types);
    }
}

static void check_shares(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at shares = vg_at(at, "nominalConcurrencyShares");
    if (vg_at_int(&shares) < 0)
        vg_bad_int(c, &shares, "must be a non-negative integer");
}

static void check_lendable(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at lendable = vg_at(at, "lendablePercent");
    if (lendable.v)
        (void)vg_check_range(c, &lendable, 0, 100);
}

static void check_limited(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at response = vg_at(at, "limitResponse");
    struct vg_at borrowing = vg_at(at, "borrowingLimitPercent");
    check_shares(c, at);
    check_response(c, &response);
    check_lendable(c, at);
    if (vg_at_int(&borrowing) < 0)
        vg_bad_int(c, &borrowing, "if specified, must be a non-negative integer");
}

static void check_kind_of_level(struct vg_check *c, const struct vg_at *spec)
{
    static const char *const types[] = {"Exempt", "Limited", NULL};
    struct vg_at type = vg_at(spec, "type"), limited = vg_at(spec, "limited");
    struct vg_at exempt = vg_at(spec, "exempt");
    if (vg_at_is(&type, "Exempt")) {
        if (limited.v)
            vg_forbidden(c, &limited, "must be nil if the type is not Limited");
        check_shares(c, &exempt);
        check_lendable(c, &exempt);
    } else if (vg_at_is(&type, "Limited")) {
        if (exempt.v)
            vg_forbidden(c, &exempt, "must be nil if the type is Limited");
        if (limited.v)
            check_limited(c, &limited);
        else
            vg_required(c, &limited, "must not be empty when type is Limited");
    } else if (vg_check_given(c, &type)) {
        vg_unsupported(c, &type, types);
    }
}

static void check_fixed_level(struct vg_check *c, const struct vg_at *obj, bool is_exempt)
{
    const struct vg_json *fixed = fixed_spec(c, obj, mandatory_levels);
    struct vg_at spec = vg_at(obj, "spec");
    struct vg_json have = vg_json_object();
    if (!fixed || !spec.v)
        return;
    VG_JSON_FOREACH_MEMBER (m, spec.v)
        if (!(is_exempt && vg_slice_eq(vg_json_key(m), VG_SLICE_LIT("exempt"))) &&
            vg_json_object_add(c->arena, &have, vg_json_key(m), m->value) < 0)
            c->errors->failed = true;
    if (!vg_check_same(c, &have, fixed))
        vg_bad_value(c, &spec, vg_go_struct(c, type_of("PriorityLevelConfigurationSpec"), spec.v),
                     "spec of '%s'%s must equal the fixed value",
                     is_exempt ? "exempt" : "catch-all",
                     is_exempt ? " except the 'spec.exempt' field" : "");
}

static void check_level(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at meta = vg_at(obj, "metadata"), name = vg_at(&meta, "name");
    struct vg_at notes = vg_at(&meta, "annotations"), spec = vg_at(obj, "spec");
    struct vg_at type = vg_at(&spec, "type");
    bool is_exempt = vg_at_is(&name, "exempt");
    static const char key[] = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";
    if (vg_json_get_str(notes.v, key))
        vg_forbidden(c, &notes, "annotation '%s' is forbidden", key);
    if (is_exempt != vg_at_is(&type, "Exempt"))
        vg_bad_text(c, &type, "must be 'Exempt' if and only if `name` is 'exempt'");
    check_kind_of_level(c, &spec);
    check_fixed_level(c, obj, is_exempt);
    check_status_of(c, obj);
}

static void check_level_update(struct vg_check *c, const struct vg_at *obj,
                               const struct vg_json *old)
{
    (void)old;
    check_level(c, obj);
}

const struct vg_rules vg_rules_priority_level_configuration = {
    .group = GROUP,
    .kind = "PriorityLevelConfiguration",
    .check = check_level,
    .check_update = check_level_update,
    .check_status = check_status,
};
