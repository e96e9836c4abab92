/* list_send.c - the body of a list: head, items, tail, in bounded parts.
 * Compact JSON leaves as slices of the cached records. Other looks are made item by item in a
 * buffer. Either goes to the socket, until that is full, or through the compressor, one piece at a
 * time. Nothing grows with the length of the list. */
#include <errno.h>

#include "list_int.h"
#include "versions.h"
#include "yaml/yaml.h"

/* Items that are handed over together; with what holds their revisions, 15 KB of stack. */
#define BATCH_ITEMS 64u
#define BATCH_BYTES ((size_t)64 << 10)

struct batch {
    struct vg_slice v[BATCH_ITEMS * (VG_OBJ_SLICES_MAX + 1) + 2];
    struct vg_obj_splice s[BATCH_ITEMS];
    size_t n, n_items, bytes;
};

/* How far a fill has come. */
enum filled {
    FILLED_MORE,  /* there is more, as soon as this is taken */
    FILLED_TURN,  /* enough for this turn */
    FILLED_PAGE,  /* what follows has to be read from storage */
    FILLED_ALL,   /* the end is in it */
    FILLED_ERROR, /* out of memory */
};

static void fail(struct vg_lister *l)
{
    vg_http_abort(l->call->x);
    vg_list_finish(l);
}

static struct vg_slice tail_of(const struct vg_lister *l)
{
    return vg_list_is_protobuf(l) ? VG_PROTO_TAIL : VG_SLICE_LIT("]}\n");
}

/* ---- slices ---- */

static void add(struct batch *b, struct vg_slice s)
{
    b->v[b->n++] = s;
    b->bytes += s.n;
}

static void add_item(struct vg_lister *l, struct batch *b, const struct vg_rec *rec)
{
    struct vg_obj_splice *s = &b->s[b->n_items++];
    bool is_protobuf = vg_list_is_protobuf(l);
    if (is_protobuf)
        vg_list_protobuf_cut(s, rec);
    else
        vg_list_cut(l, s, rec);
    if (l->n_sent++ && !is_protobuf)
        add(b, VG_SLICE_LIT(","));
    for (uint32_t i = 0; i < s->n; i++)
        add(b, s->v[i]);
}

/* What a fill says when there is no next record. */
static enum filled at_end(const struct vg_lister *l, uint32_t visits)
{
    if (l->left && visits == 0)
        return FILLED_TURN;
    return l->left && l->more_in_storage ? FILLED_PAGE : FILLED_ALL;
}

static const struct vg_rec *next_item(struct vg_lister *l, uint32_t *visits)
{
    const struct vg_rec *rec = l->left ? vg_list_next(l, visits) : NULL;
    if (rec)
        l->left--;
    return rec;
}

static enum filled fill_slices(struct vg_lister *l, struct batch *b, uint32_t *visits)
{
    b->n = b->n_items = b->bytes = 0;
    if (!l->is_begun)
        add(b, l->head);
    l->is_begun = true;
    while (b->n_items < BATCH_ITEMS && b->bytes < BATCH_BYTES) {
        const struct vg_rec *rec = next_item(l, visits);
        if (!rec) {
            enum filled f = at_end(l, *visits);
            if (f == FILLED_ALL)
                add(b, tail_of(l));
            return f;
        }
        add_item(l, b, rec);
    }
    return FILLED_MORE;
}

/* ---- other looks ---- */

/* The list without its items, as a tree; the text it points into is the arena's. */
static int parse_frame(struct vg_lister *l)
{
    struct vg_arena *a = &l->call->ask->arena;
    char *text = vg_arena_alloc(a, l->head.n + 2, 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, l->head.p, l->head.n);
    memcpy(text + l->head.n, "]}", 2);
    return vg_json_parse(a, vg_slice(text, l->head.n + 2), NULL, &l->frame, NULL);
}

