/* admission_priority.c - the plugin Priority: a pod's number comes from its class, or from the one
 * that is the default of all. Which one that is, each loop remembers until a class changes. */
#include "admission.h"

#include <errno.h>
#include <stdio.h>

/* What a class says. */
struct class
{
    struct vg_slice name; /* empty: there is none */
    int64_t value;
    struct vg_slice policy; /* empty: it says nothing */
};

static int read_class(struct vg_change *c, const struct vg_rec *rec, struct class *ret,
                      bool *ret_is_default)
{
    struct vg_json *root;
    int r = vg_admission_read(c, rec, &root);
    if (r < 0)
        return r;
    *ret = (struct class){0};
    ret->name = vg_json_text(vg_json_get_str(vg_json_get_str(root, "metadata"), "name"));
    if (vg_json_to_int64(vg_json_get_str(root, "value"), &ret->value) < 0)
        ret->value = 0;
    ret->policy = vg_json_text(vg_json_get_str(root, "preemptionPolicy"));
    *ret_is_default = vg_json_is_true(vg_json_get_str(root, "globalDefault"));
    return 0;
}

/* The one with the lowest value, should there be several. Lives as long as the walk. */
static int find_default(struct vg_change *c, struct vg_admission_walk *w, struct class *ret)
{
    const struct vg_rec *rec;
    int r = 0;
    *ret = (struct class){0};
    while (r == 0 && (rec = vg_admission_next(w))) {
        struct class one;
        bool is_default = false;
        r = read_class(c, rec, &one, &is_default);
        if (r == 0 && is_default && (ret->name.n == 0 || one.value < ret->value))
            *ret = one;
    }
    return r;
}

static struct class from_memo(const struct vg_priority_memo *m)
{
    return (struct class){.name = vg_slice(m->name, m->name_n),
                          .value = m->value,
                          .policy = vg_slice(m->policy, m->policy_n)};
}

static void keep_memo(struct vg_priority_memo *m, const struct class *k, vg_rev rev)
{
    if (k->name.n > sizeof m->name || k->policy.n > sizeof m->policy)
        return; /* no such name is let in */
    *m = (struct vg_priority_memo){.rev = rev,
                                   .value = k->value,
                                   .name_n = (uint8_t)k->name.n,
                                   .policy_n = (uint8_t)k->policy.n};
    if (k->name.n)
        memcpy(m->name, k->name.p, k->name.n);
    if (k->policy.n)
        memcpy(m->policy, k->policy.p, k->policy.n);
}

/* For pods that name no class. */
static int default_class(struct vg_change *c, struct class *ret)
{
    struct vg_api_loop *l = c->call->loop;
    const struct vg_kind *kind = l->api->admission->priority_classes;
    struct vg_priority_memo *memo = &l->priority;
    vg_rev rev = vg_cache_glance(l->api->cacher, vg_kind_index(kind)).rev;
    struct vg_admission_walk w;
    int r = 0;
    if (memo->rev == 0 || rev != memo->rev) {
        struct class found = {0};
        if (vg_admission_walk(&w, l->api->cacher, kind, VG_SLICE_LIT(""))) {
            rev = vg_root_rev(w.snap.root);
            r = find_default(c, &w, &found);
            if (r == 0)
                keep_memo(memo, &found, rev);
            vg_admission_walk_end(&w);
        } else {
            keep_memo(memo, &found, rev);
        }
    }
    *ret = from_memo(memo);
    if (ret->name.n == 0)
        *ret = (struct class){.policy = VG_SLICE_LIT("PreemptLowerPriority")};
    return r;
}

static int named_class(struct vg_change *c, struct vg_slice wanted, struct vg_slice pod,
                       struct class *ret)
{
    struct vg_rec *rec = vg_admission_get(c, c->call->loop->api->admission->priority_classes,
                                          VG_SLICE_LIT(""), wanted);
    bool is_default;
    if (!rec)
        return vg_admission_refuse(c, pod, "no PriorityClass with name %.*s was found",
                                   VG_SLICE_ARG(wanted));
    int r = read_class(c, rec, ret, &is_default);
    if (r == 0)
        r = vg_arena_keep(&c->scratch, ret->policy, &ret->policy);
    ret->name = wanted;
    vg_rec_unref(rec);
    return r;
}

