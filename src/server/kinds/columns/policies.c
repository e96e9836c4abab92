/* policies.c - parameters of admission policies, flow schemas, services of APIs, device claims,
 * components. */
#include "cell.h"

/* ---- a selector as Go prints the struct ---- */

static void put_struct_labels(struct vg_cell *c, const struct vg_json *map)
{
    struct vg_texts keys = {0};
    for (size_t i = 0; vg_json_is(map, VG_JSON_OBJECT) && i < map->n; i++)
        vg_texts_add(c, &keys, vg_json_key(&map->members[i]));
    vg_texts_sort(&keys);
    vg_cell_puts(c, "MatchLabels:map[string]string{");
    for (size_t i = 0; i < VG_MIN(keys.n, VG_CELL_LOOK_MAX); i++) {
        struct vg_slice value = vg_json_text(vg_json_get(map, keys.v[i]));
        vg_cell_printf(c, "%.*s: %.*s,", VG_SLICE_ARG(keys.v[i]), VG_SLICE_ARG(value));
    }
    vg_cell_puts(c, "},");
}

static void put_struct_expression(struct vg_cell *c, const struct vg_json *e)
{
    size_t n;
    const struct vg_json *values = vg_cell_items(e, "values", &n);
    vg_cell_printf(c, "LabelSelectorRequirement{Key:%.*s,Operator:%.*s,Values:[",
                   VG_SLICE_ARG(vg_cell_text(e, "key")), VG_SLICE_ARG(vg_cell_text(e, "operator")));
    for (size_t i = 0; i < n; i++)
        vg_cell_printf(c, "%s%.*s", i ? " " : "", VG_SLICE_ARG(vg_json_text(&values[i])));
    vg_cell_puts(c, "],},");
}

static void put_struct(struct vg_cell *c, const struct vg_json *selector)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(selector, "matchExpressions", &n);
    vg_cell_puts(c, "&LabelSelector{");
    put_struct_labels(c, vg_cell_at(selector, "matchLabels"));
    vg_cell_puts(c, "MatchExpressions:[]LabelSelectorRequirement{");
    for (size_t i = 0; i < n; i++)
        put_struct_expression(c, &items[i]);
    vg_cell_puts(c, "},}");
}

void vg_cell_param_ref(struct vg_cell *c)
{
    const struct vg_json *ref = vg_cell_at(c->v, "spec.paramRef");
    struct vg_slice name = vg_cell_text(ref, "name"), ns = vg_cell_text(ref, "namespace");
    const struct vg_json *selector = vg_cell_at(ref, "selector");
    if (name.n)
        vg_cell_printf(c, "%.*s/%.*s", VG_SLICE_ARG((ns.n ? ns : VG_SLICE_LIT("*"))),
                       VG_SLICE_ARG(name));
    else if (selector)
        put_struct(c, selector);
    else
        vg_cell_puts(c, "<unset>");
}

/* ---- others ---- */

/* Is the priority level that a flow schema names missing? */
void vg_cell_missing_level(struct vg_cell *c)
{
    const struct vg_json *condition = vg_cell_condition(c->v, "Dangling");
    vg_cell_put(c, condition ? vg_cell_text(condition, "status") : VG_SLICE_LIT("?"));
}

void vg_cell_service_available(struct vg_cell *c)
{
    const struct vg_json *condition = vg_cell_condition(c->v, "Available");
    struct vg_slice why = vg_cell_text(condition, "reason");
    vg_cell_put(c, condition ? vg_cell_text(condition, "status") : VG_SLICE_LIT("Unknown"));
    if (why.n && !vg_cell_is(condition, "status", "True"))
        vg_cell_printf(c, " (%.*s)", VG_SLICE_ARG(why));
}

/* Of a claim of devices. */
void vg_cell_claim_state(struct vg_cell *c)
{
    bool is_deleted = vg_cell_is_set(c->v, "metadata.deletionTimestamp");
    size_t n;
    (void)vg_cell_items(c->v, "status.reservedFor", &n);
    if (is_deleted)
        vg_cell_puts(c, "deleted");
    if (vg_cell_is_set(c->v, "status.allocation"))
        vg_cell_join(c, ",", n ? VG_SLICE_LIT("allocated,reserved") : VG_SLICE_LIT("allocated"));
    else if (!is_deleted)
        vg_cell_puts(c, "pending");
}

/* ---- components ---- */

static const struct vg_json *health(const struct vg_cell *c)
{
    size_t n;
    const struct vg_json *items = vg_cell_items(c->v, "conditions", &n);
    for (size_t i = 0; i < n; i++)
        if (vg_cell_is(&items[i], "type", "Healthy"))
            return &items[i];
    return NULL;
}

void vg_cell_component_status(struct vg_cell *c)
{
    const struct vg_json *condition = health(c);
    vg_cell_puts(c, !condition                                ? "Unknown"
                    : vg_cell_is(condition, "status", "True") ? "Healthy"
                                                              : "Unhealthy");
}

void vg_cell_component_message(struct vg_cell *c)
{
    vg_cell_put(c, vg_cell_text(health(c), "message"));
}

void vg_cell_component_error(struct vg_cell *c)
{
    vg_cell_put(c, vg_cell_text(health(c), "error"));
}
