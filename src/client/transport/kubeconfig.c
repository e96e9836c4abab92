/* kubeconfig.c - from merged kubeconfig files to one configuration.
 * The first file that defines a named entry, or the current context, wins it whole. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/buf.h"
#include "config_int.h"
#include "json/write.h"

struct resolver {
    const struct vg_kubeconfig *files;
    size_t n;
    struct vigil_config *c;
    struct vigil_error *err;
};

/* What an entry of a list is called, and where its body is. */
struct kind {
    const char *list, *body, *word;
};
static const struct kind CONTEXTS = {"contexts", "context", "context"};
static const struct kind CLUSTERS = {"clusters", "cluster", "cluster"};
static const struct kind USERS = {"users", "user", "user"};

static int no_memory(const struct resolver *r)
{
    return vg_error_set(r->err, VIGIL_E_MEMORY, "out of memory");
}

static const struct vg_json *find_entry(const struct resolver *r, const struct kind *kind,
                                        struct vg_slice name, const struct vg_kubeconfig **ret_file)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct vg_json *list = vg_json_get_str(r->files[i].root, kind->list);
        if (!list)
            continue;
        VG_JSON_FOREACH_ITEM (it, list) {
            if (!vg_slice_eq(vg_json_text(vg_json_get_str(it, "name")), name))
                continue;
            *ret_file = &r->files[i];
            return it;
        }
    }
    return NULL;
}

/* "a, b, c": the names that there are. */
static void list_names(const struct resolver *r, const struct kind *kind, struct vg_buf *out)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct vg_json *list = vg_json_get_str(r->files[i].root, kind->list);
        if (!list)
            continue;
        VG_JSON_FOREACH_ITEM (it, list) {
            struct vg_slice name = vg_json_text(vg_json_get_str(it, "name"));
            if (vg_buf_printf(out, "%s%.*s", out->n ? ", " : "", VG_SLICE_ARG(name)) < 0)
                return;
        }
    }
}

static int not_there(const struct resolver *r, const struct kind *kind, struct vg_slice name)
{
    VG_AUTO(buf) names = {.max = VIGIL_MESSAGE_MAX};
    list_names(r, kind, &names);
    return vg_error_set(r->err, VIGIL_E_NOT_FOUND, "there is no %s \"%.*s\" in %s%s; it has: %.*s",
                        kind->word, VG_SLICE_ARG(name), r->files[0].path,
                        r->n > 1 ? " and the files after it" : "", names.n ? (int)names.n : 4,
                        names.n ? names.p : "none");
}

/* The body of the entry; an entry without one is an empty body (NULL). */
static int get_entry(const struct resolver *r, const struct kind *kind, struct vg_slice name,
                     const struct vg_json **ret_body, const struct vg_kubeconfig **ret_file)
{
    const struct vg_json *entry = find_entry(r, kind, name, ret_file);
    if (!entry)
        return not_there(r, kind, name);
    *ret_body = vg_json_get_str(entry, kind->body);
    return 0;
}

/* ---- fields ---- */

/* A text; empty counts as not given. */
static int take_text(const struct resolver *r, const struct vg_json *from, const char *name,
                     const char **ret)
{
    struct vg_slice s = vg_json_text(vg_json_get_str(from, name));
    return s.n && vg_config_copy(&r->c->arena, s, ret) < 0 ? no_memory(r) : 0;
}

static int take_path(const struct resolver *r, const struct vg_json *from, const char *name,
                     const char *dir, const char **ret)
{
    struct vg_slice s = vg_json_text(vg_json_get_str(from, name));
    return s.n && vg_config_path(&r->c->arena, dir, s, ret) < 0 ? no_memory(r) : 0;
}

static bool take_bool(const struct vg_json *from, const char *name)
{
    return vg_json_is_true(vg_json_get_str(from, name));
}

/* As long as the text, and zero behind it: some libraries take it as a string. */
static int take_data(const struct resolver *r, struct vg_slice text, const char *name,
                     struct vg_slice *ret)
{
    char *bytes = vg_arena_alloc(&r->c->arena, text.n + 1, 1);
    size_t n;
    if (!bytes)
        return no_memory(r);
    if (!vg_base64_decode_lines(text, bytes, &n))
        return vg_error_set(r->err, VIGIL_E_INVALID, "%s-data is not base64", name);
    bytes[n] = '\0';
    *ret = vg_slice(bytes, n);
    return 0;
}

