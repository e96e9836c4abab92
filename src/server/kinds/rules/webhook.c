/* webhook.c - where webhooks are called: urls and services; see admission.h.
 * Left out: URLs that Go does not parse are refused for a missing scheme, control characters and
 * bad ports only. */
#include "admission.h"
#include "base/buf.h"
#include "names.h"

#define FORM "; desired format: https://host[/path]"

void vg_bad_reasons(struct vg_check *c, const struct vg_at *at, struct vg_slice text,
                    const char *before, const struct vg_name_reasons *why)
{
    VG_AUTO(buf) b = {0};
    for (uint32_t i = 0; i < why->n; i++)
        if (vg_buf_printf(&b, "%s%s", i ? "," : "", why->v[i]) < 0)
            c->errors->failed = true;
    vg_bad_value(c, at, vg_json_quoted(c, text), "%s%.*s", before, VG_SLICE_ARG(vg_buf_slice(&b)));
}

void vg_check_review_versions(struct vg_check *c, const struct vg_at *at)
{
    VG_AUTO(names) seen = {0};
    bool has_known = false;
    VG_CHECK_EACH (c, version, at) {
        struct vg_name_reasons why = {0};
        if (!vg_names_add(c, &seen, vg_at_text(&version), NULL)) {
            vg_bad(c, &version, "duplicate version");
            continue;
        }
        if (!vg_validate_dns1035_label(vg_at_text(&version), &why))
            (void)vg_check_reasons(c, &version, &why);
        has_known = has_known || vg_at_is(&version, "v1") || vg_at_is(&version, "v1beta1");
    }
    if (!has_known)
        vg_bad(c, at, "must include at least one of v1, v1beta1");
}

/* ---- urls ---- */

struct url {
    struct vg_slice scheme, user, host, query, fragment;
    bool has_user;
    const char *error; /* why Go does not read it */
};

/* What is before the first of these bytes; *rest is what comes after it. */
static struct vg_slice cut(struct vg_slice *rest, char at)
{
    const char *p = rest->n ? memchr(rest->p, at, rest->n) : NULL;
    struct vg_slice head = *rest;
    if (!p) {
        rest->n = 0;
        return head;
    }
    head.n = (size_t)(p - rest->p);
    *rest = vg_slice(p + 1, rest->n - head.n - 1);
    return head;
}

