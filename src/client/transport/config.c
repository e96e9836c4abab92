/* config.c - vigil/client.h: where the server is and who we are; finding the files that say so. */
#include "config_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "yaml/yaml.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

struct vigil_config *vg_config_alloc(void)
{
    struct vigil_config *c = vg_new(struct vigil_config);
    if (c) {
        atomic_init(&c->refs, 1);
        vg_arena_init(&c->arena, 0, 0);
    }
    return c;
}

struct vigil_config *vg_config_ref(const struct vigil_config *c)
{
    struct vigil_config *shared = (struct vigil_config *)(uintptr_t)c;
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    return shared;
}

void vigil_config_free(struct vigil_config *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    vg_arena_done(&c->arena);
    vg_free(c);
}

const char *vigil_config_server(const struct vigil_config *c)
{
    return c->server;
}

const char *vigil_config_namespace(const struct vigil_config *c)
{
    return c->ns ? c->ns : "default";
}

int vg_config_copy(struct vg_arena *a, struct vg_slice s, const char **ret)
{
    char *p = NULL;
    if (s.p) {
        p = vg_arena_alloc(a, s.n + 1, 1);
        if (!p)
            return -ENOMEM;
        memcpy(p, s.p, s.n);
        p[s.n] = 0;
    }
    *ret = p;
    return 0;
}

int vg_config_path(struct vg_arena *a, const char *dir, struct vg_slice path, const char **ret)
{
    if (!path.n || path.p[0] == '/' || !dir)
        return vg_config_copy(a, path.n ? path : (struct vg_slice){NULL, 0}, ret);
    size_t n = strlen(dir);
    char *p = vg_arena_alloc(a, n + path.n + 2, 1);
    if (!p)
        return -ENOMEM;
    memcpy(p, dir, n);
    p[n] = '/';
    memcpy(p + n + 1, path.p, path.n);
    p[n + 1 + path.n] = 0;
    *ret = p;
    return 0;
}

