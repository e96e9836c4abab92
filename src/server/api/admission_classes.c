/* admission_classes.c - plugins that look up a class: DefaultStorageClass and DefaultIngressClass
 * name the default one, RuntimeClass brings what a pod needs beside its containers; and
 * TaintNodesByCondition, which lets no pod onto a node that has not said yet that it is ready. */
#include "admission.h"

#include <errno.h>

#include "server/kinds/rules/pod.h"
#include "server/schema/default.h"
#include "json/equal.h"

/* ---- the default of a kind ---- */

static bool is_default(const struct vg_json *meta, const char *const *annotations)
{
    const struct vg_json *map = vg_json_get_str(meta, "annotations");
    for (; *annotations; annotations++)
        if (vg_slice_eq(vg_json_text(vg_json_get_str(map, *annotations)), VG_SLICE_LIT("true")))
            return true;
    return false;
}

/* The newest of those that say so, the first by name of equals; in scratch; empty: none. */
static int default_of(struct vg_change *c, const struct vg_kind *kind,
                      const char *const *annotations, struct vg_slice *ret)
{
    struct vg_slice newest = {0};
    struct vg_admission_walk w;
    const struct vg_rec *rec;
    struct vg_json *root;
    int r = 0;
    *ret = VG_SLICE_LIT("");
    if (!vg_admission_walk(&w, c->call->loop->api->cacher, kind, VG_SLICE_LIT("")))
        return 0;
    while (r == 0 && (rec = vg_admission_next(&w))) {
        r = vg_admission_read(c, rec, &root);
        const struct vg_json *meta = r == 0 ? vg_json_get_str(root, "metadata") : NULL;
        struct vg_slice created = vg_json_text(vg_json_get_str(meta, "creationTimestamp"));
        if (!meta || !is_default(meta, annotations) ||
            (ret->n && vg_slice_cmp(created, newest) <= 0))
            continue;
        r = vg_arena_keep(&c->scratch, created, &newest);
        if (r == 0)
            r = vg_arena_keep(&c->scratch, vg_json_text(vg_json_get_str(meta, "name")), ret);
    }
    vg_admission_walk_end(&w);
    return r;
}

static int set_default(struct vg_change *c, struct vg_json *root, const char *name,
                       const struct vg_kind *kind, const char *const *annotations)
{
    struct vg_json *spec;
    struct vg_slice class;
    if (vg_json_get_str(vg_json_get_str(root, "spec"), name))
        return 0;
    int r = default_of(c, kind, annotations, &class);
    if (r < 0 || class.n == 0)
        return r;
    r = vg_default_object(&c->scratch, root, "spec", &spec);
    return r < 0 ? r
                 : vg_json_object_set(&c->scratch, spec, vg_slice_str(name),
                                      vg_json_string_ref(class));
}

int vg_storage_class_set(struct vg_change *c, struct vg_json *root, const struct vg_meta *m)
{
    static const char *const annotations[] = {"storageclass.kubernetes.io/is-default-class",
                                              "storageclass.beta.kubernetes.io/is-default-class",
                                              NULL};
    if (vg_json_get_str(m->annotations, "volume.beta.kubernetes.io/storage-class"))
        return 0;
    return set_default(c, root, "storageClassName", c->call->loop->api->admission->storage_classes,
                       annotations);
}

int vg_ingress_class_set(struct vg_change *c, struct vg_json *root, const struct vg_meta *m)
{
    static const char *const annotations[] = {"ingressclass.kubernetes.io/is-default-class", NULL};
    if (vg_json_get_str(m->annotations, "kubernetes.io/ingress.class"))
        return 0;
    return set_default(c, root, "ingressClassName", c->call->loop->api->admission->ingress_classes,
                       annotations);
}

/* ---- runtime classes ---- */

/* What a pod's class says, in scratch and of its own; NULL: it names none. */
static int runtime_class(struct vg_change *c, const struct vg_json *spec, struct vg_slice pod,
                         struct vg_json **ret)
{
    const struct vg_json *wanted = vg_json_get_str(spec, "runtimeClassName");
    struct vg_json *root;
    *ret = NULL;
    if (!vg_json_is(wanted, VG_JSON_STRING))
        return 0;
    struct vg_rec *rec = vg_admission_get(c, c->call->loop->api->admission->runtime_classes,
                                          VG_SLICE_LIT(""), vg_json_text(wanted));
    if (!rec)
        return vg_admission_refuse(
            c, pod, "pod rejected: RuntimeClass %.*s not found",
            VG_SLICE_ARG(vg_api_quote(&c->call->ask->arena, vg_json_text(wanted))));
    int r = vg_admission_read(c, rec, &root);
    *ret = r == 0 ? vg_arena_new(&c->scratch, struct vg_json) : NULL;
    if (r == 0)
        r = *ret ? vg_json_clone(&c->scratch, root, *ret) : -ENOMEM;
    vg_rec_unref(rec);
    return r;
}

