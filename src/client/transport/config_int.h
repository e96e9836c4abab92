/* config_int.h - a configuration as the client uses it: every field of a kubeconfig that matters,
 * resolved. Immutable once made and shared by reference; all texts lie in its arena, end with a 0
 * byte, and are NULL where the field was not given. Thread: any, after making. */
#ifndef VG_CLIENT_TRANSPORT_CONFIG_INT_H
#define VG_CLIENT_TRANSPORT_CONFIG_INT_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "client/object/error.h"
#include "vigil/client.h"
#include "json/json.h"

/* 16 MiB: far above any kubeconfig, certificate bundle or token. */
#define VG_CONFIG_FILE_MAX ((size_t)16 << 20)
/* Files that KUBECONFIG may name. */
#define VG_CONFIG_FILES_MAX 64u

/* Something that is given in the configuration or in a file, which is read again from time to time.
 */
struct vg_config_blob {
    struct vg_slice data; /* p NULL: not given */
    const char *path;     /* NULL: not a file */
};

struct vg_config_pair {
    const char *name, *value;
};

enum vg_exec_mode { VG_EXEC_NEVER, VG_EXEC_IF_AVAILABLE, VG_EXEC_ALWAYS };

/* A program that gives credentials. */
struct vg_exec_config {
    const char *command; /* NULL: there is none */
    const char *api_version;
    const char **args; /* ends with NULL; args[0] is the command */
    struct vg_config_pair *env;
    size_t n_env;
    const char *install_hint;
    bool gives_cluster;
    enum vg_exec_mode mode;
    const char *cluster_config; /* JSON of the extension meant for it; NULL: none */
};

struct vigil_config {
    _Atomic unsigned refs;
    struct vg_arena arena;
    const char *server; /* scheme://host[:port][/prefix], no slash at its end */
    const char *ns;     /* NULL: default */
    const char *tls_server_name, *proxy_url;
    bool is_insecure, no_compression, is_https;
    struct vg_config_blob ca, cert, key;
    const char *token, *token_file;
    const char *username, *password;
    const char *as_user, *as_uid;
    const char **as_groups;
    size_t n_as_groups;
    struct vg_config_pair *as_extra; /* name is the key; one pair per value */
    size_t n_as_extra;
    struct vg_exec_config exec;
};

struct vigil_config *vg_config_alloc(void); /* NULL: out of memory */
struct vigil_config *vg_config_ref(const struct vigil_config *c);
static inline void vigil_config_cleanup(struct vigil_config **c)
{
    vigil_config_free(*c);
}
/* Can it be the value of an HTTP header? Line breaks and other control characters cannot: what
 * follows them would be a header of its own. NULL is fine. */
bool vg_is_header_text(const char *s);
/* Check what was filled in and settle what follows from it. */
VG_CHECK int vg_config_finish(struct vigil_config *c, struct vigil_error *err);

/* Copy into the arena, with a 0 byte; *ret NULL for s.p NULL. 0 or -ENOMEM. */
VG_CHECK int vg_config_copy(struct vg_arena *a, struct vg_slice s, const char **ret);
/* dir/path, or path alone when it is absolute or there is no dir. */
VG_CHECK int vg_config_path(struct vg_arena *a, const char *dir, struct vg_slice path,
                            const char **ret);
/* The whole file, with a 0 byte behind. 0; -errno; VIGIL_E_TOO_LARGE. */
VG_CHECK int vg_config_read_file(struct vg_arena *a, const char *path, struct vg_slice *ret);
/* As vigil_config_in_cluster, with the service account's files in dir. */
VG_CHECK int vg_config_in_cluster(const char *dir, struct vigil_config **ret,
                                  struct vigil_error *err);

/* One kubeconfig of those that are merged. */
struct vg_kubeconfig {
    const char *path; /* for messages */
    const char *dir;  /* what relative paths count from; NULL: the working directory */
    const struct vg_json *root;
};
/* Make of merged files, earlier ones first, what `context` (NULL: the current one) names. */
VG_CHECK int vg_kubeconfig_resolve(const struct vg_kubeconfig *files, size_t n, const char *context,
                                   struct vigil_config *c, struct vigil_error *err);

#endif
