/* review_access.c - may somebody do something, and what may the asker do: the reviews of
 * authorization.k8s.io. The questions were checked by their kinds' rules. */
#include <errno.h>

#include "object/field_selector.h"
#include "object/label_selector.h"
#include "review_int.h"
#include "status_int.h"

/* ---- selectors ----
 * No authorizer here looks at them; the answer tells which of them it could not have read. */

struct parsed {
    size_t good, bad;
};

static bool is_raw_label(struct vg_slice text)
{
    const struct vg_label_selector *s = NULL;
    int r = vg_label_selector_parse(text, &s, NULL);
    vg_label_selector_free(s);
    return r == 0;
}

static bool is_raw_field(struct vg_slice text)
{
    const struct vg_field_selector *s = NULL;
    int r = vg_field_selector_parse(text, &s, NULL);
    vg_field_selector_free(s);
    return r == 0;
}

static bool is_op(const struct vg_json *requirement, const char *op)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(requirement, "operator")), vg_slice_str(op));
}

static bool is_label(const struct vg_json *requirement)
{
    return is_op(requirement, "In") || is_op(requirement, "NotIn") ||
           is_op(requirement, "Exists") || is_op(requirement, "DoesNotExist");
}

static bool is_field(const struct vg_json *requirement)
{
    const struct vg_json *values = vg_json_get_str(requirement, "values");
    return (is_op(requirement, "In") || is_op(requirement, "NotIn")) && values && values->n == 1;
}

static struct parsed parse(const struct vg_json *selector, bool (*is_raw)(struct vg_slice text),
                           bool (*is_good)(const struct vg_json *requirement))
{
    struct parsed p = {0};
    struct vg_slice raw = vg_json_text(vg_json_get_str(selector, "rawSelector"));
    const struct vg_json *requirements = vg_json_get_str(selector, "requirements");
    if (raw.n)
        p.bad = !is_raw(raw);
    if (requirements)
        VG_JSON_FOREACH_ITEM (requirement, requirements)
            *(is_good(requirement) ? &p.good : &p.bad) += 1;
    return p;
}

/* spec.resourceAttributes.fieldSelector partially ignored ...; ... */
static int explain(struct vg_buf *out, const char *name, struct parsed p)
{
    return p.bad ? vg_buf_printf(out, "%sspec.resourceAttributes.%s %signored due to parse error",
                                 out->n ? "; " : "", name, p.good ? "partially " : "")
                 : 0;
}

static int put_evaluation(struct vg_review *r, const struct vg_json *resource)
{
    VG_AUTO(buf) text = {0};
    struct vg_slice kept = VG_SLICE_LIT("");
    int err = explain(&text, "fieldSelector",
                      parse(vg_json_get_str(resource, "fieldSelector"), is_raw_field, is_field));
    if (err == 0)
        err = explain(&text, "labelSelector",
                      parse(vg_json_get_str(resource, "labelSelector"), is_raw_label, is_label));
    if (err == 0 && text.n)
        err = vg_arena_keep(&r->call->ask->arena, vg_buf_slice(&text), &kept);
    return err < 0 ? err : vg_review_put(r, &r->status, "evaluationError", kept);
}

/* ---- may they ---- */

static struct vg_slice text_of(const struct vg_json *v, const char *name)
{
    return vg_json_text(vg_json_get_str(v, name));
}

static void read_attributes(const struct vg_json *spec, struct vg_authz_attributes *ret)
{
    const struct vg_json *resource = vg_json_get_str(spec, "resourceAttributes");
    const struct vg_json *other = vg_json_get_str(spec, "nonResourceAttributes");
    ret->is_resource = resource != NULL;
    ret->verb = text_of(resource ? resource : other, "verb");
    ret->path = text_of(other, "path");
    ret->group = text_of(resource, "group");
    ret->version = text_of(resource, "version");
    if (ret->version.n == 0)
        ret->version = VG_SLICE_LIT("*");
    ret->resource = text_of(resource, "resource");
    ret->subresource = text_of(resource, "subresource");
    ret->ns = text_of(resource, "namespace");
    ret->name = text_of(resource, "name");
}

/* The user that a spec names, in the arena. */
static int read_subject(struct vg_review *r, struct vg_api_user *ret)
{
    const struct vg_json *groups = vg_json_get_str(r->spec, "groups");
    size_t n = groups ? groups->n : 0;
    struct vg_slice *v = vg_arena_array(&r->call->ask->arena, struct vg_slice, n ? n : 1);
    if (!v)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        v[i] = vg_json_text(&groups->items[i]);
    *ret = (struct vg_api_user){.name = text_of(r->spec, "user"),
                                .uid = text_of(r->spec, "uid"),
                                .groups = v,
                                .n_groups = n};
    return 0;
}

