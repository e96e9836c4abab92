/* table.c - aligned lines of cells. */
#include <errno.h>
#include <stdio.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "table.h"

void vg_table_init(struct vg_table *t, unsigned columns)
{
    assert(columns > 0 && columns <= VG_TABLE_COLUMNS_MAX);
    *t = (struct vg_table){.columns = columns};
}

void vg_table_done(struct vg_table *t)
{
    vg_buf_done(&t->text);
    vg_free(t->cells);
    *t = (struct vg_table){.columns = t->columns};
}

void vg_table_clear(struct vg_table *t)
{
    vg_buf_clear(&t->text);
    t->n = 0;
    t->err = 0;
}

/* ---- cells ---- */

/* Controls (C0, DEL, C1), and what turns the direction of text or hides in it. */
static bool is_safe(uint32_t code)
{
    return code >= 0x20 && !(code >= 0x7f && code <= 0x9f) && code != 0xad && code != 0x61c &&
           !(code >= 0x200b && code <= 0x200f) && !(code >= 0x2028 && code <= 0x202e) &&
           !(code >= 0x2060 && code <= 0x206f) && code != 0xfeff;
}

/* How many places a safe character takes; one that the locale does not know is taken to be plain.
 */
static unsigned places(uint32_t code)
{
    int n = code < 0x80 ? 1 : wcwidth((wchar_t)code);
    return n < 0 ? 1 : (unsigned)n;
}

int vg_table_safe(struct vg_buf *out, struct vg_slice s, unsigned *ret_width)
{
    unsigned width = 0;
    while (s.n) {
        uint32_t code = 0;
        size_t n = vg_utf8_next(s, &code);
        bool is_good = n && is_safe(code);
        int r = is_good ? vg_buf_append(out, s.p, n) : vg_buf_append_byte(out, '?');
        if (r < 0)
            return r;
        width += is_good ? places(code) : 1;
        n = n ? n : 1;
        s = (struct vg_slice){s.p + n, s.n - n};
    }
    *ret_width = width;
    return 0;
}

static int make_room(struct vg_table *t)
{
    if (t->n < t->cap)
        return 0;
    size_t cap = t->cap ? t->cap * 2 : 64;
    void *cells = vg_reallocarray(t->cells, cap, sizeof t->cells[0]);
    if (!cells)
        return -ENOMEM;
    t->cells = cells;
    t->cap = cap;
    return 0;
}

void vg_table_put(struct vg_table *t, struct vg_slice text)
{
    struct vg_table_cell cell = {.at = t->text.n};
    if (t->err < 0)
        return;
    t->err = make_room(t);
    if (t->err == 0)
        t->err = vg_table_safe(&t->text, text, &cell.width);
    if (t->err < 0)
        return;
    cell.n = t->text.n - cell.at;
    unsigned *width = &t->widths[t->n % t->columns];
    *width = VG_MAX(*width, cell.width);
    t->cells[t->n++] = cell;
}

void vg_table_put_str(struct vg_table *t, const char *text)
{
    vg_table_put(t, vg_slice_str(text));
}

void vg_table_printf(struct vg_table *t, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    vg_table_put_str(t, text);
}

size_t vg_table_rows(const struct vg_table *t)
{
    return t->n / t->columns;
}

/* ---- lines ---- */

static int put_spaces(struct vg_buf *out, unsigned n)
{
    return vg_buf_printf(out, "%*s", (int)n, "");
}

/* What of a cell fits into `room` places; *ret_places is how many it takes. */
static int put_cut(struct vg_buf *out, struct vg_slice s, unsigned room, unsigned *ret_places)
{
    unsigned used = 0;
    size_t n = 0;
    while (n < s.n) {
        uint32_t code = 0;
        size_t len = vg_utf8_next(vg_slice(s.p + n, s.n - n), &code);
        unsigned more = places(code);
        if (used + more > room)
            break;
        used += more;
        n += VG_MAX(len, (size_t)1);
    }
    *ret_places = used;
    return vg_buf_append(out, s.p, n);
}

int vg_table_line(const struct vg_table *t, size_t row, unsigned limit, struct vg_buf *out)
{
    unsigned at = 0, gap = 0; /* where the line is, and the spaces that are owed */
    int r = 0;
    limit = limit ? limit : UINT32_MAX;
    for (unsigned c = 0; c < t->columns && r == 0; c++) {
        const struct vg_table_cell *cell = &t->cells[row * t->columns + c];
        if (cell->width && at + gap < limit) {
            unsigned used = 0;
            r = put_spaces(out, gap);
            if (r == 0)
                r = put_cut(out, vg_slice(t->text.p + cell->at, cell->n), limit - at - gap, &used);
            if (used < cell->width) /* cut: nothing comes behind it */
                return r;
            at += gap + used;
            gap = 0;
        }
        gap += t->widths[c] + VG_TABLE_GAP - cell->width;
    }
    return r;
}
