/* admit.c - may this request come in? Everything that can refuse a request before its body is read:
 * a malformed target, the rules of the plain port, authentication, impersonation, authorization,
 * the limits of watches and of bodies under way. Each step answers and ends it, or lets it pass.
 */
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "gate_int.h"
#include "net/tls.h"

typedef bool step_fn(struct vg_request *q); /* false: answered */

/* ---- the target ---- */

static bool read_target(struct vg_request *q)
{
    const struct vg_http_request *r = vg_http_request(q->call.x);
    struct vg_request_text *t = vg_request_text(q);
    struct vg_status status = {0};
    struct vg_api_status answer;
    int err = vg_target_parse(r->method, t->raw, t->bytes + t->raw.n, &t->target, &status);
    q->key.method = (uint8_t)r->method;
    if (err < 0) {
        vg_status_bad_request(&q->call.ask->arena, &answer, "%s", status.message);
        vg_request_fail(q, &answer);
        return false;
    }
    vg_request_key_fill(&q->key, r->method, &t->target);
    q->is_watch = t->target.type == VG_TARGET_RESOURCE && t->target.verb == VG_API_WATCH;
    return true;
}

/* ---- the plain port ---- */

/* The host of an authority, without its port. */
static struct vg_slice host_of(struct vg_slice authority)
{
    size_t n = authority.n;
    while (n && authority.p[n - 1] >= '0' && authority.p[n - 1] <= '9')
        n--;
    if (n && n < authority.n && authority.p[n - 1] == ':')
        return vg_slice(authority.p, n - 1);
    return authority;
}

static bool is_loopback_name(struct vg_slice host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++) {
        if (host.n == strlen(names[i]) && strncasecmp(host.p, names[i], host.n) == 0)
            return true;
    }
    return false;
}

/* What browsers say of themselves and a page cannot change: another site asks, or another port of
 * this machine. */
static bool is_from_another_site(const struct vg_http_exchange *x)
{
    struct vg_slice site = vg_http_field(x, "sec-fetch-site");
    return vg_slice_eq(site, VG_SLICE_LIT("cross-site")) ||
           vg_slice_eq(site, VG_SLICE_LIT("same-site"));
}

/* A page from elsewhere may make a browser on this machine ask us: by a name that it lets point at
 * 127.0.0.1 (then Host is that name), or openly: then there is an Origin, or for links and images
 * alone Sec-Fetch-Site. None of them gets in. */
static bool keep_browsers_out(struct vg_request *q)
{
    const struct vg_http_request *r = vg_http_request(q->call.x);
    if (vg_http_peer(q->call.x)->is_tls)
        return true;
    /* A target with a host of its own wins over Host, but both must be ours. */
    struct vg_slice host = vg_http_field(q->call.x, "host");
    if (!is_loopback_name(host_of(r->authority)) || (host.p && !is_loopback_name(host_of(host)))) {
        vg_request_say(q, 403,
                       "403 the plain port answers to localhost, 127.0.0.1 and [::1] alone\n");
        return false;
    }
    if (vg_http_field(q->call.x, "origin").p) {
        vg_request_say(q, 403, "403 the plain port takes no requests with an Origin\n");
        return false;
    }
    if (is_from_another_site(q->call.x)) {
        vg_request_say(q, 403, "403 the plain port takes no requests from other sites\n");
        return false;
    }
    return true;
}

/* The host and port that an Origin names; p NULL: "null", or no URL of the web. */
static struct vg_slice origin_authority(struct vg_slice origin)
{
    static const struct vg_slice https = {"https://", 8}, http = {"http://", 7};
    if (vg_slice_has_prefix(origin, https))
        return vg_slice(origin.p + https.n, origin.n - https.n);
    if (vg_slice_has_prefix(origin, http))
        return vg_slice(origin.p + http.n, origin.n - http.n);
    return (struct vg_slice){0};
}

/* Without the port that HTTPS has by default. */
static struct vg_slice without_443(struct vg_slice authority)
{
    static const struct vg_slice port = {":443", 4};
    bool has_it = authority.n > port.n &&
                  vg_slice_eq(vg_slice(authority.p + authority.n - port.n, port.n), port);
    return has_it ? vg_slice(authority.p, authority.n - port.n) : authority;
}

/* Browsers let every page open a WebSocket to every server, and show the user's certificate there:
 * only the page's Origin tells whose wish it is. Who is no browser names the server itself. */
static bool check_websocket_origin(struct vg_request *q)
{
    const struct vg_http_request *r = vg_http_request(q->call.x);
    struct vg_slice origin = vg_http_field(q->call.x, "origin");
    if (!r->wants_websocket || !vg_http_peer(q->call.x)->is_tls || !origin.p)
        return true;
    struct vg_slice from = without_443(origin_authority(origin)), to = without_443(r->authority);
    if (from.p && from.n == to.n && strncasecmp(from.p, to.p, to.n) == 0)
        return true;
    vg_request_say(q, 403, "403 the Origin of a WebSocket must be this server\n");
    return false;
}

