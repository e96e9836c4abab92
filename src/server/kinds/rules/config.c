/* config.c - the rules of config maps, secrets and service accounts.
 * Left out: of the warnings about TLS secrets those of a key or certificate that is PEM but wrong,
 * or of another pair. */
#include "base/base64.h"
#include "rules.h"
#include "server/schema/gojson.h"

/* Of the data of a config map or secret together: 1 MiB. */
#define DATA_MAX ((size_t)1 << 20)

/* Bytes that a base64 text stands for. */
static size_t decoded_size(struct vg_slice text)
{
    size_t n = text.n / 4 * 3;
    for (size_t i = 1; i <= 2 && i <= text.n && text.p[text.n - i] == '='; i++)
        n--;
    return n;
}

/* Each key, blamed on itself. */
static void check_key(struct vg_check *c, const struct vg_at *map, const struct vg_json_member *m)
{
    struct vg_at at = vg_at_key(map, m);
    struct vg_json key = vg_json_string_ref(vg_json_key(m));
    at.v = &key;
    (void)vg_check_config_key(c, &at);
}

static bool differs(struct vg_check *c, const struct vg_at *at, const struct vg_json *old)
{
    static const struct vg_json none = {.type = VG_JSON_OBJECT};
    return !vg_check_same(c, at->v ? at->v : &none, old ? old : &none);
}

/* What was set immutable stays so, and its data too. */
static void check_frozen(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old,
                         const char *const *members)
{
    struct vg_at flag = vg_at(obj, "immutable");
    static const char why[] = "field is immutable when `immutable` is set";
    if (!vg_json_is_true(vg_json_get_str(old, "immutable")))
        return;
    if (!vg_at_is_true(&flag))
        vg_forbidden(c, &flag, why);
    for (; *members; members++) {
        struct vg_at at = vg_at(obj, *members);
        if (differs(c, &at, vg_json_get_str(old, *members)))
            vg_forbidden(c, &at, why);
    }
}

/* ---- config maps ---- */

static void check_config_map(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at data = vg_at(obj, "data"), binary = vg_at(obj, "binaryData");
    VG_AUTO(json_lookup) others;
    size_t total = 0;
    vg_json_lookup_init(&others, binary.v);
    for (uint32_t i = 0; i < vg_at_n(&data); i++) {
        const struct vg_json_member *m = &data.v->members[i];
        check_key(c, &data, m);
        if (vg_check_find(c, &others, vg_json_key(m), i)) {
            struct vg_at at = vg_at_key(&data, m);
            vg_bad_value(c, &at, vg_json_quoted(c, vg_json_key(m)),
                         "duplicate of key present in binaryData");
        }
        total += vg_json_text(&m->value).n;
    }
    for (uint32_t i = 0; i < vg_at_n(&binary); i++) {
        check_key(c, &binary, &binary.v->members[i]);
        total += decoded_size(vg_json_text(&binary.v->members[i].value));
    }
    if (total > DATA_MAX) {
        struct vg_at whole = vg_at_of(obj, "", NULL);
        vg_too_long(c, &whole, DATA_MAX);
    }
}

static void check_config_map_update(struct vg_check *c, const struct vg_at *obj,
                                    const struct vg_json *old)
{
    static const char *const members[] = {"data", "binaryData", NULL};
    check_frozen(c, obj, old, members);
    check_config_map(c, obj);
}

const struct vg_rules vg_rules_config_map = {.group = "",
                                             .kind = "ConfigMap",
                                             .check = check_config_map,
                                             .check_update = check_config_map_update};

/* ---- secrets ---- */

/* The types that need something: each of these keys, or one of them; `has_text` when its value must
 * not be empty, `is_json` when it must be an object. */
static const struct secret_type {
    const char *name;
    const char *keys[2];
    bool is_any, has_text, is_json;
} types[] = {
    {.name = "kubernetes.io/dockercfg", .keys = {".dockercfg"}, .is_json = true},
    {.name = "kubernetes.io/dockerconfigjson", .keys = {".dockerconfigjson"}, .is_json = true},
    {.name = "kubernetes.io/basic-auth", .keys = {"username", "password"}, .is_any = true},
    {.name = "kubernetes.io/ssh-auth", .keys = {"ssh-privatekey"}, .has_text = true},
    {.name = "kubernetes.io/tls", .keys = {"tls.crt", "tls.key"}},
};

static struct vg_at key_at(const struct vg_at *map, const char *key)
{
    return (struct vg_at){
        .up = map, .v = vg_json_get_str(map->v, key), .key = vg_slice_str(key), .step = VG_AT_KEY};
}

static void complain(struct vg_check *c, const struct vg_at *at, const char *why)
{
    vg_bad_value(c, at, VG_SLICE_LIT("\"<secret contents redacted>\""), "%s", why);
}

/* Is it what Go reads as an object? */
static void check_json(struct vg_check *c, const struct vg_at *at)
{
    struct vg_slice text = vg_at_text(at);
    struct vg_status why = {.err = 0};
    size_t n = 0;
    char *bytes = vg_arena_alloc(c->arena, text.n + 1, 1);
    if (!bytes || (text.n && !vg_base64_decode(text, bytes, &n))) {
        c->errors->failed |= !bytes;
        return;
    }
    if (vg_gojson_complain(vg_slice(bytes, n), VG_JSON_DEPTH_MAX, &why)) {
        complain(c, at, why.message);
        return;
    }
    struct vg_json_opts opts = {.replace_bad_utf8 = true, .max_depth = VG_JSON_DEPTH_MAX};
    struct vg_json *root = NULL;
    int err = vg_json_parse(c->arena, vg_slice(bytes, n), &opts, &root, NULL);
    c->errors->failed |= err < 0;
    if (err == 0 && root->type != VG_JSON_OBJECT && root->type != VG_JSON_NULL) {
        VG_AUTO(buf) b = {0};
        int r = vg_buf_printf(
            &b, "json: cannot unmarshal %s into Go value of type map[string]interface {}",
            vg_gojson_type(root));
        if (r == 0)
            r = vg_buf_append_byte(&b, '\0');
        if (r == 0)
            complain(c, at, (const char *)b.p);
        c->errors->failed |= r < 0;
    }
}

