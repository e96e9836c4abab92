/* claims.h - the books of what is given once: cluster addresses and ports of nodes.
 * An address that is taken is an object of kind IPAddress, as in a stock cluster; a port is a key
 * outside of every kind. Both are written and removed in the transaction that writes or removes the
 * object which takes them, each with "nothing is there" as its condition: several servers on one
 * store cannot give a thing twice, and a crash leaves neither a service without its address nor an
 * address without its service. Who is refused by such a condition chooses anew. What an object uses
 * of a quota (admission_quota.c) is written in the same way, over the revision that was looked at.
 * Thread: of struct vg_claim_ranges any, read only but for the hints, which are atomic; else the
 * call's loop. */
#ifndef VG_API_CLAIMS_H
#define VG_API_CLAIMS_H

#include <stdatomic.h>

#include "server/kinds/rules/ip.h"
#include "write.h"

#define VG_IP_RANGE_DEFAULT "10.0.0.0/24"
#define VG_PORT_RANGE_DEFAULT "30000-32767"

/* What there is to be given. */
struct vg_claim_ranges {
    struct vg_cidr ips[2]; /* v4, v6 */
    char ip_texts[2][VG_IP_TEXT_MAX + 4];
    bool has[2];
    bool prefers_v6;
    uint16_t port_first, port_last;
    char port_text[24];
    /* Ports that were seen to be taken, as bits: where to look first. */
    _Atomic uint64_t taken[65536 / 64];
};
/* One range, or one of each family, as --service-cluster-ip-range takes them; "30000-32767". NULL:
 * the defaults. 0; VIGIL_E_INVALID with a sentence. */
VG_CHECK int vg_claim_ranges_parse(const char *ips, const char *ports, struct vg_claim_ranges *ret,
                                   struct vg_status *reterr_status);
/* The n-th address of a family's range, as text. */
struct vg_slice vg_claim_ip(const struct vg_claim_ranges *r, bool is_v6, uint64_t n,
                            char room[VG_IP_TEXT_MAX]);

/* The ranges of addresses as they were given, the first family first, and the first address of all.
 */
void vg_claim_ranges_of(const struct vg_api *api, const char *ret_ranges[2],
                        char ret_first[VG_IP_TEXT_MAX]);

/* What the object takes and gives back becomes part of the change. root: its members are its own;
 * it is completed. PUT, or FAIL with the status. */
enum vg_verdict vg_change_claim(struct vg_change *c, struct vg_json *root,
                                const struct vg_json *old);
/* It is going: all goes back. 0, -ENOMEM, VIGIL_E_STORE_DAMAGED. */
VG_CHECK int vg_change_unclaim(struct vg_change *c);
/* One operation more, beside the object's own. Consumes the record. 0, -ENOMEM, VIGIL_E_TOO_LARGE.
 */
VG_CHECK int vg_change_claim_op(struct vg_change *c, enum vg_op_type type, vg_rev expect,
                                struct vg_rec *take_rec);
/* Those of the last try go. */
void vg_change_forget_claims(struct vg_change *c);
/* The condition of one of them did not hold. */
void vg_change_claim_refused(struct vg_change *c, const struct vg_op *op);

#endif
