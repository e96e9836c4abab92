/* users.h - who asks: the users of one loop, each kept once however many requests it has.
 * A request points at its user and must not copy it: ten thousand watches of one controller share
 * one entry. The number of a user's watches counts over all loops, in a table with a lock that is
 * taken when a watch starts and ends, and never else.
 * Thread: struct vg_users belongs to its loop; struct vg_watch_caps any. */
#ifndef VG_SERVER_HTTP_USERS_H
#define VG_SERVER_HTTP_USERS_H

#include <stdatomic.h>

#include "base/lock.h"
#include "base/map.h"
#include "body_share.h"
#include "server/api/api.h"
#include "server/flow/flow.h"

/* 64: users have a handful of groups; a certificate with more is refused. */
#define VG_USER_GROUPS_MAX 64u
/* Entries without a request that are kept, so that the next request finds them. */
#define VG_USERS_IDLE_MAX 1024u

struct vg_user {
    struct vg_api_user api;    /* first */
    size_t refs;               /* requests */
    struct vg_slice key;       /* in the map; bytes follow the struct */
    struct vg_user *next_idle; /* while idle ones are dropped */
    struct vg_flow_subject_cache subject;
    struct vg_body_share *share; /* reference; NULL: users without shares */
};

struct vg_users {
    struct vg_map map; /* key -> struct vg_user */
    size_t idle;
    struct vg_buf key;             /* scratch, kept */
    struct vg_body_shares *shares; /* NULL: none */
};

/* shares may be NULL. */
void vg_users_init(struct vg_users *u, struct vg_body_shares *shares);
void vg_users_done(struct vg_users *u); /* no request is left */
/* The user with this name, uid, groups and extras, and `extra` (NULL: none) as one group more, if
 * it is not among them. A reference is taken. 0, -ENOMEM, VIGIL_E_TOO_LARGE (groups). */
VG_CHECK int vg_users_get(struct vg_users *u, const struct vg_api_user *user, const char *extra,
                          struct vg_user **ret_user);
void vg_users_put(struct vg_users *u, struct vg_user *user);

/* Watches by user name, over all loops. */
struct vg_watch_caps {
    struct vg_mutex mu; /* rank WATCH_CAPS */
    struct vg_map map VG_GUARDED_BY(mu);
    uint32_t max; /* 0: no limit */
};
void vg_watch_caps_init(struct vg_watch_caps *c, uint32_t max);
void vg_watch_caps_done(struct vg_watch_caps *c);
/* 0; VIGIL_E_BUSY: the user has as many as may be; -ENOMEM. */
VG_CHECK int vg_watch_caps_take(struct vg_watch_caps *c, struct vg_slice name);
void vg_watch_caps_give(struct vg_watch_caps *c, struct vg_slice name);

#endif
