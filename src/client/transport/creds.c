/* creds.c - see creds.h. */
#include "creds.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"

static uint64_t now_ns(const struct vg_creds *c)
{
    return vg_clock_mono_ns(vg_loop_clock(c->loop));
}

/* ---- certificates ---- */

static bool is_same(const struct vg_buf *b, struct vg_slice s)
{
    return vg_slice_eq(vg_buf_slice(b), s);
}

static int put(struct vg_buf *b, struct vg_slice s)
{
    vg_buf_clear(b);
    return s.n ? vg_buf_append_slice(b, s) : 0;
}

static int read_blob(const struct vg_config_blob *from, struct vg_arena *a, const char *what,
                     struct vg_slice *ret, struct vigil_error *err)
{
    *ret = from->data;
    int r = !from->data.p && from->path ? vg_config_read_file(a, from->path, ret) : 0;
    return r < 0 ? vg_error_set(err, r == -ENOMEM ? r : VIGIL_E_INVALID,
                                "cannot read the %s %s: %s", what, from->path, vg_err_text(r))
                 : 0;
}

/* What the configuration gives, or the program where it gave a certificate. */
static int load_files(struct vg_creds *c, struct vigil_error *err)
{
    VG_AUTO(arena) arena = {0};
    struct vg_slice ca = {NULL, 0}, cert = {NULL, 0}, key = {NULL, 0};
    int r = read_blob(&c->config->ca, &arena, "certificate authority", &ca, err);
    if (r == 0)
        r = read_blob(&c->config->cert, &arena, "client certificate", &cert, err);
    if (r == 0)
        r = read_blob(&c->config->key, &arena, "client key", &key, err);
    if (r < 0)
        return r;
    if (c->has_given && c->given.cert.p) {
        cert = c->given.cert;
        key = c->given.key;
    }
    if (is_same(&c->ca, ca) && is_same(&c->cert, cert) && is_same(&c->key, key))
        return 0;
    if (put(&c->ca, ca) < 0 || put(&c->cert, cert) < 0 || put(&c->key, key) < 0)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    c->generation++;
    return 0;
}

/* A certificate that cannot be read now may be in the middle of its rotation: the old one stays. */
static int refresh_files(struct vg_creds *c)
{
    uint64_t now = now_ns(c);
    if (!c->has_files || now - c->files_at_ns < VG_CREDS_FILES_NS)
        return 0;
    c->files_at_ns = now;
    struct vigil_error err = {0};
    int r = load_files(c, &err);
    if (r < 0)
        vg_warn(c->log, "certificate_unreadable", "error=%s", err.message);
    return r == VIGIL_E_MEMORY ? r : 0;
}

/* ---- tokens in files ---- */

/* Without the blanks around it; a 0 byte ends it early. NULL: out of memory. */
static char *trimmed(struct vg_slice text)
{
    while (text.n && (uint8_t)text.p[text.n - 1] <= ' ')
        text.n--;
    while (text.n && (uint8_t)text.p[0] <= ' ')
        text = vg_slice(text.p + 1, text.n - 1);
    return vg_strndup(text.p, text.n);
}

static int refresh_token(struct vg_creds *c, struct vigil_error *err)
{
    const char *path = c->config->token_file;
    uint64_t now = now_ns(c);
    if (!path || (c->file_token && !c->must_read && now - c->token_at_ns < VG_CREDS_TOKEN_NS))
        return 0;
    VG_AUTO(arena) arena = {0};
    struct vg_slice text = {NULL, 0};
    int r = vg_config_read_file(&arena, path, &text);
    char *token = r == 0 ? trimmed(text) : NULL;
    if (r == 0 && !token)
        return vg_error_set(err, VIGIL_E_MEMORY, "out of memory");
    if (r < 0 || !*token || !vg_is_header_text(token)) {
        const char *why = r < 0     ? vg_err_text(r)
                          : !*token ? "it is empty"
                                    : "it has a line break or another control character";
        vg_free(token);
        vg_warn(c->log, "token_unreadable", "path=%s error=%s", path, why);
        if (c->file_token || c->config->token)
            return 0; /* the old one, or the one that the configuration has beside it */
        return vg_error_set(err, VIGIL_E_UNAUTHORIZED, "cannot read the token file %s: %s", path,
                            why);
    }
    vg_free(c->file_token);
    c->file_token = token;
    c->token_at_ns = now;
    c->must_read = false;
    return 0;
}

