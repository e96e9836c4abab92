/* access.c - what reviews ask about users, answered from what admit.c decides by. */
#include <errno.h>

#include "gate_int.h"

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

/* The table of tokens may be replaced before the answer has left, so all of it is copied. */
static int identify(struct vg_api_call *call, struct vg_slice token, struct vg_api_user *ret)
{
    struct vg_arena *a = &call->ask->arena;
    const struct vg_token *row = vg_tokens_find(vg_request_of(call)->l->tokens, token);
    if (!row)
        return VIGIL_E_NOT_FOUND;
    struct vg_slice *groups = vg_arena_array(a, struct vg_slice, row->n_groups + 1);
    struct vg_api_user user = {.groups = groups, .n_groups = row->n_groups + 1};
    if (!groups)
        return -ENOMEM;
    int r = vg_arena_keep(a, row->name, &user.name);
    if (r == 0)
        r = vg_arena_keep(a, row->uid, &user.uid);
    for (size_t i = 0; i < row->n_groups && r == 0; i++)
        r = vg_arena_keep(a, row->groups[i], &groups[i]);
    groups[row->n_groups] = VG_SLICE_LIT(VG_GROUP_AUTHENTICATED);
    *ret = user;
    return r;
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
