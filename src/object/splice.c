/* splice.c - see splice.h. The canonical form sees to it that the revision always follows a comma
 * (canonical.c), so there is one way to write it. */
#include "splice.h"

#define REV_BEGIN ",\"resourceVersion\":\""

const char *vg_obj_change_name(enum vg_obj_change change)
{
    static const char *const names[] = {"", "ADDED", "MODIFIED", "DELETED"};
    return (unsigned)change < VG_ARRAY_LEN(names) ? names[change] : "";
}

static struct vg_slice frame_begin(enum vg_obj_change change)
{
    static const struct vg_slice begins[] = {
        [VG_OBJ_NONE] = {"", 0},
        [VG_OBJ_ADDED] = {"{\"type\":\"ADDED\",\"object\":", 25},
        [VG_OBJ_MODIFIED] = {"{\"type\":\"MODIFIED\",\"object\":", 28},
        [VG_OBJ_DELETED] = {"{\"type\":\"DELETED\",\"object\":", 27},
    };
    assert(change > VG_OBJ_NONE && change <= VG_OBJ_DELETED);
    return begins[change];
}

static size_t write_digits(uint64_t u, char *out)
{
    char reversed[20];
    size_t n = 0;
    do
        reversed[n++] = (char)('0' + u % 10);
    while (u /= 10);
    for (size_t i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    return n;
}

static struct vg_slice write_rev(struct vg_obj_splice *s, uint64_t rev)
{
    size_t n = sizeof REV_BEGIN - 1;
    memcpy(s->rev, REV_BEGIN, n);
    n += write_digits(rev, s->rev + n);
    s->rev[n++] = '"';
    return vg_slice(s->rev, n);
}

static void add(struct vg_obj_splice *s, struct vg_slice slice)
{
    s->v[s->n++] = slice;
}

/* From offset `from` of the value to its end, with the revision in its place. */
static void add_value(struct vg_obj_splice *s, const struct vg_obj_header *h, uint32_t from,
                      uint64_t rev)
{
    add(s, vg_slice(h->value + from, h->rev_at - from));
    add(s, write_rev(s, rev));
    add(s, vg_slice(h->value + h->rev_at, h->value_n - h->rev_at));
}

void vg_obj_splice_object(struct vg_obj_splice *s, const struct vg_obj_header *h, uint64_t rev)
{
    s->n = 0;
    add_value(s, h, 0, rev);
}

void vg_obj_splice_item(struct vg_obj_splice *s, const struct vg_obj_header *h, uint64_t rev)
{
    s->n = 0;
    add(s, VG_SLICE_LIT("{"));
    add_value(s, h, h->item_at, rev);
}

void vg_obj_splice_frame(struct vg_obj_splice *s, enum vg_obj_change change,
                         const struct vg_obj_header *h, uint64_t rev)
{
    s->n = 0;
    add(s, frame_begin(change));
    add_value(s, h, 0, rev);
    add(s, VG_SLICE_LIT("}\n"));
}

void vg_obj_splice_frame_of(struct vg_obj_splice *s, enum vg_obj_change change,
                            struct vg_slice body)
{
    s->n = 0;
    add(s, frame_begin(change));
    add(s, body);
    add(s, VG_SLICE_LIT("}\n"));
}

size_t vg_obj_splice_size(const struct vg_obj_splice *s)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += s->v[i].n;
    return n;
}

int vg_obj_splice_append(struct vg_buf *out, const struct vg_obj_splice *s)
{
    int err = vg_buf_reserve(out, vg_obj_splice_size(s));
    for (uint32_t i = 0; i < s->n && err == 0; i++) /* the room is there: none of these fails */
        err = vg_buf_append_slice(out, s->v[i]);
    return err;
}
