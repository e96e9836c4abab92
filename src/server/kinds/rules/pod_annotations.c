/* pod_annotations.c - annotations of pods that once were fields, or still mean something. What
 * scheduler.alpha.kubernetes.io/tolerations holds is not looked into. */
#include "pod_int.h"

#define MIRROR "kubernetes.io/config.mirror"
#define DELETION_COST "controller.kubernetes.io/pod-deletion-cost"
#define SECCOMP_POD "seccomp.security.alpha.kubernetes.io/pod"
#define SECCOMP_CONTAINER "container.seccomp.security.alpha.kubernetes.io/"
#define ARMOR_CONTAINER "container.apparmor.security.beta.kubernetes.io/"

static bool cut_prefix(struct vg_slice *s, struct vg_slice prefix)
{
    if (!vg_slice_has_prefix(*s, prefix))
        return false;
    *s = vg_slice(s->p + prefix.n, s->n - prefix.n);
    return true;
}

/* As Go reads an int32, but without leading zeros or plus. */
static bool is_cost(struct vg_slice s)
{
    int64_t n = 0;
    bool is_negative = s.n && s.p[0] == '-';
    if (s.n == 0)
        return false;
    if (is_negative)
        s = vg_slice(s.p + 1, s.n - 1);
    if (s.n == 0 || s.n > 10 || (s.p[0] == '0' && (s.n > 1 || is_negative)))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        n = n * 10 + (s.p[i] - '0');
    }
    return is_negative ? -n >= INT32_MIN : n <= INT32_MAX;
}

static void check_seccomp(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice s = vg_at_text(at);
    if (vg_at_is(at, "runtime/default") || vg_at_is(at, "docker/default") ||
        vg_at_is(at, "unconfined"))
        return;
    if (!cut_prefix(&s, VG_SLICE_LIT("localhost/"))) {
        vg_bad_text(c, at, "must be a valid seccomp profile");
        return;
    }
    struct vg_json path = vg_json_string_ref(s);
    struct vg_at rest = *at;
    rest.v = &path;
    (void)vg_check_descending_path(c, &rest);
}

/* The original names the annotation as a field here. */
static void check_container_seccomp(struct vg_check *c, const struct vg_at *annotations,
                                    const struct vg_json_member *m)
{
    struct vg_slice name;
    if (vg_arena_printf(c->arena, &name, "%.*s%c", VG_SLICE_ARG(vg_json_key(m)), 0) < 0) {
        c->errors->failed = true;
        return;
    }
    struct vg_at at = vg_at_of(annotations, name.p, &m->value);
    check_seccomp(c, &at);
}

static void note_container(struct vg_pod *p, const struct vg_at *container, void *ctx)
{
    struct vg_at name = vg_at(container, "name");
    (void)vg_names_add(p->c, ctx, vg_at_text(&name), container->v);
}

/* names: of the containers; made for the first annotation that asks for one. */
static void check_armor(struct vg_pod *p, const struct vg_at *at, struct vg_slice container,
                        struct vg_names *names)
{
    if (names->n == 0)
        vg_pod_each_container(p, note_container, names);
    if (!vg_names_has(names, container))
        vg_bad_value(p->c, at, vg_json_quoted(p->c, container), "container not found");
    bool is_known = vg_at_text(at).n == 0 || vg_at_is(at, "runtime/default") ||
                    vg_at_is(at, "unconfined") ||
                    vg_slice_has_prefix(vg_at_text(at), VG_SLICE_LIT("localhost/"));
    if (!is_known)
        vg_bad_text(p->c, at, "invalid AppArmor profile name: %.*s",
                    VG_SLICE_ARG(vg_json_quoted(p->c, vg_at_text(at))));
}

static struct vg_at keyed(const struct vg_at *annotations, const char *key)
{
    return (struct vg_at){.up = annotations,
                          .v = vg_json_get_str(annotations->v, key),
                          .key = vg_slice_str(key),
                          .step = VG_AT_KEY};
}