/* name-data beats name. */
static int take_blob(const struct resolver *r, const struct vg_json *from, const char *name,
                     const char *dir, struct vg_config_blob *ret)
{
    VG_AUTO(buf) data_name = {0};
    if (vg_buf_printf(&data_name, "%s-data", name) < 0)
        return no_memory(r);
    struct vg_slice data = vg_json_text(vg_json_get(from, vg_buf_slice(&data_name)));
    return data.n ? take_data(r, data, name, &ret->data)
                  : take_path(r, from, name, dir, &ret->path);
}

static int take_texts(const struct resolver *r, const struct vg_json *list, const char ***ret,
                      size_t *ret_n)
{
    if (!vg_json_is(list, VG_JSON_ARRAY) || !list->n)
        return 0;
    const char **v = vg_arena_array(&r->c->arena, const char *, (size_t)list->n);
    if (!v)
        return no_memory(r);
    for (size_t i = 0; i < list->n; i++) {
        v[i] = "";
        if (vg_config_copy(&r->c->arena, vg_json_text(vg_json_at(list, i)), &v[i]) < 0)
            return no_memory(r);
    }
    *ret = v;
    *ret_n = list->n;
    return 0;
}

static int take_pair(const struct resolver *r, struct vg_slice name, struct vg_slice value,
                     struct vg_config_pair *ret)
{
    return vg_config_copy(&r->c->arena, name, &ret->name) < 0 ||
                   vg_config_copy(&r->c->arena, value, &ret->value) < 0
               ? no_memory(r)
               : 0;
}

/* ---- the cluster ---- */

/* The extension that the cluster has for programs that give credentials, as JSON. */
static int take_exec_extension(const struct resolver *r, const struct vg_json *cluster)
{
    const struct vg_json *list = vg_json_get_str(cluster, "extensions");
    if (!list)
        return 0;
    VG_JSON_FOREACH_ITEM (it, list) {
        if (!vg_slice_eq(vg_json_text(vg_json_get_str(it, "name")),
                         VG_SLICE_LIT("client.authentication.k8s.io/exec")))
            continue;
        const struct vg_json *body = vg_json_get_str(it, "extension");
        VG_AUTO(buf) json = {0};
        if (body &&
            (vg_json_write(&json, body, 0) < 0 ||
             vg_config_copy(&r->c->arena, vg_buf_slice(&json), &r->c->exec.cluster_config) < 0))
            return no_memory(r);
    }
    return 0;
}

static int check_proxy(const struct resolver *r)
{
    const char *p = r->c->proxy_url;
    static const char *const SCHEMES[] = {"http://", "https://", "socks5://", "socks5h://"};
    for (size_t i = 0; p && i < VG_ARRAY_LEN(SCHEMES); i++)
        if (strncasecmp(p, SCHEMES[i], strlen(SCHEMES[i])) == 0)
            return 0;
    return p ? vg_error_set(r->err, VIGIL_E_INVALID,
                            "proxy-url %s must begin with http://, https:// or socks5://", p)
             : 0;
}

static int take_cluster(const struct resolver *r, struct vg_slice name)
{
    const struct vg_json *body = NULL;
    const struct vg_kubeconfig *file = &r->files[0];
    struct vigil_config *c = r->c;
    int e = get_entry(r, &CLUSTERS, name, &body, &file);
    if (e == 0)
        e = take_text(r, body, "server", &c->server);
    if (e == 0)
        e = take_text(r, body, "tls-server-name", &c->tls_server_name);
    if (e == 0)
        e = take_text(r, body, "proxy-url", &c->proxy_url);
    if (e == 0)
        e = check_proxy(r);
    if (e == 0)
        e = take_blob(r, body, "certificate-authority", file->dir, &c->ca);
    if (e == 0)
        e = take_exec_extension(r, body);
    c->is_insecure = take_bool(body, "insecure-skip-tls-verify");
    c->no_compression = take_bool(body, "disable-compression");
    return e;
}

/* ---- the user ---- */

static int take_extra(const struct resolver *r, const struct vg_json *extra)
{
    size_t n = 0;
    if (!vg_json_is(extra, VG_JSON_OBJECT))
        return 0;
    VG_JSON_FOREACH_MEMBER (m, extra)
        n += m->value.type == VG_JSON_ARRAY ? m->value.n : 0;
    struct vg_config_pair *v = vg_arena_array(&r->c->arena, struct vg_config_pair, n + 1);
    if (!v)
        return no_memory(r);
    n = 0;
    VG_JSON_FOREACH_MEMBER (m, extra) {
        VG_JSON_FOREACH_ITEM (it, &m->value) {
            int e = take_pair(r, vg_json_key(m), vg_json_text(it), &v[n++]);
            if (e < 0)
                return e;
        }
    }
    r->c->as_extra = v;
    r->c->n_as_extra = n;
    return 0;
}

