/* apply.c - see apply.h. The steps and their names are those of structured-merge-diff. */
#include "apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "json/equal.h"

#define LAST_APPLIED VG_SLICE_LIT("kubectl.kubernetes.io/last-applied-configuration")

/* One apply: what is known of the two objects while managers are looked at. */
struct step {
    struct vg_apply *x;
    const struct vg_json *old, *now; /* old NULL: a new object */
    struct {
        struct vg_slice api_version;
        struct vg_fields_delta delta;
    } known[2]; /* of the version at hand, and of another */
    uint32_t n_known;
    struct vg_status *status;
};

static int delta_of(void *arg, struct vg_slice api_version, const struct vg_fields_delta **ret)
{
    struct step *s = arg;
    struct vg_apply *x = s->x;
    for (uint32_t i = 0; i < s->n_known; i++)
        if (vg_slice_eq(s->known[i].api_version, api_version)) {
            *ret = &s->known[i].delta;
            return 1;
        }
    uint32_t at = VG_MIN(s->n_known, 1u);
    int err;
    if (vg_slice_eq(api_version, x->who.api_version))
        err = vg_fields_compare(x->arena, x->type, s->old, s->now, x->without, &s->known[at].delta,
                                s->status);
    else if (x->other)
        err = x->other(x->arg, api_version, s->old, s->now, &s->known[at].delta);
    else
        return 0;
    bool is_missing = err == 0 && !vg_slice_eq(api_version, x->who.api_version);
    if (err < 0 || is_missing)
        return err;
    s->known[at].api_version = api_version;
    s->n_known = at + 1;
    *ret = &s->known[at].delta;
    return 1;
}

/* ---- removing what is not applied any more ---- */

static int op(struct vg_apply *x, enum vg_fields_op o, const struct vg_json *p,
              const struct vg_json *q, struct vg_json *ret)
{
    return vg_fields_combine(x->arena, o, p, q, ret);
}

/* The fields of an object, with their parents. */
static int named_fields(struct vg_apply *x, const struct vg_json *v, struct vg_json *ret)
{
    struct vg_json set;
    int err = vg_typed_fields(x->arena, x->type, v, &set);
    return err < 0 ? err : vg_typed_name_parents(x->arena, x->type, &set, ret);
}

/* All that anybody owns in this version. */
static int owned(struct vg_apply *x, struct vg_json *ret)
{
    int err = 0;
    *ret = vg_json_object();
    for (uint32_t i = 0; i < x->managers.n && err == 0; i++)
        if (vg_slice_eq(x->managers.v[i].api_version, x->who.api_version))
            err = op(x, VG_FIELDS_UNION, ret, &x->managers.v[i].fields, ret);
    /* Of the configuration also what nobody owns: it has a name. */
    if (err == 0)
        err = op(x, VG_FIELDS_UNION, ret, &x->all, ret);
    return err < 0 ? err : vg_typed_name_parents(x->arena, x->type, ret, ret);
}

static int prune(struct vg_apply *x, const struct vg_json *last, struct vg_json *merged)
{
    struct vg_json named, pruned, in_merged, in_pruned, kept, gone;
    int err = vg_typed_name_parents(x->arena, x->type, last, &named);
    if (err == 0)
        err = vg_typed_remove(x->arena, x->type, merged, &named, &pruned);
    if (err == 0)
        err = named_fields(x, merged, &in_merged);
    /* What somebody owns comes back. */
    if (err == 0)
        err = named_fields(x, &pruned, &in_pruned);
    if (err == 0)
        err = owned(x, &kept);
    if (err == 0)
        err = op(x, VG_FIELDS_UNION, &in_pruned, &kept, &kept);
    if (err == 0)
        err = op(x, VG_FIELDS_DIFFERENCE, &in_merged, &kept, &gone);
    if (err == 0)
        err = vg_typed_remove(x->arena, x->type, merged, &gone, &pruned);
    /* And so does what nobody ever owned. */
    if (err == 0)
        err = named_fields(x, &pruned, &in_pruned);
    if (err == 0)
        err = op(x, VG_FIELDS_DIFFERENCE, &in_merged, &in_pruned, &gone);
    if (err == 0)
        err = op(x, VG_FIELDS_INTERSECTION, &gone, &named, &gone);
    if (err == 0)
        err = vg_typed_remove(x->arena, x->type, merged, &gone, &pruned);
    if (err == 0)
        *merged = pruned;
    return err;
}

