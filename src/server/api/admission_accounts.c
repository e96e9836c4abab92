/* admission_accounts.c - the plugin ServiceAccount: a pod runs as an account of its namespace, and
 * finds a token of it, the server's certificate and its namespace in its containers. */
#include "admission.h"

#include <errno.h>
#include <stdio.h>

#include "server/schema/default.h"

#define VOLUME_PREFIX "kube-api-access-"
#define MOUNT_PATH "/var/run/secrets/kubernetes.io/serviceaccount"

/* What the volume holds. */
static const char projected[] =
    "{\"sources\":[{\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}},"
    "{\"configMap\":{\"name\":\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\",\"path\":"
    "\"ca.crt\"}]}},{\"downwardAPI\":{\"items\":[{\"path\":\"namespace\",\"fieldRef\":{"
    "\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.namespace\"}}]}}],\"defaultMode\":420}";

/* ---- the account ---- */

static int set_name(struct vg_arena *a, struct vg_json *spec, struct vg_slice *ret)
{
    *ret = vg_json_text(vg_json_get_str(spec, "serviceAccountName"));
    if (ret->n)
        return 0;
    *ret = VG_SLICE_LIT("default");
    int r =
        vg_json_object_set(a, spec, VG_SLICE_LIT("serviceAccountName"), vg_json_string_ref(*ret));
    return r < 0 ? r
                 : vg_json_object_set(a, spec, VG_SLICE_LIT("serviceAccount"),
                                      vg_json_string_ref(*ret));
}

/* As a tree in scratch that owes nothing to the record. */
static int find_account(struct vg_change *c, struct vg_slice account, struct vg_slice pod,
                        struct vg_json *ret)
{
    struct vg_json *root;
    struct vg_rec *rec =
        vg_admission_get(c, c->call->loop->api->admission->accounts, c->ns, account);
    if (!rec)
        return vg_admission_refuse(c, pod,
                                   "error looking up service account %.*s/%.*s: serviceaccount "
                                   "%.*s not found",
                                   VG_SLICE_ARG(c->ns), VG_SLICE_ARG(account),
                                   VG_SLICE_ARG(vg_api_quote(&c->call->ask->arena, account)));
    int r = vg_admission_read(c, rec, &root);
    if (r == 0)
        r = vg_json_clone(&c->scratch, root, ret);
    if (r == 0)
        r = vg_admission_forget_source(ret);
    vg_rec_unref(rec);
    return r;
}

static int set_pull_secrets(struct vg_arena *a, struct vg_json *spec, const struct vg_json *account)
{
    const struct vg_json *has = vg_json_get_str(spec, "imagePullSecrets");
    const struct vg_json *from = vg_json_get_str(account, "imagePullSecrets");
    if ((has && has->n) || !from || from->n == 0)
        return 0;
    return vg_json_object_set(a, spec, VG_SLICE_LIT("imagePullSecrets"), *from);
}

/* ---- the token ---- */

static bool is_wanted(const struct vg_json *spec, const struct vg_json *account)
{
    const struct vg_json *of_pod = vg_json_get_str(spec, "automountServiceAccountToken");
    const struct vg_json *of_account = vg_json_get_str(account, "automountServiceAccountToken");
    const struct vg_json *says = of_pod ? of_pod : of_account;
    return !vg_json_is(says, VG_JSON_BOOL) || vg_json_is_true(says);
}

/* The name of the volume, which may be there. */
static int volume_name(struct vg_change *c, const struct vg_json *spec, struct vg_slice *ret,
                       bool *ret_is_there)
{
    const struct vg_json *volumes = vg_json_get_str(spec, "volumes");
    char suffix[VG_NAME_SUFFIX];
    *ret_is_there = false;
    if (volumes)
        VG_JSON_FOREACH_ITEM (it, volumes) {
            *ret = vg_json_text(vg_json_get_str(it, "name"));
            *ret_is_there = vg_slice_has_prefix(*ret, VG_SLICE_LIT(VOLUME_PREFIX));
            if (*ret_is_there)
                return 0;
        }
    vg_name_suffix(&c->call->loop->rng, suffix);
    return vg_arena_printf(&c->scratch, ret, VOLUME_PREFIX "%.*s", (int)sizeof suffix, suffix);
}