static void check_type(struct vg_check *c, const struct vg_at *data, const struct secret_type *t)
{
    bool has_one = false;
    for (size_t i = 0; i < 2 && t->keys[i]; i++) {
        struct vg_at at = key_at(data, t->keys[i]);
        has_one = has_one || (t->has_text ? vg_at_text(&at).n > 0 : at.v != NULL);
    }
    for (size_t i = 0; i < 2 && t->keys[i]; i++) {
        struct vg_at at = key_at(data, t->keys[i]);
        bool is_there = t->has_text ? vg_at_text(&at).n > 0 : at.v != NULL;
        if (!is_there && !(t->is_any && has_one))
            vg_required(c, &at, NULL);
        else if (is_there && t->is_json)
            check_json(c, &at);
    }
}

static void check_secret(struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at data = vg_at(obj, "data"), type = vg_at(obj, "type");
    size_t total = 0;
    for (uint32_t i = 0; i < vg_at_n(&data); i++) {
        check_key(c, &data, &data.v->members[i]);
        total += decoded_size(vg_json_text(&data.v->members[i].value));
    }
    if (total > DATA_MAX)
        vg_too_long(c, &data, DATA_MAX);
    if (vg_at_is(&type, "kubernetes.io/service-account-token")) {
        struct vg_at meta = vg_at(obj, "metadata"), annotations = vg_at(&meta, "annotations");
        struct vg_at name = key_at(&annotations, "kubernetes.io/service-account.name");
        if (vg_at_text(&name).n == 0)
            vg_required(c, &name, NULL);
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (vg_at_is(&type, types[i].name))
            check_type(c, &data, &types[i]);
}

/* Does base64 hold something in PEM? */
static bool has_pem(struct vg_arena *a, const struct vg_json *v)
{
    struct vg_slice text = vg_json_text(v);
    char *bytes = vg_arena_alloc(a, text.n + 1, 1);
    size_t n = 0;
    return bytes && vg_base64_decode(text, bytes, &n) && n && memmem(bytes, n, "-----BEGIN ", 11);
}

static void warn_secret(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    struct vg_at type = vg_at(obj, "type"), data = vg_at(obj, "data");
    (void)old;
    if (!vg_at_is(&type, "kubernetes.io/tls"))
        return;
    if (!has_pem(c->arena, vg_json_get_str(data.v, "tls.crt")))
        vg_caution(c, "tls: failed to find any PEM data in certificate input");
    else if (!has_pem(c->arena, vg_json_get_str(data.v, "tls.key")))
        vg_caution(c, "tls: failed to find any PEM data in key input");
}

static void check_secret_update(struct vg_check *c, const struct vg_at *obj,
                                const struct vg_json *old)
{
    static const char *const members[] = {"data", NULL};
    struct vg_at type = vg_at(obj, "type");
    (void)vg_check_immutable(c, &type, vg_json_get_str(old, "type"));
    check_frozen(c, obj, old, members);
    check_secret(c, obj);
}

/* An update without a type keeps the one there was. */
static int prepare_secret(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    const struct vg_json *type = vg_json_get_str(old, "type");
    if (!type || vg_json_text(vg_json_get_str(obj, "type")).n)
        return 0;
    return vg_json_object_set(a, obj, VG_SLICE_LIT("type"), *type);
}

const struct vg_rules vg_rules_secret = {.group = "",
                                         .kind = "Secret",
                                         .prepare = prepare_secret,
                                         .check = check_secret,
                                         .check_update = check_secret_update,
                                         .warn = warn_secret};

/* ---- service accounts ---- */

/* Of a reference to a secret only the name is kept. */
static int prepare_account(struct vg_arena *a, struct vg_json *obj, const struct vg_json *old)
{
    struct vg_json *secrets = vg_json_get_str(obj, "secrets");
    int err = 0;
    (void)old;
    for (uint32_t i = 0; secrets && i < secrets->n && err == 0; i++) {
        const struct vg_json *name = vg_json_get_str(&secrets->items[i], "name");
        struct vg_json only = vg_json_object();
        if (name)
            err = vg_json_object_add(a, &only, VG_SLICE_LIT("name"), *name);
        secrets->items[i] = only;
    }
    return err;
}

static void warn_account(struct vg_check *c, const struct vg_at *obj, const struct vg_json *old)
{
    const struct vg_slice key = VG_SLICE_LIT("kubernetes.io/enforce-mountable-secrets");
    const struct vg_json *now = vg_json_at_path(obj->v, "metadata.annotations");
    const struct vg_json *before = vg_json_at_path(old, "metadata.annotations");
    if (vg_json_get(now, key) && !vg_json_get(before, key))
        vg_caution(c,
                   "metadata.annotations[%.*s]: deprecated in v1.32+; prefer separate namespaces "
                   "to isolate access to mounted secrets",
                   VG_SLICE_ARG(key));
}

const struct vg_rules vg_rules_service_account = {
    .group = "", .kind = "ServiceAccount", .prepare = prepare_account, .warn = warn_account};
