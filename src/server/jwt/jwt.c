/* jwt.c - reading and writing tokens; see jwt.h. Members are written sorted, as Go writes maps. */
#include "jwt.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "json/json.h"
#include "json/write.h"

/* ---- reading ---- */

/* base64url without padding, as a JSON object. */
static int read_part(struct vg_arena *a, struct vg_slice part, struct vg_json **ret)
{
    char *text = vg_arena_alloc(a, vg_base64_url_room(part.n), 1);
    size_t n;
    if (!text)
        return -ENOMEM;
    if (!vg_base64_url_decode(part, text, &n))
        return VIGIL_E_INVALID;
    int err = vg_json_parse(a, vg_slice(text, n), NULL, ret, NULL);
    if (err == -ENOMEM)
        return err;
    return err < 0 || (*ret)->type != VG_JSON_OBJECT ? VIGIL_E_INVALID : 0;
}

/* A text, or nothing. */
static int read_text(const struct vg_json *v, struct vg_slice *ret)
{
    *ret = VG_SLICE_LIT("");
    if (!v || v->type == VG_JSON_NULL)
        return 0;
    *ret = vg_json_text(v);
    return v->type == VG_JSON_STRING ? 0 : VIGIL_E_INVALID;
}

static int read_time(const struct vg_json *v, int64_t *ret)
{
    *ret = 0;
    if (!v || v->type == VG_JSON_NULL)
        return 0;
    /* One second off is nothing; 0 would say that it is not claimed. */
    if (v->type != VG_JSON_NUMBER || vg_json_to_int64(v, ret) < 0)
        return VIGIL_E_INVALID;
    *ret = *ret == 0 ? 1 : *ret;
    return 0;
}

static int read_ref(const struct vg_json *v, struct vg_jwt_ref *ret)
{
    *ret = (struct vg_jwt_ref){VG_SLICE_LIT(""), VG_SLICE_LIT("")};
    if (!v || v->type == VG_JSON_NULL)
        return 0;
    int err = v->type == VG_JSON_OBJECT ? 0 : VIGIL_E_INVALID;
    if (err == 0)
        err = read_text(vg_json_get_str(v, "name"), &ret->name);
    if (err == 0)
        err = read_text(vg_json_get_str(v, "uid"), &ret->uid);
    return err < 0 || ret->name.n ? err : VIGIL_E_INVALID;
}

/* One text, or a list of them. */
static int read_audiences(struct vg_arena *a, const struct vg_json *v, struct vg_jwt_claims *ret)
{
    if (!v || v->type == VG_JSON_NULL)
        return 0;
    bool is_list = v->type == VG_JSON_ARRAY;
    size_t n = is_list ? v->n : 1;
    if (n > VG_JWT_AUDIENCES_MAX)
        return VIGIL_E_INVALID;
    struct vg_slice *list = vg_arena_array(a, struct vg_slice, n + 1);
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct vg_json *it = is_list ? &v->items[i] : v;
        if (it->type != VG_JSON_STRING)
            return VIGIL_E_INVALID;
        list[i] = vg_json_text(it);
    }
    ret->audiences = list;
    ret->n_audiences = n;
    return 0;
}

static int read_kubernetes(const struct vg_json *v, struct vg_jwt_claims *ret)
{
    if (v && v->type != VG_JSON_OBJECT)
        return VIGIL_E_INVALID;
    int err = read_text(vg_json_get_str(v, "namespace"), &ret->ns);
    if (err == 0)
        err = read_ref(vg_json_get_str(v, "serviceaccount"), &ret->account);
    if (err == 0)
        err = read_ref(vg_json_get_str(v, "pod"), &ret->pod);
    if (err == 0)
        err = read_ref(vg_json_get_str(v, "secret"), &ret->secret);
    if (err == 0)
        err = read_ref(vg_json_get_str(v, "node"), &ret->node);
    return err < 0 ? err : read_time(vg_json_get_str(v, "warnafter"), &ret->warn_after_s);
}

static int read_claims(struct vg_arena *a, const struct vg_json *v, struct vg_jwt_claims *ret)
{
    *ret = (struct vg_jwt_claims){.audiences = NULL};
    int err = read_text(vg_json_get_str(v, "iss"), &ret->issuer);
    if (err == 0)
        err = read_text(vg_json_get_str(v, "sub"), &ret->subject);
    if (err == 0)
        err = read_text(vg_json_get_str(v, "jti"), &ret->id);
    if (err == 0)
        err = read_time(vg_json_get_str(v, "exp"), &ret->expires_s);
    if (err == 0)
        err = read_time(vg_json_get_str(v, "iat"), &ret->issued_s);
    if (err == 0)
        err = read_time(vg_json_get_str(v, "nbf"), &ret->starts_s);
    if (err == 0)
        err = read_audiences(a, vg_json_get_str(v, "aud"), ret);
    return err < 0 ? err : read_kubernetes(vg_json_get_str(v, "kubernetes.io"), ret);
}