static int set_selector(struct vg_change *c, struct vg_json *spec, const struct vg_json *from,
                        struct vg_slice pod)
{
    struct vg_json *to;
    int r = from && from->n ? vg_default_object(&c->scratch, spec, "nodeSelector", &to) : 0;
    if (r < 0 || !from || from->n == 0)
        return r;
    VG_JSON_FOREACH_MEMBER (m, from) {
        const struct vg_json *has = vg_json_get(to, vg_json_key(m));
        struct vg_slice key = vg_json_key(m);
        if (r == 0 && has && !vg_slice_eq(vg_json_text(has), vg_json_text(&m->value)))
            r = vg_admission_refuse(c, pod,
                                    "conflict: runtimeClass.scheduling.nodeSelector[%.*s] = %.*s; "
                                    "pod.spec.nodeSelector[%.*s] = %.*s",
                                    VG_SLICE_ARG(key), VG_SLICE_ARG(vg_json_text(&m->value)),
                                    VG_SLICE_ARG(key), VG_SLICE_ARG(vg_json_text(has)));
        if (r == 0)
            r = vg_json_object_set(&c->scratch, to, key, m->value);
    }
    return r;
}

/* Those that the pod does not have already. */
static int add_tolerations(struct vg_change *c, struct vg_json *spec, const struct vg_json *from)
{
    const struct vg_json *has = vg_json_get_str(spec, "tolerations");
    struct vg_json all = vg_json_is(has, VG_JSON_ARRAY) ? *has : vg_json_array();
    int r = 0;
    if (!from || from->n == 0)
        return 0;
    VG_JSON_FOREACH_ITEM (it, from) {
        int same = 0;
        VG_JSON_FOREACH_ITEM (x, &all)
            same = same ? same : vg_json_equal(x, it);
        if (r == 0)
            r = same < 0 ? same : 0;
        if (same == 0 && r == 0)
            r = vg_json_array_push(&c->scratch, &all, *it);
    }
    return r < 0 ? r : vg_json_object_set(&c->scratch, spec, VG_SLICE_LIT("tolerations"), all);
}

/* 1: as the class says; 0; -ENOMEM. */
static int is_overhead(const struct vg_json *class, const struct vg_json *has)
{
    const struct vg_json *fixed = vg_json_get_str(vg_json_get_str(class, "overhead"), "podFixed");
    return fixed && has ? vg_json_equal(fixed, has) : fixed == has;
}

#define OVERHEAD_DIFFERS                                                                           \
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"

/* 0: it is, or there is none to compare. */
static int check_overhead(struct vg_change *c, const struct vg_json *class,
                          const struct vg_json *has, struct vg_slice name)
{
    int r = is_overhead(class, has);
    return r < 0 ? r : r == 1 ? 0 : vg_admission_refuse(c, name, OVERHEAD_DIFFERS);
}

int vg_runtime_class_set(struct vg_change *c, struct vg_json *root, struct vg_slice name)
{
    struct vg_json *spec = vg_json_get_str(root, "spec"), *class;
    int r = runtime_class(c, spec, name, &class);
    if (r < 0 || !class)
        return r;
    const struct vg_json *overhead = vg_json_get_str(class, "overhead");
    const struct vg_json *fixed = vg_json_get_str(overhead, "podFixed");
    const struct vg_json *has = vg_json_get_str(spec, "overhead");
    const struct vg_json *scheduling = vg_json_get_str(class, "scheduling");
    r = vg_admission_forget_source(class);
    if (r == 0)
        r = vg_pod_tolerate(&c->scratch, spec); /* those come first, as there */
    if (r == 0 && overhead && has && has->n)
        r = check_overhead(c, class, has, name);
    if (r == 0 && fixed)
        r = vg_json_object_set(&c->scratch, spec, VG_SLICE_LIT("overhead"), *fixed);
    if (r == 0)
        r = set_selector(c, spec, vg_json_get_str(scheduling, "nodeSelector"), name);
    return r < 0 ? r : add_tolerations(c, spec, vg_json_get_str(scheduling, "tolerations"));
}

int vg_runtime_class_check(struct vg_change *c, const struct vg_json *root)
{
    const struct vg_json *spec = vg_json_get_str(root, "spec");
    const struct vg_json *has = vg_json_get_str(spec, "overhead");
    struct vg_json *class;
    if (!has && !vg_json_get_str(spec, "runtimeClassName"))
        return 0;
    int r = runtime_class(c, spec, c->name, &class);
    if (r < 0)
        return r;
    if (vg_json_get_str(class, "overhead"))
        return check_overhead(c, class, has, c->name);
    return has ? vg_admission_refuse(c, c->name,
                                     "pod rejected: Pod Overhead set without corresponding "
                                     "RuntimeClass defined Overhead")
               : 0;
}

/* ---- nodes ---- */

int vg_taint_set(struct vg_change *c, struct vg_json *root)
{
    struct vg_arena *a = &c->scratch;
    struct vg_json *spec, taint = vg_json_object();
    int r = vg_default_object(a, root, "spec", &spec);
    if (r < 0)
        return r;
    const struct vg_json *list = vg_json_get_str(spec, "taints");
    struct vg_json all = vg_json_is(list, VG_JSON_ARRAY) ? *list : vg_json_array();
    VG_JSON_FOREACH_ITEM (it, &all)
        if (vg_slice_eq(vg_json_text(vg_json_get_str(it, "key")),
                        VG_SLICE_LIT("node.kubernetes.io/not-ready")) &&
            vg_slice_eq(vg_json_text(vg_json_get_str(it, "effect")), VG_SLICE_LIT("NoSchedule")))
            return 0;
    r = vg_default_text(a, &taint, "key", "node.kubernetes.io/not-ready");
    if (r == 0)
        r = vg_default_text(a, &taint, "effect", "NoSchedule");
    if (r == 0)
        r = vg_json_array_push(a, &all, taint);
    return r < 0 ? r : vg_json_object_set(a, spec, VG_SLICE_LIT("taints"), all);
}
