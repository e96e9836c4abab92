/* admission.c - the switches of the plugins, and which of them an object meets; see admission.h. */
#include "admission.h"

#include <errno.h>
#include <stdarg.h>

#include "status_int.h"

/* ---- switches ---- */

static const struct plugin {
    const char *name;
    enum vg_plugin bit;
    bool is_on; /* unless it is switched off */
} plugins[] = {
    {"LimitRanger", VG_PLUGIN_LIMIT_RANGER, true},
    /* A stock cluster has these two on; here nobody would mount the token, and nothing would take
     * the taint away again. */
    {"ServiceAccount", VG_PLUGIN_SERVICE_ACCOUNT, false},
    {"TaintNodesByCondition", VG_PLUGIN_TAINT_NODES, false},
    {"Priority", VG_PLUGIN_PRIORITY, true},
    {"DefaultStorageClass", VG_PLUGIN_STORAGE_CLASS, true},
    {"RuntimeClass", VG_PLUGIN_RUNTIME_CLASS, true},
    {"DefaultIngressClass", VG_PLUGIN_INGRESS_CLASS, true},
    {"ResourceQuota", VG_PLUGIN_QUOTA, true},
};

/* What they do is done always, by other rooms. */
static const char *const always[] = {"NamespaceLifecycle", "DefaultTolerationSeconds",
                                     "StorageObjectInUseProtection", "AlwaysAdmit"};
/* Names of kube-apiserver's that do nothing here: switching them off is fine. */
static const char *const never[] = {"NamespaceAutoProvision",
                                    "NamespaceExists",
                                    "LimitPodHardAntiAffinityTopology",
                                    "NodeRestriction",
                                    "AlwaysPullImages",
                                    "ImagePolicyWebhook",
                                    "PodSecurity",
                                    "PodNodeSelector",
                                    "PodTolerationRestriction",
                                    "EventRateLimit",
                                    "ExtendedResourceToleration",
                                    "PodGroupProtection",
                                    "OwnerReferencesPermissionEnforcement",
                                    "PersistentVolumeClaimResize",
                                    "CertificateApproval",
                                    "CertificateSigning",
                                    "ClusterTrustBundleAttest",
                                    "CertificateSubjectRestriction",
                                    "DenyServiceExternalIPs",
                                    "PodTopologyLabels",
                                    "PodGroupWorkloadExists",
                                    "NodeDeclaredFeatureValidator",
                                    "JobValidation",
                                    "PodResizeValidator",
                                    "MutatingAdmissionPolicy",
                                    "MutatingAdmissionWebhook",
                                    "ValidatingAdmissionPolicy",
                                    "ValidatingAdmissionWebhook",
                                    "AlwaysDeny"};

static bool is_among(struct vg_slice name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (vg_slice_eq(name, vg_slice_str(list[i])))
            return true;
    }
    return false;
}

/* The plugins of a list, as bits. */
static int parse_list(const char *list, bool is_on, unsigned *ret, struct vg_status *reterr_status)
{
    const char *flag = is_on ? "enable-admission-plugins" : "disable-admission-plugins";
    struct vg_slice rest = vg_slice_str(list ? list : "");
    while (rest.n) {
        struct vg_slice name = vg_cut(&rest, ',');
        const struct plugin *p = plugins;
        while (p < plugins + VG_ARRAY_LEN(plugins) && !vg_slice_eq(name, vg_slice_str(p->name)))
            p++;
        if (p < plugins + VG_ARRAY_LEN(plugins)) {
            *ret |= 1u << p->bit;
            continue;
        }
        bool is_always = is_among(name, always, VG_ARRAY_LEN(always));
        bool is_never = is_among(name, never, VG_ARRAY_LEN(never));
        if (!is_always && !is_never)
            return vg_fail(reterr_status, VIGIL_E_INVALID, "%s plugin \"%.*s\" is unknown", flag,
                           VG_SLICE_ARG(name));
        if (is_on ? is_never : is_always)
            return vg_fail(reterr_status, VIGIL_E_INVALID, "%s: \"%.*s\" is %s", flag,
                           VG_SLICE_ARG(name),
                           is_on ? "not served by vigil" : "a part of vigil and always on");
    }
    return 0;
}

int vg_admission_parse(const char *enable, const char *disable, unsigned *ret_set,
                       struct vg_status *reterr_status)
{
    unsigned set = 0, on = 0, off = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(plugins); i++)
        set |= plugins[i].is_on ? 1u << plugins[i].bit : 0;
    int r = parse_list(enable, true, &on, reterr_status);
    if (r == 0)
        r = parse_list(disable, false, &off, reterr_status);
    if (r < 0)
        return r;
    if (on & off)
        return vg_fail(reterr_status, VIGIL_E_INVALID,
                       "a plugin is in enable-admission-plugins and in "
                       "disable-admission-plugins");
    *ret_set = (set | on) & ~off;
    return 0;
}

