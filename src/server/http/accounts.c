/* accounts.c - see accounts.h. The order of the checks, and their words, are kube-apiserver's. */
#include "accounts.h"

#include <errno.h>
#include <openssl/sha.h>

#include "base/alloc.h"
#include "server/jwt/issuer.h"
#include "server/schema/gotime.h"
#include "json/scan.h"

/* Clocks differ by so much. */
#define LEEWAY_S 60

/* A token that was found to be signed by us. */
struct known {
    unsigned char digest[SHA256_DIGEST_LENGTH]; /* its key */
    struct vg_arena arena;                      /* of all texts */
    struct vg_jwt_claims claims;
    struct vg_slice user, group, credential; /* as users have them */
};

void vg_accounts_init(struct vg_accounts *acc, const struct vg_issuer *issuer,
                      struct vg_cacher *cacher)
{
    *acc = (struct vg_accounts){.issuer = issuer, .cacher = cacher};
    vg_map_init(&acc->known, VG_MAP_BORROWS_KEYS);
}

static void known_free(struct known *k)
{
    if (!k)
        return;
    vg_arena_done(&k->arena);
    vg_free(k);
}

static void forget_all(struct vg_accounts *acc)
{
    VG_MAP_FOREACH (e, &acc->known)
        known_free(e->value);
    vg_map_clear(&acc->known);
}

void vg_accounts_done(struct vg_accounts *acc)
{
    forget_all(acc);
    vg_map_done(&acc->known);
}

/* ---- signatures ---- */

static int fail(struct vg_slice *reterr_why, const char *why)
{
    *reterr_why = vg_slice_str(why);
    return VIGIL_E_INVALID;
}

static int fill_names(struct known *k)
{
    const struct vg_jwt_claims *c = &k->claims;
    int r = vg_arena_printf(&k->arena, &k->user, "system:serviceaccount:%.*s:%.*s",
                            VG_SLICE_ARG(c->ns), VG_SLICE_ARG(c->account.name));
    if (r == 0)
        r = vg_arena_printf(&k->arena, &k->group, "system:serviceaccounts:%.*s",
                            VG_SLICE_ARG(c->ns));
    return r < 0 ? r : vg_arena_printf(&k->arena, &k->credential, "JTI=%.*s", VG_SLICE_ARG(c->id));
}

static int check_signature(const struct vg_accounts *acc, struct known *k, struct vg_slice token,
                           struct vg_slice *reterr_why)
{
    struct vg_jwt t;
    int r = vg_jwt_read(&k->arena, token, &t);
    if (r == VIGIL_E_INVALID || (r == 0 && !vg_issuer_is_ours(acc->issuer, t.claims.issuer)))
        return VIGIL_E_NOT_FOUND;
    if (r < 0)
        return r;
    switch (vg_jwt_verify(&acc->issuer->keys, &t)) {
    case VG_JWT_NO_KEY:
        return fail(reterr_why, "invalid signature, no keys found");
    case VG_JWT_FORGED:
        return fail(reterr_why, "invalid signature");
    case VG_JWT_GOOD:
        break;
    }
    k->claims = t.claims;
    return fill_names(k);
}

/* The token, signed by us. */
static int know(struct vg_accounts *acc, struct vg_slice token, struct known **ret,
                struct vg_slice *reterr_why)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)token.p, token.n, digest);
    *ret = vg_map_get(&acc->known, vg_slice(digest, sizeof digest));
    if (*ret)
        return 0;
    struct known *k = vg_new(struct known);
    if (!k)
        return -ENOMEM;
    memcpy(k->digest, digest, sizeof digest);
    int r = check_signature(acc, k, token, reterr_why);
    if (r == 0 && vg_map_count(&acc->known) >= VG_ACCOUNTS_KNOWN_MAX)
        forget_all(acc);
    if (r == 0)
        r = vg_map_put(&acc->known, vg_slice(k->digest, sizeof k->digest), k, NULL);
    if (r < 0) {
        known_free(k);
        return r;
    }
    *ret = k;
    return 0;
}

/* ---- claims ---- */

static int check_times(const struct vg_jwt_claims *c, int64_t now_s, struct vg_slice *reterr_why)
{
    if (c->starts_s && now_s + LEEWAY_S < c->starts_s)
        return fail(reterr_why, "service account token is not valid yet");
    if (c->expires_s && now_s - LEEWAY_S > c->expires_s)
        return fail(reterr_why, "service account token has expired");
    if (c->issued_s && now_s + LEEWAY_S < c->issued_s)
        return fail(reterr_why, "service account token is issued in the future");
    return 0;
}