static int read_all(int fd, struct vg_buf *out)
{
    for (;;) {
        int r = vg_buf_reserve(out, 8192);
        if (r < 0)
            return r;
        ssize_t n = read(fd, out->p + out->n, out->cap - out->n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        out->n += (size_t)n;
    }
}

int vg_config_read_file(struct vg_arena *a, const char *path, struct vg_slice *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    VG_AUTO(buf) buf = {.max = VG_CONFIG_FILE_MAX};
    int r = read_all(fd, &buf);
    close(fd);
    if (r < 0)
        return r;
    const char *copy = "";
    r = vg_config_copy(a, vg_slice(buf.p ? buf.p : "", buf.n), &copy);
    if (r == 0)
        *ret = vg_slice(copy, buf.n);
    return r;
}

/* ---- what must hold of any configuration ---- */

static int check_server(struct vigil_config *c, struct vigil_error *err)
{
    if (!c->server || !c->server[0])
        return vg_error_set(err, VIGIL_E_INVALID,
                            "the configuration names no server; give its address, as in "
                            "https://host:6443");
    const char *server = c->server;
    if (!strstr(server, "://")) { /* as client-go: a bare host is meant to be insecure HTTP */
        struct vg_slice s = vg_slice_str(server);
        char *full = vg_arena_alloc(&c->arena, s.n + sizeof("http://"), 1);
        if (!full)
            return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
        snprintf(full, s.n + sizeof("http://"), "http://%s", server);
        c->server = server = full;
    }
    c->is_https = strncasecmp(server, "https://", 8) == 0;
    if (!c->is_https && strncasecmp(server, "http://", 7) != 0)
        return vg_error_set(err, VIGIL_E_INVALID,
                            "the server's address %s is neither http nor https", server);
    if (strchr("/:?#", *(strstr(server, "://") + 3))) /* or nothing */
        return vg_error_set(err, VIGIL_E_INVALID, "the server's address %s names no host", server);
    size_t n = strlen(server);
    if (n && server[n - 1] == '/') {
        while (n && server[n - 1] == '/')
            n--;
        if (vg_config_copy(&c->arena, vg_slice(server, n), &c->server) < 0)
            return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    }
    return 0;
}

bool vg_is_header_text(const char *s)
{
    for (; s && *s; s++)
        if (((uint8_t)*s < ' ' && *s != '\t') || *s == 0x7f)
            return false;
    return true;
}

/* The name of a text that cannot be sent as a header; NULL: all can. The text may be a secret. */
static const char *find_unsendable(const struct vigil_config *c)
{
    const struct {
        const char *name, *text;
    } v[] = {{"the server's address", c->server},
             {"tls-server-name", c->tls_server_name},
             {"the token", c->token},
             {"the user to impersonate", c->as_user},
             {"the uid to impersonate", c->as_uid}};
    for (size_t i = 0; i < VG_ARRAY_LEN(v); i++)
        if (!vg_is_header_text(v[i].text))
            return v[i].name;
    for (size_t i = 0; i < c->n_as_groups; i++)
        if (!vg_is_header_text(c->as_groups[i]))
            return "a group to impersonate";
    for (size_t i = 0; i < c->n_as_extra; i++)
        if (!vg_is_header_text(c->as_extra[i].value))
            return "an extra value to impersonate";
    return NULL;
}

static bool is_given(const struct vg_config_blob *b)
{
    return b->data.p || b->path;
}

int vg_config_finish(struct vigil_config *c, struct vigil_error *err)
{
    const char *bad = find_unsendable(c);
    if (bad)
        return vg_error_set(err, VIGIL_E_INVALID,
                            "%s has a line break or another control character", bad);
    int r = check_server(c, err);
    if (r < 0)
        return r;
    if (is_given(&c->ca) && c->is_insecure)
        return vg_error_set(err, VIGIL_E_INVALID,
                            "a certificate authority and insecure-skip-tls-verify contradict each "
                            "other; remove one of them");
    if ((c->token || c->token_file) && (c->username || c->password))
        return vg_error_set(err, VIGIL_E_INVALID,
                            "the user has both a token and a password; remove one of them");
    if (is_given(&c->cert) != is_given(&c->key))
        return vg_error_set(err, VIGIL_E_INVALID,
                            "a client certificate and its key belong together; %s is missing",
                            is_given(&c->cert) ? "the key" : "the certificate");
    return 0;
}

/* ---- by hand ---- */

static int copy_str(struct vigil_config *c, const char *s, const char **ret)
{
    return s ? vg_config_copy(&c->arena, vg_slice_str(s), ret) : 0;
}

static int copy_opts(struct vigil_config *c, const struct vigil_config_opts *o)
{
    const struct {
        const char *from;
        const char **to;
    } v[] = {{o->server, &c->server},         {o->token, &c->token},
             {o->token_file, &c->token_file}, {o->ca_file, &c->ca.path},
             {o->cert_file, &c->cert.path},   {o->key_file, &c->key.path},
             {o->namespace_, &c->ns}};
    for (size_t i = 0; i < VG_ARRAY_LEN(v); i++) {
        int r = copy_str(c, v[i].from, v[i].to);
        if (r < 0)
            return r;
    }
    c->is_insecure = o->insecure_skip_tls_verify;
    return 0;
}

int vigil_config_new(const struct vigil_config_opts *opts, struct vigil_config **ret,
                     struct vigil_error *err)
{
    struct vigil_config_opts full = {0};
    if (opts->size == 0)
        return vg_error_set(err, VIGIL_E_INVALID, VG_NO_SIZE);
    memcpy(&full, opts, VG_MIN(opts->size, sizeof(full))); /* of an older program: shorter */
    __attribute__((cleanup(vigil_config_cleanup))) struct vigil_config *c = vg_config_alloc();
    if (!c || copy_opts(c, &full) < 0)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    int r = vg_config_finish(c, err);
    if (r == 0)
        *ret = vg_steal(c);
    return r;
}

/* ---- in a pod ---- */

static int in_cluster_server(struct vigil_config *c, const char *host, const char *port)
{
    bool is_v6 = strchr(host, ':') != NULL;
    size_t n = strlen(host) + strlen(port) + 16;
    char *s = vg_arena_alloc(&c->arena, n, 1);
    if (!s)
        return -ENOMEM;
    snprintf(s, n, is_v6 ? "https://[%s]:%s" : "https://%s:%s", host, port);
    c->server = s;
    return 0;
}

static bool is_in_pod(void)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    return host && *host && port && *port;
}

static int account_file(struct vigil_config *c, const char *dir, const char *name, const char **ret)
{
    return vg_config_path(&c->arena, dir, vg_slice_str(name), ret);
}

int vg_config_in_cluster(const char *dir, struct vigil_config **ret, struct vigil_error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    if (!host || !*host || !port || !*port)
        return vg_error_set(
            err, VIGIL_E_NOT_FOUND,
            "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
            "set");
    __attribute__((cleanup(vigil_config_cleanup))) struct vigil_config *c = vg_config_alloc();
    const char *ns_path = NULL;
    struct vg_slice text = {NULL, 0};
    if (!c || in_cluster_server(c, host, port) < 0 ||
        account_file(c, dir, "token", &c->token_file) < 0 ||
        account_file(c, dir, "ca.crt", &c->ca.path) < 0 ||
        account_file(c, dir, "namespace", &ns_path) < 0)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    int r = vg_config_read_file(&c->arena, c->token_file, &text);
    if (r < 0)
        return vg_error_set(err, VIGIL_E_NOT_FOUND,
                            "%s: %s; does the pod mount its service account's token?",
                            c->token_file, vg_err_text(r));
    if (access(c->ca.path, R_OK) != 0)
        c->ca.path = NULL; /* as client-go: the system's authorities are tried */
    if (vg_config_read_file(&c->arena, ns_path, &text) == 0 && text.n)
        c->ns = text.p;
    r = vg_config_finish(c, err);
    if (r == 0)
        *ret = vg_steal(c);
    return r;
}

