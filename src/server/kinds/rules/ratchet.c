/* ratchet.c - what may stay wrong: rules that came later than objects which break them. See
 * rules.h. A row names errors by their field, and by a part of their message. An update is forgiven
 * the errors of a row when the stored object breaks the same rule: anywhere in it, or at the same
 * place in the same words. Which rows there are, and which of both ways they have, is the
 * original's; some rules look at the old value themselves and have no row here (addresses, ranges,
 * time zones). */
#include "rules.h"

#define PODS                                                                                       \
    "Pod PodTemplate ReplicationController Deployment ReplicaSet DaemonSet StatefulSet Job "       \
    "CronJob"
#define WEBHOOKS "ValidatingWebhookConfiguration MutatingWebhookConfiguration"
#define POLICIES "ValidatingAdmissionPolicy MutatingAdmissionPolicy"

/* * stands for any text; kinds are parted by blanks. */
static const struct row {
    const char *kinds, *field;
    const char *message; /* NULL: any */
    bool is_same;        /* the very error was there before; else any of the row will do */
} rows[] = {
    /* Values in selectors that are no labels. */
    {PODS, "*affinity*Selector.matchExpressions[*].values[*]", NULL, false},
    {"DaemonSet Job PersistentVolumeClaim", "spec.selector.matchExpressions[*].values[*]", NULL,
     false},
    {"NetworkPolicy", "spec.podSelector.matchExpressions[*].values[*]", NULL, false},
    {"ClusterRole", "*Selectors[*].matchExpressions[*].values[*]", NULL, false},
    {WEBHOOKS, "webhooks[*].*Selector.matchExpressions[*].values[*]", NULL, false},
    {"CSIStorageCapacity", "nodeTopology.matchExpressions[*].values[*]", NULL, false},
    {PODS, "*nodeAffinity.required*.matchExpressions[*].values[*]", NULL, false},
    {"PersistentVolume", "*nodeAffinity.required*.matchExpressions[*].values[*]", NULL, false},
    /* Pods and their templates. */
    {PODS, "*topologySpreadConstraints[*].labelSelector*", NULL, false},
    {PODS, "*", "is not positive integer multiple of", false},
    {PODS, "*.projected.path", "must ", false},
    {PODS, "*", "may not be specified when 'host", false},
    {PODS, "*.volumeDevices", "when `hostUsers` is false", false},
    {PODS, "*annotations[controller.kubernetes.io/pod-deletion-cost]", NULL, false},
    {PODS, "*.seLinuxChangePolicy", NULL, false},
    {PODS, "*tolerations[*].operator", "Unsupported value: \"Gt\"", false},
    {PODS, "*tolerations[*].operator", "Unsupported value: \"Lt\"", false},
    /* Others. */
    {"PersistentVolumeClaim", "spec.dataSource*.apiGroup", NULL, false},
    {"Ingress", "spec.tls[*].secretName", NULL, false},
    {WEBHOOKS, "webhooks[*].sideEffects", NULL, false},
    {WEBHOOKS, "webhooks[*].admissionReviewVersions", "must include at least one of", false},
    {WEBHOOKS, "webhooks[*].name", "Duplicate value", false},
    {WEBHOOKS, "webhooks[*].matchConditions*", NULL, true},
    {POLICIES, "spec.matchConditions*", NULL, true},
    {"CertificateSigningRequest", "spec.signerName", "legacy", false},
    {"CertificateSigningRequest", "spec.usages[*]", "Duplicate value", false},
    {"CertificateSigningRequest", "spec.usages[*]", "Unsupported value", false},
    {"CertificateSigningRequest", "status.conditions", "mutually exclusive", false},
    {"CertificateSigningRequest", "status.conditions[*].type", "Duplicate value", false},
    {"CertificateSigningRequest", "status.conditions[*].type", "Required value", false},
    {"CertificateSigningRequest", "status.certificate", NULL, true},
    {"CustomResourceDefinition", "spec.conversion.conversionReviewVersions",
     "must include at least one of", false},
    {"CustomResourceDefinition", "*caBundle", NULL, true},
    {"CustomResourceDefinition", "*selectableFields", "Too many", true},
};
_Static_assert(VG_ARRAY_LEN(rows) <= 64, "one bit each");

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

/* What a star stands for grows until the rest fits. */
static bool is_like(struct vg_slice text, const char *pattern)
{
    const char *star = NULL;
    size_t i = 0, mark = 0;
    while (i < text.n) {
        if (*pattern == '*') {
            star = ++pattern;
            mark = i;
        } else if (*pattern && *pattern == text.p[i]) {
            pattern++;
            i++;
        } else if (star) {
            pattern = star;
            i = ++mark;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static bool is_of(const struct vg_cause *e, const struct row *r)
{
    return is_like(e->field, r->field) &&
           (!r->message ||
            (e->message.n && memmem(e->message.p, e->message.n, r->message, strlen(r->message))));
}

/* The row of an error, of those of a kind; NULL: it has none. */
static const struct row *row_of(const struct vg_cause *e, const char *kind)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++)
        if (has_word(rows[i].kinds, kind) && is_of(e, &rows[i]))
            return &rows[i];
    return NULL;
}

static bool was_there(const struct vg_field_errors *old, const struct vg_cause *e,
                      const struct row *r)
{
    for (size_t i = 0; i < old->n; i++) {
        const struct vg_cause *was = &old->v[i];
        bool is_same = vg_slice_eq(was->field, e->field) && vg_slice_eq(was->message, e->message);
        if (r->is_same ? is_same : is_of(was, r))
            return true;
    }
    return false;
}

void vg_rules_forgive(struct vg_check *c, size_t from, const struct vg_rules *rules,
                      const struct vg_json *old)
{
    struct vg_field_errors *e = c->errors, of_old = {.arena = c->arena};
    struct vg_check silent = {.errors = &of_old, .arena = c->arena};
    struct vg_at root = vg_at_root(old);
    bool is_asked = false;
    /* What did not fit is not known, and may be of no row. */
    if (vg_field_errors_is_full(e) || !rules->check)
        return;
    for (size_t i = from; i < e->n; i++) {
        const struct row *r = row_of(&e->v[i], rules->kind);
        if (!r)
            continue;
        if (!is_asked)
            rules->check(&silent, &root);
        is_asked = true;
        if (was_there(&of_old, &e->v[i], r))
            vg_field_errors_drop(e, i--);
    }
    e->failed |= of_old.failed;
}
