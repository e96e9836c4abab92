/* issuer.c - see issuer.h. */
#include "issuer.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "json/write.h"

/* Names parted by commas. */
static int split(struct vg_arena *a, const char *text, struct vg_slice v[VG_ISSUER_NAMES_MAX],
                 size_t *ret_n)
{
    size_t n = 0;
    while (text && *text) {
        size_t len = strcspn(text, ",");
        if (len && n == VG_ISSUER_NAMES_MAX)
            return VIGIL_E_TOO_LARGE;
        if (len && vg_arena_keep(a, vg_slice(text, len), &v[n++]) < 0)
            return -ENOMEM;
        text += len + (text[len] == ',');
    }
    *ret_n = n;
    return 0;
}

/* Which algorithms there are, sorted, each once. */
static void put_algorithms(struct vg_json_writer *w, const struct vg_jwt_keys *keys)
{
    const char *last = "";
    for (;;) {
        const char *next = NULL;
        for (size_t i = 0; i < keys->n; i++) {
            const char *name = vg_jwt_key_algorithm(keys->v[i]);
            if (strcmp(name, last) > 0 && (!next || strcmp(name, next) < 0))
                next = name;
        }
        if (!next)
            return;
        vg_json_put_string(w, vg_slice_str(next));
        last = next;
    }
}

static void put_list(struct vg_json_writer *w, const char *name, const char *only)
{
    vg_json_put_key(w, vg_slice_str(name));
    vg_json_put_begin_array(w);
    vg_json_put_string(w, vg_slice_str(only));
    vg_json_put_end_array(w);
}

static int write_config(struct vg_issuer *issuer, const char *jwks_uri)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, &issuer->config, VG_JSON_ESCAPE_HTML);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "issuer", issuer->issuers[0]);
    vg_json_put_member(&w, "jwks_uri", vg_slice_str(jwks_uri));
    put_list(&w, "response_types_supported", "id_token");
    put_list(&w, "subject_types_supported", "public");
    vg_json_put_key(&w, VG_SLICE_LIT("id_token_signing_alg_values_supported"));
    vg_json_put_begin_array(&w);
    put_algorithms(&w, &issuer->keys);
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

static int write_key_set(struct vg_issuer *issuer)
{
    struct vg_buf *out = &issuer->key_set;
    int r = vg_buf_printf(out, "{\"keys\":[");
    for (size_t i = 0; i < issuer->keys.n && r == 0; i++) {
        if (i)
            r = vg_buf_append_byte(out, ',');
        if (r == 0)
            r = vg_jwt_key_append_jwk(issuer->keys.v[i], out);
    }
    return r < 0 ? r : vg_buf_printf(out, "]}");
}

static int fill(struct vg_issuer *issuer, const struct vg_issuer_opts *opts)
{
    int r = split(&issuer->arena, opts->issuers, issuer->issuers, &issuer->n_issuers);
    if (r == 0)
        r = split(&issuer->arena, opts->audiences ? opts->audiences : opts->issuers,
                  issuer->audiences, &issuer->n_audiences);
    if (r < 0)
        return r;
    if (issuer->n_issuers == 0 || issuer->n_audiences == 0)
        return VIGIL_E_INVALID;
    r = write_config(issuer, opts->jwks_uri);
    return r < 0 ? r : write_key_set(issuer);
}

int vg_issuer_new(const struct vg_issuer_opts *opts, struct vg_issuer **ret_issuer,
                  struct vg_status *reterr_status)
{
    struct vg_issuer *issuer = vg_new(struct vg_issuer);
    if (!issuer) {
        vg_jwt_keys_done(opts->take_keys);
        return -ENOMEM;
    }
    issuer->keys = *opts->take_keys;
    *opts->take_keys = (struct vg_jwt_keys){.n = 0};
    issuer->max_s = opts->max_s;
    issuer->extends = opts->extends;
    int r = fill(issuer, opts);
    if (r == VIGIL_E_TOO_LARGE || r == VIGIL_E_INVALID)
        r = vg_fail(reterr_status, VIGIL_E_INVALID,
                    "--service-account-issuer and --api-audiences have from one to %u names, "
                    "parted by commas",
                    VG_ISSUER_NAMES_MAX);
    if (r == 0 && (issuer->keys.n == 0 || !vg_jwt_key_can_sign(issuer->keys.v[0])))
        r = vg_fail(reterr_status, VIGIL_E_INVALID,
                    "--service-account-signing-key-file needs a private key");
    if (r < 0) {
        vg_issuer_free(issuer);
        return r;
    }
    *ret_issuer = issuer;
    return 0;
}

void vg_issuer_free(struct vg_issuer *issuer)
{
    if (!issuer)
        return;
    vg_jwt_keys_done(&issuer->keys);
    vg_buf_done(&issuer->config);
    vg_buf_done(&issuer->key_set);
    vg_arena_done(&issuer->arena);
    vg_free(issuer);
}

bool vg_issuer_is_ours(const struct vg_issuer *issuer, struct vg_slice name)
{
    for (size_t i = 0; i < issuer->n_issuers; i++)
        if (vg_slice_eq(name, issuer->issuers[i]))
            return true;
    return false;
}