static bool is_mounted(const struct vg_json *mounts)
{
    if (mounts)
        VG_JSON_FOREACH_ITEM (it, mounts)
            if (vg_slice_eq(vg_json_text(vg_json_get_str(it, "mountPath")),
                            VG_SLICE_LIT(MOUNT_PATH)))
                return true;
    return false;
}

/* One more item at the end of a list that may not be there. */
static int append(struct vg_arena *a, struct vg_json *to, const char *name, struct vg_json item)
{
    const struct vg_json *list = vg_json_get_str(to, name);
    struct vg_json all = vg_json_is(list, VG_JSON_ARRAY) ? *list : vg_json_array();
    int r = vg_json_array_push(a, &all, item);
    all.begin = all.end = 0;
    return r < 0 ? r : vg_json_object_set(a, to, vg_slice_str(name), all);
}

static int mount(struct vg_arena *a, struct vg_json *containers, struct vg_slice volume,
                 bool *is_needed)
{
    int r = 0;
    if (!containers)
        return 0;
    VG_JSON_FOREACH_ITEM (it, containers) {
        struct vg_json m = vg_json_object();
        if (r < 0 || is_mounted(vg_json_get_str(it, "volumeMounts")))
            continue;
        r = vg_json_object_add(a, &m, VG_SLICE_LIT("name"), vg_json_string_ref(volume));
        if (r == 0)
            r = vg_default_bool(a, &m, "readOnly", true);
        if (r == 0)
            r = vg_default_text(a, &m, "mountPath", MOUNT_PATH);
        if (r == 0)
            r = append(a, it, "volumeMounts", m);
        *is_needed = true;
    }
    return r;
}

static int add_volume(struct vg_change *c, struct vg_json *spec, struct vg_slice name)
{
    struct vg_json volume = vg_json_object(), *sources;
    int r = vg_json_parse(&c->scratch, vg_slice_str(projected), NULL, &sources, NULL);
    if (r == 0)
        r = vg_admission_forget_source(sources);
    if (r == 0)
        r = vg_json_object_add(&c->scratch, &volume, VG_SLICE_LIT("name"),
                               vg_json_string_ref(name));
    if (r == 0)
        r = vg_json_object_add(&c->scratch, &volume, VG_SLICE_LIT("projected"), *sources);
    return r < 0 ? r : append(&c->scratch, spec, "volumes", volume);
}

static int mount_token(struct vg_change *c, struct vg_json *spec)
{
    bool is_there, is_needed = false;
    struct vg_slice volume;
    int r = volume_name(c, spec, &volume, &is_there);
    if (r == 0)
        r = mount(&c->scratch, vg_json_get_str(spec, "initContainers"), volume, &is_needed);
    if (r == 0)
        r = mount(&c->scratch, vg_json_get_str(spec, "containers"), volume, &is_needed);
    return r == 0 && is_needed && !is_there ? add_volume(c, spec, volume) : r;
}

int vg_account_set(struct vg_change *c, struct vg_json *root, const struct vg_meta *m,
                   struct vg_slice name)
{
    struct vg_json *spec = vg_json_get_str(root, "spec"), account;
    struct vg_slice wanted;
    if (!spec)
        return 0;
    if (vg_json_get_str(m->annotations, "kubernetes.io/config.mirror"))
        return vg_json_text(vg_json_get_str(spec, "serviceAccountName")).n
                   ? vg_admission_refuse(c, name, "a mirror pod may not reference service accounts")
                   : 0;
    int r = set_name(&c->scratch, spec, &wanted);
    if (r == 0)
        r = find_account(c, wanted, name, &account);
    if (r == 0 && is_wanted(spec, &account))
        r = mount_token(c, spec);
    return r < 0 ? r : set_pull_secrets(&c->scratch, spec, &account);
}