/* ["a" "b"], as Go's %q prints a list. */
static int append_list(struct vg_buf *b, const struct vg_slice *v, size_t n)
{
    int r = vg_buf_append_byte(b, '[');
    for (size_t i = 0; i < n && r == 0; i++)
        r = vg_buf_printf(b, "%s\"%.*s\"", i ? " " : "", VG_SLICE_ARG(v[i]));
    return r < 0 ? r : vg_buf_append_byte(b, ']');
}

static int refuse_audiences(struct vg_arena *a, const struct vg_slice *is, size_t n_is,
                            const struct vg_slice *wanted, size_t n_wanted,
                            struct vg_slice *reterr_why)
{
    VG_AUTO(buf) text = {0};
    int r = vg_buf_printf(&text, "token audiences ");
    if (r == 0)
        r = append_list(&text, is, n_is);
    if (r == 0)
        r = vg_buf_printf(&text, " is invalid for the target audiences ");
    if (r == 0)
        r = append_list(&text, wanted, n_wanted);
    if (r == 0)
        r = vg_arena_keep(a, vg_buf_slice(&text), reterr_why);
    return r < 0 ? r : VIGIL_E_INVALID;
}

/* Those of the token that are wanted. */
static int check_audiences(struct vg_accounts *acc, struct vg_arena *a,
                           const struct vg_jwt_claims *c, const struct vg_slice *wanted,
                           size_t n_wanted, struct vg_account *ret, struct vg_slice *reterr_why)
{
    const struct vg_slice *is = c->n_audiences ? c->audiences : acc->issuer->audiences;
    size_t n_is = c->n_audiences ? c->n_audiences : acc->issuer->n_audiences, n = 0;
    struct vg_slice *both = vg_arena_array(a, struct vg_slice, n_is + 1);
    if (!both)
        return -ENOMEM;
    for (size_t i = 0; i < n_is; i++)
        for (size_t k = 0; k < n_wanted; k++)
            if (vg_slice_eq(is[i], wanted[k])) {
                both[n++] = is[i];
                break;
            }
    ret->audiences = both;
    ret->n_audiences = n;
    return n ? 0 : refuse_audiences(a, is, n_is, wanted, n_wanted, reterr_why);
}

/* ---- objects ---- */

enum presence { IS_THERE, IS_NOT_THERE, IS_ANOTHER, IS_DELETED, IS_UNKNOWN };

/* Was it deleted more than a moment ago? It may wait for its finalizers, or for its grace. */
static bool is_over(const struct vg_rec *rec, const struct vg_obj_header *h, int64_t now_s)
{
    const struct vg_json_step path[] = {vg_json_step_key("metadata"),
                                        vg_json_step_key("deletionTimestamp")};
    struct vg_slice text;
    int64_t s;
    if (!vg_obj_is_deleting(h) || vg_json_find(vg_rec_value(rec), path, 2, &text) < 0 || text.n < 2)
        return false;
    return vg_time_parse(vg_slice(text.p + 1, text.n - 2), &s, NULL) == 0 && s < now_s - LEEWAY_S;
}

/* uid: what it has, when it is another; in the arena. */
static enum presence look(struct vg_accounts *acc, struct vg_arena *a, const char *resource,
                          struct vg_slice ns, const struct vg_jwt_ref *ref, int64_t now_s,
                          struct vg_slice *ret_uid)
{
    const struct vg_kind *kind =
        vg_kind_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), vg_slice_str(resource));
    struct vg_cache_snapshot snap;
    struct vg_obj_key key;
    struct vg_obj_header h;
    if (vg_obj_key_make(vg_slice_str(kind->prefix), ns, ref->name, &key) < 0)
        return IS_NOT_THERE;
    if (vg_cache_newest(acc->cacher, vg_kind_index(kind), &snap) < 0)
        return IS_UNKNOWN;
    const struct vg_rec *rec =
        vg_root_get(snap.root, (struct vg_tree_key){.minor = vg_obj_key_slice(&key)});
    enum presence p = IS_NOT_THERE;
    if (rec && rec->header_len) {
        vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
        p = !vg_slice_eq(vg_obj_uid(&h), ref->uid) ? IS_ANOTHER
            : is_over(rec, &h, now_s)              ? IS_DELETED
                                                   : IS_THERE;
        if (p == IS_ANOTHER && vg_arena_keep(a, vg_obj_uid(&h), ret_uid) < 0)
            *ret_uid = VG_SLICE_LIT("");
    }
    vg_cache_snapshot_done(&snap);
    return p;
}

