/* table_list.h - the keys of a table in order, each with its versions: a skip list.
 * Invariants: K1 keys strictly increase along next[0], and along every level above it;
 *             K2 a node is linked on each of its levels, or on none.
 * Nodes belong to the list, and hold a reference to each of their versions.
 * Threads: the table's writer alone changes it, with the table's lock held; the writer may look
 * without it, all others look with it. The finger is the writer's. */
#ifndef VG_STORAGE_TABLE_LIST_H
#define VG_STORAGE_TABLE_LIST_H

#include "server/storage/storage.h"

/* A quarter of the nodes reach the next level: 12 levels serve 16 million keys. */
#define VG_TABLE_LEVELS_MAX 12

struct vg_table_node {
    struct vg_rec **versions; /* ascending; points to `single` while one is enough */
    struct vg_rec *single;
    struct vg_rec *staged; /* newest staged change of this key; borrowed from the staged list */
    uint32_t n, cap;
    uint32_t key_len;
    uint8_t levels;
    struct vg_table_node *next[]; /* levels pointers, then the key */
};

struct vg_table_list {
    struct vg_table_node *head[VG_TABLE_LEVELS_MAX];
    uint8_t levels;
    uint64_t random;
    /* Where the writer looked last, until the list changes: comparing a key and then staging it
     * searches once. */
    struct vg_table_node **finger[VG_TABLE_LEVELS_MAX];
    struct vg_table_node *finger_node;
    struct vg_slice finger_key; /* the caller's; p is NULL when there is none */
};

static inline struct vg_slice vg_table_node_key(const struct vg_table_node *node)
{
    return vg_slice(&node->next[node->levels], node->key_len);
}

void vg_table_list_init(struct vg_table_list *l);
void vg_table_list_done(struct vg_table_list *l); /* frees the nodes */

/* The first node whose key is not below `key`; NULL: there is none. */
struct vg_table_node *vg_table_list_find(struct vg_table_list *l, struct vg_slice key);
/* The node of this key; NULL: there is none. */
struct vg_table_node *vg_table_list_find_exact(struct vg_table_list *l, struct vg_slice key);
/* The same, and the finger stays there; key's bytes live until it is added or another is looked
 * for. */
struct vg_table_node *vg_table_list_point(struct vg_table_list *l, struct vg_slice key);
/* NULL: out of memory, and nothing has changed. */
struct vg_table_node *vg_table_list_find_or_add(struct vg_table_list *l, struct vg_slice key);
void vg_table_list_remove(struct vg_table_list *l, struct vg_table_node *node); /* freed */

/* Room for `extra` more versions. 0, -ENOMEM. */
VG_CHECK int vg_table_node_reserve(struct vg_table_node *node, uint32_t extra);
/* The newest version at or before `at`, borrowed; NULL when there is none. */
struct vg_rec *vg_table_node_at(const struct vg_table_node *node, vg_rev at);

#endif
