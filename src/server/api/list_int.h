/* list_int.h - a LIST from its options to the last byte.
 *
 *   PLAN (list.c)      what the options ask for: any state, one at least as new, or exactly one
 *   FIND (list_find.c) that state: a snapshot of the cache, or pages of storage
 *   SIZE (list_size.c) where the page ends, and whether the answer is small
 *   SEND (list_send.c, list_protobuf.c) head, items, tail; plain, other looks, or compressed
 *
 * A snapshot is held by one reference for the whole list, which also pins what is on its way to the
 * socket: no count is touched per object. Each turn of the loop does a bounded part of the work.
 * Thread: the call's loop. */
#ifndef VG_API_LIST_INT_H
#define VG_API_LIST_INT_H

#include "continue.h"
#include "gzip.h"
#include "options.h"
#include "respond_int.h"
#include "table.h"
#include "json/write.h"

/* 256 KiB of body or 4096 objects looked at: some 200 us of a turn. */
#define VG_LIST_TURN_BYTES ((size_t)256 << 10)
#define VG_LIST_TURN_VISITS 4096u
/* Records that one read of storage brings; of 4 KB each, 2 MB. */
#define VG_LIST_STORAGE_PAGE 500u
/* A page with a limit is held whole when it comes from storage: more is cut, with a token. */
#define VG_LIST_STORAGE_LIMIT_MAX 10000u

/* What holds records in memory while slices of them are on their way; the loop's own. */
struct vg_list_hold {
    uint32_t refs;
    struct vg_cache_snapshot snapshot; /* of the cache; root NULL: none */
    struct vg_rec **recs;              /* of storage: all of them match */
    size_t n, room;
};
VG_CHECK struct vg_list_hold *vg_list_hold_new(void); /* NULL: out of memory */
void vg_list_hold_unref(struct vg_list_hold *h);
struct vg_http_pin vg_list_hold_pin(struct vg_list_hold *h);

enum vg_list_want { VG_LIST_ANY, VG_LIST_AT_LEAST, VG_LIST_EXACTLY };

struct vg_lister {
    struct vg_api_call *call;
    const struct vg_kind *kind;
    size_t kind_index;
    struct vg_list_options opts;

    /* PLAN */
    enum vg_list_want want;
    vg_rev rev;
    bool is_consistent; /* the revision is storage's of now: a stale cache is passed by */
    bool is_fresh;      /* it was waited for: the cache has it */
    bool has_continue;
    uint64_t limit;          /* 0: none */
    struct vg_obj_key root;  /* of the keys that are listed: prefix, or prefix and namespace */
    struct vg_obj_key start; /* first key, if n is not 0 */
    struct vg_obj_key walk;  /* what can match begins with this: root, or less by the selector */
    bool is_one;             /* ... and is this very key */

    /* FIND */
    struct vg_cache_wait wait;
    uint64_t waiting_since;
    struct vg_range range;
    struct vg_obj_key range_start, range_end;
    bool is_waiting, is_reading, is_from_storage;
    bool was_held;        /* until the cache was ready */
    bool is_of_deleted;   /* it was not found by a list, and does not count as one */
    bool more_in_storage; /* beyond what `hold` has */
    vg_rev list_rev;
    struct vg_list_hold *hold;
    struct vg_cursor first, cursor; /* of a snapshot: where it begins, and what comes next */
    struct vg_slice trigger;        /* the index is walked up to another value */
    bool by_trigger;
    size_t at; /* of hold->recs: what comes next */

    /* SIZE */
    struct vg_mail mail;
    bool is_posted;
    uint64_t n_visited;            /* records looked at */
    uint64_t n_items, n_bytes;     /* seen while sizing */
    struct vg_obj_key last;        /* of the page */
    bool is_small;                 /* all of it has been seen, and it is small */
    bool has_more;                 /* the page ends before the list does */
    uint64_t remaining;            /* after the page; 0: not told */
    bool is_all_kept;              /* protobuf: each item is kept with its record */
    bool is_paged;                 /* protobuf: pages of storage have gone by, and come again */
    enum vg_table_include include; /* of a Table */