/* ---- pods ---- */

static int set_text(struct vg_change *c, struct vg_json *spec, const char *name, struct vg_slice s)
{
    struct vg_json v;
    int r = vg_json_make_string(&c->scratch, s, &v);
    return r < 0 ? r : vg_json_object_set(&c->scratch, spec, vg_slice_str(name), v);
}

static int set_value(struct vg_change *c, struct vg_json *spec, int64_t value)
{
    struct vg_json v;
    int r = vg_json_make_int(&c->scratch, value, &v);
    return r < 0 ? r : vg_json_object_set(&c->scratch, spec, VG_SLICE_LIT("priority"), v);
}

/* What the class says is the pod's; a pod that says otherwise is refused. */
static int take(struct vg_change *c, struct vg_json *spec, const struct class *k,
                struct vg_slice pod)
{
    const struct vg_json *given = vg_json_get_str(spec, "priority");
    struct vg_slice policy = vg_json_text(vg_json_get_str(spec, "preemptionPolicy"));
    int64_t value;
    if (vg_json_to_int64(given, &value) == 0 && value != k->value)
        return vg_admission_refuse(c, pod,
                                   "the integer value of priority (%lld) must not be provided in "
                                   "pod spec; priority admission controller computed %lld from "
                                   "the given PriorityClass name",
                                   (long long)value, (long long)k->value);
    int r = given ? 0 : set_value(c, spec, k->value);
    if (r == 0 && k->name.n && vg_json_text(vg_json_get_str(spec, "priorityClassName")).n == 0)
        r = set_text(c, spec, "priorityClassName", k->name);
    if (r < 0 || k->policy.n == 0)
        return r;
    if (policy.n && !vg_slice_eq(policy, k->policy))
        return vg_admission_refuse(c, pod,
                                   "the string value of PreemptionPolicy (%.*s) must not be "
                                   "provided in pod spec; priority admission controller computed "
                                   "%.*s from the given PriorityClass name",
                                   VG_SLICE_ARG(policy), VG_SLICE_ARG(k->policy));
    return policy.n ? 0 : set_text(c, spec, "preemptionPolicy", k->policy);
}

/* An update that does not say them leaves them as they are. */
static int keep(struct vg_change *c, struct vg_json *spec, const struct vg_json *old)
{
    static const char *const names[] = {"priority", "preemptionPolicy"};
    int r = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(names) && r == 0; i++) {
        const struct vg_json *was = vg_json_get_str(vg_json_get_str(old, "spec"), names[i]);
        if (was && !vg_json_get_str(spec, names[i]))
            r = vg_json_object_set(&c->scratch, spec, vg_slice_str(names[i]), *was);
    }
    return r;
}

int vg_priority_set(struct vg_change *c, struct vg_json *root, const struct vg_json *old,
                    struct vg_slice name)
{
    struct vg_json *spec = vg_json_get_str(root, "spec");
    struct class k = {0};
    if (!vg_json_is(spec, VG_JSON_OBJECT))
        return 0;
    if (old)
        return keep(c, spec, old);
    struct vg_slice wanted = vg_json_text(vg_json_get_str(spec, "priorityClassName"));
    int r = wanted.n ? named_class(c, wanted, name, &k) : default_class(c, &k);
    return r < 0 ? r : take(c, spec, &k, name);
}

/* ---- classes ---- */

/* One class alone is the default. */
int vg_priority_check(struct vg_change *c, const struct vg_json *root, const struct vg_json *old)
{
    const struct vg_kind *kind = c->call->loop->api->admission->priority_classes;
    struct vg_admission_walk w;
    struct class k;
    if (!vg_json_is_true(vg_json_get_str(root, "globalDefault")) ||
        !vg_admission_walk(&w, c->call->loop->api->cacher, kind, VG_SLICE_LIT("")))
        return 0;
    int r = find_default(c, &w, &k);
    if (r == 0 && k.name.n && !(old && vg_slice_eq(k.name, c->name)))
        r = vg_admission_refuse(c, c->name,
                                "PriorityClass %.*s is already marked as default. Only one "
                                "default can exist",
                                VG_SLICE_ARG(k.name));
    vg_admission_walk_end(&w);
    return r;
}