/* ---- conflicts ---- */

struct conflicts {
    struct vg_apply *x;
    struct vg_conflict *v;
    uint32_t n, room;
    const struct vg_manager *manager;
    struct vg_buf path;
};

static int add_conflict(struct conflicts *c)
{
    if (c->n == c->room) {
        uint32_t room = c->room ? 2 * c->room : 8;
        struct vg_conflict *v = vg_arena_array(c->x->arena, struct vg_conflict, (size_t)room + 0);
        if (!v)
            return -ENOMEM;
        if (c->n)
            memcpy(v, c->v, c->n * sizeof *v);
        c->v = v;
        c->room = room;
    }
    struct vg_conflict *one = &c->v[c->n++];
    one->manager = *c->manager;
    return vg_arena_keep(c->x->arena, vg_buf_slice(&c->path), &one->path);
}

/* Members of a level come before what lies below them. */
static int list_conflicts(struct conflicts *c, const struct vg_json *set)
{
    struct vg_fields_span s = vg_fields_children(set);
    size_t n = c->path.n;
    int err = 0;
    for (int below = 0; below < 2; below++)
        for (uint32_t i = 0; i < s.n && err == 0; i++) {
            const struct vg_json *entry = &s.v[i].value;
            if (below ? vg_fields_children(entry).n == 0 : !vg_fields_is_member(entry))
                continue;
            err = vg_element_show(&c->path, vg_json_key(&s.v[i]));
            if (err == 0)
                err = below ? list_conflicts(c, entry) : add_conflict(c);
            c->path.n = n;
        }
    return err;
}

static int by_identity(const void *a, const void *b)
{
    const struct vg_manager *x = *(struct vg_manager *const *)a,
                            *y = *(struct vg_manager *const *)b;
    int c = vg_slice_cmp(x->name, y->name);
    if (c == 0)
        c = (int)y->applies - (int)x->applies;
    if (c == 0 && !x->applies)
        c = vg_slice_cmp(x->api_version, y->api_version);
    if (c == 0) /* no subresource comes last: a brace follows then, and not a comma */
        c = (x->subresource.n == 0) - (y->subresource.n == 0);
    return c ? c : vg_slice_cmp(x->subresource, y->subresource);
}

/* What others own and this apply changes. without: conflicts that are allowed, or NULL. */
static int find_conflicts(struct vg_apply *x, struct step *s, const struct vg_json *without)
{
    struct conflicts c = {.x = x};
    struct vg_manager **sorted =
        vg_arena_array(x->arena, struct vg_manager *, (size_t)x->managers.n + 1);
    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < x->managers.n; i++)
        sorted[i] = &x->managers.v[i];
    qsort(sorted, x->managers.n, sizeof *sorted, by_identity);
    int err = 0;
    for (uint32_t i = 0; i < x->managers.n && err == 0; i++) {
        const struct vg_fields_delta *d;
        struct vg_json both;
        if (vg_manager_is(sorted[i], &x->who))
            continue;
        err = delta_of(s, sorted[i]->api_version, &d);
        if (err <= 0)
            continue;
        err = op(x, VG_FIELDS_INTERSECTION, &sorted[i]->fields, &d->changed, &both);
        if (err == 0 && without)
            err = op(x, VG_FIELDS_DIFFERENCE, &both, without, &both);
        c.manager = sorted[i];
        if (err == 0)
            err = list_conflicts(&c, &both);
    }
    vg_buf_done(&c.path);
    x->conflicts = c.v;
    x->n_conflicts = c.n;
    return err < 0 ? err : 0;
}

/* ---- kubectl's annotation ---- */