void vg_pod_check_annotations(struct vg_pod *p, const struct vg_at *annotations)
{
    struct vg_at node = vg_at(p->spec, "nodeName");
    VG_AUTO(names) names = {0};
    if (!annotations->v)
        return;
    struct vg_at mirror = keyed(annotations, MIRROR), cost = keyed(annotations, DELETION_COST);
    if (vg_at_is_set(&mirror) && vg_at_text(&node).n == 0)
        vg_bad_text(p->c, &mirror, "must set spec.nodeName if mirror pod annotation is set");
    if (vg_at_is_set(&cost) && !is_cost(vg_at_text(&cost)))
        vg_bad_text(p->c, &cost, "must be a 32bit integer");
    struct vg_at of_pod = vg_at(annotations, SECCOMP_POD);
    if (vg_at_is_set(&of_pod))
        check_seccomp(p->c, &of_pod);
    VG_JSON_FOREACH_MEMBER (m, annotations->v)
        if (vg_slice_has_prefix(vg_json_key(m), VG_SLICE_LIT(SECCOMP_CONTAINER)))
            check_container_seccomp(p->c, annotations, m);
    VG_JSON_FOREACH_MEMBER (m, annotations->v) {
        struct vg_at at = vg_at_key(annotations, m);
        struct vg_slice container = at.key;
        if (cut_prefix(&container, VG_SLICE_LIT(ARMOR_CONTAINER)))
            check_armor(p, &at, container, &names);
    }
}

/* ---- profiles that are given twice ---- */

static void match(struct vg_check *c, const struct vg_at *profile, struct vg_slice text,
                  const char *what)
{
    struct vg_at type = vg_at(profile, "type"), local = vg_at(profile, "localhostProfile");
    bool is_default = vg_slice_eq(text, VG_SLICE_LIT("runtime/default")) ||
                      (*what == 's' && vg_slice_eq(text, VG_SLICE_LIT("docker/default")));
    bool is_same = true;
    if (vg_at_is(&type, "Unconfined"))
        is_same = vg_slice_eq(text, VG_SLICE_LIT("unconfined"));
    else if (vg_at_is(&type, "RuntimeDefault"))
        is_same = is_default;
    else if (vg_at_is(&type, "Localhost"))
        is_same = cut_prefix(&text, VG_SLICE_LIT("localhost/"));
    if (!is_same)
        vg_forbidden(c, &type, "%s type in annotation and field must match", what);
    else if (vg_at_is(&type, "Localhost") && !vg_slice_eq(text, vg_at_text(&local)))
        vg_forbidden(c, &local, "%s profile in annotation and field must match", what);
}

struct profiles {
    struct vg_json_lookup *annotations;
    const struct vg_json *of_pod; /* AppArmor: what containers have that have none */
    const char *prefix, *field, *what;
};

static void match_container(struct vg_pod *p, const struct vg_at *container, void *ctx)
{
    const struct profiles *f = ctx;
    struct vg_at security = vg_at(container, "securityContext"), own = vg_at(&security, f->field);
    struct vg_slice key;
    if (!own.v)
        own.v = f->of_pod;
    if (!own.v)
        return;
    if (vg_arena_printf(p->c->arena, &key, "%s%.*s", f->prefix,
                        VG_SLICE_ARG(vg_json_text(vg_json_get_str(container->v, "name")))) < 0) {
        p->c->errors->failed = true;
        return;
    }
    const struct vg_json *text = vg_check_find(p->c, f->annotations, key, UINT32_MAX);
    if (text)
        match(p->c, &own, vg_json_text(text), f->what);
}

void vg_pod_check_annotated_profiles(struct vg_pod *p, const struct vg_json *annotations)
{
    struct vg_at security = vg_at(p->spec, "securityContext");
    struct vg_at seccomp = vg_at(&security, "seccompProfile");
    struct vg_at armor = vg_at(&security, "appArmorProfile");
    VG_AUTO(json_lookup) lookup;
    struct profiles of_seccomp = {&lookup, NULL, SECCOMP_CONTAINER, "seccompProfile", "seccomp"};
    struct profiles of_armor = {&lookup, armor.v, ARMOR_CONTAINER, "appArmorProfile", "apparmor"};
    vg_json_lookup_init(&lookup, annotations);
    if (!annotations || annotations->n == 0)
        return;
    const struct vg_json *text = vg_json_get_str(annotations, SECCOMP_POD);
    if (text && vg_at_is_set(&seccomp))
        match(p->c, &seccomp, vg_json_text(text), "seccomp");
    vg_pod_each_container(p, match_container, &of_seccomp);
    if (!vg_pod_is_windows(p))
        vg_pod_each_container(p, match_container, &of_armor);
}