static int check_account(struct vg_accounts *acc, struct vg_arena *a, const struct vg_jwt_claims *c,
                         int64_t now_s, struct vg_slice *reterr_why)
{
    struct vg_slice uid = VG_SLICE_LIT("");
    int r = 0;
    switch (look(acc, a, "serviceaccounts", c->ns, &c->account, now_s, &uid)) {
    case IS_THERE:
        return 0;
    case IS_UNKNOWN:
        return VIGIL_E_BUSY;
    case IS_NOT_THERE:
        r = vg_arena_printf(a, reterr_why, "serviceaccounts \"%.*s\" not found",
                            VG_SLICE_ARG(c->account.name));
        break;
    case IS_ANOTHER:
        r = vg_arena_printf(a, reterr_why, "service account UID (%.*s) does not match claim (%.*s)",
                            VG_SLICE_ARG(uid), VG_SLICE_ARG(c->account.uid));
        break;
    case IS_DELETED:
        r = vg_arena_printf(a, reterr_why, "service account %.*s/%.*s has been deleted",
                            VG_SLICE_ARG(c->ns), VG_SLICE_ARG(c->account.name));
        break;
    }
    return r < 0 ? r : VIGIL_E_INVALID;
}

/* What it is bound to; of a pod's token the node is only told. word: of the kind in messages. */
static int check_bound(struct vg_accounts *acc, struct vg_arena *a, const char *resource,
                       const char *word, struct vg_slice ns, const struct vg_jwt_ref *ref,
                       int64_t now_s, struct vg_slice *reterr_why)
{
    struct vg_slice uid = VG_SLICE_LIT("");
    if (ref->name.n == 0)
        return 0;
    switch (look(acc, a, resource, ns, ref, now_s, &uid)) {
    case IS_THERE:
        return 0;
    case IS_UNKNOWN:
        return VIGIL_E_BUSY;
    case IS_ANOTHER: {
        int r = vg_arena_printf(a, reterr_why,
                                "%s UID (%.*s) does not match service account %s ref claim (%.*s)",
                                word, VG_SLICE_ARG(uid), word, VG_SLICE_ARG(ref->uid));
        return r < 0 ? r : VIGIL_E_INVALID;
    }
    case IS_NOT_THERE:
    case IS_DELETED:
        break;
    }
    return fail(reterr_why, "service account token has been invalidated");
}

static int check_objects(struct vg_accounts *acc, struct vg_arena *a, const struct vg_jwt_claims *c,
                         int64_t now_s, struct vg_slice *reterr_why)
{
    int r = check_account(acc, a, c, now_s, reterr_why);
    if (r == 0)
        r = check_bound(acc, a, "secrets", "secret", c->ns, &c->secret, now_s, reterr_why);
    if (r == 0)
        r = check_bound(acc, a, "pods", "pod", c->ns, &c->pod, now_s, reterr_why);
    if (r == 0 && c->pod.name.n == 0)
        r = check_bound(acc, a, "nodes", "node", VG_SLICE_LIT(""), &c->node, now_s, reterr_why);
    return r;
}

/* ---- all of it ---- */

static void add_extra(struct vg_account *ret, const char *key, struct vg_slice value)
{
    if (value.n)
        ret->extra[ret->user.n_extra++] = (struct vg_user_extra){vg_slice_str(key), value};
}

static void tell(const struct known *k, struct vg_account *ret)
{
    static const struct vg_slice all = {"system:serviceaccounts", 22};
    const struct vg_jwt_claims *c = &k->claims;
    ret->groups[0] = all;
    ret->groups[1] = k->group;
    ret->user = (struct vg_api_user){.name = k->user,
                                     .uid = c->account.uid,
                                     .groups = ret->groups,
                                     .n_groups = 2,
                                     .extra = ret->extra};
    if (c->id.n)
        add_extra(ret, "authentication.kubernetes.io/credential-id", k->credential);
    add_extra(ret, "authentication.kubernetes.io/node-name", c->node.name);
    add_extra(ret, "authentication.kubernetes.io/node-uid", c->node.uid);
    add_extra(ret, "authentication.kubernetes.io/pod-name", c->pod.name);
    add_extra(ret, "authentication.kubernetes.io/pod-uid", c->pod.uid);
}

int vg_accounts_identify(struct vg_accounts *acc, struct vg_arena *a, struct vg_slice token,
                         int64_t now_s, const struct vg_slice *wanted, size_t n_wanted,
                         struct vg_account *ret, struct vg_slice *reterr_why)
{
    struct known *k = NULL;
    *reterr_why = VG_SLICE_LIT("");
    if (!acc->issuer)
        return VIGIL_E_NOT_FOUND;
    int r = know(acc, token, &k, reterr_why);
    if (r == 0 && n_wanted == 0) {
        wanted = acc->issuer->audiences;
        n_wanted = acc->issuer->n_audiences;
    }
    if (r == 0)
        r = check_audiences(acc, a, &k->claims, wanted, n_wanted, ret, reterr_why);
    if (r == 0)
        r = check_times(&k->claims, now_s, reterr_why);
    if (r == 0)
        r = check_objects(acc, a, &k->claims, now_s, reterr_why);
    if (r == 0)
        tell(k, ret);
    return r;
}