static const struct vg_json *annotation(const struct vg_json *root)
{
    const struct vg_json *notes = vg_json_get_str(vg_json_get_str(root, "metadata"), "annotations");
    const struct vg_json *v = notes ? vg_json_get(notes, LAST_APPLIED) : NULL;
    return vg_json_is(v, VG_JSON_STRING) && v->n ? v : NULL;
}

/* What a client-side apply wrote and is still so may be taken over. 1: *ret is that; 0: there is
 * none. */
static int allowed(struct vg_apply *x, struct vg_json *ret)
{
    const struct vg_json *note = x->live ? annotation(x->live) : NULL;
    struct vg_json *last = NULL, set, arranged;
    struct vg_fields_delta d;
    struct vg_status why;
    VG_AUTO(buf) ignored = {0};
    if (!note || vg_json_parse(x->arena, vg_json_text(note), NULL, &last, NULL) < 0 ||
        !vg_slice_eq(vg_json_text(vg_json_get_str(last, "apiVersion")), x->who.api_version))
        return 0;
    int err = vg_typed_check(x->arena, x->type, last, &ignored);
    if (err == 0)
        err = vg_typed_fields(x->arena, x->type, last, &set);
    if (err == 0)
        err = vg_typed_arrange(x->arena, x->type, last, &arranged);
    if (err == 0)
        err = vg_fields_compare(x->arena, x->type, &arranged, x->live, NULL, &d, &why);
    if (err == 0)
        err = op(x, VG_FIELDS_DIFFERENCE, &set, &d.changed, &set);
    if (err == 0)
        err = op(x, VG_FIELDS_DIFFERENCE, &set, &d.removed, ret);
    return err == -ENOMEM ? err : err == 0;
}

/* ---- the apply ---- */

/* An object that nobody owns a part of: all of it is from before. */
static int begin(struct vg_apply *x, struct vg_status *status)
{
    struct step s = {.x = x, .now = x->live, .status = status};
    struct vg_manager before = x->who;
    if (x->managers.n || !x->live)
        return 0;
    before.name = VG_SLICE_LIT("before-first-apply");
    before.applies = false;
    return vg_managers_update(x->arena, &x->managers, &before, delta_of, &s);
}

/* What the write leaves alone, as a set. 0, -ENOMEM. */
static int left_alone(struct vg_apply *x, struct vg_json *ret)
{
    *ret = vg_json_object();
    int err = 0;
    for (const struct vg_fields_path *p = x->without; p && p->top && err == 0; p++) {
        struct vg_json one = vg_json_object(), below = vg_json_object();
        struct vg_slice element;
        if (p->below) {
            err = vg_element_field(x->arena, vg_slice_str(p->below), &element);
            if (err == 0)
                err = vg_json_object_add(x->arena, &below, element, vg_json_object());
        }
        if (err == 0)
            err = vg_element_field(x->arena, vg_slice_str(p->top), &element);
        if (err == 0)
            err = vg_json_object_add(x->arena, &one, element, below);
        if (err == 0)
            err = op(x, VG_FIELDS_UNION, ret, &one, ret);
    }
    return err;
}

/* What the configuration says of fields that can be owned. */
static int wanted(struct vg_apply *x, struct vg_json *ret)
{
#define NOBODYS(name)                                                                              \
    {                                                                                              \
        .key = name, .key_n = sizeof(name) - 1, .value = {.type = VG_JSON_OBJECT }                 \
    }
    static const struct vg_json_member meta[] = {NOBODYS("."),
                                                 NOBODYS("f:clusterName"),
                                                 NOBODYS("f:creationTimestamp"),
                                                 NOBODYS("f:generation"),
                                                 NOBODYS("f:managedFields"),
                                                 NOBODYS("f:name"),
                                                 NOBODYS("f:namespace"),
                                                 NOBODYS("f:resourceVersion"),
                                                 NOBODYS("f:selfLink"),
                                                 NOBODYS("f:uid")};
    struct vg_json_member tops[] = {NOBODYS("f:apiVersion"), NOBODYS("f:kind"),
                                    NOBODYS("f:metadata")};
    tops[2].value.n = VG_ARRAY_LEN(meta);
    tops[2].value.members = (struct vg_json_member *)(uintptr_t)meta; /* only read */
    const struct vg_json nobodys = {
        .type = VG_JSON_OBJECT, .n = VG_ARRAY_LEN(tops), .members = tops};
    struct vg_json set, alone;
    int err = vg_typed_fields(x->arena, x->type, x->config, &set);
    if (err == 0)
        err = left_alone(x, &alone);
    if (err == 0)
        err = op(x, VG_FIELDS_DIFFERENCE_DEEP, &set, &alone, &x->all);
    return err < 0 ? err : op(x, VG_FIELDS_DIFFERENCE, &x->all, &nobodys, ret);
}