/* What stands before the next dot; false: there is none. */
static bool cut(struct vg_slice *rest, struct vg_slice *ret)
{
    const char *dot = rest->n ? memchr(rest->p, '.', rest->n) : NULL;
    if (!dot)
        return false;
    *ret = vg_slice(rest->p, (size_t)(dot - rest->p));
    *rest = vg_slice(dot + 1, rest->n - ret->n - 1);
    return true;
}

int vg_jwt_read(struct vg_arena *a, struct vg_slice token, struct vg_jwt *ret)
{
    struct vg_slice header, claims, rest = token;
    struct vg_json *v;
    if (token.n > VG_JWT_MAX || !cut(&rest, &header) || !cut(&rest, &claims) || rest.n == 0)
        return VIGIL_E_INVALID;
    *ret = (struct vg_jwt){.text = vg_slice(token.p, header.n + 1 + claims.n)};
    char *bytes = vg_arena_alloc(a, vg_base64_url_room(rest.n), 1);
    if (!bytes)
        return -ENOMEM;
    if (!vg_base64_url_decode(rest, bytes, &ret->signature.n)) /* also when there is a third dot */
        return VIGIL_E_INVALID;
    ret->signature.p = bytes;
    int err = read_part(a, header, &v);
    if (err == 0)
        err = read_text(vg_json_get_str(v, "alg"), &ret->algorithm);
    if (err == 0)
        err = read_text(vg_json_get_str(v, "kid"), &ret->key_id);
    if (err == 0 && vg_json_get_str(v, "crit")) /* it asks for what we do not know */
        err = VIGIL_E_INVALID;
    if (err == 0)
        err = read_part(a, claims, &v);
    return err < 0 ? err : read_claims(a, v, &ret->claims);
}

/* ---- writing ---- */

static void put_ref(struct vg_json_writer *w, const char *name, const struct vg_jwt_ref *ref)
{
    if (ref->name.n == 0)
        return;
    vg_json_put_key(w, vg_slice_str(name));
    vg_json_put_begin_object(w);
    vg_json_put_member(w, "name", ref->name);
    if (ref->uid.n)
        vg_json_put_member(w, "uid", ref->uid);
    vg_json_put_end_object(w);
}

static void put_time(struct vg_json_writer *w, const char *name, int64_t s)
{
    if (s == 0)
        return;
    vg_json_put_key(w, vg_slice_str(name));
    vg_json_put_int(w, s);
}

static void put_kubernetes(struct vg_json_writer *w, const struct vg_jwt_claims *c)
{
    vg_json_put_key(w, VG_SLICE_LIT("kubernetes.io"));
    vg_json_put_begin_object(w);
    vg_json_put_member(w, "namespace", c->ns);
    put_ref(w, "node", &c->node);
    put_ref(w, "pod", &c->pod);
    put_ref(w, "secret", &c->secret);
    put_ref(w, "serviceaccount", &c->account);
    put_time(w, "warnafter", c->warn_after_s);
    vg_json_put_end_object(w);
}

static int write_claims(struct vg_buf *out, const struct vg_jwt_claims *c)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, VG_JSON_ESCAPE_HTML);
    vg_json_put_begin_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("aud"));
    vg_json_put_begin_array(&w);
    for (size_t i = 0; i < c->n_audiences; i++)
        vg_json_put_string(&w, c->audiences[i]);
    vg_json_put_end_array(&w);
    put_time(&w, "exp", c->expires_s);
    put_time(&w, "iat", c->issued_s);
    vg_json_put_member(&w, "iss", c->issuer);
    vg_json_put_member(&w, "jti", c->id);
    put_kubernetes(&w, c);
    put_time(&w, "nbf", c->starts_s);
    vg_json_put_member(&w, "sub", c->subject);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

static int append_url(struct vg_buf *out, struct vg_slice s)
{
    int err = vg_buf_reserve(out, vg_base64_size(s.n) + 1);
    if (err == 0)
        out->n += vg_base64_url_encode(s, out->p + out->n);
    return err;
}

int vg_jwt_write(struct vg_arena *a, const char *algorithm, const char *key_id,
                 const struct vg_jwt_claims *claims, struct vg_slice *ret_text)
{
    VG_AUTO(buf) part = {0};
    VG_AUTO(buf) text = {0};
    int err = vg_buf_printf(&part, "{\"alg\":\"%s\",\"kid\":\"%s\"}", algorithm, key_id);
    if (err == 0)
        err = append_url(&text, vg_buf_slice(&part));
    if (err == 0)
        err = vg_buf_append_byte(&text, '.');
    vg_buf_clear(&part);
    if (err == 0)
        err = write_claims(&part, claims);
    if (err == 0)
        err = append_url(&text, vg_buf_slice(&part));
    return err < 0 ? err : vg_arena_keep(a, vg_buf_slice(&text), ret_text);
}
