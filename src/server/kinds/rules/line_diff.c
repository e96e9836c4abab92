/* line_diff.c - the unified diff of two texts, as difflib makes it: the longest run of equal lines,
 * the earliest of several, and then the same before and behind it; see go_struct.h. Left out: what
 * difflib does with lines that are very frequent in texts of 200 lines and more. */
#include <errno.h>

#include "base/buf.h"
#include "base/map.h"
#include "go_struct.h"
#include "json/write.h"

#define AROUND 3u

struct lines {
    struct vg_slice *v;
    uintptr_t *id; /* equal lines have equal ones */
    uint32_t n;
};

/* A run of n equal lines. */
struct run {
    uint32_t a, b, n;
};

struct diff {
    struct lines a, b;
    uint32_t *here, *before; /* lengths of runs that end at each line of b; one more than it has */
    struct run *runs;        /* in order; where both end, an empty one when they end differently */
    uint32_t n;
};

/* ---- lines ---- */

static int split(struct vg_arena *arena, struct vg_slice text, struct lines *ret)
{
    size_t n = 1;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    if (n > VG_GO_DIFF_LINES_MAX)
        return VIGIL_E_TOO_LARGE;
    ret->v = vg_arena_array(arena, struct vg_slice, n);
    ret->id = vg_arena_array(arena, uintptr_t, n);
    ret->n = 0;
    if (!ret->v || !ret->id)
        return -ENOMEM;
    for (size_t from = 0, i = 0; i <= text.n; i++)
        if (i == text.n || text.p[i] == '\n') {
            size_t blanks = 0;
            while (from + blanks < i && text.p[from + blanks] == ' ')
                blanks++;
            from += blanks / 2;
            ret->v[ret->n++] = vg_slice(text.p + from, i - from);
            from = i + 1;
        }
    return 0;
}

static int number(struct vg_map *ids, struct lines *l)
{
    int err = 0;
    for (uint32_t i = 0; i < l->n && err >= 0; i++) {
        l->id[i] = (uintptr_t)vg_map_get(ids, l->v[i]);
        if (l->id[i] == 0) {
            l->id[i] = vg_map_count(ids) + 1;
            err = vg_map_put(ids, l->v[i], (void *)l->id[i], NULL);
        }
    }
    return err;
}

/* ---- runs ---- */

static struct run longest(struct diff *d, uint32_t alo, uint32_t ahi, uint32_t blo, uint32_t bhi)
{
    struct run best = {alo, blo, 0};
    memset(d->before, 0, (d->b.n + 1) * sizeof *d->before);
    for (uint32_t i = alo; i < ahi; i++) {
        memset(d->here, 0, (d->b.n + 1) * sizeof *d->here);
        for (uint32_t j = blo; j < bhi; j++) {
            if (d->a.id[i] != d->b.id[j])
                continue;
            uint32_t n = d->here[j + 1] = d->before[j] + 1;
            if (n > best.n)
                best = (struct run){i + 1 - n, j + 1 - n, n};
        }
        uint32_t *swap = d->here;
        d->here = d->before;
        d->before = swap;
    }
    return best;
}

static bool ends_at(const struct run *r, uint32_t a, uint32_t b)
{
    return r->a + r->n == a && r->b + r->n == b;
}

/* In order; each call finds at least one line or ends, so depth is bounded by the lines. */
static void find_runs(struct diff *d, uint32_t alo, uint32_t ahi, uint32_t blo, uint32_t bhi)
{
    struct run r = longest(d, alo, ahi, blo, bhi);
    if (r.n == 0)
        return;
    if (alo < r.a && blo < r.b)
        find_runs(d, alo, r.a, blo, r.b);
    if (d->n && ends_at(&d->runs[d->n - 1], r.a, r.b))
        d->runs[d->n - 1].n += r.n;
    else
        d->runs[d->n++] = r;
    if (r.a + r.n < ahi && r.b + r.n < bhi)
        find_runs(d, r.a + r.n, ahi, r.b + r.n, bhi);
}

/* ---- printing ---- */

static int put_lines(struct vg_buf *out, char mark, const struct lines *l, uint32_t from,
                     uint32_t to)
{
    int err = 0;
    for (uint32_t i = from; i < to && err == 0; i++) {
        err = vg_buf_append_byte(out, mark);
        if (err == 0)
            err = vg_buf_append_slice(out, l->v[i]);
        if (err == 0)
            err = vg_buf_append_byte(out, '\n');
    }
    return err;
}