/* ---- authentication ---- */

/* The token of "Authorization: Bearer TOKEN"; p NULL: the field is absent or empty, which is no
 * error. VIGIL_E_INVALID: the field has something else. Somebody who shows credentials that are not
 * understood is not taken for nobody. */
static int bearer_token(const struct vg_http_exchange *x, struct vg_slice *ret_token)
{
    struct vg_slice v = vg_http_field(x, "authorization");
    *ret_token = (struct vg_slice){0};
    if (v.n == 0)
        return 0;
    if (v.n < 7 || strncasecmp(v.p, "bearer ", 7) != 0)
        return VIGIL_E_INVALID;
    v = vg_slice(v.p + 7, v.n - 7);
    const char *end = memchr(v.p, ' ', v.n);
    if (end)
        v.n = (size_t)(end - v.p);
    if (v.n == 0)
        return VIGIL_E_INVALID;
    *ret_token = v;
    return 0;
}

/* A certificate was valid in the handshake; connections live longer than that. */
static bool has_certificate(struct vg_request *q)
{
    const struct vg_tls_identity *id = vg_http_peer(q->call.x)->identity;
    return id && id->name.n > 0 && vg_clock_wall_ms(q->l->gate->clock) / 1000 <= id->not_after_s;
}

/* By a bearer token: one of the file, or of a service account. */
static int identify_token(struct vg_request *q, struct vg_slice token, struct vg_user **ret_user)
{
    const struct vg_token *row = vg_tokens_find(q->l->tokens, token);
    if (row) {
        struct vg_api_user u = {
            .name = row->name, .uid = row->uid, .groups = row->groups, .n_groups = row->n_groups};
        return vg_users_get(&q->l->users, &u, VG_GROUP_AUTHENTICATED, ret_user);
    }
    struct vg_account account;
    struct vg_slice why;
    int64_t now_s = vg_clock_wall_ms(q->l->gate->clock) / 1000;
    int r = vg_accounts_identify(&q->l->accounts, &q->call.ask->arena, token, now_s, NULL, 0,
                                 &account, &why);
    if (r == VIGIL_E_INVALID && why.n)
        vg_debug(q->l->gate->log, "token_refused", "why=%.*s", VG_SLICE_ARG(why));
    if (r < 0)
        return r == VIGIL_E_NOT_FOUND ? VIGIL_E_INVALID : r;
    return vg_users_get(&q->l->users, &account.user, VG_GROUP_AUTHENTICATED, ret_user);
}

/* Who asks. 0; VIGIL_E_INVALID: credentials that are nobody's; VIGIL_E_BUSY: not known yet;
 * -ENOMEM, VIGIL_E_TOO_LARGE. */
static int identify(struct vg_request *q, struct vg_user **ret_user)
{
    struct vg_users *users = &q->l->users;
    const struct vg_http_peer *peer = vg_http_peer(q->call.x);
    if (peer->inside || !peer->is_tls) {
        static const struct vg_slice group = {VG_GROUP_MASTERS, sizeof VG_GROUP_MASTERS - 1};
        struct vg_api_user u = {.name =
                                    vg_slice_str(peer->inside ? peer->inside : "system:unsecured"),
                                .groups = &group,
                                .n_groups = 1};
        return vg_users_get(users, &u, VG_GROUP_AUTHENTICATED, ret_user);
    }
    if (has_certificate(q)) {
        struct vg_api_user u = {.name = peer->identity->name,
                                .groups = peer->identity->groups,
                                .n_groups = peer->identity->n_groups};
        return vg_users_get(users, &u, VG_GROUP_AUTHENTICATED, ret_user);
    }
    struct vg_slice token;
    int r = bearer_token(q->call.x, &token);
    if (r < 0)
        return r;
    if (token.p)
        return identify_token(q, token, ret_user);
    if (peer->identity) /* expired meanwhile, or without a name */
        return VIGIL_E_INVALID;
    struct vg_api_user u = {.name = VG_SLICE_LIT(VG_USER_ANONYMOUS)};
    return vg_users_get(users, &u, VG_GROUP_UNAUTHENTICATED, ret_user);
}

static bool authenticate(struct vg_request *q)
{
    struct vg_api_status s;
    struct vg_user *user;
    int r = identify(q, &user);
    vg_request_count_authentication(q->l->gate->metrics, r == 0);
    if (r == 0) {
        q->call.user = &user->api;
        if (!vg_slice_eq(user->api.name, VG_SLICE_LIT(VG_USER_ANONYMOUS)))
            vg_http_authenticated(q->call.x);
        return true;
    }
    if (r == -ENOMEM)
        vg_status_from_err(&q->call.ask->arena, &s, r, vg_err_text(r));
    else if (r == VIGIL_E_BUSY)
        vg_status_unavailable(&q->call.ask->arena, &s, 1,
                              "service accounts are not known yet, please try again later");
    else
        vg_status_unauthorized(&s);
    vg_request_fail(q, &s);
    return false;
}