static int put_decision(struct vg_review *r, enum vg_authz_decision decision, const char *reason)
{
    struct vg_arena *a = &r->call->ask->arena;
    int err = vg_json_object_add(a, &r->status, VG_SLICE_LIT("allowed"),
                                 vg_json_bool(decision == VG_AUTHZ_ALLOW));
    if (err == 0 && decision == VG_AUTHZ_DENY)
        err = vg_json_object_add(a, &r->status, VG_SLICE_LIT("denied"), vg_json_bool(true));
    return err < 0 ? err
                   : vg_review_put(r, &r->status, "reason", vg_slice_str(reason ? reason : ""));
}

int vg_review_subject_access(struct vg_review *r, struct vg_api_status *ret_status)
{
    const struct vg_kind *kind = r->call->ask->target->kind;
    bool is_self = strcmp(kind->kind, "SelfSubjectAccessReview") == 0;
    struct vg_api_user subject;
    struct vg_authz_attributes attributes = {0};
    const char *reason = NULL;
    int err = is_self ? 0 : read_subject(r, &subject);
    if (err == 0) {
        attributes.user = is_self ? r->call->user : &subject;
        read_attributes(r->spec, &attributes);
        enum vg_authz_decision decision =
            vg_call_ops(r->call)->access->decide(r->call, &attributes, &reason);
        err = put_decision(r, decision, reason);
    }
    if (err == 0)
        err = put_evaluation(r, vg_json_get_str(r->spec, "resourceAttributes"));
    if (err < 0)
        vg_status_no_memory(ret_status);
    return err;
}

/* ---- what may I ---- */

struct rules {
    struct vg_review *review;
    struct vg_json resources, others;
};

static int put_list(struct vg_arena *a, struct vg_json *rule, const char *name,
                    const char *const *texts)
{
    struct vg_json list = vg_json_array();
    int err = 0;
    if (!texts)
        return 0;
    for (; *texts && err == 0; texts++)
        err = vg_json_array_push(a, &list, vg_json_string_ref(vg_slice_str(*texts)));
    return err < 0 ? err : vg_json_object_add(a, rule, vg_slice_str(name), list);
}

static int put_rule(void *arg, const struct vg_authz_rule *rule)
{
    struct rules *rules = arg;
    struct vg_arena *a = &rules->review->call->ask->arena;
    struct vg_json out = vg_json_object();
    int err = put_list(a, &out, "verbs", rule->verbs);
    if (err == 0)
        err = put_list(a, &out, "apiGroups", rule->groups);
    if (err == 0)
        err = put_list(a, &out, "resources", rule->resources);
    if (err == 0)
        err = put_list(a, &out, "resourceNames", rule->names);
    if (err == 0)
        err = put_list(a, &out, "nonResourceURLs", rule->urls);
    return err < 0 ? err
                   : vg_json_array_push(a, rule->urls ? &rules->others : &rules->resources, out);
}

int vg_review_rules(struct vg_review *r, struct vg_api_status *ret_status)
{
    struct vg_arena *a = &r->call->ask->arena;
    struct vg_slice ns = text_of(r->spec, "namespace");
    struct rules rules = {r, vg_json_array(), vg_json_array()};
    if (ns.n == 0) {
        vg_status_bad_request(a, ret_status, "no namespace on request");
        return VIGIL_E_INVALID;
    }
    int err = vg_call_ops(r->call)->access->each_rule(r->call, ns, put_rule, &rules);
    if (err == 0)
        err = vg_json_object_add(a, &r->status, VG_SLICE_LIT("resourceRules"), rules.resources);
    if (err == 0)
        err = vg_json_object_add(a, &r->status, VG_SLICE_LIT("nonResourceRules"), rules.others);
    if (err == 0)
        err = vg_json_object_add(a, &r->status, VG_SLICE_LIT("incomplete"), vg_json_bool(false));
    /* The question is not repeated in the answer. */
    static struct vg_json nothing = {.type = VG_JSON_OBJECT};
    r->spec = &nothing;
    r->metadata = vg_json_object();
    if (err < 0)
        vg_status_no_memory(ret_status);
    return err;
}
