/* pod_scheduling.c - where a pod may go: affinities, spread and tolerations. Node selectors are
 * those of persistent volumes too. */
#include "base/buf.h"
#include "pod_int.h"

/* ---- node selectors ---- */

static void check_node_expression(struct vg_check *c, const struct vg_at *at, bool is_preferred)
{
    struct vg_at key = vg_at(at, "key"), values = vg_at(at, "values");
    vg_check_selector_operator(c, at, true);
    (void)vg_check_qualified(c, &key);
    if (!is_preferred)
        VG_CHECK_EACH (c, value, &values)
            (void)vg_check_label_value(c, &value);
}

static void check_node_field(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at operator= vg_at(at, "operator"), key = vg_at(at, "key");
    struct vg_at values = vg_at(at, "values");
    if (!vg_at_is(&operator, "In") && !vg_at_is(&operator, "NotIn"))
        vg_bad_text(c, &operator, "not a valid selector operator");
    else if (vg_at_n(&values) != 1)
        vg_required(
            c, &values,
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
    if (!vg_at_is(&key, "metadata.name"))
        vg_bad_text(c, &key, "not a valid field selector key");
    else
        VG_CHECK_EACH (c, value, &values)
            (void)vg_check_dns_subdomain(c, &value);
}

static void check_node_term(struct vg_check *c, const struct vg_at *at, bool is_preferred)
{
    struct vg_at expressions = vg_at(at, "matchExpressions"), fields = vg_at(at, "matchFields");
    VG_CHECK_EACH (c, e, &expressions)
        check_node_expression(c, &e, is_preferred);
    VG_CHECK_EACH (c, f, &fields)
        check_node_field(c, &f);
}

void vg_check_node_selector(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at terms = vg_at(at, "nodeSelectorTerms");
    if (vg_at_n(&terms) == 0)
        vg_required(c, &terms, "must have at least one node selector term");
    VG_CHECK_EACH (c, term, &terms)
        check_node_term(c, &term, false);
}

/* ---- affinities ---- */

static void check_weight(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at weight = vg_at(at, "weight");
    if (vg_at_int(&weight) < 1 || vg_at_int(&weight) > 100)
        vg_bad_int(c, &weight, "must be in the range 1-100");
}

static void check_node_affinity(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at required = vg_at(at, "requiredDuringSchedulingIgnoredDuringExecution");
    struct vg_at preferred = vg_at(at, "preferredDuringSchedulingIgnoredDuringExecution");
    if (vg_at_is_set(&required))
        vg_check_node_selector(c, &required);
    VG_CHECK_EACH (c, it, &preferred) {
        struct vg_at term = vg_at(&it, "preference");
        check_weight(c, &it);
        check_node_term(c, &term, true);
    }
}

static void check_label_keys(struct vg_check *c, const struct vg_at *keys, bool has_selector)
{
    if (vg_at_n(keys) && !has_selector) {
        vg_forbidden(c, keys, "must not be specified when labelSelector is not set");
        return;
    }
    VG_CHECK_EACH (c, key, keys)
        (void)vg_check_qualified(c, &key);
}

/* The server has added matchLabelKeys to the selector: who finds them there twice wrote them there
 * himself. */
static void check_doubled_keys(struct vg_check *c, const struct vg_at *at, const struct vg_at *keys,
                               const struct vg_at *selector)
{
    struct vg_at labels = vg_at(selector, "matchLabels");
    struct vg_at expressions = vg_at(selector, "matchExpressions");
    VG_AUTO(names) wanted = {0};
    VG_AUTO(names) seen = {0};
    VG_CHECK_EACH (c, key, keys)
        (void)vg_names_add(c, &wanted, vg_at_text(&key), key.v);
    if (labels.v)
        VG_JSON_FOREACH_MEMBER (m, labels.v)
            (void)vg_names_add(c, &seen, vg_json_key(m), NULL);
    VG_CHECK_EACH (c, e, &expressions) {
        struct vg_slice text = vg_json_text(vg_json_get_str(e.v, "key"));
        const struct vg_json *v = NULL;
        bool is_new = vg_names_add(c, &seen, text, NULL);
        if (is_new || !vg_names_find(&wanted, text, &v))
            continue;
        struct vg_at blamed = *at; /* of the term, at the place of the key: as there */
        struct vg_at item = {
            .up = &blamed, .v = v, .index = (uint32_t)(v - keys->v->items), .step = VG_AT_ITEM};
        vg_bad_text(c, &item, "exists in both matchLabelKeys and labelSelector");
    }
}

static void check_match_keys(struct vg_check *c, const struct vg_at *at, bool has_mismatch)
{
    struct vg_at selector = vg_at(at, "labelSelector"), keys = vg_at(at, "matchLabelKeys");
    struct vg_at other = vg_at(at, "mismatchLabelKeys");
    VG_AUTO(names) others = {0};
    check_label_keys(c, &keys, vg_at_is_set(&selector));
    if (has_mismatch)
        check_label_keys(c, &other, vg_at_is_set(&selector));
    if (vg_at_n(&keys) && vg_at_is_set(&selector))
        check_doubled_keys(c, at, &keys, &selector);
    if (!has_mismatch || vg_at_n(&keys) == 0)
        return;
    VG_CHECK_EACH (c, key, &other)
        (void)vg_names_add(c, &others, vg_at_text(&key), NULL);
    VG_CHECK_EACH (c, key, &keys)
        if (vg_names_has(&others, vg_at_text(&key)))
            vg_bad_text(c, &key, "exists in both matchLabelKeys and mismatchLabelKeys");
}

static void check_pod_term(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at selector = vg_at(at, "labelSelector"), ns = vg_at(at, "namespaceSelector");
    struct vg_at names = vg_at(at, "namespaces"), key = vg_at(at, "topologyKey");
    vg_check_label_selector(c, &selector);
    vg_check_label_selector(c, &ns);
    VG_CHECK_EACH (c, name, &names) {
        struct vg_at blamed = vg_at_of(at, "namespace", name.v);
        (void)vg_check_dns_label(c, &blamed);
    }
    check_match_keys(c, at, true);
    if (vg_at_text(&key).n == 0)
        vg_required(c, &key, "can not be empty");
    (void)vg_check_qualified(c, &key);
}

static void check_pod_affinity(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at required = vg_at(at, "requiredDuringSchedulingIgnoredDuringExecution");
    struct vg_at preferred = vg_at(at, "preferredDuringSchedulingIgnoredDuringExecution");
    VG_CHECK_EACH (c, term, &required)
        check_pod_term(c, &term);
    VG_CHECK_EACH (c, it, &preferred) {
        struct vg_at term = vg_at(&it, "podAffinityTerm");
        check_weight(c, &it);
        check_pod_term(c, &term);
    }
}

void vg_pod_check_affinity(struct vg_pod *p)
{
    struct vg_at at = vg_at(p->spec, "affinity"), nodes = vg_at(&at, "nodeAffinity");
    struct vg_at pods = vg_at(&at, "podAffinity"), anti = vg_at(&at, "podAntiAffinity");
    check_node_affinity(p->c, &nodes);
    check_pod_affinity(p->c, &pods);
    check_pod_affinity(p->c, &anti);
}

/* ---- spread ---- */

static const char *const actions[] = {"DoNotSchedule", "ScheduleAnyway", NULL};
static const char *const inclusions[] = {"Honor", "Ignore", NULL};

static void check_domains(struct vg_check *c, const struct vg_at *at, const struct vg_at *action)
{
    struct vg_at domains = vg_at(at, "minDomains");
    if (!vg_at_is_set(&domains))
        return;
    (void)vg_check_positive(c, &domains);
    if (!vg_at_is(action, "DoNotSchedule"))
        vg_bad_int(c, &domains,
                   "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not %.*s",
                   VG_SLICE_ARG(vg_at_text(action)));
}

/* {key, action}, which stand together once. */
static struct vg_slice pair_of(struct vg_check *c, const struct vg_json *constraint)
{
    struct vg_slice pair = {0};
    struct vg_slice key = vg_json_text(vg_json_get_str(constraint, "topologyKey"));
    struct vg_slice action = vg_json_text(vg_json_get_str(constraint, "whenUnsatisfiable"));
    if (vg_arena_printf(c->arena, &pair, "{%.*s, %.*s}", VG_SLICE_ARG(key), VG_SLICE_ARG(action)) <
        0)
        c->errors->failed = true;
    return pair;
}

/* Each pair, with the last constraint that has it. */
static void gather_pairs(struct vg_check *c, const struct vg_json *list, struct vg_names *last)
{
    for (uint32_t i = list->n; i-- > 0;)
        (void)vg_names_add(c, last, pair_of(c, &list->items[i]), &list->items[i]);
}

/* Of several with the same pair all but the last are blamed. */
static void check_repeated(struct vg_check *c, const struct vg_at *at, const struct vg_names *last)
{
    struct vg_slice pair = pair_of(c, at->v);
    struct vg_at blamed = vg_at_of(at, "{topologyKey, whenUnsatisfiable}", NULL);
    const struct vg_json *other = NULL;
    if (vg_names_find(last, pair, &other) && other != at->v)
        vg_duplicate_value(c, &blamed, vg_json_quoted(c, pair));
}

void vg_pod_check_spread(struct vg_pod *p)
{
    struct vg_at list = vg_at(p->spec, "topologySpreadConstraints");
    struct vg_check *c = p->c;
    VG_AUTO(names) last = {0};
    if (vg_at_n(&list) > 1)
        gather_pairs(c, list.v, &last);
    VG_CHECK_EACH (p->c, at, &list) {
        struct vg_at skew = vg_at(&at, "maxSkew"), key = vg_at(&at, "topologyKey");
        struct vg_at action = vg_at(&at, "whenUnsatisfiable");
        struct vg_at affinity = vg_at(&at, "nodeAffinityPolicy");
        struct vg_at taints = vg_at(&at, "nodeTaintsPolicy"),
                     selector = vg_at(&at, "labelSelector");
        (void)vg_check_positive(c, &skew);
        if (vg_at_text(&key).n == 0)
            vg_required(c, &key, "can not be empty");
        (void)vg_check_one_of(c, &action, actions);
        if (vg_at_n(&list) > 1)
            check_repeated(c, &at, &last);
        check_domains(c, &at, &action);
        if (vg_at_is_set(&affinity))
            (void)vg_check_one_of(c, &affinity, inclusions);
        if (vg_at_is_set(&taints))
            (void)vg_check_one_of(c, &taints, inclusions);
        check_match_keys(c, &at, false);
        vg_check_label_selector(c, &selector);
    }
}

/* ---- tolerations ---- */

static void check_equal(struct vg_check *c, const struct vg_at *at, const struct vg_at *value)
{
    struct vg_name_reasons why = {0};
    struct vg_at operator= vg_at(at, "operator");
    VG_AUTO(buf) b = {0};
    if (vg_validate_label_value(vg_at_text(value), &why))
        return;
    for (uint32_t i = 0; i < why.n; i++)
        c->errors->failed |= vg_buf_printf(&b, "%s%s", i ? ";" : "", why.v[i]) < 0;
    vg_bad_value(c, &operator, vg_json_quoted(c, vg_at_text(value)), "%.*s",
                 VG_SLICE_ARG(vg_buf_slice(&b)));
}

static void check_operator(struct vg_check *c, const struct vg_at *at)
{
    static const char *const compared[] = {"Equal", "Exists", "Lt", "Gt", NULL};
    static const char *const supported[] = {"Equal", "Exists", NULL};
    struct vg_at operator= vg_at(at, "operator"), value = vg_at(at, "value");
    if (vg_at_text(&operator).n == 0 || vg_at_is(&operator, "Equal"))
        check_equal(c, at, &value);
    else if (vg_at_is(&operator, "Lt") || vg_at_is(&operator, "Gt"))
        vg_unsupported(c, &operator, compared);
    else if (vg_check_one_of(c, &operator, supported) && vg_at_text(&value).n)
        vg_bad_value(c, &operator, vg_json_quoted(c, vg_at_text(&value)),
                     "value must be empty when `operator` is 'Exists'");
}

void vg_pod_check_tolerations(struct vg_check *c, const struct vg_at *at)
{
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
    VG_CHECK_EACH (c, it, at) {
        struct vg_at key = vg_at(&it, "key"), operator= vg_at(&it, "operator");
        struct vg_at effect = vg_at(&it, "effect"), seconds = vg_at(&it, "tolerationSeconds");
        if (vg_at_text(&key).n)
            (void)vg_check_qualified(c, &key);
        else if (!vg_at_is(&operator, "Exists"))
            vg_bad_text(c, &operator,
                        "operator must be Exists when `key` is empty, which means \"match all "
                        "values and all keys\"");
        if (vg_at_is_set(&seconds) && !vg_at_is(&effect, "NoExecute"))
            vg_bad_text(c, &effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
        check_operator(c, &it);
        if (vg_at_text(&effect).n)
            (void)vg_check_one_of(c, &effect, effects);
    }
}
