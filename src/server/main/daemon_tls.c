/* daemon_tls.c - certificates: made, given from elsewhere, read again, renewed. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "daemon_int.h"
#include "pki.h"

static bool has_own_certificate(const struct vg_daemon *d)
{
    return !d->config->tls_cert_file;
}

static int make_certificates(struct vg_daemon *d, bool *ret_changed,
                             struct vg_status *reterr_status)
{
    const struct vg_config *c = d->config;
    struct vg_pki_opts opts = {.dir = &d->dir,
                               .bind_address = c->bind_address,
                               .advertised = d->advertised,
                               .extra_names = c->tls_san,
                               .client_ca_file = c->client_ca_file,
                               .no_server = !has_own_certificate(d),
                               .now_s = vg_clock_wall_ms(vg_clock_system()) / 1000};
    return vg_pki_ensure(&opts, ret_changed, reterr_status);
}

/* A path that stays right whatever becomes of the working directory. */
static int absolute(const char *path, char **ret, struct vg_status *reterr_status)
{
    char real[PATH_MAX];
    if (!realpath(path, real))
        return vg_fail(reterr_status, -errno, "cannot find %s: %s", path, strerror(errno));
    *ret = vg_strdup(real);
    return *ret ? 0 : -ENOMEM;
}

static int own_path(struct vg_daemon *d, const char *name, char **ret)
{
    *ret = vg_data_dir_path(&d->dir, name);
    return *ret ? 0 : -ENOMEM;
}

static int open_tls(struct vg_daemon *d, struct vg_status *reterr_status)
{
    const struct vg_config *c = d->config;
    int r = has_own_certificate(d) ? own_path(d, VG_PKI_SERVER_CERT, &d->cert_path)
                                   : absolute(c->tls_cert_file, &d->cert_path, reterr_status);
    if (r == 0)
        r = has_own_certificate(d) ? own_path(d, VG_PKI_SERVER_KEY, &d->key_path)
                                   : absolute(c->tls_key_file, &d->key_path, reterr_status);
    if (r == 0)
        r = own_path(d, VG_PKI_CLIENT_CA, &d->client_ca_path);
    if (r < 0)
        return r;
    struct vg_tls_opts opts = {.cert_file = d->cert_path,
                               .key_file = d->key_path,
                               .client_ca_file = d->client_ca_path,
                               .min_version = c->tls_min_version};
    return vg_tls_new(&opts, &d->tls, reterr_status);
}

static void *prepare(void *arg)
{
    struct vg_daemon *d = arg;
    bool changed;
    d->tls_result = make_certificates(d, &changed, &d->tls_status);
    if (d->tls_result == 0)
        d->tls_result = open_tls(d, &d->tls_status);
    return NULL;
}

int vg_daemon_begin_tls(struct vg_daemon *d)
{
    int r = pthread_create(&d->tls_thread, NULL, prepare, d);
    d->is_preparing = r == 0;
    return -r;
}

int vg_daemon_join_tls(struct vg_daemon *d, struct vg_status *reterr_status)
{
    if (d->is_preparing)
        pthread_join(d->tls_thread, NULL);
    d->is_preparing = false;
    if (d->tls_result < 0 && reterr_status)
        *reterr_status = d->tls_status;
    return d->tls_result;
}

/* A certificate from elsewhere vouches for itself: we do not know who signed it. */
static const char *root_ca_path(const struct vg_daemon *d)
{
    return has_own_certificate(d) ? VG_PKI_CA : d->cert_path;
}

int vg_daemon_write_kubeconfig(struct vg_daemon *d, struct vg_status *reterr_status)
{
    return vg_kubeconfig_write(&d->dir, d->url, root_ca_path(d), reterr_status);
}

int vg_daemon_read_cas(struct vg_daemon *d, struct vg_status *reterr_status)
{
    int r = vg_data_dir_read(&d->dir, root_ca_path(d), &d->root_ca, reterr_status);
    return r < 0 ? r : vg_data_dir_read(&d->dir, VG_PKI_CLIENT_CA, &d->client_ca, reterr_status);
}

/* ---- while it runs ---- */

/* Serve with the files as they are now, made anew where that was needed. */
static void use_certificates(struct vg_daemon *d, bool only_if_changed)
{
    const struct vg_log *log = vg_daemon_logger(d, VG_LOG_MAIN);
    struct vg_status status = {0};
    bool changed = false;
    int r = make_certificates(d, &changed, &status);
    if (r == 0 && !changed && only_if_changed)
        return;
    if (r == 0)
        r = vg_tls_reload(d->tls, &status);
    if (r == 0)
        r = vg_daemon_write_kubeconfig(d, &status);
    if (r < 0)
        vg_error(log, "certificates_kept", "why=%s", status.message);
    else
        vg_info(log, "certificates_read", "renewed=%d", changed);
}

static void reload_tokens(struct vg_daemon *d)
{
    const struct vg_log *log = vg_daemon_logger(d, VG_LOG_MAIN);
    struct vg_status status = {0};
    struct vg_tokens *tokens;
    if (!d->config->token_auth_file)
        return;
    int r = vg_tokens_load(d->config->token_auth_file, &tokens, &status);
    size_t n = r < 0 ? 0 : vg_tokens_count(tokens);
    if (r == 0)
        r = vg_gate_set_tokens(d->gate, tokens);
    if (r < 0)
        vg_error(log, "tokens_kept", "why=%s", status.message[0] ? status.message : vg_err_text(r));
    else
        vg_info(log, "tokens_read", "count=%zu", n);
}

void vg_daemon_reload(struct vg_daemon *d)
{
    use_certificates(d, false);
    reload_tokens(d);
}

void vg_daemon_renew(struct vg_daemon *d)
{
    use_certificates(d, true);
}