/* Keys are sorted: items come before kind and metadata, rows come last. */
static int begin_yaml(struct vg_lister *l)
{
    if (vg_list_is_table(l)) {
        vg_json_object_remove(l->frame, VG_SLICE_LIT("rows"));
        int r = vg_yaml_write(&l->text, l->frame);
        return r < 0 ? r : vg_buf_append_slice(&l->text, VG_SLICE_LIT("rows:\n"));
    }
    struct vg_slice version = vg_json_text(vg_json_get_str(l->frame, "apiVersion"));
    return vg_buf_printf(&l->text, "apiVersion: %.*s\nitems:\n", VG_SLICE_ARG(version));
}

/* Is its text just what it is made of, one after the other? */
static bool is_plain(const struct vg_lister *l)
{
    const struct vg_media *m = &l->call->ask->media;
    return vg_list_is_protobuf(l) ||
           (vg_list_is_table(l) && m->type == VG_MEDIA_JSON && !m->is_pretty);
}

static int begin_text(struct vg_lister *l)
{
    if (is_plain(l))
        return vg_buf_append_slice(&l->text, l->head);
    int r = parse_frame(l);
    if (r < 0)
        return r;
    if (l->call->ask->media.type == VG_MEDIA_YAML)
        return begin_yaml(l);
    l->writer = vg_arena_new(&l->call->ask->arena, struct vg_json_writer);
    if (!l->writer)
        return -ENOMEM;
    vg_json_writer_init(l->writer, &l->text,
                        (l->call->ask->media.is_pretty ? VG_JSON_INDENT : 0u) |
                            VG_JSON_ESCAPE_HTML);
    vg_json_put_begin_object(l->writer);
    VG_JSON_FOREACH_MEMBER (m, l->frame) {
        vg_json_put_key(l->writer, vg_json_key(m));
        if (m + 1 == m_end) /* items, or rows */
            vg_json_put_begin_array(l->writer);
        else
            vg_json_put_value(l->writer, &m->value);
    }
    return l->writer->err;
}

static int end_text(struct vg_lister *l)
{
    if (is_plain(l))
        return vg_buf_append_slice(&l->text, tail_of(l));
    if (l->writer) {
        vg_json_put_end_array(l->writer);
        vg_json_put_end_object(l->writer);
        int r = vg_json_writer_end(l->writer);
        return r < 0 || l->call->ask->media.is_pretty ? r : vg_buf_append_byte(&l->text, '\n');
    }
    if (vg_list_is_table(l))
        return 0;
    vg_json_object_remove(l->frame, VG_SLICE_LIT("apiVersion"));
    vg_json_object_remove(l->frame, VG_SLICE_LIT("items"));
    return vg_yaml_write(&l->text, l->frame);
}

/* An item in compact JSON. */
static int append_json(struct vg_lister *l, const struct vg_rec *rec, uint32_t *visits,
                       struct vg_buf *out)
{
    struct vg_obj_splice s;
    if (vg_list_is_table(l))
        return vg_list_table_row(l, rec, visits, out);
    vg_list_cut(l, &s, rec);
    return vg_obj_splice_append(out, &s);
}

static int write_plain(struct vg_lister *l, const struct vg_rec *rec, uint32_t *visits)
{
    uint64_t before = l->n_sent++;
    if (vg_list_is_protobuf(l))
        return vg_list_protobuf_item(l, rec);
    int r = before ? vg_buf_append_byte(&l->text, ',') : 0;
    return r < 0 ? r : vg_list_table_row(l, rec, visits, &l->text);
}

static int write_rec(struct vg_lister *l, const struct vg_rec *rec, uint32_t *visits)
{
    if (is_plain(l))
        return write_plain(l, rec, visits);
    VG_AUTO(buf) json = {0};
    VG_AUTO(arena) arena;
    struct vg_json *item = NULL;
    vg_arena_init(&arena, 0, 0);
    int r = append_json(l, rec, visits, &json);
    if (r == 0)
        r = vg_json_parse(&arena, vg_buf_slice(&json), NULL, &item, NULL);
    if (r < 0 || !item)
        return r < 0 ? r : VIGIL_E_INTERNAL;
    l->n_sent++;
    if (l->writer) {
        vg_json_put_value(l->writer, item);
        return l->writer->err;
    }
    struct vg_json list = vg_json_array();
    r = vg_json_array_push(&arena, &list, *item);
    return r < 0 ? r : vg_yaml_write(&l->text, &list);
}