/* ---- authorization ---- */

static const struct vg_http_field no_sniff[] = {{{"X-Content-Type-Options", 22}, {"nosniff", 7}}};

/* pods "x" is forbidden: User "y" cannot get resource "pods" in API group "" ... */
static void forbid(struct vg_request *q, const struct vg_authz_attributes *a, const char *reason)
{
    VG_AUTO(buf) text = {0};
    struct vg_api_status s = {.code = 403,
                              .reason = "Forbidden",
                              .has_details = true,
                              .name = a->name,
                              .group = a->group,
                              .kind = a->resource};
    int r =
        a->is_resource && a->name.n
            ? vg_buf_printf(&text, "%.*s%s%.*s \"%.*s\" is forbidden: ", VG_SLICE_ARG(a->resource),
                            a->group.n ? "." : "", VG_SLICE_ARG(a->group), VG_SLICE_ARG(a->name))
        : a->is_resource
            ? vg_buf_printf(&text, "%.*s%s%.*s is forbidden: ", VG_SLICE_ARG(a->resource),
                            a->group.n ? "." : "", VG_SLICE_ARG(a->group))
            : vg_buf_printf(&text, "forbidden: ");
    if (r == 0)
        r = vg_authz_explain(&text, a, reason);
    s.message = r == 0 ? vg_buf_slice(&text) : VG_SLICE_LIT("forbidden");
    q->call.ask->extra_fields = no_sniff;
    q->call.ask->n_extra_fields = VG_ARRAY_LEN(no_sniff);
    vg_request_fail(q, &s);
}

/* Acting in another's name is not served, so it is refused rather than ignored: a client that asks
 * for less power than it has must not get all of it. */
static bool refuse_impersonation(struct vg_request *q)
{
    const struct vg_http_request *r = vg_http_request(q->call.x);
    static const struct vg_slice prefix = {"impersonate-", 12};
    for (size_t i = 0; i < r->n_fields; i++) {
        if (!vg_slice_has_prefix(r->fields[i].name, prefix))
            continue;
        bool is_group = vg_slice_eq(r->fields[i].name, VG_SLICE_LIT("impersonate-group"));
        struct vg_authz_attributes a = {
            .user = q->call.user,
            .verb = VG_SLICE_LIT("impersonate"),
            .is_resource = true,
            .resource = is_group ? VG_SLICE_LIT("groups") : VG_SLICE_LIT("users"),
            .name = r->fields[i].value,
        };
        forbid(q, &a, "this server does not support impersonation");
        return false;
    }
    return true;
}

static bool authorize(struct vg_request *q)
{
    char verb[16];
    const char *reason;
    struct vg_authz_attributes a;
    vg_authz_attributes(q->call.user, &vg_request_text(q)->target,
                        vg_http_request(q->call.x)->method_text, verb, &a);
    vg_request_classify(q, &a);
    if (vg_authz_is_allowed(q->l->gate->opts.authz, &a, &reason))
        return true;
    forbid(q, &a, reason);
    return false;
}

/* ---- limits ---- */

static bool refuse_when_shut(struct vg_request *q)
{
    struct vg_api_status s;
    if (!q->is_watch || !atomic_load_explicit(&q->l->gate->is_shut, memory_order_relaxed))
        return true;
    vg_status_unavailable(&q->call.ask->arena, &s, 1, "apiserver is shutting down");
    vg_request_fail(q, &s);
    return false;
}

static bool limit_watches(struct vg_request *q)
{
    struct vg_watch_caps *caps = &q->l->gate->caps;
    struct vg_api_status s;
    char text[256];
    if (!q->is_watch)
        return true;
    int r = vg_watch_caps_take(caps, q->call.user->name);
    q->has_cap = r == 0;
    if (r == 0)
        return true;
    snprintf(text, sizeof text,
             "user %.*s has %u watches open, as many as this server allows one user",
             (int)VG_MIN(q->call.user->name.n, 100), q->call.user->name.p, caps->max);
    vg_status_too_many(&q->call.ask->arena, &s, 1, text);
    vg_request_fail(q, &s);
    return false;
}

bool vg_request_admit(struct vg_request *q)
{
    static step_fn *const steps[] = {
        read_target,      keep_browsers_out,    check_websocket_origin,
        authenticate,     refuse_impersonation, authorize,
        refuse_when_shut, limit_watches,        vg_request_reserve_body,
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(steps); i++) {
        if (!steps[i](q))
            return false;
    }
    return true;
}