static const struct vg_kind *find(const char *group, const char *resource)
{
    return vg_kind_find(vg_slice_str(group), VG_SLICE_LIT("v1"), vg_slice_str(resource));
}

void vg_admission_init(struct vg_admission *ad, unsigned set)
{
    ad->set = set;
    ad->pods = find("", "pods");
    ad->claims = find("", "persistentvolumeclaims");
    ad->nodes = find("", "nodes");
    ad->ingresses = find("networking.k8s.io", "ingresses");
    ad->priority_classes = find("scheduling.k8s.io", "priorityclasses");
    ad->limit_ranges = find("", "limitranges");
    ad->quotas = find("", "resourcequotas");
    ad->storage_classes = find("storage.k8s.io", "storageclasses");
    ad->ingress_classes = find("networking.k8s.io", "ingressclasses");
    ad->accounts = find("", "serviceaccounts");
    ad->runtime_classes = find("node.k8s.io", "runtimeclasses");
}

void vg_admission_note(struct vg_admission *ad, const struct vg_kind *kind, vg_rev rev)
{
    if (kind != ad->priority_classes && kind != ad->limit_ranges && kind != ad->quotas &&
        kind != ad->storage_classes && kind != ad->ingress_classes && kind != ad->runtime_classes &&
        (kind != ad->accounts || !vg_admission_has(ad, VG_PLUGIN_SERVICE_ACCOUNT)))
        return;
    uint64_t seen = atomic_load_explicit(&ad->rev, memory_order_relaxed);
    while (seen < rev && !atomic_compare_exchange_weak_explicit(
                             &ad->rev, &seen, rev, memory_order_release, memory_order_relaxed))
        ;
}

/* ---- what the plugins look at ---- */

int vg_admission_refuse(struct vg_change *c, struct vg_slice name, const char *fmt, ...)
{
    struct vg_slice why;
    va_list ap;
    va_start(ap, fmt);
    int r = vg_arena_printf_v(&c->call->ask->arena, &why, fmt, ap);
    va_end(ap);
    if (r < 0)
        vg_status_no_memory(&c->status);
    else
        vg_status_forbidden(&c->call->ask->arena, &c->status, c->kind, name, "%.*s",
                            VG_SLICE_ARG(why));
    return VIGIL_E_FORBIDDEN;
}

bool vg_admission_walk(struct vg_admission_walk *w, struct vg_cacher *cacher,
                       const struct vg_kind *kind, struct vg_slice ns)
{
    size_t index = vg_kind_index(kind);
    struct vg_slice prefix = vg_slice_str(kind->prefix);
    if (prefix.n + ns.n + 1 > sizeof w->prefix.bytes || vg_cache_glance(cacher, index).objects == 0)
        return false;
    memcpy(w->prefix.bytes, prefix.p, prefix.n);
    if (ns.n) {
        memcpy(w->prefix.bytes + prefix.n, ns.p, ns.n);
        w->prefix.bytes[prefix.n + ns.n] = '/';
    }
    w->prefix.n = (uint32_t)(prefix.n + ns.n + (ns.n > 0));
    if (vg_cache_newest(cacher, index, &w->snap) < 0)
        return false;
    vg_root_seek(&w->cursor, w->snap.root,
                 (struct vg_tree_key){.minor = vg_obj_key_slice(&w->prefix)});
    return true;
}

const struct vg_rec *vg_admission_next(struct vg_admission_walk *w)
{
    const struct vg_rec *rec = vg_cursor_next(&w->cursor);
    return rec && vg_slice_has_prefix(vg_rec_key(rec), vg_obj_key_slice(&w->prefix)) ? rec : NULL;
}

void vg_admission_walk_end(struct vg_admission_walk *w)
{
    vg_cache_snapshot_done(&w->snap);
}

int vg_admission_read(struct vg_change *c, const struct vg_rec *rec, struct vg_json **ret)
{
    struct vg_json_opts opts = {.scratch = &c->call->loop->scratch, .max_depth = VG_JSON_DEPTH_MAX};
    int r = vg_json_parse(&c->scratch, vg_rec_value(rec), &opts, ret, NULL);
    return r == 0 || r == -ENOMEM ? r : VIGIL_E_STORE_DAMAGED;
}