/* The record in the version that is asked for; a Table is of the stored one. */
static int take_version(const struct vg_lister *l, const struct vg_rec *rec, struct vg_rec **ret)
{
    return vg_version_rec(vg_list_is_table(l) ? vg_kind_stored(l->kind) : l->kind, rec, ret);
}

static int write_item(struct vg_lister *l, const struct vg_rec *rec, uint32_t *visits)
{
    struct vg_rec *own;
    int r = take_version(l, rec, &own);
    if (r < 0)
        return r;
    r = write_rec(l, own, visits);
    vg_rec_unref(own);
    return r;
}

/* An item costs a parse here, so a turn has fewer. */
static enum filled fill_text(struct vg_lister *l, uint32_t *visits)
{
    vg_buf_clear(&l->text);
    if (!l->is_begun && begin_text(l) < 0)
        return FILLED_ERROR;
    l->is_begun = true;
    while (l->text.n < BATCH_BYTES) {
        const struct vg_rec *rec = next_item(l, visits);
        if (!rec) {
            enum filled f = at_end(l, *visits);
            return f == FILLED_ALL && end_text(l) < 0 ? FILLED_ERROR : f;
        }
        if (write_item(l, rec, visits) < 0)
            return FILLED_ERROR;
    }
    return FILLED_MORE;
}

static bool is_slices(const struct vg_lister *l)
{
    const struct vg_media *m = &l->call->ask->media;
    if (l->kind->stored || vg_list_is_table(l))
        return false;
    return m->type == VG_MEDIA_PROTOBUF ? l->is_all_kept
                                        : m->type == VG_MEDIA_JSON && !m->is_pretty;
}

/* ---- to the socket ---- */

static void sent(struct vg_lister *l)
{
    vg_http_end(l->call->x);
    vg_list_finish(l);
}

static int write_some(struct vg_lister *l, uint32_t *visits, enum filled *ret_filled,
                      size_t *ret_bytes)
{
    struct batch b;
    struct vg_slice text;
    struct vg_http_pin pin = vg_list_hold_pin(l->hold);
    if (is_slices(l)) {
        *ret_filled = fill_slices(l, &b, visits);
        *ret_bytes = b.bytes;
        return b.n ? vg_http_write(l->call->x, b.v, b.n, &pin) : VG_HTTP_OPEN;
    }
    *ret_filled = fill_text(l, visits);
    *ret_bytes = l->text.n;
    text = vg_buf_slice(&l->text);
    return text.n && *ret_filled != FILLED_ERROR ? vg_http_write(l->call->x, &text, 1, NULL)
                                                 : VG_HTTP_OPEN;
}

static void step(struct vg_lister *l)
{
    uint32_t visits = VG_LIST_TURN_VISITS;
    size_t bytes, done = 0;
    for (;;) {
        enum filled filled;
        int r = write_some(l, &visits, &filled, &bytes);
        if (r < 0 || filled == FILLED_ERROR) {
            fail(l);
            return;
        }
        done += bytes;
        l->call->bytes_out += bytes;
        if (filled == FILLED_ALL) {
            sent(l);
            return;
        }
        if (filled == FILLED_PAGE) {
            l->go_on = step;
            l->is_full = r == VG_HTTP_FULL;
            vg_list_read_more(l);
            return;
        }
        if (r == VG_HTTP_FULL) {
            l->is_full = true;
            return;
        }
        if (filled == FILLED_TURN || done >= VG_LIST_TURN_BYTES) {
            vg_list_post(l, step);
            return;
        }
    }
}

/* ---- through the compressor ---- */

static void step_gzip(struct vg_lister *l);

