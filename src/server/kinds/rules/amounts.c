/* amounts.c - see amounts.h. How containers add up: those that run side by side are added, with
 * sidecars among the init containers; an init container runs beside the sidecars that are before
 * it, and the largest of these moments counts if it is more. */
#include "amounts.h"

#include <errno.h>

/* ---- lists ---- */

/* The one of that name; NULL: it is not there, and *ret_place is where it would be. */
static struct vg_amount *look_up(const struct vg_amounts *list, struct vg_slice name,
                                 uint32_t *ret_place)
{
    uint32_t lo = 0, hi = list->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int c = vg_slice_cmp(list->v[mid].name, name);
        if (c == 0)
            return &list->v[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret_place = lo;
    return NULL;
}

const struct vg_amount *vg_amounts_find(const struct vg_amounts *list, struct vg_slice name)
{
    uint32_t place;
    return look_up(list, name, &place);
}

static int insert(struct vg_arena *a, struct vg_amounts *list, uint32_t at, struct vg_slice name,
                  const struct vg_quantity *q)
{
    if (list->n == list->room) {
        size_t room = list->room ? (size_t)list->room * 2 : 8;
        struct vg_amount *v = vg_arena_array(a, struct vg_amount, room);
        if (!v)
            return -ENOMEM;
        if (list->n)
            memcpy(v, list->v, list->n * sizeof *v);
        list->v = v;
        list->room = (uint32_t)room;
    }
    memmove(list->v + at + 1, list->v + at, (list->n - at) * sizeof *list->v);
    list->v[at] = (struct vg_amount){name, *q};
    list->n++;
    return 0;
}

/* The quantity of that name to be changed; NULL in *ret: it was not there, and is `q` now. */
static int find_or_insert(struct vg_arena *a, struct vg_amounts *list, struct vg_slice name,
                          const struct vg_quantity *q, struct vg_quantity **ret)
{
    uint32_t place = 0;
    struct vg_amount *x = look_up(list, name, &place);
    *ret = x ? &x->q : NULL;
    return x ? 0 : insert(a, list, place, name, q);
}

int vg_amounts_set(struct vg_arena *a, struct vg_amounts *list, struct vg_slice name,
                   const struct vg_quantity *q)
{
    struct vg_quantity *was;
    int err = find_or_insert(a, list, name, q, &was);
    if (was)
        *was = *q;
    return err;
}

int vg_amounts_add(struct vg_arena *a, struct vg_amounts *list, struct vg_slice name,
                   const struct vg_quantity *q)
{
    struct vg_quantity *was;
    int err = find_or_insert(a, list, name, q, &was);
    if (was)
        err = vg_quantity_add(was, q);
    return err == -ERANGE ? 0 : err;
}

int vg_amounts_raise(struct vg_arena *a, struct vg_amounts *list, struct vg_slice name,
                     const struct vg_quantity *q)
{
    struct vg_quantity *was;
    int err = find_or_insert(a, list, name, q, &was);
    if (was && vg_quantity_cmp(q, was) > 0)
        *was = *q;
    return err;
}

int vg_amounts_each(struct vg_arena *a, struct vg_amounts *list, const struct vg_amounts *with,
                    vg_amounts_fn *fn)
{
    int err = 0;
    for (uint32_t i = 0; i < with->n && err == 0; i++)
        err = fn(a, list, with->v[i].name, &with->v[i].q);
    return err;
}

int vg_amounts_each_of(struct vg_arena *a, struct vg_amounts *list, const struct vg_json *map,
                       vg_amounts_fn *fn)
{
    struct vg_quantity q;
    int err = 0;
    if (map)
        VG_JSON_FOREACH_MEMBER (m, map)
            if (err == 0 && vg_json_quantity(&m->value, &q))
                err = fn(a, list, vg_json_key(m), &q);
    return err;
}

/* ---- pods ---- */

struct sum {
    struct vg_arena *a;
    const struct vg_json *pod;
    const char *map; /* "requests", "limits" */
    bool as_used;
};

static bool is_for_pods(struct vg_slice name, bool as_used)
{
    return vg_slice_eq(name, VG_SLICE_LIT("cpu")) || vg_slice_eq(name, VG_SLICE_LIT("memory")) ||
           (as_used && vg_resource_is_huge(name));
}

static bool says(const struct vg_json *map)
{
    if (map)
        VG_JSON_FOREACH_MEMBER (m, map)
            if (is_for_pods(vg_json_key(m), true))
                return true;
    return false;
}

bool vg_amounts_pod_says(const struct vg_json *pod)
{
    const struct vg_json *of = vg_json_get_str(vg_json_get_str(pod, "spec"), "resources");
    return says(vg_json_get_str(of, "requests")) || says(vg_json_get_str(of, "limits"));
}

static const struct vg_json *status_in(const struct vg_json *list, struct vg_slice name)
{
    if (list)
        VG_JSON_FOREACH_ITEM (it, list)
            if (vg_slice_eq(vg_json_text(vg_json_get_str(it, "name")), name))
                return it;
    return NULL;
}

static const struct vg_json *status_of(const struct vg_json *pod, struct vg_slice name)
{
    const struct vg_json *status = vg_json_get_str(pod, "status");
    const struct vg_json *it = status_in(vg_json_get_str(status, "initContainerStatuses"), name);
    return it ? it : status_in(vg_json_get_str(status, "containerStatuses"), name);
}

/* What was asked for will not come. */
static bool is_infeasible(const struct vg_json *pod)
{
    const struct vg_json *list = vg_json_get_str(vg_json_get_str(pod, "status"), "conditions");
    if (list)
        VG_JSON_FOREACH_ITEM (it, list)
            if (vg_slice_eq(vg_json_text(vg_json_get_str(it, "type")),
                            VG_SLICE_LIT("PodResizePending")))
                return vg_slice_eq(vg_json_text(vg_json_get_str(it, "reason")),
                                   VG_SLICE_LIT("Infeasible"));
    return false;
}

/* One container's: what it asks for, or what it has if that is more. */
static int of_container(const struct sum *s, const struct vg_json *container, bool has_status,
                        struct vg_amounts *ret)
{
    const struct vg_json *asked = vg_json_get_str(vg_json_get_str(container, "resources"), s->map);
    *ret = (struct vg_amounts){0};
    const struct vg_json *status =
        s->as_used && has_status
            ? status_of(s->pod, vg_json_text(vg_json_get_str(container, "name")))
            : NULL;
    const struct vg_json *has = vg_json_get_str(status, "resources");
    int err = 0;
    if (!has || !is_infeasible(s->pod))
        err = vg_amounts_each_of(s->a, ret, asked, vg_amounts_raise);
    if (err == 0 && has)
        err = vg_amounts_each_of(s->a, ret, vg_json_get_str(has, s->map), vg_amounts_raise);
    if (err == 0 && has && strcmp(s->map, "requests") == 0)
        err = vg_amounts_each_of(s->a, ret, vg_json_get_str(status, "allocatedResources"),
                                 vg_amounts_raise);
    return err;
}

static bool is_sidecar(const struct vg_json *container)
{
    return vg_slice_eq(vg_json_text(vg_json_get_str(container, "restartPolicy")),
                       VG_SLICE_LIT("Always"));
}

static int add_init(const struct sum *s, const struct vg_json *list, struct vg_amounts *sum)
{
    struct vg_amounts sidecars = {0}, most = {0}, one;
    int err = 0;
    VG_JSON_FOREACH_ITEM (it, list) {
        bool is = is_sidecar(it);
        if (err == 0)
            err = of_container(s, it, is, &one);
        if (err == 0 && is)
            err = vg_amounts_each(s->a, sum, &one, vg_amounts_add);
        if (err == 0 && is)
            err = vg_amounts_each(s->a, &sidecars, &one, vg_amounts_add);
        else if (err == 0)
            err = vg_amounts_each(s->a, &one, &sidecars, vg_amounts_add);
        if (err == 0)
            err = vg_amounts_each(s->a, &most, is ? &sidecars : &one, vg_amounts_raise);
    }
    return err < 0 ? err : vg_amounts_each(s->a, sum, &most, vg_amounts_raise);
}

/* What the pod says as a whole is in the place of its containers' sum. */
static int say_for_pod(const struct sum *s, struct vg_amounts *sum)
{
    const struct vg_json *of = vg_json_get_str(vg_json_get_str(s->pod, "spec"), "resources");
    const struct vg_json *map = vg_json_get_str(of, s->map);
    struct vg_quantity q;
    int err = 0;
    if (map)
        VG_JSON_FOREACH_MEMBER (m, map)
            if (err == 0 && is_for_pods(vg_json_key(m), s->as_used) &&
                vg_json_quantity(&m->value, &q))
                err = vg_amounts_set(s->a, sum, vg_json_key(m), &q);
    return err;
}

/* Limits that are not given or 0 stay so. */
static int add_overhead(const struct sum *s, struct vg_amounts *sum)
{
    const struct vg_json *map = vg_json_get_str(vg_json_get_str(s->pod, "spec"), "overhead");
    bool is_limits = strcmp(s->map, "limits") == 0;
    struct vg_quantity q;
    int err = 0;
    if (map)
        VG_JSON_FOREACH_MEMBER (m, map) {
            const struct vg_amount *at = vg_amounts_find(sum, vg_json_key(m));
            if (is_limits && (!at || vg_quantity_sign(&at->q) == 0))
                continue;
            if (err == 0 && vg_json_quantity(&m->value, &q))
                err = vg_amounts_add(s->a, sum, vg_json_key(m), &q);
        }
    return err;
}

int vg_amounts_of_pod(struct vg_arena *a, const struct vg_json *pod, enum vg_amounts_of which,
                      bool as_used, struct vg_amounts *ret)
{
    struct sum s = {a, pod, which == VG_REQUESTS ? "requests" : "limits", as_used};
    const struct vg_json *spec = vg_json_get_str(pod, "spec");
    const struct vg_json *containers = vg_json_get_str(spec, "containers");
    const struct vg_json *init = vg_json_get_str(spec, "initContainers");
    struct vg_amounts one;
    int err = 0;
    *ret = (struct vg_amounts){0};
    if (containers)
        VG_JSON_FOREACH_ITEM (it, containers) {
            if (err == 0)
                err = of_container(&s, it, true, &one);
            if (err == 0)
                err = vg_amounts_each(a, ret, &one, vg_amounts_add);
        }
    if (err == 0 && init)
        err = add_init(&s, init, ret);
    if (err == 0)
        err = say_for_pod(&s, ret);
    return err == 0 && as_used ? add_overhead(&s, ret) : err;
}
