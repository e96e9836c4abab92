/* service_claiming.h - what the files of a service's claims share; see service_claims.c. Thread:
 * one owner. */
#ifndef VG_RULES_SERVICE_CLAIMING_H
#define VG_RULES_SERVICE_CLAIMING_H

#include "claims.h"
#include "service.h"

struct vg_claiming {
    struct vg_claims *cl;
    struct vg_check *c;
    struct vg_json *spec;      /* NULL: it is going */
    const struct vg_json *old; /* its spec; NULL: it is new */
    struct vg_at at;           /* of spec */
    int err;
};

/* Nothing more is to be taken: it failed or is refused. */
static inline bool vg_claiming_is_over(const struct vg_claiming *k)
{
    return k->err < 0 || k->c->errors->n || k->c->errors->failed;
}

/* Items of a list; 0 when it is none. */
static inline size_t vg_claiming_n(const struct vg_json *list)
{
    return vg_json_is(list, VG_JSON_ARRAY) ? list->n : 0;
}

/* service_ports.c: are its ports opened on nodes? */
bool vg_service_has_node_ports(const struct vg_json *spec);
/* Of k->spec what it did not have; of k->old what it does not keep; the port that tells a load
 * balancer of the node's health, either way. */
void vg_service_take_ports(struct vg_claiming *k);
void vg_service_give_ports(struct vg_claiming *k);
void vg_service_settle_health_port(struct vg_claiming *k);

#endif
