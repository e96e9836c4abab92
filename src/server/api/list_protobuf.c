/* list_protobuf.c - lists in protobuf: their size, their head, their items.
 * The envelope says how long all of its content is, so every item is measured before the first byte
 * leaves. What can be kept with its record (protobuf.h) is made then, and a list of such items is
 * slices of them, as it is of JSON. If there is no room for all, items are copied, and what is not
 * kept is made as its turn comes. So nothing grows with the length of the list, and each turn does
 * a bounded part of it. Pages of storage are read twice for the same reason. */
#include <stdio.h>

#include "list_int.h"
#include "versions.h"

/* Visits that making one item costs: a turn makes some 64 of them. */
#define VISITS_PER_ITEM (VG_LIST_TURN_VISITS / 64u)

static enum vg_protobuf_as as(const struct vg_lister *l)
{
    return vg_media_protobuf_as(&l->call->ask->media);
}

/* ---- items ---- */

void vg_list_protobuf_cut(struct vg_obj_splice *s, const struct vg_rec *rec)
{
    struct vg_slice item = vg_protobuf_kept_item(vg_protobuf_kept(rec));
    struct vg_buf head = {.p = s->rev, .cap = sizeof s->rev - 1, .max = sizeof s->rev - 1};
    int r = vg_proto_put_item_head(&head, item.n);
    s->v[0] = vg_slice(s->rev, VG_NEVER(r < 0) ? 0 : head.n);
    s->v[1] = item;
    s->n = 2;
}

static const struct vg_protobuf_kept *kept(const struct vg_lister *l, const struct vg_rec *rec)
{
    return as(l) == VG_PROTOBUF_WHOLE && !l->kind->stored ? vg_protobuf_kept(rec) : NULL;
}

/* The item's message: kept, or in l->item. */
static int message_of(struct vg_lister *l, const struct vg_rec *rec, struct vg_slice *ret)
{
    const struct vg_protobuf_kept *k = kept(l, rec);
    if (k) {
        *ret = vg_protobuf_kept_item(k);
        return 0;
    }
    vg_buf_clear(&l->item);
    int r = vg_protobuf_item(l->kind, rec, as(l), &l->item);
    *ret = vg_buf_slice(&l->item);
    return r;
}

int vg_list_protobuf_item(struct vg_lister *l, const struct vg_rec *rec)
{
    struct vg_slice message;
    int r = message_of(l, rec, &message);
    if (r == 0)
        r = vg_proto_put_item_head(&l->text, message.n);
    return r < 0 ? r : vg_buf_append_slice(&l->text, message);
}

/* ---- the head ---- */

int vg_list_protobuf_head(struct vg_lister *l, struct vg_slice api_version, struct vg_slice kind,
                          struct vg_slice token)
{
    VG_AUTO(buf) b = {0};
    char rev[24];
    int n = snprintf(rev, sizeof rev, "%llu", (unsigned long long)l->list_rev);
    struct vg_proto_list list = {
        .api_version = api_version,
        .kind = kind,
        .resource_version = vg_slice(rev, (size_t)n),
        .continue_token = token,
        .remaining = l->has_more && l->remaining ? (int64_t)l->remaining : -1,
    };
    int r = vg_proto_put_list_head(&b, &list, l->n_bytes);
    return r < 0 ? r : vg_arena_keep(&l->call->ask->arena, vg_buf_slice(&b), &l->head);
}

/* ---- the size ---- */

/* Makes it where it is worth keeping; else it is only measured. */
static int measure(struct vg_lister *l, const struct vg_rec *rec, uint32_t *visits)
{
    const struct vg_protobuf_kept *k = kept(l, rec);
    uint64_t n;
    if (!k)
        *visits -= VG_MIN(*visits, VISITS_PER_ITEM);
    /* Records of storage are gone after their page; nobody else would find it. */
    if (!k && as(l) == VG_PROTOBUF_WHOLE && !l->is_from_storage && !l->kind->stored)
        k = vg_protobuf_keep(rec);
    if (k) {
        n = vg_protobuf_kept_item(k).n;
    } else {
        struct vg_rec *own;
        int r = vg_version_rec(l->kind, rec, &own);
        if (r < 0)
            return r;
        r = vg_protobuf_item_size(l->kind, own, as(l), &n);
        vg_rec_unref(own);
        if (r < 0)
            return r;
        l->is_all_kept = false;
    }
    l->n_items++;
    l->n_bytes += vg_proto_item_size(n);
    return 0;
}

static bool is_page_full(const struct vg_lister *l)
{
    return l->limit && l->n_items == l->limit;
}

static void size_turn(struct vg_lister *l)
{
    uint32_t visits = VG_LIST_TURN_VISITS;
    const struct vg_rec *rec = NULL;
    while (!is_page_full(l) && (rec = vg_list_next(l, &visits))) {
        int r = measure(l, rec, &visits);
        if (r < 0) {
            vg_list_fail(l, r);
            return;
        }
        if (is_page_full(l))
            vg_list_set_last(l, rec);
    }
    if (is_page_full(l) || visits > 0) {
        if (l->is_from_storage && !l->limit && l->more_in_storage) {
            l->is_paged = true;
            l->go_on = size_turn;
            vg_list_read_more(l);
        } else {
            vg_list_sized(l);
        }
    } else {
        vg_list_post(l, size_turn);
    }
}

void vg_list_size_protobuf(struct vg_lister *l)
{
    l->is_all_kept = !l->is_from_storage;
    size_turn(l);
}
