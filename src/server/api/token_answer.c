/* token_answer.c - what a token claims, and the answer that has it; see token.c. */
#include <errno.h>

#include "base/uuid.h"
#include "server/schema/decode.h"
#include "token_int.h"
#include "json/write.h"

/* What kubelets ask for; such tokens live for a year, and are told of when they are used later than
 * was asked for: clients that read a token once had no time to learn. */
#define WARNED_S 3607
#define EXTENDED_S (365 * 24 * 3600)

static struct vg_arena *arena(struct vg_token_request *w)
{
    return &w->look.call->ask->arena;
}

/* ---- the answer ---- */

static int put_text(struct vg_token_request *w, struct vg_json *object, const char *name,
                    struct vg_slice text)
{
    return vg_json_object_add(arena(w), object, vg_slice_str(name), vg_json_string_ref(text));
}

static int make_metadata(struct vg_token_request *w, struct vg_json *ret)
{
    struct vg_meta m = w->body.meta;
    char text[VG_TIME_TEXT_MAX];
    size_t n = vg_time_format(w->now_s * 1000, text);
    m.name = w->account;
    m.ns = w->claims.ns;
    m.uid = w->claims.account.uid;
    m.managed = NULL;
    int err = vg_arena_keep(arena(w), vg_slice(text, n), &m.created);
    if (err == 0)
        err = vg_meta_write(arena(w), &m, ret);
    if (err == 0 && w->managed)
        err = vg_json_object_set(arena(w), ret, VG_SLICE_LIT("managedFields"), *w->managed);
    return err;
}

static int make_status(struct vg_token_request *w, struct vg_slice token, struct vg_json *ret)
{
    char text[VG_TIME_TEXT_MAX];
    struct vg_slice expires;
    size_t n = vg_time_format((w->now_s + w->asked_s) * 1000, text);
    int err = vg_arena_keep(arena(w), vg_slice(text, n), &expires);
    *ret = vg_json_object();
    if (err == 0)
        err = put_text(w, ret, "token", token);
    return err < 0 ? err : put_text(w, ret, "expirationTimestamp", expires);
}

int vg_token_write(struct vg_token_request *w, struct vg_slice token, struct vg_buf *out)
{
    struct vg_json root = vg_json_object(), metadata, status, arranged;
    int err = put_text(w, &root, "kind", VG_SLICE_LIT(VG_TOKEN_KIND));
    if (err == 0)
        err = put_text(w, &root, "apiVersion", VG_SLICE_LIT(VG_TOKEN_GROUP "/v1"));
    if (err == 0)
        err = make_metadata(w, &metadata);
    if (err == 0)
        err = vg_json_object_add(arena(w), &root, VG_SLICE_LIT("metadata"), metadata);
    if (err == 0)
        err = vg_json_object_add(arena(w), &root, VG_SLICE_LIT("spec"), *w->spec);
    if (err == 0)
        err = make_status(w, token, &status);
    if (err == 0)
        err = vg_json_object_add(arena(w), &root, VG_SLICE_LIT("status"), status);
    if (err == 0)
        err = vg_schema_arrange(arena(w), w->kind.type, &root, &arranged);
    return err < 0 ? err : vg_json_write(out, &arranged, VG_JSON_ESCAPE_HTML);
}

/* ---- signing ---- */

/* Are all of these names of this server? */
static bool is_for_us(const struct vg_issuer *issuer, const struct vg_jwt_claims *c)
{
    for (size_t i = 0; i < c->n_audiences; i++) {
        bool is_ours = false;
        for (size_t k = 0; k < issuer->n_audiences; k++)
            is_ours = is_ours || vg_slice_eq(c->audiences[i], issuer->audiences[k]);
        if (!is_ours)
            return false;
    }
    return true;
}

int vg_token_claims(struct vg_token_request *w, const struct vg_issuer *issuer)
{
    struct vg_jwt_claims *c = &w->claims;
    unsigned char random[16];
    char id[VG_UUID_TEXT];
    int64_t lives_s = w->asked_s;
    int err = vg_random_bytes(random, sizeof random);
    if (err < 0)
        return err;
    vg_uuid_mark(random);
    vg_uuid_write(random, id);
    err = vg_arena_keep(arena(w), vg_slice(id, sizeof id), &c->id);
    if (err == 0)
        err = vg_arena_printf(arena(w), &c->subject, "system:serviceaccount:%.*s:%.*s",
                              VG_SLICE_ARG(c->ns), VG_SLICE_ARG(w->account));
    c->issuer = issuer->issuers[0];
    if (issuer->extends && w->is_of_pod && w->asked_s == WARNED_S && is_for_us(issuer, c)) {
        c->warn_after_s = w->now_s + WARNED_S;
        lives_s = EXTENDED_S;
    }
    c->issued_s = c->starts_s = w->now_s;
    c->expires_s = w->now_s + lives_s;
    return err;
}