static int put_range(struct vg_buf *out, char mark, uint32_t from, uint32_t to)
{
    if (to - from == 1)
        return vg_buf_printf(out, " %c%u", mark, from + 1);
    return vg_buf_printf(out, " %c%u,%u", mark, from + (to > from), to - from);
}

/* Changes from the end of run i to the start of run k + 1, with what is equal between them. */
static int put_hunk(struct vg_buf *out, const struct diff *d, struct run start, uint32_t i,
                    uint32_t k)
{
    const struct run *end = &d->runs[k];
    uint32_t behind = end->n < AROUND ? end->n : AROUND;
    uint32_t ahead = start.n < AROUND ? start.n : AROUND;
    uint32_t a = start.a + start.n - ahead, b = start.b + start.n - ahead;
    int err = vg_buf_append(out, "@@", 2);
    if (err == 0)
        err = put_range(out, '-', a, end->a + behind);
    if (err == 0)
        err = put_range(out, '+', b, end->b + behind);
    if (err == 0)
        err = vg_buf_append(out, " @@\n", 4);
    if (err == 0)
        err = put_lines(out, ' ', &d->a, a, a + ahead);
    for (struct run at = start; i <= k && err == 0; at = d->runs[i++]) {
        const struct run *next = &d->runs[i];
        err = put_lines(out, '-', &d->a, at.a + at.n, next->a);
        if (err == 0)
            err = put_lines(out, '+', &d->b, at.b + at.n, next->b);
        if (err == 0)
            err = put_lines(out, ' ', &d->a, next->a, next->a + (i == k ? behind : next->n));
    }
    return err;
}

static int put(struct vg_buf *out, const struct diff *d)
{
    struct run start = {0};
    uint32_t i = 0;
    int err = 0;
    if (d->runs[0].a == 0 && d->runs[0].b == 0)
        start = d->runs[i++];
    while (i < d->n && err == 0) {
        uint32_t k = i;
        while (k + 1 < d->n && d->runs[k].n <= 2 * AROUND)
            k++;
        err = put_hunk(out, d, start, i, k);
        start = d->runs[k];
        i = k + 1;
    }
    return err;
}

static int diff_texts(struct vg_buf *out, struct vg_arena *arena, struct vg_slice old,
                      struct vg_slice now)
{
    struct diff d = {0};
    VG_AUTO(map) ids;
    vg_map_init(&ids, VG_MAP_BORROWS_KEYS);
    int err = split(arena, old, &d.a);
    if (err == 0)
        err = split(arena, now, &d.b);
    if (err == 0)
        err = number(&ids, &d.a);
    if (err >= 0)
        err = number(&ids, &d.b);
    if (err < 0)
        return err;
    size_t n = (size_t)d.a.n + d.b.n + 2;
    d.here = vg_arena_array(arena, uint32_t, n);
    d.before = vg_arena_array(arena, uint32_t, n);
    d.runs = vg_arena_array(arena, struct run, n);
    if (!d.here || !d.before || !d.runs)
        return -ENOMEM;
    find_runs(&d, 0, d.a.n, 0, d.b.n);
    if (d.n == 0 || !ends_at(&d.runs[d.n - 1], d.a.n, d.b.n))
        d.runs[d.n++] = (struct run){d.a.n, d.b.n, 0};
    return put(out, &d);
}

/* Indented by two blanks; split halves them, as the original has one. */
static int append_indented(struct vg_check *c, struct vg_buf *b, const char *group,
                           const char *type, const struct vg_json *v)
{
    struct vg_json *root = NULL;
    int err = vg_json_parse(c->arena, vg_go_struct_of(c, group, type, v), NULL, &root, NULL);
    return err < 0 ? err : vg_json_write(b, root, VG_JSON_INDENT | VG_JSON_ESCAPE_HTML);
}

struct vg_slice vg_go_diff(struct vg_check *c, const char *group, const char *type,
                           const struct vg_json *old, const struct vg_json *now)
{
    VG_AUTO(buf) a = {0};
    VG_AUTO(buf) b = {0};
    VG_AUTO(buf) out = {0};
    struct vg_slice ret = {0};
    int err = append_indented(c, &a, group, type, old);
    if (err == 0)
        err = append_indented(c, &b, group, type, now);
    if (err == 0)
        err = diff_texts(&out, c->arena, vg_buf_slice(&a), vg_buf_slice(&b));
    if (err == 0)
        err = vg_arena_keep(c->arena, vg_buf_slice(&out), &ret);
    c->errors->failed |= err < 0 && err != VIGIL_E_TOO_LARGE;
    return ret;
}
