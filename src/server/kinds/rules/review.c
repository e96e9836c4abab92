/* review.c - rules of the questions whether somebody may do something: subject access reviews.
 * They are asked and not stored, so there are no updates. Selectors are checked here; how many of
 * them an authorizer understands is its own business. */
#include "go_struct.h"
#include "rules.h"

#define GROUP "authorization.k8s.io"

static bool is_op(const struct vg_at *requirement, const char *a, const char *b)
{
    struct vg_at op = vg_at(requirement, "operator");
    return vg_at_is(&op, a) || vg_at_is(&op, b);
}

static void check_values(struct vg_check *c, const struct vg_at *requirement)
{
    struct vg_at values = vg_at(requirement, "values");
    if (is_op(requirement, "In", "NotIn") && vg_at_n(&values) == 0)
        vg_required(c, &values, "must be specified when `operator` is 'In' or 'NotIn'");
    if (is_op(requirement, "Exists", "DoesNotExist") && vg_at_n(&values))
        vg_forbidden(c, &values,
                     "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
}

static void check_field(struct vg_check *c, const struct vg_at *requirement)
{
    struct vg_at key = vg_at(requirement, "key");
    if (vg_at_text(&key).n == 0)
        vg_required(c, &key, "must be specified");
    check_values(c, requirement);
}

static void check_label(struct vg_check *c, const struct vg_at *requirement)
{
    struct vg_at key = vg_at(requirement, "key"), values = vg_at(requirement, "values");
    check_values(c, requirement);
    (void)vg_check_qualified(c, &key);
    VG_AT_FOREACH (value, &values)
        (void)vg_check_label_value(c, &value);
}

static void check_selector(struct vg_check *c, const struct vg_at *attributes, const char *name,
                           void (*check)(struct vg_check *c, const struct vg_at *requirement))
{
    struct vg_at selector = vg_at(attributes, name), raw = vg_at(&selector, "rawSelector");
    struct vg_at requirements = vg_at(&selector, "requirements");
    if (!selector.v)
        return;
    if (vg_at_text(&raw).n && vg_at_n(&requirements))
        vg_bad_text(c, &raw, "may not specified at the same time as requirements");
    if (vg_at_text(&raw).n == 0 && vg_at_n(&requirements) == 0)
        vg_required(c, &requirements,
                    "when spec.resourceAttributes.%s is specified, requirements or rawSelector is "
                    "required",
                    name);
    VG_AT_FOREACH (requirement, &requirements)
        check(c, &requirement);
}

static void check_attributes(struct vg_check *c, const struct vg_at *spec, bool has_subject)
{
    struct vg_at resource = vg_at(spec, "resourceAttributes");
    struct vg_at other = vg_at(spec, "nonResourceAttributes");
    struct vg_at user = vg_at(spec, "user"), groups = vg_at(spec, "groups");
    if (resource.v && other.v)
        vg_bad_value(c, &other, vg_go_struct_of(c, GROUP, "NonResourceAttributes", other.v),
                     "cannot be specified in combination with resourceAttributes");
    if (!resource.v && !other.v)
        vg_bad(c, &resource,
               "exactly one of nonResourceAttributes or resourceAttributes must be specified");
    if (has_subject && vg_at_text(&user).n == 0 && vg_at_n(&groups) == 0)
        vg_bad_text(c, &user, "at least one of user or group must be specified");
    check_selector(c, &resource, "fieldSelector", check_field);
    check_selector(c, &resource, "labelSelector", check_label);
}

/* Members that the client gave; who owns fields is the server's. */
static size_t given(const struct vg_at *meta)
{
    return vg_at_n(meta) - (vg_json_get_str(meta->v, "managedFields") != NULL);
}

/* Questions have no metadata. */
static void check_no_metadata(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at meta = vg_at(obj, "metadata");
    if (given(&meta))
        vg_bad(c, &meta, "must be empty");
}

static void check_access(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec");
    check_attributes(c, &spec, true);
    check_no_metadata(c, obj);
}

static void check_self(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec");
    check_attributes(c, &spec, false);
    check_no_metadata(c, obj);
}

static void check_local(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at spec = vg_at(obj, "spec"), meta = vg_at(obj, "metadata");
    struct vg_at resource = vg_at(&spec, "resourceAttributes"), ns = vg_at(&resource, "namespace");
    struct vg_at other = vg_at(&spec, "nonResourceAttributes"), own = vg_at(&meta, "namespace");
    check_attributes(c, &spec, true);
    if (given(&meta) > (own.v != NULL))
        vg_bad(c, &meta, "must be empty except for namespace");
    if (resource.v && !vg_slice_eq(vg_at_text(&ns), vg_at_text(&own)))
        vg_bad_text(c, &ns, "must match metadata.namespace");
    if (other.v)
        vg_bad_value(c, &other, vg_go_struct_of(c, GROUP, "NonResourceAttributes", other.v),
                     "disallowed on this kind of request");
}

const struct vg_rules vg_rules_subject_access_review = {
    .group = GROUP, .kind = "SubjectAccessReview", .check = check_access};
const struct vg_rules vg_rules_self_subject_access_review = {
    .group = GROUP, .kind = "SelfSubjectAccessReview", .check = check_self};
const struct vg_rules vg_rules_local_subject_access_review = {
    .group = GROUP, .kind = "LocalSubjectAccessReview", .check = check_local};