int vigil_config_in_cluster(struct vigil_config **ret, struct vigil_error *err)
{
    return vg_config_in_cluster(SERVICE_ACCOUNT, ret, err);
}

/* ---- files ---- */

static int parse_file(struct vigil_config *c, struct vg_slice text, struct vg_kubeconfig *file,
                      struct vigil_error *err)
{
    struct vg_json *root = NULL;
    struct vg_status status = {0};
    int r = vg_yaml_parse(&c->arena, text, &(struct vg_yaml_opts){.max_bytes = VG_CONFIG_FILE_MAX},
                          &root, &status);
    if (r < 0)
        return vg_error_set(err, r, "%s: %s", file->path, status.message);
    if (!vg_json_is(root, VG_JSON_OBJECT) && !vg_json_is(root, VG_JSON_NULL))
        return vg_error_set(err, VIGIL_E_INVALID, "%s is no kubeconfig: it holds a %s", file->path,
                            vg_json_type_name((enum vg_json_type)root->type));
    file->root = root;
    return 0;
}

int vigil_config_parse(struct vigil_text kubeconfig, const char *dir, const char *context,
                       struct vigil_config **ret, struct vigil_error *err)
{
    __attribute__((cleanup(vigil_config_cleanup))) struct vigil_config *c = vg_config_alloc();
    if (!c)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    struct vg_kubeconfig file = {.path = "the kubeconfig", .dir = dir};
    int r = parse_file(c, vg_slice_of(kubeconfig), &file, err);
    if (r == 0)
        r = vg_kubeconfig_resolve(&file, 1, context, c, err);
    if (r == 0)
        *ret = vg_steal(c);
    return r;
}

/* A file of several may be missing; one that was asked for by name may not. */
static int load_file(struct vigil_config *c, struct vg_slice path, bool must_be,
                     struct vg_kubeconfig *files, size_t *n, struct vigil_error *err)
{
    struct vg_kubeconfig file = {0};
    if (vg_config_copy(&c->arena, path, &file.path) < 0)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    struct vg_slice text = {NULL, 0};
    int r = vg_config_read_file(&c->arena, file.path, &text);
    if (r == -ENOENT && !must_be)
        return 0;
    if (r < 0)
        return vg_error_set(err, r == -ENOENT ? VIGIL_E_NOT_FOUND : VIGIL_E_INVALID,
                            "cannot read kubeconfig %s: %s", file.path, vg_err_text(r));
    const char *slash = strrchr(file.path, '/');
    if (slash &&
        vg_config_copy(&c->arena, vg_slice(file.path, (size_t)(slash - file.path)), &file.dir) < 0)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    r = parse_file(c, text, &file, err);
    if (r == 0)
        files[(*n)++] = file;
    return r;
}

static int load_list(struct vigil_config *c, const char *list, struct vg_kubeconfig *files,
                     size_t *n, struct vigil_error *err)
{
    while (*list && *n < VG_CONFIG_FILES_MAX) {
        size_t len = strcspn(list, ":");
        int r = len ? load_file(c, vg_slice(list, len), false, files, n, err) : 0;
        if (r < 0)
            return r;
        list += len + (list[len] == ':');
    }
    return 0;
}

static int load_home(struct vigil_config *c, struct vg_kubeconfig *files, size_t *n,
                     struct vigil_error *err)
{
    const char *home = getenv("HOME"), *path = NULL;
    if (!home || !*home)
        return 0;
    if (vg_config_path(&c->arena, home, VG_SLICE_LIT(".kube/config"), &path) < 0)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    return load_file(c, vg_slice_str(path), false, files, n, err);
}

int vigil_config_load(const char *path, const char *context, struct vigil_config **ret,
                      struct vigil_error *err)
{
    __attribute__((cleanup(vigil_config_cleanup))) struct vigil_config *c = vg_config_alloc();
    if (!c)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    struct vg_kubeconfig files[VG_CONFIG_FILES_MAX];
    size_t n = 0;
    const char *list = getenv("KUBECONFIG");
    int r = path            ? load_file(c, vg_slice_str(path), true, files, &n, err)
            : list && *list ? load_list(c, list, files, &n, err)
                            : load_home(c, files, &n, err);
    if (r < 0)
        return r;
    if (n == 0) {
        if (is_in_pod())
            return vigil_config_in_cluster(ret, err);
        return vg_error_set(err, VIGIL_E_NOT_FOUND,
                            "no kubeconfig found in %s; set KUBECONFIG or name a file",
                            list && *list ? list : "~/.kube/config");
    }
    r = vg_kubeconfig_resolve(files, n, context, c, err);
    if (r == 0)
        *ret = vg_steal(c);
    return r;
}