static void on_compressed(void *arg, int err, struct vg_slice out)
{
    struct vg_lister *l = arg;
    l->is_in_gzip = false;
    int r = err == 0 && out.n ? vg_http_write(l->call->x, &out, 1, NULL) : err;
    if (r < 0) {
        fail(l);
        return;
    }
    l->call->bytes_out += out.n;
    if (l->is_sent) {
        sent(l);
        return;
    }
    l->is_full = r == VG_HTTP_FULL;
    if (!l->is_full)
        step_gzip(l);
}

static int put_some(struct vg_lister *l, uint32_t *visits, enum filled *ret_filled)
{
    struct batch b;
    if (is_slices(l)) {
        *ret_filled = fill_slices(l, &b, visits);
        return vg_gzip_put(l->gzip, b.v, b.n);
    }
    *ret_filled = fill_text(l, visits);
    struct vg_slice text = vg_buf_slice(&l->text);
    return vg_gzip_put(l->gzip, &text, text.n ? 1 : 0);
}

static void step_gzip(struct vg_lister *l)
{
    uint32_t visits = VG_LIST_TURN_VISITS;
    enum filled filled = FILLED_MORE;
    l->go_on = step_gzip;
    /* The buffer of other looks must stay as it is until it is compressed: one fill at a time. */
    do {
        if (put_some(l, &visits, &filled) < 0 || filled == FILLED_ERROR) {
            fail(l);
            return;
        }
    } while (filled == FILLED_MORE && is_slices(l) && vg_gzip_pending(l->gzip) < VG_GZIP_PIECE);
    l->is_sent = filled == FILLED_ALL;
    if (filled == FILLED_PAGE && vg_gzip_pending(l->gzip) == 0) {
        vg_list_read_more(l);
    } else if (filled == FILLED_TURN && vg_gzip_pending(l->gzip) == 0) {
        vg_list_post(l, step_gzip);
    } else {
        l->is_in_gzip = true;
        vg_gzip_run(l->gzip, l->is_sent);
    }
}

/* ---- starting ---- */

/* A small list in another look is made whole: it then leaves with its length too. */
static void send_small_text(struct vg_lister *l)
{
    struct vg_buf json = {0};
    uint32_t visits = UINT32_MAX;
    const struct vg_rec *rec;
    int r = vg_buf_append_slice(&json, l->head);
    while (r == 0 && (rec = next_item(l, &visits))) {
        struct vg_rec *own = NULL;
        if (l->n_sent++)
            r = vg_buf_append_byte(&json, ',');
        if (r == 0)
            r = take_version(l, rec, &own);
        if (r != 0)
            break;
        r = append_json(l, own, &visits, &json);
        vg_rec_unref(own);
    }
    if (r == 0)
        r = vg_buf_append(&json, "]}", 2);
    struct vg_api_call *call = l->call;
    if (r < 0) {
        vg_buf_done(&json);
        fail(l);
        return;
    }
    vg_list_release(l);
    vg_respond_json(call, 200, &json);
}

void vg_list_send(struct vg_lister *l)
{
    const struct vg_media *m = &l->call->ask->media;
    if (l->is_small && !is_slices(l) && !vg_list_is_protobuf(l)) {
        send_small_text(l);
        return;
    }
    /* Sizing counted one for each item. */
    uint64_t commas = l->n_items && !vg_list_is_protobuf(l) ? 1 : 0;
    struct vg_head_opts opts = {
        .code = 200,
        .content_type = vg_media_content_type(m),
        .length = l->is_small ? l->head.n + l->n_bytes - commas + tail_of(l).n : VG_HTTP_STREAMED,
        .is_gzip = m->wants_gzip && !l->is_small};
    int r = vg_respond_head_opts(l->call, &opts);
    if (r < 0) {
        vg_list_finish(l);
        return;
    }
    l->is_head_sent = true;
    if (opts.is_gzip && vg_gzip_new(l->call->loop->loop, on_compressed, l, &l->gzip) < 0) {
        fail(l);
        return;
    }
    l->go_on = l->gzip ? step_gzip : step;
    l->go_on(l);
}
