/* list_size.c - where the page ends and how large it is, before its first byte is sent.
 * The token for the next page stands before the items, so the page must be known first; and a small
 * list leaves with its length, in one piece. Only headers are read. Of a list without a limit no
 * more is looked at than tells it from a small one. */
#include <stdio.h>

#include "list_int.h"
#include "status_int.h"

void vg_list_cut(const struct vg_lister *l, struct vg_obj_splice *s, const struct vg_rec *rec)
{
    struct vg_obj_header h;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    if (l->call->ask->media.transform == VG_AS_PARTIAL)
        vg_partial_splice(s, &h, rec->rev, l->call->ask->media.is_v1beta1);
    else
        vg_obj_splice_item(s, &h, rec->rev);
}

/* ---- the head ---- */

/* Of what follows the page; empty: nothing does. */
static int make_token(struct vg_lister *l, struct vg_slice *ret)
{
    struct vg_obj_key next;
    *ret = VG_SLICE_LIT("");
    if (!l->has_more)
        return 0;
    int r = vg_obj_key_next(vg_obj_key_slice(&l->last), &next);
    return r < 0 ? r
                 : vg_continue_encode(&l->call->ask->arena, (int64_t)l->list_rev,
                                      vg_obj_key_slice(&l->root), vg_obj_key_slice(&next), ret);
}

static int append_metadata(struct vg_lister *l, struct vg_slice token, struct vg_buf *b)
{
    int r = vg_buf_printf(b, "{\"resourceVersion\":\"%llu\"", (unsigned long long)l->list_rev);
    if (r == 0 && l->has_more) {
        r = vg_buf_printf(b, ",\"continue\":\"%.*s\"", VG_SLICE_ARG(token));
        if (r == 0 && l->remaining)
            r = vg_buf_printf(b, ",\"remainingItemCount\":%llu", (unsigned long long)l->remaining);
    }
    return r < 0 ? r : vg_buf_append_byte(b, '}');
}

static int make_head(struct vg_lister *l)
{
    const struct vg_media *m = &l->call->ask->media;
    bool is_partial = m->transform == VG_AS_PARTIAL;
    const char *kind = is_partial ? "PartialObjectMetadataList" : l->kind->list_kind;
    const char *api_version = !is_partial     ? vg_kind_api_version(l->kind)
                              : m->is_v1beta1 ? "meta.k8s.io/v1beta1"
                                              : "meta.k8s.io/v1";
    VG_AUTO(buf) b = {0};
    VG_AUTO(buf) meta = {0};
    struct vg_slice token;
    int r = make_token(l, &token);
    if (r == 0 && vg_list_is_protobuf(l))
        return vg_list_protobuf_head(l, vg_slice_str(api_version), vg_slice_str(kind), token);
    if (r == 0)
        r = append_metadata(l, token, &meta);
    if (r == 0 && vg_list_is_table(l))
        r = vg_list_table_head(l, vg_buf_slice(&meta), &b);
    else if (r == 0)
        r = vg_buf_printf(&b,
                          "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":%.*s,\"items\":[",
                          kind, api_version, VG_SLICE_ARG(vg_buf_slice(&meta)));
    return r < 0 ? r : vg_arena_keep(&l->call->ask->arena, vg_buf_slice(&b), &l->head);
}

void vg_list_set_last(struct vg_lister *l, const struct vg_rec *rec)
{
    struct vg_slice key = vg_rec_key(rec);
    l->last.n = (uint32_t)key.n;
    memcpy(l->last.bytes, key.p, key.n);
}

/* ---- the page ---- */

/* Raw keys count, whether they match or not: as in kube-apiserver a token may lead to an empty
 * page.
 */
static void count_rest(struct vg_lister *l)
{
    struct vg_root *root = l->by_trigger ? l->hold->snapshot.trigger : l->hold->snapshot.root;
    struct vg_tree_key after = {.minor = vg_obj_key_slice(&l->last)};
    struct vg_tree_key whole = {.minor = vg_obj_key_slice(&l->walk)};
    if (l->by_trigger)
        after.major = whole.major = l->trigger;
    size_t rest =
        vg_root_rank(root, whole, VG_TREE_PAST) - vg_root_rank(root, after, VG_TREE_AFTER);
    l->has_more = rest > 0;
    l->remaining = l->opts.has_selector ? 0 : rest;
}

static void end_storage_page(struct vg_lister *l)
{
    if (!l->limit)
        return;
    l->has_more = l->more_in_storage && l->hold->n;
    if (l->has_more)
        vg_list_set_last(l, l->hold->recs[l->hold->n - 1]);
    l->remaining = l->has_more && !l->opts.has_selector && l->remaining > l->n_items
                       ? l->remaining - l->n_items
                       : 0;
    l->more_in_storage = false;
}

void vg_list_sized(struct vg_lister *l)
{
    struct vg_api_status status;
    if (l->is_from_storage)
        end_storage_page(l);
    else if (l->limit && l->n_items == l->limit)
        count_rest(l);
    l->is_small = l->n_bytes <= VG_GZIP_MIN && !l->more_in_storage;
    if (make_head(l) < 0) {
        vg_status_no_memory(&status);
        vg_list_refuse(l, &status);
        return;
    }
    l->left = l->has_more ? l->n_items : UINT64_MAX;
    l->cursor = l->first;
    l->at = 0;
    if (!l->is_from_storage)
        l->n_visited = 0; /* it begins anew, and one look at each counts */
    if (l->is_paged) {
        l->go_on = vg_list_send;
        vg_list_read_again(l);
    } else {
        vg_list_send(l);
    }
}

static bool is_enough(const struct vg_lister *l)
{
    return l->limit ? l->n_items == l->limit : l->n_bytes > VG_GZIP_MIN;
}

static void size_snapshot(struct vg_lister *l)
{
    uint32_t visits = VG_LIST_TURN_VISITS;
    const struct vg_rec *rec = NULL;
    while (!is_enough(l) && (rec = vg_list_next(l, &visits))) {
        struct vg_obj_splice s;
        vg_list_cut(l, &s, rec);
        l->n_items++;
        l->n_bytes += vg_obj_splice_size(&s) + 1;
        if (l->limit && l->n_items == l->limit)
            vg_list_set_last(l, rec);
    }
    if (!is_enough(l) && visits == 0) {
        vg_list_post(l, size_snapshot);
        return;
    }
    vg_list_sized(l);
}

static void size_storage(struct vg_lister *l)
{
    l->n_items = l->hold->n;
    for (size_t i = 0; i < l->hold->n && l->n_bytes <= VG_GZIP_MIN; i++) {
        struct vg_obj_splice s;
        vg_list_cut(l, &s, l->hold->recs[i]);
        l->n_bytes += vg_obj_splice_size(&s) + 1;
    }
    vg_list_sized(l);
}

void vg_list_size(struct vg_lister *l)
{
    if (vg_list_is_protobuf(l))
        vg_list_size_protobuf(l);
    else if (l->is_from_storage)
        size_storage(l);
    else
        size_snapshot(l);
}
