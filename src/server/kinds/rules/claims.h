/* claims.h - things of which each is given once in a cluster: cluster addresses, ports of nodes.
 * A kind's rules say what an object takes and what it gives back (struct vg_rules, claim); who
 * keeps the books is not their business: the API does it in the same transaction that writes the
 * object, so a thing is never given twice and never lost. Thread: one owner. */
#ifndef VG_RULES_CLAIMS_H
#define VG_RULES_CLAIMS_H

#include "check.h"

struct vg_claims;
struct vg_claims_ops {
    /* An address of the family; wanted empty: any. 0 and its text; VIGIL_E_EXISTS: it is taken;
     * VIGIL_E_NOT_FOUND: it is in none of our ranges; VIGIL_E_STORE_FULL: none is left;
     * VIGIL_E_UNSUPPORTED: we have no such family; VIGIL_E_TOO_LARGE: too many in one object;
     * -ENOMEM. */
    int (*take_ip)(struct vg_claims *cl, bool is_v6, struct vg_slice wanted, struct vg_slice *ret);
    int (*give_ip)(struct vg_claims *cl, struct vg_slice text);
    /* A port of every node; 0: any. Likewise. */
    int (*take_port)(struct vg_claims *cl, uint32_t wanted, uint32_t *ret);
    int (*give_port)(struct vg_claims *cl, uint32_t port);
};
struct vg_claims {
    const struct vg_claims_ops *ops;
    struct vg_arena *arena; /* of what is put into the object */
    /* The cluster's families, in the order of its ranges. */
    bool has_v4, has_v6, prefers_v6;
    /* What each range is, for messages: "10.0.0.0/24", "30000-32767". */
    struct vg_slice ranges[2], ports; /* by family: v4, v6 */
    /* An answer of ours: the cluster cannot do it, whoever asks. Empty: none. */
    struct vg_slice failure;
};

#endif