static int take_impersonation(const struct resolver *r, const struct vg_json *user)
{
    struct vigil_config *c = r->c;
    int e = take_text(r, user, "as", &c->as_user);
    if (e == 0)
        e = take_text(r, user, "as-uid", &c->as_uid);
    if (e == 0)
        e = take_texts(r, vg_json_get_str(user, "as-groups"), &c->as_groups, &c->n_as_groups);
    if (e == 0)
        e = take_extra(r, vg_json_get_str(user, "as-user-extra"));
    if (e == 0 && !c->as_user && (c->as_uid || c->n_as_groups || c->n_as_extra))
        e = vg_error_set(r->err, VIGIL_E_INVALID, "as-uid, as-groups and as-user-extra need `as`");
    return e;
}

static int take_exec_mode(const struct resolver *r, const struct vg_json *exec, bool is_v1)
{
    struct vg_slice mode = vg_json_text(vg_json_get_str(exec, "interactiveMode"));
    enum vg_exec_mode *ret = &r->c->exec.mode;
    if (vg_slice_eq(mode, VG_SLICE_LIT("Never")))
        *ret = VG_EXEC_NEVER;
    else if (vg_slice_eq(mode, VG_SLICE_LIT("Always")))
        *ret = VG_EXEC_ALWAYS;
    else if (vg_slice_eq(mode, VG_SLICE_LIT("IfAvailable")) || (!mode.n && !is_v1))
        *ret = VG_EXEC_IF_AVAILABLE;
    else
        return vg_error_set(r->err, VIGIL_E_INVALID,
                            "the user's exec has interactiveMode \"%.*s\"; it must be Never, "
                            "IfAvailable or Always",
                            VG_SLICE_ARG(mode));
    return 0;
}

static int take_exec_args(const struct resolver *r, const struct vg_json *exec, const char *dir)
{
    struct vg_exec_config *x = &r->c->exec;
    struct vg_slice command = vg_json_text(vg_json_get_str(exec, "command"));
    if (!command.n)
        return vg_error_set(r->err, VIGIL_E_INVALID, "the user's exec names no command");
    /* A bare name is looked up in PATH; a path counts from the file. */
    bool is_path = memchr(command.p, '/', command.n) != NULL;
    if (vg_config_path(&r->c->arena, is_path ? dir : NULL, command, &x->command) < 0)
        return no_memory(r);
    const char **args = NULL;
    size_t n = 0;
    int e = take_texts(r, vg_json_get_str(exec, "args"), &args, &n);
    if (e < 0)
        return e;
    x->args = vg_arena_array(&r->c->arena, const char *, n + 2);
    if (!x->args)
        return no_memory(r);
    x->args[0] = x->command;
    for (size_t i = 0; i < n; i++)
        x->args[i + 1] = args[i];
    x->args[n + 1] = NULL;
    return 0;
}

static int take_exec_env(const struct resolver *r, const struct vg_json *list)
{
    struct vg_exec_config *x = &r->c->exec;
    if (!vg_json_is(list, VG_JSON_ARRAY) || !list->n)
        return 0;
    x->env = vg_arena_array(&r->c->arena, struct vg_config_pair, (size_t)list->n);
    if (!x->env)
        return no_memory(r);
    VG_JSON_FOREACH_ITEM (it, list) {
        int e = take_pair(r, vg_json_text(vg_json_get_str(it, "name")),
                          vg_json_text(vg_json_get_str(it, "value")), &x->env[x->n_env++]);
        if (e < 0)
            return e;
    }
    return 0;
}

