/* access.c - what reviews ask about users, answered from what admit.c decides by. */
#include <errno.h>

#include "gate_int.h"
#include "server/api/access.h"
#include "server/jwt/issuer.h"
#include "json/json.h"

static enum vg_authz_decision decide(struct vg_api_call *call,
                                     const struct vg_authz_attributes *attributes,
                                     const char **ret_reason)
{
    return vg_authz_decide(vg_request_of(call)->l->gate->opts.authz, attributes, ret_reason);
}

static int each_rule(struct vg_api_call *call, struct vg_slice ns, vg_authz_each_fn *each,
                     void *arg)
{
    return vg_authz_each_rule(vg_request_of(call)->l->gate->opts.authz, call->user, ns, each, arg);
}

/* Audiences as texts; none: those of this server. */
static int read_audiences(struct vg_arena *a, const struct vg_issuer *issuer,
                          const struct vg_json *given, const struct vg_slice **ret, size_t *ret_n)
{
    static const struct vg_slice usual = {VG_ISSUER_DEFAULT, sizeof VG_ISSUER_DEFAULT - 1};
    size_t n = given && given->type == VG_JSON_ARRAY ? given->n : 0;
    *ret = issuer ? issuer->audiences : &usual;
    *ret_n = issuer ? issuer->n_audiences : 1;
    if (n == 0)
        return 0;
    struct vg_slice *v = vg_arena_array(a, struct vg_slice, n);
    for (size_t i = 0; v && i < n; i++)
        v[i] = vg_json_text(&given->items[i]);
    *ret = v;
    *ret_n = n;
    return v ? 0 : -ENOMEM;
}

static int tell_audiences(struct vg_arena *a, const struct vg_slice *v, size_t n,
                          struct vg_token_owner *ret)
{
    ret->audiences = vg_arena_new(a, struct vg_json);
    if (!ret->audiences)
        return -ENOMEM;
    *ret->audiences = vg_json_array();
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = vg_json_array_push(a, ret->audiences, vg_json_string_ref(v[i]));
    return r;
}

/* Groups, with that of everybody who is known. */
static int add_group(struct vg_arena *a, struct vg_api_user *user)
{
    struct vg_slice *groups = vg_arena_array(a, struct vg_slice, user->n_groups + 1);
    if (!groups)
        return -ENOMEM;
    if (user->n_groups)
        memcpy(groups, user->groups, user->n_groups * sizeof *groups);
    groups[user->n_groups++] = VG_SLICE_LIT(VG_GROUP_AUTHENTICATED);
    user->groups = groups;
    return 0;
}

/* A token of the file is for this server. The table may be replaced before the answer has left, but
 * not before it is written. */
static int identify_row(struct vg_arena *a, const struct vg_token *row,
                        const struct vg_issuer *issuer, const struct vg_slice *wanted, size_t n,
                        struct vg_token_owner *ret)
{
    const struct vg_slice *ours = NULL;
    struct vg_slice *both = vg_arena_array(a, struct vg_slice, VG_ISSUER_NAMES_MAX);
    size_t n_ours = 0, n_both = 0;
    int r = read_audiences(a, issuer, NULL, &ours, &n_ours);
    if (r < 0 || !both)
        return -ENOMEM;
    for (size_t i = 0; i < n_ours; i++)
        for (size_t k = 0; k < n; k++)
            if (vg_slice_eq(ours[i], wanted[k])) {
                both[n_both++] = ours[i];
                break;
            }
    if (n_both == 0)
        return VIGIL_E_NOT_FOUND;
    ret->user = (struct vg_api_user){
        .name = row->name, .uid = row->uid, .groups = row->groups, .n_groups = row->n_groups};
    return tell_audiences(a, both, n_both, ret);
}

static int identify(struct vg_api_call *call, struct vg_slice token,
                    const struct vg_json *audiences, struct vg_token_owner *ret)
{
    struct vg_arena *a = &call->ask->arena;
    struct vg_gate_loop *l = vg_request_of(call)->l;
    const struct vg_token *row = vg_tokens_find(l->tokens, token);
    struct vg_account *account = vg_arena_new(a, struct vg_account);
    const struct vg_slice *wanted;
    size_t n;
    int r = read_audiences(a, l->gate->opts.issuer, audiences, &wanted, &n);
    if (r < 0 || !account)
        return -ENOMEM;
    if (row) {
        r = identify_row(a, row, l->gate->opts.issuer, wanted, n, ret);
    } else {
        int64_t now_s = vg_clock_wall_ms(l->gate->clock) / 1000;
        r = vg_accounts_identify(&l->accounts, a, token, now_s, wanted, n, account, &ret->why);
        if (r == 0)
            r = tell_audiences(a, account->audiences, account->n_audiences, ret);
        if (r == 0)
            ret->user = account->user;
    }
    if (r == VIGIL_E_INVALID || r == VIGIL_E_BUSY)
        return VIGIL_E_NOT_FOUND;
    return r < 0 ? r : add_group(a, &ret->user);
}

static const char *store_trouble(struct vg_api_call *call)
{
    return vg_health_trouble(vg_request_of(call)->l->gate->opts.health, "etcd");
}

const struct vg_api_access vg_request_access = {
    .decide = decide,
    .each_rule = each_rule,
    .identify = identify,
    .store_trouble = store_trouble,
};
