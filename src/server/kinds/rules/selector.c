/* selector.c - label selectors as objects: may they select, and what; see workload.h. */
#include "workload.h"

static bool is_op(const struct vg_json *expression, const char *op)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(expression, "operator")), vg_slice_str(op));
}

static bool is_set_op(const struct vg_json *expression)
{
    return is_op(expression, "In") || is_op(expression, "NotIn");
}

static bool is_valid_expression(const struct vg_json *e)
{
    const struct vg_json *values = vg_json_get_str(e, "values");
    size_t n = vg_json_is(values, VG_JSON_ARRAY) ? values->n : 0;
    if (!is_set_op(e) && !is_op(e, "Exists") && !is_op(e, "DoesNotExist"))
        return false;
    if (is_set_op(e) != (n > 0) ||
        !vg_validate_label_key(vg_json_text(vg_json_get_str(e, "key")), NULL))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!vg_validate_label_value(vg_json_text(&values->items[i]), NULL))
            return false;
    return true;
}

bool vg_selector_is_valid(const struct vg_json *selector)
{
    const struct vg_json *labels = vg_json_get_str(selector, "matchLabels");
    const struct vg_json *expressions = vg_json_get_str(selector, "matchExpressions");
    if (labels)
        VG_JSON_FOREACH_MEMBER (m, labels)
            if (!vg_validate_label_key(vg_json_key(m), NULL) ||
                !vg_validate_label_value(vg_json_text(&m->value), NULL))
                return false;
    if (expressions)
        VG_JSON_FOREACH_ITEM (e, expressions)
            if (!is_valid_expression(e))
                return false;
    return true;
}

static bool is_among(const struct vg_json *values, struct vg_slice text)
{
    if (values)
        VG_JSON_FOREACH_ITEM (v, values)
            if (vg_slice_eq(vg_json_text(v), text))
                return true;
    return false;
}

static bool matches_expression(struct vg_check *c, const struct vg_json *e,
                               struct vg_json_lookup *labels)
{
    struct vg_slice key = vg_json_text(vg_json_get_str(e, "key"));
    const struct vg_json *has = vg_check_find(c, labels, key, UINT32_MAX);
    const struct vg_json *values = vg_json_get_str(e, "values");
    if (is_op(e, "Exists"))
        return has;
    if (is_op(e, "DoesNotExist"))
        return !has;
    bool is_in = has && is_among(values, vg_json_text(has));
    return is_op(e, "In") ? is_in : !is_in;
}

/* Does the map have all of these, and no other values of them? */
static bool has_labels(struct vg_check *c, const struct vg_json *wanted,
                       struct vg_json_lookup *labels)
{
    for (uint32_t i = 0; vg_json_is(wanted, VG_JSON_OBJECT) && i < wanted->n; i++) {
        const struct vg_json_member *m = &wanted->members[i];
        const struct vg_json *has = vg_check_find(c, labels, vg_json_key(m), i);
        if (!has || !vg_slice_eq(vg_json_text(has), vg_json_text(&m->value)))
            return false;
    }
    return true;
}

bool vg_labels_match(struct vg_check *c, const struct vg_json *wanted, const struct vg_json *labels)
{
    VG_AUTO(json_lookup) lookup;
    vg_json_lookup_init(&lookup, labels);
    return has_labels(c, wanted, &lookup);
}

bool vg_selector_matches(struct vg_check *c, const struct vg_json *selector,
                         const struct vg_json *labels)
{
    const struct vg_json *expressions = vg_json_get_str(selector, "matchExpressions");
    VG_AUTO(json_lookup) lookup;
    vg_json_lookup_init(&lookup, labels);
    if (!vg_json_is(selector, VG_JSON_OBJECT) ||
        !has_labels(c, vg_json_get_str(selector, "matchLabels"), &lookup))
        return false;
    if (expressions)
        VG_JSON_FOREACH_ITEM (e, expressions)
            if (!matches_expression(c, e, &lookup))
                return false;
    return true;
}

bool vg_selector_is_empty(const struct vg_json *selector)
{
    const struct vg_json *labels = vg_json_get_str(selector, "matchLabels");
    const struct vg_json *expressions = vg_json_get_str(selector, "matchExpressions");
    return (!labels || labels->n == 0) && (!expressions || expressions->n == 0);
}

void vg_check_owner_selector(struct vg_check *c, const struct vg_at *selector, const char *owner)
{
    if (!vg_at_is_set(selector)) {
        vg_required(c, selector, NULL);
        return;
    }
    vg_check_label_selector(c, selector);
    if (vg_selector_is_empty(selector->v))
        vg_bad(c, selector, "empty selector is invalid for %s", owner);
}

void vg_check_selects_template(struct vg_check *c, const struct vg_json *selector,
                               const struct vg_at *template)
{
    struct vg_at meta = vg_at(template, "metadata"), labels = vg_at(&meta, "labels");
    if (!vg_selector_matches(c, selector, labels.v))
        vg_bad(c, &labels, "`selector` does not match template `labels`");
}