/* That becomes what the manager owns; *ret_last is what it was. */
static int take(struct vg_apply *x, struct vg_json *ret_last)
{
    struct vg_json set;
    struct vg_manager *own = vg_managers_find(&x->managers, &x->who);
    bool is_of_version = own && vg_slice_eq(own->api_version, x->who.api_version);
    *ret_last = is_of_version ? own->fields : vg_json_object();
    int err = wanted(x, &set);
    if (err < 0)
        return err;
    if (!own) {
        struct vg_manager one = x->who;
        one.time = VG_SLICE_LIT("");
        one.fields = set;
        return vg_managers_add(x->arena, &x->managers, &one);
    }
    if (!is_of_version) {
        own->api_version = x->who.api_version;
        own->stored = NULL;
    }
    /* The same set, as it is stored, is better than an equal one. */
    if (vg_json_equal(&own->fields, &set) != 1)
        vg_manager_set(own, &set);
    return 0;
}

static int resolve(struct vg_apply *x, struct step *s)
{
    struct vg_json may;
    int err = x->is_forced ? 0 : find_conflicts(x, s, NULL);
    bool is_kubectl = vg_slice_eq(x->who.name, VG_SLICE_LIT("kubectl"));
    if (err == 0 && x->n_conflicts && is_kubectl) {
        err = allowed(x, &may);
        if (err > 0)
            err = find_conflicts(x, s, &may);
    }
    if (err < 0)
        return err;
    return x->n_conflicts ? VIGIL_E_CONFLICT : 0;
}

/* Everybody loses what changed; who owns nothing goes; who changed something has a new time. */
static int settle(struct vg_apply *x, struct step *s)
{
    int err = vg_managers_lose(x->arena, &x->managers, &x->who, delta_of, s);
    struct vg_manager *own = vg_managers_find(&x->managers, &x->who);
    if (err < 0 || !own)
        return err;
    if (vg_fields_is_empty(&own->fields)) {
        vg_managers_remove(&x->managers, (uint32_t)(own - x->managers.v));
    } else if (!x->is_same && !vg_slice_eq(own->time, x->who.time)) {
        own->time = x->who.time;
        own->stored = NULL;
    }
    return 0;
}

int vg_apply(struct vg_apply *x, struct vg_status *reterr_status)
{
    struct vg_json fresh, last;
    const struct vg_json *live = x->live;
    x->who.applies = true;
    x->n_conflicts = 0;
    int err = begin(x, reterr_status);
    if (err == 0 && !live) {
        err = vg_typed_fresh(x->arena, x->type, &fresh);
        live = &fresh;
    }
    if (err == 0)
        err = vg_typed_merge(x->arena, x->type, live, x->config, &x->result);
    if (err == 0)
        err = take(x, &last);
    if (err == 0 && !vg_fields_is_empty(&last))
        err = prune(x, &last, &x->result);
    if (err < 0)
        return err;
    struct step s = {.x = x, .old = x->live, .now = &x->result, .status = reterr_status};
    err = resolve(x, &s);
    int same = err == 0 && x->live ? vg_json_equal(live, &x->result) : 0;
    if (err < 0 || same < 0)
        return err < 0 ? err : same;
    x->is_same = same > 0;
    return settle(x, &s);
}
