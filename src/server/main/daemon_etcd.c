/* daemon_etcd.c - a store in etcd: what the flags say, for the engine. */
#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "daemon_int.h"

#define SERVERS_MAX 16u
/* 4 KiB: a password is a line. */
#define PASSWORD_MAX 4096u

struct words {
    char *text; /* owns what v points into */
    const char *v[SERVERS_MAX];
    size_t n;
};

/* Parts of a list by commas; empty ones do not count. */
static int split(const char *list, struct words *ret, struct vg_status *reterr_status)
{
    *ret = (struct words){.text = vg_strdup(list)};
    if (!ret->text)
        return -ENOMEM;
    char *rest = ret->text, *word;
    while ((word = strsep(&rest, ","))) {
        if (!*word)
            continue;
        if (ret->n == SERVERS_MAX)
            return vg_fail(reterr_status, VIGIL_E_INVALID,
                           "--etcd-servers: more than %u addresses; name a few of its members",
                           SERVERS_MAX);
        ret->v[ret->n++] = word;
    }
    return ret->n ? 0 : vg_fail(reterr_status, VIGIL_E_INVALID, "--etcd-servers is empty");
}

/* The first line of a file. */
static int read_password(const char *path, char *ret, struct vg_status *reterr_status)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return vg_fail(reterr_status, -errno, "--etcd-password-file: %s: %s", path,
                       vg_err_text(-errno));
    size_t n = fread(ret, 1, PASSWORD_MAX - 1, f);
    fclose(f);
    ret[n] = '\0';
    ret[strcspn(ret, "\r\n")] = '\0';
    if (!ret[0])
        return vg_fail(reterr_status, VIGIL_E_INVALID, "--etcd-password-file: %s is empty", path);
    return 0;
}

int vg_daemon_open_etcd(struct vg_daemon *d, const struct vg_storage_opts *o,
                        struct vg_status *reterr_status)
{
    const struct vg_config *c = d->config;
    struct words servers = {0};
    char password[PASSWORD_MAX] = "", prefix[512];
    snprintf(prefix, sizeof prefix, "%s/", c->etcd_prefix);
    int r = split(c->etcd_servers, &servers, reterr_status);
    if (r == 0 && c->etcd_password_file)
        r = read_password(c->etcd_password_file, password, reterr_status);
    enum vg_stored_media media;
    (void)vg_stored_media_find(c->storage_media_type, &media); /* config.c has looked at it */
    d->unreadable = (struct vg_stored_trouble){.log = o->log};
    struct vg_etcd_opts e = {
        .servers = servers.v,
        .n_servers = servers.n,
        .ca_file = c->etcd_ca_file,
        .cert_file = c->etcd_cert_file,
        .key_file = c->etcd_key_file,
        .username = c->etcd_username,
        .password = c->etcd_username ? password : NULL,
        .root = "/registry/",
        .prefix = prefix,
        .open_ms = c->etcd_connect_ms,
        .health_ms = c->etcd_health_ms,
        .compact_ms = c->compaction_ms,
        .unfinished_key = "/registry/vigil.copy", /* as src/server/copy/copy.h has it */
    };
    vg_stored_form(media, &d->unreadable, &e.form);
    struct vg_storage_opts opts = *o;
    opts.etcd = &e;
    if (r == 0)
        r = vg_storage_open_etcd(&opts, &d->storage, reterr_status);
    vg_free(servers.text);
    explicit_bzero(password, sizeof password);
    return r;
}