/* ---- programs ---- */

static bool is_expired(const struct vg_creds *c)
{
    return !c->has_given || c->must_run ||
           (c->given.expires_ms && vg_clock_wall_ms(vg_loop_clock(c->loop)) >= c->given.expires_ms);
}

static void forget_given(struct vg_creds *c)
{
    if (c->has_given)
        vg_exec_result_done(&c->given);
    c->has_given = false;
}

static void on_exec(void *arg, struct vg_exec_result *take_result)
{
    struct vg_creds *c = arg;
    c->run = NULL;
    vg_timer_stop(c->loop, &c->limit);
    struct vigil_error err = take_result->err;
    if (err.code < 0) {
        vg_warn(c->log, "exec_failed", "error=%s", err.message);
        vg_exec_result_done(take_result);
    } else {
        forget_given(c);
        c->given = *take_result;
        c->has_given = true;
        c->must_run = false;
        if (load_files(c, &err) == 0)
            err.code = 0;
    }
    struct vg_list told;
    vg_list_init(&told);
    for (struct vg_list *l; (l = vg_list_pop_front(&c->waiters));)
        vg_list_push_back(&told, l);
    for (struct vg_list *l; (l = vg_list_pop_front(&told));) {
        struct vg_creds_waiter *w = VG_CONTAINER_OF(l, struct vg_creds_waiter, link);
        w->ready(w, &err);
    }
}

static void on_limit(struct vg_timer *t)
{
    vg_exec_give_up(VG_CONTAINER_OF(t, struct vg_creds, limit)->run);
}

int vg_creds_prepare(struct vg_creds *c, struct vg_creds_waiter *w, struct vigil_error *err)
{
    int r = refresh_files(c);
    if (r < 0)
        return vg_error_set(err, r, "out of memory");
    if (!c->config->exec.command)
        return refresh_token(c, err);
    if (!c->run && !is_expired(c))
        return 0;
    if (!c->run) {
        r = vg_exec_start(c->config, c->loop, on_exec, c, &c->run);
        if (r < 0)
            return vg_error_set(err, r, "cannot run %s", c->config->exec.command);
        vg_timer_start(c->loop, &c->limit, vg_exec_limit_ms(c->config) * VG_NS_PER_MS, on_limit);
    }
    vg_list_push_back(&c->waiters, &w->link);
    return 1;
}

void vg_creds_leave(struct vg_creds_waiter *w)
{
    if (w->link.next)
        vg_list_remove(&w->link);
}

void vg_creds_refused(struct vg_creds *c)
{
    c->must_run = c->must_read = true;
}

/* ---- in requests ---- */

static int put_basic(const struct vigil_config *c, struct vg_buf *out)
{
    VG_AUTO(buf) pair = {0};
    int r = vg_buf_printf(&pair, "%s:%s", c->username ? c->username : "",
                          c->password ? c->password : "");
    if (r == 0)
        r = vg_buf_printf(out, "Authorization: Basic ");
    if (r == 0)
        r = vg_base64_append(out, vg_buf_slice(&pair));
    return r < 0 ? r : vg_buf_append_byte(out, 0);
}

int vg_creds_header(struct vg_creds *c, struct vg_buf *out)
{
    const char *token = c->file_token                    ? c->file_token
                        : c->has_given && c->given.token ? c->given.token
                                                         : c->config->token;
    if (token) {
        int r = vg_buf_printf(out, "Authorization: Bearer %s", token);
        return r < 0 ? r : vg_buf_append_byte(out, 0);
    }
    return c->config->username ? put_basic(c->config, out) : 0;
}

int vg_creds_init(struct vg_creds *c, struct vigil_config *config, struct vg_loop *loop,
                  const struct vg_log *log, struct vigil_error *err)
{
    *c = (struct vg_creds){.config = config, .loop = loop, .log = log};
    vg_list_init(&c->waiters);
    c->has_files = config->ca.path || config->cert.path || config->key.path;
    c->files_at_ns = now_ns(c);
    return load_files(c, err);
}

void vg_creds_done(struct vg_creds *c)
{
    vg_timer_stop(c->loop, &c->limit);
    vg_exec_cancel(vg_steal(c->run));
    forget_given(c);
    vg_free(c->file_token);
    vg_buf_done(&c->ca);
    vg_buf_done(&c->cert);
    vg_buf_done(&c->key);
}
