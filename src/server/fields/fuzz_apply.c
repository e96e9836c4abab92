/* fuzz_apply.c - managers apply and update the data of a ConfigMap in any order, and a model of who
 * owns which key says the same. Each operation is four bytes: who and how, which keys, two of
 * values. */
#include <stdlib.h>

#include "apply.h"
#include "server/kinds/types.h"
#include "server/schema/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEYS 8u
#define APPLIERS 3u
#define UPDATERS 1u
#define OPS_MAX 64u

static const char *const names[] = {"f:a", "f:b", "f:c", "f:d", "f:e", "f:f", "f:g", "f:h"};
static const char *const values[] = {"0", "1", "2", "3"};
static const char *const managers[] = {"m0", "m1", "m2", "u0"};

struct model {
    int value[KEYS];       /* -1: absent */
    unsigned owners[KEYS]; /* a bit each */
};

struct world {
    struct vg_arena a;
    const struct vg_schema_type *type;
    struct model model;
    struct vg_json live;
    bool exists;
    struct vg_managers managers;
};

static void check(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static struct vg_slice key_of(unsigned k)
{
    return vg_slice(names[k] + 2, 1);
}

/* {"data":{...}} of the keys that have values. */
static struct vg_json object_of(struct world *w, const int value[KEYS])
{
    struct vg_json root = vg_json_object(), map = vg_json_object();
    for (unsigned k = 0; k < KEYS; k++)
        if (value[k] >= 0)
            check(vg_json_object_add(&w->a, &map, key_of(k),
                                     vg_json_string_ref(vg_slice_str(values[value[k]]))) == 0);
    if (map.n) /* an empty map is a field of its own */
        check(vg_json_object_add(&w->a, &root, VG_SLICE_LIT("data"), map) == 0);
    return root;
}

static struct vg_manager who_is(unsigned m)
{
    return (struct vg_manager){.name = vg_slice_str(managers[m]),
                               .api_version = VG_SLICE_LIT("v1"),
                               .subresource = VG_SLICE_LIT(""),
                               .time = VG_SLICE_LIT("2026-01-01T00:00:00Z"),
                               .applies = m < APPLIERS};
}

static bool owns(const struct world *w, unsigned m, unsigned k)
{
    struct vg_manager like = who_is(m);
    const struct vg_manager *found = vg_managers_find(&w->managers, &like);
    const struct vg_json *map =
        found ? vg_fields_find(&found->fields, VG_SLICE_LIT("f:data")) : NULL;
    const struct vg_json *key = map ? vg_fields_find(map, vg_slice_str(names[k])) : NULL;
    return key && vg_fields_is_member(key);
}

static void check_world(const struct world *w)
{
    const struct vg_json *map = vg_json_get_str(&w->live, "data");
    for (unsigned k = 0; k < KEYS; k++) {
        const struct vg_json *v = map ? vg_json_get(map, key_of(k)) : NULL;
        int want = w->model.value[k];
        check(want < 0 ? !v : v && vg_slice_eq(vg_json_text(v), vg_slice_str(values[want])));
        for (unsigned m = 0; m < APPLIERS + UPDATERS; m++)
            check(owns(w, m, k) == (w->model.owners[k] >> m & 1));
    }
}

/* ---- the model ---- */

static unsigned model_conflicts(const struct model *x, unsigned m, const int config[KEYS])
{
    unsigned n = 0;
    for (unsigned k = 0; k < KEYS; k++)
        for (unsigned other = 0; other < APPLIERS + UPDATERS; other++)
            n += config[k] >= 0 && config[k] != x->value[k] && other != m &&
                 (x->owners[k] >> other & 1);
    return n;
}

static void model_apply(struct model *x, unsigned m, const int config[KEYS])
{
    for (unsigned k = 0; k < KEYS; k++) {
        bool was = x->owners[k] >> m & 1;
        if (config[k] >= 0) {
            x->owners[k] = config[k] == x->value[k] ? x->owners[k] | 1u << m : 1u << m;
            x->value[k] = config[k];
        } else if (was) {
            x->owners[k] &= ~(1u << m);
            if (x->owners[k] == 0)
                x->value[k] = -1;
        }
    }
}

static void model_update(struct model *x, unsigned m, const int now[KEYS])
{
    for (unsigned k = 0; k < KEYS; k++) {
        if (now[k] != x->value[k])
            x->owners[k] = now[k] >= 0 ? 1u << m : 0;
        x->value[k] = now[k];
    }
}

/* ---- the real thing ---- */

static int do_apply(struct world *w, unsigned m, const int config[KEYS], bool is_forced,
                    struct vg_apply *x)
{
    struct vg_status why;
    struct vg_json *tree = vg_arena_new(&w->a, struct vg_json);
    check(tree);
    *tree = object_of(w, config);
    *x = (struct vg_apply){.arena = &w->a,
                           .type = w->type,
                           .live = w->exists ? &w->live : NULL,
                           .config = tree,
                           .who = who_is(m),
                           .is_forced = is_forced,
                           .managers = w->managers};
    return vg_apply(x, &why);
}

static void keep(struct world *w, const struct vg_apply *x)
{
    check(vg_schema_arrange(&w->a, w->type, &x->result, &w->live) == 0); /* as it is stored */
    w->exists = true;
    w->managers = x->managers;
}

static int delta_of(void *arg, struct vg_slice api_version, const struct vg_fields_delta **ret)
{
    (void)api_version;
    *ret = arg;
    return 1;
}

static void do_update(struct world *w, unsigned m, const int now[KEYS])
{
    struct vg_manager who = who_is(m);
    struct vg_fields_delta d;
    struct vg_status why;
    struct vg_json next = object_of(w, now);
    check(vg_fields_compare(&w->a, w->type, &w->live, &next, NULL, &d, &why) == 0);
    check(vg_managers_update(&w->a, &w->managers, &who, delta_of, &d) == 0);
    w->live = next;
}

static void apply_one(struct world *w, unsigned m, const int config[KEYS], bool is_forced)
{
    struct vg_managers before = {0};
    for (uint32_t i = 0; i < w->managers.n; i++)
        check(vg_managers_add(&w->a, &before, &w->managers.v[i]) == 0);
    struct vg_apply x;
    unsigned conflicts = is_forced ? 0 : model_conflicts(&w->model, m, config);
    int err = do_apply(w, m, config, is_forced, &x);
    if (conflicts) {
        check(err == VIGIL_E_CONFLICT && x.n_conflicts == conflicts);
        w->managers = before; /* a refused apply has used its list up */
        return;
    }
    check(err == 0);
    keep(w, &x);
    model_apply(&w->model, m, config);
    check_world(w);
    check(do_apply(w, m, config, false, &x) == 0 && x.is_same);
    keep(w, &x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {
        .type = vg_schema_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), VG_SLICE_LIT("ConfigMap"))};
    for (unsigned k = 0; k < KEYS; k++)
        w.model.value[k] = -1;
    for (size_t i = 0; i + 4 <= size && i < 4 * OPS_MAX; i += 4) {
        unsigned m = data[i] % (APPLIERS + UPDATERS),
                 bits = data[i + 2] | (unsigned)data[i + 3] << 8;
        int value[KEYS];
        for (unsigned k = 0; k < KEYS; k++)
            value[k] = data[i + 1] >> k & 1 ? (int)(bits >> 2 * k & 3) : -1;
        if (m < APPLIERS)
            apply_one(&w, m, value, data[i] & 64);
        else if (w.exists && w.managers.n) {
            do_update(&w, m, value);
            model_update(&w.model, m, value);
        }
        if (w.exists)
            check_world(&w);
    }
    vg_arena_done(&w.a);
    return 0;
}
