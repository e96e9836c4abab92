/* daemon_issuer.c - who gives out tokens of service accounts: the keys, given or made once, and the
 * names. A key that was made stays: with another one all tokens would be worthless. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon_int.h"
#include "pki.h"

static int add_file(struct vg_jwt_keys *keys, const char *path, struct vg_status *reterr_status)
{
    VG_AUTO(buf) text = {0};
    int r = vg_read_file(path, &text, reterr_status);
    if (r == 0)
        r = vg_jwt_keys_add(keys, path, vg_buf_slice(&text), reterr_status);
    if (text.n)
        explicit_bzero(text.p, text.n);
    return r;
}

/* Names parted by commas. */
static int add_files(struct vg_jwt_keys *keys, const char *list, struct vg_status *reterr_status)
{
    int r = 0;
    while (list && *list && r == 0) {
        size_t n = strcspn(list, ",");
        char *path = n ? vg_malloc(n + 1) : NULL;
        if (n && !path)
            return -ENOMEM;
        if (path) {
            memcpy(path, list, n);
            path[n] = 0;
            r = add_file(keys, path, reterr_status);
        }
        vg_free(path);
        list += n + (list[n] == ',');
    }
    return r;
}

static int add_own(struct vg_daemon *d, struct vg_jwt_keys *keys, struct vg_status *reterr_status)
{
    VG_AUTO(buf) pem = {0};
    int r = vg_data_dir_read(&d->dir, VG_PKI_ACCOUNT_KEY, &pem, reterr_status);
    if (r == -ENOENT) {
        r = vg_jwt_key_make(&pem);
        if (r == 0)
            r = vg_data_dir_write(&d->dir, VG_PKI_ACCOUNT_KEY, vg_buf_slice(&pem), VG_DURABLE,
                                  reterr_status);
    }
    if (r == 0)
        r = vg_jwt_keys_add(keys, VG_PKI_ACCOUNT_KEY, vg_buf_slice(&pem), reterr_status);
    if (pem.n)
        explicit_bzero(pem.p, pem.n);
    return r;
}

int vg_daemon_open_issuer(struct vg_daemon *d, struct vg_status *reterr_status)
{
    const struct vg_config *c = d->config;
    struct vg_jwt_keys keys = {.n = 0};
    VG_AUTO(buf) uri = {0};
    int r = c->account_signing_key_file
                ? add_file(&keys, c->account_signing_key_file, reterr_status)
                : add_own(d, &keys, reterr_status);
    if (r == 0)
        r = add_files(&keys, c->account_key_files, reterr_status);
    if (r == 0)
        r = c->account_jwks_uri ? vg_buf_printf(&uri, "%s%c", c->account_jwks_uri, 0)
                                : vg_buf_printf(&uri, "%s/openid/v1/jwks%c", d->url, 0);
    struct vg_issuer_opts opts = {.issuers = c->account_issuers,
                                  .audiences = c->account_audiences,
                                  .jwks_uri = uri.p,
                                  .max_s = c->account_token_max_s,
                                  .extends = c->account_token_extends,
                                  .take_keys = &keys};
    if (r < 0) {
        vg_jwt_keys_done(&keys);
        return r;
    }
    return vg_issuer_new(&opts, &d->issuer, reterr_status);
}