    /* SEND */
    void (*go_on)(struct vg_lister *l); /* what to do on the next turn, or when drained */
    struct vg_slice head;
    uint64_t left;     /* items of the page still to be sent */
    bool is_head_sent; /* of HTTP */
    bool is_begun;     /* the list's own head is written */
    bool is_sent;      /* all is written */
    bool is_full, is_in_gzip;
    uint64_t n_sent;               /* items */
    struct vg_buf text;            /* of other looks */
    struct vg_buf item;            /* of protobuf: one message; of a Table: one object */
    struct vg_arena rows;          /* of a Table: what a row needs */
    struct vg_json_writer *writer; /* of indented JSON; NULL: YAML */
    struct vg_json *frame;         /* the list without items, as a tree */
    struct vg_gzip *gzip;
};

/* FIND: ends in vg_list_size, or in an answer. */
void vg_list_find(struct vg_lister *l);
/* The next record that matches; NULL with *visits > 0: the end, or (more_in_storage) the end of
 * what is here; with *visits == 0: enough for this turn. */
const struct vg_rec *vg_list_next(struct vg_lister *l, uint32_t *visits);
/* The next page of storage; go_on is called when it is here. False: the call was finished. */
void vg_list_read_more(struct vg_lister *l);
void vg_list_size(struct vg_lister *l);
/* The page is known: its head is made, and it is sent. */
void vg_list_sized(struct vg_lister *l);
void vg_list_set_last(struct vg_lister *l, const struct vg_rec *rec); /* of the page */
void vg_list_send(struct vg_lister *l);
/* Begin anew with the first page of storage; go_on is called when it is here. */
void vg_list_read_again(struct vg_lister *l);
/* An answer, or if its head has left, the end. */
void vg_list_fail(struct vg_lister *l, int err);

/* Protobuf (list_protobuf.c). */
void vg_list_size_protobuf(struct vg_lister *l);
VG_CHECK int vg_list_protobuf_head(struct vg_lister *l, struct vg_slice api_version,
                                   struct vg_slice kind, struct vg_slice token);
/* Append an item to l->text. */
VG_CHECK int vg_list_protobuf_item(struct vg_lister *l, const struct vg_rec *rec);
/* Slices of an item that is kept. */
void vg_list_protobuf_cut(struct vg_obj_splice *s, const struct vg_rec *rec);

/* Tables (list_table.c). */
VG_CHECK int vg_list_table_head(struct vg_lister *l, struct vg_slice meta, struct vg_buf *out);
VG_CHECK int vg_list_table_row(struct vg_lister *l, const struct vg_rec *rec, uint32_t *visits,
                               struct vg_buf *out);
static inline bool vg_list_is_table(const struct vg_lister *l)
{
    return l->call->ask->media.transform == VG_AS_TABLE;
}
static inline bool vg_list_is_protobuf(const struct vg_lister *l)
{
    return l->call->ask->media.type == VG_MEDIA_PROTOBUF;
}

/* Answer with these records as a list. Consumes the hold and the options. */
void vg_list_answer(struct vg_api_call *call, struct vg_list_hold *take_hold, vg_rev rev,
                    struct vg_list_options *take_opts);

/* Call go_on on the next turn. */
void vg_list_post(struct vg_lister *l, void (*go_on)(struct vg_lister *l));
void vg_list_refuse(struct vg_lister *l, const struct vg_api_status *status);
/* Lets go of all that the list holds; the call goes on. */
void vg_list_release(struct vg_lister *l);
/* The list is over, sent or not. */
void vg_list_finish(struct vg_lister *l);

/* Slices of an item as the media says. */
void vg_list_cut(const struct vg_lister *l, struct vg_obj_splice *s, const struct vg_rec *rec);

#endif
