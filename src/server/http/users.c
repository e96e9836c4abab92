/* users.c - see users.h. An entry's key is the name, uid, groups and extras, each with its length
 * before it, and how many groups there are, so that no two users have the same key. */
#include "users.h"

#include <errno.h>

#include "base/alloc.h"

void vg_users_init(struct vg_users *u, struct vg_body_shares *shares)
{
    *u = (struct vg_users){.shares = shares};
    vg_map_init(&u->map, VG_MAP_BORROWS_KEYS);
}

static void user_free(struct vg_users *u, struct vg_user *user)
{
    if (user->share)
        vg_body_share_put(u->shares, user->share);
    vg_free(user);
}

/* The map may not change while it is walked: the idle ones are linked first. */
static void drop_idle(struct vg_users *u)
{
    struct vg_user *idle = NULL;
    VG_MAP_FOREACH (e, &u->map) {
        struct vg_user *user = e->value;
        if (user->refs)
            continue;
        user->next_idle = idle;
        idle = user;
    }
    while (idle) {
        struct vg_user *user = idle;
        idle = user->next_idle;
        vg_map_remove(&u->map, user->key);
        user_free(u, user);
    }
    u->idle = 0;
}

void vg_users_done(struct vg_users *u)
{
    drop_idle(u);
    vg_map_done(&u->map);
    vg_buf_done(&u->key);
}

static int append_part(struct vg_buf *key, struct vg_slice s)
{
    uint32_t n = (uint32_t)s.n;
    int r = vg_buf_append(key, &n, sizeof n);
    return r < 0 ? r : vg_buf_append_slice(key, s);
}

static int make_key(const struct vg_api_user *user, struct vg_buf *key)
{
    uint32_t n_groups = (uint32_t)user->n_groups;
    int r = append_part(key, user->name);
    if (r == 0)
        r = append_part(key, user->uid);
    if (r == 0)
        r = append_part(key, vg_slice(&n_groups, sizeof n_groups));
    for (size_t i = 0; i < user->n_groups && r == 0; i++)
        r = append_part(key, user->groups[i]);
    for (size_t i = 0; i < user->n_extra && r == 0; i++) {
        r = append_part(key, user->extra[i].key);
        if (r == 0)
            r = append_part(key, user->extra[i].value);
    }
    return r;
}

/* The next part of a key. */
static struct vg_slice take_part(struct vg_slice *rest)
{
    uint32_t n;
    memcpy(&n, rest->p, sizeof n);
    struct vg_slice part = vg_slice(rest->p + sizeof n, n);
    *rest = vg_slice(part.p + n, rest->n - sizeof n - n);
    return part;
}

static int make_user(struct vg_users *u, struct vg_slice key, size_t n_groups, size_t n_extra,
                     struct vg_user **ret_user)
{
    size_t head = sizeof(struct vg_user) + n_groups * sizeof(struct vg_slice) +
                  n_extra * sizeof(struct vg_user_extra);
    struct vg_user *user = vg_malloc(head + key.n);
    if (!user)
        return -ENOMEM;
    struct vg_slice *groups = (struct vg_slice *)(user + 1);
    struct vg_user_extra *extra = (struct vg_user_extra *)(groups + n_groups);
    memcpy((char *)user + head, key.p, key.n);
    struct vg_slice rest = vg_slice((char *)user + head, key.n);
    *user = (struct vg_user){.key = rest};
    user->api.name = take_part(&rest);
    user->api.uid = take_part(&rest);
    (void)take_part(&rest); /* how many groups */
    user->api.groups = groups;
    user->api.n_groups = n_groups;
    for (size_t i = 0; i < n_groups; i++)
        groups[i] = take_part(&rest);
    user->api.extra = extra;
    user->api.n_extra = n_extra;
    for (size_t i = 0; i < n_extra; i++) {
        extra[i].key = take_part(&rest);
        extra[i].value = take_part(&rest);
    }
    if (u->shares)
        user->share = vg_body_share_get(u->shares, user->api.name);
    int r = u->shares && !user->share ? -ENOMEM : vg_map_put(&u->map, user->key, user, NULL);
    if (r < 0) {
        user_free(u, user);
        return r;
    }
    u->idle++;
    *ret_user = user;
    return 0;
}

int vg_users_get(struct vg_users *u, const struct vg_api_user *user, const char *extra,
                 struct vg_user **ret_user)
{
    struct vg_slice groups[VG_USER_GROUPS_MAX + 1];
    struct vg_api_user all = *user;
    if (user->n_groups > VG_USER_GROUPS_MAX)
        return VIGIL_E_TOO_LARGE;
    size_t n = 0;
    for (; n < user->n_groups; n++) {
        groups[n] = user->groups[n];
        if (extra && vg_slice_eq(groups[n], vg_slice_str(extra)))
            extra = NULL;
    }
    if (extra)
        groups[n++] = vg_slice_str(extra);
    all.groups = groups;
    all.n_groups = n;
    vg_buf_clear(&u->key);
    int r = make_key(&all, &u->key);
    if (r < 0)
        return r;
    struct vg_user *found = vg_map_get(&u->map, vg_buf_slice(&u->key));
    if (!found && (r = make_user(u, vg_buf_slice(&u->key), all.n_groups, all.n_extra, &found)) < 0)
        return r;
    u->idle -= found->refs == 0;
    found->refs++;
    *ret_user = found;
    return 0;
}

void vg_users_put(struct vg_users *u, struct vg_user *user)
{
    if (--user->refs == 0 && ++u->idle > VG_USERS_IDLE_MAX)
        drop_idle(u);
}

/* ---- caps ---- */

void vg_watch_caps_init(struct vg_watch_caps *c, uint32_t max)
{
    *c = (struct vg_watch_caps){.max = max};
    vg_mutex_init(&c->mu, VG_RANK_WATCH_CAPS);
    vg_map_init(&c->map, VG_MAP_COPIES_KEYS);
}

void vg_watch_caps_done(struct vg_watch_caps *c)
{
    vg_map_done(&c->map);
    vg_mutex_done(&c->mu);
}

int vg_watch_caps_take(struct vg_watch_caps *c, struct vg_slice name)
{
    int r = 0;
    vg_mutex_lock(&c->mu);
    uintptr_t n = (uintptr_t)vg_map_get(&c->map, name);
    if (c->max && n >= c->max)
        r = VIGIL_E_BUSY;
    else
        r = vg_map_put(&c->map, name, (void *)(n + 1), NULL);
    vg_mutex_unlock(&c->mu);
    return r < 0 ? r : 0;
}

void vg_watch_caps_give(struct vg_watch_caps *c, struct vg_slice name)
{
    vg_mutex_lock(&c->mu);
    uintptr_t n = (uintptr_t)vg_map_get(&c->map, name);
    /* Replacing the value of a key that is there allocates nothing. */
    if (n > 1)
        (void)!vg_map_put(&c->map, name, (void *)(n - 1), NULL);
    else
        vg_map_remove(&c->map, name);
    vg_mutex_unlock(&c->mu);
}
