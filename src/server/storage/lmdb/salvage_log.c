/* salvage_log.c - see salvage.h: the groups of the write-ahead log, good ones wherever they are. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "files.h"
#include "salvage.h"

/* Records of a group whose checksum is right; what the base has is left out. */
static int take_group(struct vg_salvage *s, struct vg_slice in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct vg_rec *rec;
        size_t used;
        int r = vg_rec_decode(in, &used, &rec);
        if (r == -ENOMEM)
            return r;
        if (r < 0)
            return 0;
        if (rec->rev > s->applied)
            r = vg_salvage_add(s, vg_slice(in.p, used), rec, false);
        vg_rec_unref(rec);
        if (r < 0)
            return r;
        in = vg_slice(in.p + used, in.n - used);
    }
    return 0;
}

static vg_rev newest(const struct vg_salvage *s)
{
    return s->n_items ? VG_MAX(s->items[s->n_items - 1].rev, s->applied) : s->applied;
}

/* A damaged group in the place of the next one: the records up to the first that does not read back
 * are ours, because nothing but records that read back lies before them. A revision is taken whole
 * or not at all. */
static int take_broken_group(struct vg_salvage *s, const struct wal_file *f, size_t at)
{
    struct wal_frame h;
    if (f->n - at < sizeof h)
        return 0;
    memcpy(&h, f->p + at, sizeof h);
    if (le32toh(h.magic) != WAL_FRAME_MAGIC || le64toh(h.gen) != f->head.gen)
        return 0;
    struct vg_slice in = vg_slice(f->p + at + sizeof h, f->n - at - sizeof h);
    size_t whole = s->n_items; /* items up to the last whole revision */
    vg_rev last = newest(s);
    int r = 0;
    for (struct vg_rec *rec; r == 0;) {
        size_t used;
        r = vg_rec_decode(in, &used, &rec);
        if (r < 0)
            break;
        bool follows = rec->rev == last || rec->rev == last + 1;
        if (rec->rev > last)
            whole = s->n_items;
        if (follows)
            r = vg_salvage_add(s, vg_slice(in.p, used), rec, false);
        last = rec->rev;
        vg_rec_unref(rec);
        if (!follows)
            break;
        in = vg_slice(in.p + used, in.n - used);
    }
    if (r == -ENOMEM)
        return r;
    struct vg_slice key;
    vg_rev rev;
    if (vg_rec_guess(in, &key, &rev) && (rev == last || rev == last + 1))
        vg_salvage_report(s,
                          "wal-%u: the change at revision %" PRIu64
                          ", perhaps of key %.*s, does not read back",
                          f->which, rev, (int)VG_MIN(key.n, (size_t)VG_STORAGE_KEY_MAX), key.p);
    s->n_items = whole;
    return 0;
}

/* Behind the end only whole groups count: their checksum is salted, so they are ours. */
static int take_generation(struct vg_salvage *s, const struct wal_file *f)
{
    struct wal_frame frame;
    bool is_in_order = true;
    for (size_t at = VG_WAL_PAGE; at < f->n;) {
        bool is_whole = vg_wal_frame_at(f, s->salt, f->head.gen, at, &frame);
        int r = 0;
        if (is_whole)
            r = take_group(s, vg_slice(f->p + at + sizeof frame, frame.payload_len), frame.n);
        else if (is_in_order)
            r = take_broken_group(s, f, at);
        if (r < 0)
            return r;
        is_in_order &= is_whole;
        at += is_whole ? VG_ALIGN_UP(sizeof frame + frame.payload_len, VG_WAL_PAGE) : VG_WAL_PAGE;
    }
    return 0;
}

/* The header is gone: its generation is the one that its first whole group names. */
static void guess_head(struct vg_salvage *s, struct wal_file *f)
{
    struct wal_frame frame;
    for (size_t at = VG_WAL_PAGE; at + sizeof frame <= f->n; at += VG_WAL_PAGE) {
        memcpy(&frame, f->p + at, sizeof frame);
        uint64_t gen = le64toh(frame.gen);
        if (le32toh(frame.magic) == WAL_FRAME_MAGIC &&
            vg_wal_frame_at(f, s->salt, gen, at, &frame)) {
            f->head.gen = gen;
            return;
        }
    }
}

/* Where the log begins, and which revisions were never given: a generation says what it follows. */
static void note_head(struct vg_salvage *s, const struct wal_file *f)
{
    if (!f->has_head || f->head.base <= f->head.prev_last)
        return;
    if (f->head.prev_last == s->applied)
        s->first = f->head.base;
    else {
        s->skip_from = f->head.prev_last;
        s->skip_to = f->head.base;
    }
}

/* The salt is in the header too; a header is believed by its checksum. */
static void find_salt(struct vg_salvage *s)
{
    uint64_t salt;
    vg_rev mark;
    if (vg_durable_peek(s->dirfd, &salt, &mark) == 0) {
        if (!s->has_salt)
            s->salt = salt;
        s->has_salt = true;
        s->has_mark = salt == s->salt;
        s->mark = s->has_mark ? mark : 0;
    }
    for (unsigned i = 0; i < 2 && !s->has_salt; i++) {
        struct wal_head h;
        if (s->logs[i].n < sizeof h)
            continue;
        memcpy(&h, s->logs[i].p, sizeof h);
        s->has_salt =
            memcmp(h.magic, WAL_MAGIC, sizeof h.magic) == 0 && vg_wal_head_crc(&h) == h.crc;
        s->salt = le64toh(h.salt);
    }
}

int vg_salvage_log(struct vg_salvage *s)
{
    for (unsigned i = 0; i < 2; i++) {
        int r = vg_wal_map(&s->logs[i], s->dirfd, i);
        if (r < 0 && r != -ENOENT)
            return r;
    }
    find_salt(s);
    s->first = s->applied;
    if (!s->has_salt)
        return 0;
    for (unsigned i = 0; i < 2; i++) {
        vg_wal_read_head(&s->logs[i], s->salt);
        note_head(s, &s->logs[i]);
        if (!s->logs[i].has_head)
            guess_head(s, &s->logs[i]);
    }
    /* The older generation first: the next one continues it. */
    unsigned older = s->logs[0].head.gen > s->logs[1].head.gen;
    int r = take_generation(s, &s->logs[older]);
    if (r == 0)
        r = take_generation(s, &s->logs[!older]);
    vg_salvage_sort(s);
    return r;
}
