/* read.c - FlowSchema and PriorityLevelConfiguration objects, from JSON. The API has validated them
 * with kube-apiserver's rules; what does not make sense nevertheless is left out by the caller. */
#include <errno.h>
#include <stdio.h>

#include "defaults.h"
#include "flow_int.h"
#include "json/json.h"

/* ---- parts ---- */

static struct vg_slice text_of(const struct vg_json *o, const char *key)
{
    return vg_json_text(vg_json_get_str(o, key));
}

static int64_t number_of(const struct vg_json *o, const char *key, int64_t otherwise)
{
    int64_t n;
    const struct vg_json *v = vg_json_get_str(o, key);
    return v && vg_json_to_int64(v, &n) == 0 ? n : otherwise;
}

static uint32_t bounded(int64_t n, uint32_t max)
{
    return n < 0 ? 0 : (uint32_t)VG_MIN(n, (int64_t)max);
}

static size_t count_of(const struct vg_json *list)
{
    return vg_json_is(list, VG_JSON_ARRAY) ? list->n : 0;
}

static int parse(struct vg_arena *a, struct vg_slice json, const struct vg_json **ret)
{
    struct vg_json *root;
    const char *copy = vg_arena_copy(a, json.p, json.n);
    if (!copy)
        return -ENOMEM;
    int r = vg_json_parse(a, vg_slice(copy, json.n), NULL, &root, NULL);
    if (r == 0)
        *ret = root;
    return r == 0 || r == -ENOMEM ? r : VIGIL_E_INVALID;
}

static int read_names(struct vg_arena *a, const struct vg_json *list, struct vg_flow_names *ret)
{
    size_t n = count_of(list);
    struct vg_slice *v = n ? vg_arena_array(a, struct vg_slice, n) : NULL;
    if (n && !v)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        v[i] = vg_json_text(&list->items[i]);
    *ret = (struct vg_flow_names){v, n, n == 1 && vg_slice_eq(v[0], VG_SLICE_LIT("*"))};
    return 0;
}

/* ---- levels ---- */

static int read_limited(const struct vg_json *limited, struct vg_flow_level_spec *s)
{
    const struct vg_json *response = vg_json_get_str(limited, "limitResponse");
    const struct vg_json *queuing = vg_json_get_str(response, "queuing");
    bool is_queue = vg_slice_eq(text_of(response, "type"), VG_SLICE_LIT("Queue"));
    if (!limited || is_queue != vg_json_is(queuing, VG_JSON_OBJECT))
        return VIGIL_E_INVALID;
    s->shares = bounded(number_of(limited, "nominalConcurrencyShares", 30), UINT32_MAX);
    s->lendable_percent = bounded(number_of(limited, "lendablePercent", 0), 100);
    s->borrowing_percent = number_of(limited, "borrowingLimitPercent", -1);
    if (is_queue) {
        s->queues = bounded(number_of(queuing, "queues", 64), VG_FLOW_QUEUES_MAX);
        s->hand = bounded(number_of(queuing, "handSize", 8), VG_FLOW_HAND_MAX);
        s->length = bounded(number_of(queuing, "queueLengthLimit", 50), VG_FLOW_QUEUE_LENGTH_MAX);
        if (s->queues == 0 || s->hand == 0 || s->hand > s->queues)
            return VIGIL_E_INVALID;
    }
    return 0;
}

static int read_level_spec(const struct vg_json *spec, struct vg_flow_level_spec *s)
{
    const struct vg_json *exempt = vg_json_get_str(spec, "exempt");
    s->is_exempt = vg_slice_eq(text_of(spec, "type"), VG_SLICE_LIT("Exempt"));
    /* A level does not change between exempt and limited; kube-apiserver has one exempt level. */
    if (s->is_exempt != vg_slice_eq(s->name, VG_SLICE_LIT("exempt")))
        return VIGIL_E_INVALID;
    s->borrowing_percent = -1;
    if (!s->is_exempt)
        return read_limited(vg_json_get_str(spec, "limited"), s);
    s->shares = bounded(number_of(exempt, "nominalConcurrencyShares", 0), UINT32_MAX);
    s->lendable_percent = bounded(number_of(exempt, "lendablePercent", 0), 100);
    return 0;
}

int vg_flow_read_level(struct vg_arena *a, struct vg_slice json, struct vg_flow_level_spec *ret)
{
    const struct vg_json *o = NULL;
    int r = parse(a, json, &o);
    if (r < 0)
        return r;
    const struct vg_json *meta = vg_json_get_str(o, "metadata");
    struct vg_flow_level_spec s = {.name = text_of(meta, "name"), .uid = text_of(meta, "uid")};
    r = s.name.n ? read_level_spec(vg_json_get_str(o, "spec"), &s) : VIGIL_E_INVALID;
    if (r == 0)
        *ret = s;
    return r;
}

int vg_flow_default_level(struct vg_arena *a, const char *name, struct vg_flow_level_spec *ret)
{
    const struct vg_flow_default *d =
        vg_flow_default_find(vg_flow_default_levels, vg_slice_str(name));
    const struct vg_json *spec = NULL;
    struct vg_flow_level_spec s = {.name = vg_slice_str(name)};
    int r = parse(a, vg_slice_str(d->spec), &spec);
    if (r == 0)
        r = read_level_spec(spec, &s);
    if (r == 0)
        *ret = s;
    return r;
}

/* ---- schemas ---- */