static int take_exec(const struct resolver *r, const struct vg_json *exec, const char *dir)
{
    struct vg_exec_config *x = &r->c->exec;
    struct vg_slice api = vg_json_text(vg_json_get_str(exec, "apiVersion"));
    bool is_v1 = vg_slice_eq(api, VG_SLICE_LIT("client.authentication.k8s.io/v1"));
    if (!is_v1 && !vg_slice_eq(api, VG_SLICE_LIT("client.authentication.k8s.io/v1beta1")))
        return vg_error_set(r->err, VIGIL_E_INVALID,
                            "the user's exec has apiVersion \"%.*s\"; known are "
                            "client.authentication.k8s.io/v1 and v1beta1",
                            VG_SLICE_ARG(api));
    int e = take_exec_mode(r, exec, is_v1);
    if (e == 0)
        e = take_text(r, exec, "apiVersion", &x->api_version);
    if (e == 0)
        e = take_text(r, exec, "installHint", &x->install_hint);
    if (e == 0)
        e = take_exec_env(r, vg_json_get_str(exec, "env"));
    if (e == 0)
        e = take_exec_args(r, exec, dir);
    x->gives_cluster = take_bool(exec, "provideClusterInfo");
    return e;
}

/* Other credentials make exec unnecessary: it is not run. */
static bool has_other_credentials(const struct vigil_config *c)
{
    return c->token || c->token_file || c->username || c->cert.data.p || c->cert.path;
}

static int take_user(const struct resolver *r, struct vg_slice name)
{
    const struct vg_json *body = NULL;
    const struct vg_kubeconfig *file = &r->files[0];
    struct vigil_config *c = r->c;
    int e = get_entry(r, &USERS, name, &body, &file);
    if (e == 0)
        e = take_blob(r, body, "client-certificate", file->dir, &c->cert);
    if (e == 0)
        e = take_blob(r, body, "client-key", file->dir, &c->key);
    if (e == 0)
        e = take_text(r, body, "token", &c->token);
    if (e == 0)
        e = take_path(r, body, "tokenFile", file->dir, &c->token_file);
    if (e == 0)
        e = take_text(r, body, "username", &c->username);
    if (e == 0)
        e = take_text(r, body, "password", &c->password);
    if (e == 0)
        e = take_impersonation(r, body);
    const struct vg_json *exec = vg_json_get_str(body, "exec");
    if (e == 0 && exec && !has_other_credentials(c))
        e = take_exec(r, exec, file->dir);
    if (e == 0 && vg_json_is(vg_json_get_str(body, "auth-provider"), VG_JSON_OBJECT) && !exec &&
        !has_other_credentials(c))
        e = vg_error_set(
            r->err, VIGIL_E_UNSUPPORTED,
            "user \"%.*s\" has an auth-provider, which Kubernetes has removed; let the "
            "provider's tool write an exec entry",
            VG_SLICE_ARG(name));
    return e;
}

/* ---- all ---- */

static struct vg_slice current_context(const struct resolver *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct vg_slice s = vg_json_text(vg_json_get_str(r->files[i].root, "current-context"));
        if (s.n)
            return s;
    }
    return (struct vg_slice){NULL, 0};
}

static void forget_credentials(struct vigil_config *c)
{
    c->cert = c->key = (struct vg_config_blob){{NULL, 0}, NULL};
    c->token = c->token_file = c->username = c->password = NULL;
    c->as_user = c->as_uid = NULL;
    c->n_as_groups = c->n_as_extra = 0;
    c->exec.command = NULL;
}

int vg_kubeconfig_resolve(const struct vg_kubeconfig *files, size_t n, const char *context,
                          struct vigil_config *c, struct vigil_error *err)
{
    const struct resolver r = {files, n, c, err};
    struct vg_slice name = context ? vg_slice_str(context) : current_context(&r);
    if (!name.n) {
        VG_AUTO(buf) names = {.max = VIGIL_MESSAGE_MAX};
        list_names(&r, &CONTEXTS, &names);
        return vg_error_set(err, VIGIL_E_NOT_FOUND,
                            "%s has no current-context; name one of its contexts: %.*s",
                            files[0].path, names.n ? (int)names.n : 4, names.n ? names.p : "none");
    }
    const struct vg_json *body = NULL;
    const struct vg_kubeconfig *file = NULL;
    int e = get_entry(&r, &CONTEXTS, name, &body, &file);
    if (e == 0)
        e = take_text(&r, body, "namespace", &c->ns);
    if (e == 0)
        e = take_cluster(&r, vg_json_text(vg_json_get_str(body, "cluster")));
    struct vg_slice user = vg_json_text(vg_json_get_str(body, "user"));
    if (e == 0 && user.n)
        e = take_user(&r, user);
    if (e == 0)
        e = vg_config_finish(c, err);
    if (e == 0 && !c->is_https)
        forget_credentials(c); /* silently, as kubectl does: they would travel in the open */
    return e;
}