int vg_admission_forget_source(struct vg_json *v)
{
    struct vg_json_walk w;
    int r;
    vg_json_walk_init(&w, v);
    while ((r = vg_json_walk_next(&w)) > 0)
        w.node->begin = w.node->end = 0;
    vg_json_walk_done(&w);
    return r;
}

struct vg_rec *vg_admission_get(struct vg_change *c, const struct vg_kind *kind, struct vg_slice ns,
                                struct vg_slice name)
{
    struct vg_cache_snapshot snap;
    struct vg_obj_key key;
    if (vg_obj_key_make(vg_slice_str(kind->prefix), ns, name, &key) < 0 ||
        vg_cache_newest(c->call->loop->api->cacher, vg_kind_index(kind), &snap) < 0)
        return NULL;
    const struct vg_rec *rec =
        vg_root_get(snap.root, (struct vg_tree_key){.minor = vg_obj_key_slice(&key)});
    struct vg_rec *held = rec ? vg_rec_ref(rec) : NULL;
    vg_cache_snapshot_done(&snap);
    return held;
}

/* ---- which plugins ---- */

static int set_pod(struct vg_change *c, struct vg_json *root, const struct vg_body *given,
                   const struct vg_body *old, struct vg_meta *m)
{
    const struct vg_admission *ad = c->call->loop->api->admission;
    /* A name that is made up is not known there yet. */
    struct vg_slice name =
        given->meta.name.n || !given->meta.generate_name.n ? c->name : given->meta.generate_name;
    int r = 0;
    if (!old && vg_admission_has(ad, VG_PLUGIN_LIMIT_RANGER))
        r = vg_limits_set(c, root, m);
    if (r == 0 && !old && vg_admission_has(ad, VG_PLUGIN_SERVICE_ACCOUNT))
        r = vg_account_set(c, root, m, name);
    if (r == 0 && vg_admission_has(ad, VG_PLUGIN_PRIORITY))
        r = vg_priority_set(c, root, old ? old->root : NULL, name);
    if (r == 0 && !old && vg_admission_has(ad, VG_PLUGIN_RUNTIME_CLASS))
        r = vg_runtime_class_set(c, root, name);
    return r;
}

int vg_admission_set(struct vg_change *c, struct vg_json *root, const struct vg_body *given,
                     const struct vg_body *old, struct vg_meta *m)
{
    const struct vg_admission *ad = c->call->loop->api->admission;
    const struct vg_kind *kind = vg_kind_stored(c->kind);
    if (!ad->set || c->call->ask->target->sub)
        return 0;
    if (kind == ad->pods)
        return set_pod(c, root, given, old, m);
    if (old)
        return 0;
    if (kind == ad->claims && vg_admission_has(ad, VG_PLUGIN_STORAGE_CLASS))
        return vg_storage_class_set(c, root, m);
    if (kind == ad->ingresses && vg_admission_has(ad, VG_PLUGIN_INGRESS_CLASS))
        return vg_ingress_class_set(c, root, m);
    if (kind == ad->nodes && vg_admission_has(ad, VG_PLUGIN_TAINT_NODES))
        return vg_taint_set(c, root);
    return 0;
}

enum vg_verdict vg_admission_check(struct vg_change *c, const struct vg_json *root,
                                   const struct vg_json *old)
{
    const struct vg_admission *ad = c->call->loop->api->admission;
    const struct vg_kind *kind = vg_kind_stored(c->kind);
    const struct vg_kind_sub *sub = c->call->ask->target->sub;
    bool is_resize = sub && strcmp(sub->name, "resize") == 0;
    int r = 0;
    if (!ad->set || (sub && !is_resize))
        return VG_CHANGE_PUT;
    bool is_new_pod = kind == ad->pods && !old;
    if ((is_new_pod || is_resize || kind == ad->claims) &&
        vg_admission_has(ad, VG_PLUGIN_LIMIT_RANGER))
        r = vg_limits_check(c, root);
    if (r == 0 && kind == ad->priority_classes && vg_admission_has(ad, VG_PLUGIN_PRIORITY))
        r = vg_priority_check(c, root, old);
    if (r == 0 && is_new_pod && vg_admission_has(ad, VG_PLUGIN_RUNTIME_CLASS))
        r = vg_runtime_class_check(c, root);
    if (r == 0 && vg_admission_has(ad, VG_PLUGIN_QUOTA))
        r = vg_quota_charge(c, root, old);
    if (r == 0)
        return VG_CHANGE_PUT;
    if (r != VIGIL_E_FORBIDDEN)
        vg_status_from_err(&c->call->ask->arena, &c->status, r, vg_err_text(r));
    return VG_CHANGE_FAIL;
}