static bool read_subject(const struct vg_json *o, struct vg_flow_subject *ret)
{
    struct vg_slice kind = text_of(o, "kind");
    const struct vg_json *user = vg_json_get_str(o, "user"), *group = vg_json_get_str(o, "group"),
                         *account = vg_json_get_str(o, "serviceAccount");
    if (vg_slice_eq(kind, VG_SLICE_LIT("User")) && user)
        *ret = (struct vg_flow_subject){.kind = VG_FLOW_USER, .name = text_of(user, "name")};
    else if (vg_slice_eq(kind, VG_SLICE_LIT("Group")) && group)
        *ret = (struct vg_flow_subject){.kind = VG_FLOW_GROUP, .name = text_of(group, "name")};
    else if (vg_slice_eq(kind, VG_SLICE_LIT("ServiceAccount")) && account)
        *ret = (struct vg_flow_subject){VG_FLOW_ACCOUNT, text_of(account, "namespace"),
                                        text_of(account, "name")};
    else
        return false;
    return true;
}

static int read_subjects(struct vg_arena *a, const struct vg_json *list, struct vg_flow_rule *ret)
{
    size_t n = count_of(list);
    struct vg_flow_subject *v = vg_arena_array(a, struct vg_flow_subject, n + 1);
    if (!v)
        return -ENOMEM;
    ret->subjects = v;
    for (size_t i = 0; i < n; i++)
        ret->n_subjects += read_subject(&list->items[i], &v[ret->n_subjects]);
    return 0;
}

static int read_resources(struct vg_arena *a, const struct vg_json *list, struct vg_flow_rule *ret)
{
    size_t n = count_of(list);
    struct vg_flow_resource_rule *v = vg_arena_array(a, struct vg_flow_resource_rule, n + 1);
    int r = v ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct vg_json *o = &list->items[i];
        v[i].has_cluster_scope = vg_json_is_true(vg_json_get_str(o, "clusterScope"));
        r = read_names(a, vg_json_get_str(o, "verbs"), &v[i].verbs);
        if (r == 0)
            r = read_names(a, vg_json_get_str(o, "apiGroups"), &v[i].groups);
        if (r == 0)
            r = read_names(a, vg_json_get_str(o, "resources"), &v[i].resources);
        if (r == 0)
            r = read_names(a, vg_json_get_str(o, "namespaces"), &v[i].namespaces);
    }
    ret->resources = v;
    ret->n_resources = n;
    return r;
}

static int read_paths(struct vg_arena *a, const struct vg_json *list, struct vg_flow_rule *ret)
{
    size_t n = count_of(list);
    struct vg_flow_path_rule *v = vg_arena_array(a, struct vg_flow_path_rule, n + 1);
    int r = v ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        r = read_names(a, vg_json_get_str(&list->items[i], "verbs"), &v[i].verbs);
        if (r == 0)
            r = read_names(a, vg_json_get_str(&list->items[i], "nonResourceURLs"), &v[i].paths);
    }
    ret->paths = v;
    ret->n_paths = n;
    return r;
}

static int read_rules(struct vg_arena *a, const struct vg_json *list, struct vg_flow_schema *s)
{
    size_t n = count_of(list);
    struct vg_flow_rule *v = vg_arena_array(a, struct vg_flow_rule, n + 1);
    int r = v ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct vg_json *o = &list->items[i];
        v[i] = (struct vg_flow_rule){0};
        r = read_subjects(a, vg_json_get_str(o, "subjects"), &v[i]);
        if (r == 0)
            r = read_resources(a, vg_json_get_str(o, "resourceRules"), &v[i]);
        if (r == 0)
            r = read_paths(a, vg_json_get_str(o, "nonResourceRules"), &v[i]);
    }
    s->rules = v;
    s->n_rules = n;
    return r;
}

static int read_schema_spec(struct vg_arena *a, const struct vg_json *spec,
                            struct vg_flow_schema *s)
{
    struct vg_slice by = text_of(vg_json_get_str(spec, "distinguisherMethod"), "type");
    s->level_name = text_of(vg_json_get_str(spec, "priorityLevelConfiguration"), "name");
    s->precedence = number_of(spec, "matchingPrecedence", 1000);
    s->distinguisher = vg_slice_eq(by, VG_SLICE_LIT("ByUser"))        ? VG_FLOW_BY_USER
                       : vg_slice_eq(by, VG_SLICE_LIT("ByNamespace")) ? VG_FLOW_BY_NAMESPACE
                                                                      : VG_FLOW_BY_NONE;
    return read_rules(a, vg_json_get_str(spec, "rules"), s);
}

int vg_flow_read_schema(struct vg_arena *a, struct vg_slice json, struct vg_flow_schema *ret)
{
    const struct vg_json *o = NULL;
    int r = parse(a, json, &o);
    if (r < 0)
        return r;
    const struct vg_json *meta = vg_json_get_str(o, "metadata");
    struct vg_flow_schema s = {.name = text_of(meta, "name"), .uid = text_of(meta, "uid")};
    r = s.name.n ? read_schema_spec(a, vg_json_get_str(o, "spec"), &s) : VIGIL_E_INVALID;
    if (r == 0)
        *ret = s;
    return r;
}

int vg_flow_default_schema(struct vg_arena *a, const char *name, struct vg_flow_schema *ret)
{
    const struct vg_flow_default *d =
        vg_flow_default_find(vg_flow_default_schemas, vg_slice_str(name));
    const struct vg_json *spec = NULL;
    struct vg_flow_schema s = {.name = vg_slice_str(name)};
    int r = parse(a, vg_slice_str(d->spec), &spec);
    if (r == 0)
        r = read_schema_spec(a, spec, &s);
    if (r == 0)
        *ret = s;
    return r;
}