static bool is_alpha(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

/* The scheme, when there is one; text goes on behind it. */
static struct vg_slice take_scheme(struct vg_slice *text, const char **error)
{
    for (size_t i = 0; i < text->n; i++) {
        char ch = text->p[i];
        if (is_alpha(ch))
            continue;
        if (ch == ':' && i == 0)
            *error = "missing protocol scheme";
        if (ch == ':' && i > 0) {
            struct vg_slice scheme = vg_slice(text->p, i);
            *text = vg_slice(text->p + i + 1, text->n - i - 1);
            return scheme;
        }
        if (i == 0 || !((ch >= '0' && ch <= '9') || ch == '+' || ch == '-' || ch == '.'))
            break;
    }
    return vg_slice("", 0);
}

static void read_authority(struct url *u, struct vg_slice text)
{
    for (size_t i = text.n; i-- > 0;) {
        if (text.p[i] != '@')
            continue;
        u->user = vg_slice(text.p, i);
        u->has_user = true;
        text = vg_slice(text.p + i + 1, text.n - i - 1);
        break;
    }
    u->host = text;
    const char *colon = text.n ? memrchr(text.p, ':', text.n) : NULL;
    for (const char *p = colon ? colon + 1 : NULL; p && p < text.p + text.n; p++)
        if ((*p < '0' || *p > '9') && *p != ']' && text.p[0] != '[')
            u->error = "invalid port after host";
}

static struct url read_url(struct vg_slice text)
{
    struct url u = {.scheme = {"", 0}, .error = NULL};
    struct vg_slice rest = text;
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            u.error = "net/url: invalid control character in URL";
    struct vg_slice main = cut(&rest, '#');
    u.fragment = rest;
    u.scheme = take_scheme(&main, &u.error);
    rest = main;
    main = cut(&rest, '?');
    u.query = rest;
    if (vg_slice_has_prefix(main, VG_SLICE_LIT("//"))) {
        rest = vg_slice(main.p + 2, main.n - 2);
        read_authority(&u, cut(&rest, '/'));
    }
    return u;
}

void vg_check_webhook_url(struct vg_check *c, const struct vg_at *at)
{
    struct url u = read_url(vg_at_text(at));
    if (u.error) {
        struct vg_slice quoted = vg_json_quoted(c, vg_at_text(at));
        vg_required(c, at, "url must be a valid URL: parse %.*s: %s" FORM, VG_SLICE_ARG(quoted),
                    u.error);
        return;
    }
    if (!vg_slice_eq(u.scheme, VG_SLICE_LIT("https")))
        vg_bad_value(c, at, vg_json_quoted(c, u.scheme),
                     "'https' is the only allowed URL scheme" FORM);
    if (u.host.n == 0)
        vg_bad_value(c, at, VG_SLICE_LIT("\"\""), "host must be specified" FORM);
    if (u.has_user)
        vg_bad_value(c, at, vg_json_quoted(c, u.user),
                     "user information is not permitted in the URL");
    if (u.fragment.n)
        vg_bad_value(c, at, vg_json_quoted(c, u.fragment),
                     "fragments are not permitted in the URL");
    if (u.query.n)
        vg_bad_value(c, at, vg_json_quoted(c, u.query),
                     "query parameters are not permitted in the URL");
}

/* ---- services ---- */

static void check_path(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice path = vg_at_text(at);
    size_t step = 0, from = 1;
    if (path.n == 0 || vg_slice_eq(path, VG_SLICE_LIT("/")))
        return;
    if (vg_slice_eq(path, VG_SLICE_LIT("//"))) {
        vg_bad(c, at, "segment[0] may not be empty");
        return;
    }
    if (path.p[0] != '/')
        vg_bad(c, at, "must start with a '/'");
    size_t end = path.n > 1 && path.p[path.n - 1] == '/' ? path.n - 1 : path.n;
    for (size_t i = 1; i <= end; i++) {
        if (i < end && path.p[i] != '/')
            continue;
        struct vg_slice part = vg_slice(path.p + from, i - from);
        struct vg_name_reasons why = {0};
        if (part.n == 0)
            vg_bad(c, at, "segment[%zu] may not be empty", step);
        else if (!vg_validate_dns1123_subdomain(part, VG_NAME_CHARACTERS, &why))
            for (uint32_t k = 0; k < why.n; k++)
                vg_bad(c, at, "segment[%zu]: %s", step, why.v[k]);
        step++;
        from = i + 1;
    }
}

void vg_check_webhook_service(struct vg_check *c, const struct vg_at *at, const char *name,
                              const char *ns)
{
    struct vg_at port = vg_at(at, "port"), path = vg_at(at, "path");
    struct vg_at names[] = {vg_at_of(at, "name", vg_json_get_str(at->v, name)),
                            vg_at_of(at, "namespace", vg_json_get_str(at->v, ns))};
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        (void)vg_check_given(c, &names[i]);
    if (vg_at_int(&port) < 1 || vg_at_int(&port) > 65535)
        vg_bad_int(c, &port, "port is not valid: must be between 1 and 65535, inclusive");
    if (path.v)
        check_path(c, &path);
}

void vg_check_webhook_client(struct vg_check *c, const struct vg_at *at)
{
    struct vg_at url = vg_at(at, "url"), service = vg_at(at, "service");
    if (!url.v == !service.v)
        vg_required(c, at, "exactly one of url or service is required");
    else if (url.v)
        vg_check_webhook_url(c, &url);
    else /* the original takes the one for the other, and blames it so */
        vg_check_webhook_service(c, &service, "namespace", "name");
}
