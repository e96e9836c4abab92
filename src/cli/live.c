/* live.c - vigil watch on a terminal: a table that is drawn anew when something changes, and every
 * second for the ages. Rows are ordered by namespace, then name. Those that were added or changed
 * are lit for a moment; a deleted one is crossed out for as long, then it goes. */
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "print.h"

/* 2 s: long enough to see, short enough to mean "just now". */
#define LIT_NS (2 * VG_NS_PER_S)
/* 40 s: an informer tries at least every 30 s and tells each time that fails; when it tells nothing
 * for longer, it has succeeded. */
#define TROUBLE_NS (40 * VG_NS_PER_S)
/* 40 ms: changes that come in bursts are drawn 25 times a second at most. */
#define FRAME_MS 40

struct row {
    const struct vigil_object *o;
    enum vg_style style; /* VG_PLAIN: not lit */
    uint64_t until_ns;   /* lit until then */
};

struct live {
    struct vg_cli *cli;
    const struct vg_kind *kind;
    struct vg_columns columns;
    struct vg_table table, foot; /* foot: one cell */
    struct vg_buf frame, line;
    struct row *rows;
    size_t n, cap;
    size_t top; /* the first row on the screen */
    bool is_synced, is_stale;
    bool is_lost;                    /* the server is not reached */
    char trouble[VIGIL_MESSAGE_MAX]; /* "": none */
    uint64_t trouble_until_ns;
    int status; /* of the end; -1: not yet */
};

/* ---- rows ---- */

static int compare(const struct vigil_object *a, const struct vigil_object *b)
{
    int c = vg_slice_cmp(vg_cli_slice(vigil_object_namespace(a)),
                         vg_cli_slice(vigil_object_namespace(b)));
    return c ? c
             : vg_slice_cmp(vg_cli_slice(vigil_object_name(a)), vg_cli_slice(vigil_object_name(b)));
}

/* Where the object is, or belongs. */
static size_t place_of(const struct live *v, const struct vigil_object *o, bool *ret_is_there)
{
    size_t low = 0, high = v->n;
    *ret_is_there = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = compare(v->rows[mid].o, o);
        if (c == 0) {
            *ret_is_there = true;
            return mid;
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool make_place(struct live *v, size_t at)
{
    if (v->n == v->cap) {
        size_t cap = v->cap ? v->cap * 2 : 64;
        void *rows = vg_reallocarray(v->rows, cap, sizeof v->rows[0]);
        if (!rows)
            return false;
        v->rows = rows;
        v->cap = cap;
    }
    memmove(v->rows + at + 1, v->rows + at, (v->n - at) * sizeof v->rows[0]);
    v->rows[at] = (struct row){0};
    v->n++;
    return true;
}

static void set_row(struct live *v, const struct vigil_object *o, enum vg_style style)
{
    bool is_there;
    size_t at = place_of(v, o, &is_there);
    v->is_stale = true;
    v->trouble[0] = 0; /* the server is heard of again */
    if (!is_there && !make_place(v, at)) {
        v->status = vg_cli_no_memory();
        return;
    }
    struct row *row = &v->rows[at];
    vigil_object_unref(row->o);
    row->o = vigil_object_ref(o);
    row->style = style;
    row->until_ns = vg_clock_mono_ns(vg_clock_system()) + LIT_NS;
}

/* What is no longer lit is plain, or gone. The time until the next is; 0: none. */
static uint64_t put_out(struct live *v, uint64_t now)
{
    size_t kept = 0;
    uint64_t next = 0;
    if (v->trouble[0] && v->trouble_until_ns <= now)
        v->trouble[0] = 0;
    for (size_t i = 0; i < v->n; i++) {
        struct row row = v->rows[i];
        if (row.style != VG_PLAIN && row.until_ns <= now) {
            v->is_stale = true;
            if (row.style == VG_DELETED) {
                vigil_object_unref(row.o);
                continue;
            }
            row.style = VG_PLAIN;
        }
        if (row.style != VG_PLAIN && (!next || row.until_ns - now < next))
            next = row.until_ns - now;
        v->rows[kept++] = row;
    }
    v->n = kept;
    return next;
}

/* ---- what the informer tells ---- */

static void on_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    set_row(arg, o, is_initial ? VG_PLAIN : VG_ADDED);
}

static void on_update(void *arg, const struct vigil_object *before, const struct vigil_object *o)
{
    if (vg_cli_is_changed(before, o))
        set_row(arg, o, VG_CHANGED);
}

static void on_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    (void)is_tombstone;
    set_row(arg, o, VG_DELETED);
}

static void on_synced(void *arg)
{
    struct live *v = arg;
    v->is_synced = v->is_stale = true;
}

static void on_error(void *arg, const struct vigil_error *err)
{
    struct live *v = arg;
    if (err->code == VIGIL_E_EXPIRED || v->status >= 0 || (v->is_lost && v->is_synced))
        return;
    v->is_stale = true;
    snprintf(v->trouble, sizeof v->trouble, "%s",
             err->message[0] ? err->message : vigil_code_text(err->code));
    v->trouble_until_ns = vg_clock_mono_ns(vg_clock_system()) + TROUBLE_NS;
    if (!v->is_synced) {
        vg_terminal_leave(&v->cli->terminal);
        v->status = vg_cli_complain(v->cli, err);
    }
}

static void on_lost(void *arg, const struct vigil_error *err)
{
    struct live *v = arg;
    v->is_stale = v->is_lost = true;
    snprintf(v->trouble, sizeof v->trouble, "%s", err->message);
    v->trouble_until_ns = UINT64_MAX;
}

static void on_back(void *arg)
{
    struct live *v = arg;
    v->is_stale = true;
    v->is_lost = false;
    v->trouble[0] = 0;
}

/* ---- drawing ---- */

/* A screen of one or two lines has rows first, then the head, then the foot: what does not fit
 * would scroll it. */
static bool has_head(const struct live *v)
{
    return v->cli->terminal.rows >= 2;
}

static bool has_foot(const struct live *v)
{
    return v->cli->terminal.rows >= 3;
}

static size_t page_of(const struct live *v)
{
    return v->cli->terminal.rows - has_head(v) - has_foot(v);
}

static void scroll(struct live *v)
{
    size_t page = page_of(v), last = v->n > page ? v->n - page : 0;
    if (!vg_terminal_scroll(&v->cli->terminal, page, last, &v->top))
        v->status = VG_EXIT_OK;
    v->cli->terminal.key = VG_KEY_NONE; /* a key counts once */
    v->top = VG_MIN(v->top, last);
}

static int put_foot(struct live *v, size_t shown)
{
    VG_AUTO(buf) text = {0};
    vg_buf_clear(&v->line);
    vg_table_clear(&v->foot);
    int r = v->is_synced ? vg_buf_printf(&text, "%zu %s", v->n, v->kind->r.plural)
                         : vg_buf_printf(&text, "listing %s ...", v->kind->r.plural);
    if (r == 0 && shown < v->n)
        r = vg_buf_printf(&text, ", %zu to %zu shown", v->top + 1, v->top + shown);
    if (r == 0 && v->trouble[0])
        r = vg_buf_printf(&text, "   ! trying again: %s", v->trouble);
    else if (r == 0)
        r = vg_buf_printf(&text, "   q ends");
    vg_table_put(&v->foot, vg_buf_slice(&text));
    if (r == 0)
        r = v->foot.err;
    if (r == 0)
        r = vg_table_line(&v->foot, 0, v->cli->terminal.columns - 1, &v->line);
    return r < 0 ? r
                 : vg_frame_line(&v->frame, v->trouble[0] ? VG_CHANGED : VG_DIM,
                                 vg_buf_slice(&v->line), true);
}

static int put_row(struct live *v, size_t i, enum vg_style style, bool is_last)
{
    vg_buf_clear(&v->line);
    int r = vg_table_line(&v->table, i, v->cli->terminal.columns - 1, &v->line);
    return r < 0 ? r : vg_frame_line(&v->frame, style, vg_buf_slice(&v->line), is_last);
}

static int draw(struct live *v)
{
    size_t shown = VG_MIN(v->n - v->top, page_of(v));
    int64_t now_s = vg_clock_wall_ms(vg_clock_system()) / 1000;
    vg_table_clear(&v->table);
    vg_columns_head(&v->columns, &v->table);
    for (size_t i = 0; i < shown; i++)
        vg_columns_row(&v->columns, &v->table, v->rows[v->top + i].o, now_s);
    int r = v->table.err ? v->table.err : vg_frame_begin(&v->frame);
    if (r == 0 && has_head(v))
        r = put_row(v, 0, VG_HEAD, !has_foot(v) && !shown);
    for (size_t i = 0; i < shown && r == 0; i++)
        r = put_row(v, i + 1, v->rows[v->top + i].style, !has_foot(v) && i + 1 == shown);
    if (r == 0 && has_foot(v))
        r = put_foot(v, shown);
    if (r == 0)
        r = vg_frame_end(&v->frame);
    return r < 0 ? r : vg_write_all(STDOUT_FILENO, vg_buf_slice(&v->frame));
}

/* ---- the watch ---- */

/* Until the next second of the clock, when ages change, or the next row is lit no more. */
static int rest_ms(const struct live *v, uint64_t lit_ns)
{
    int ms = 1000 - (int)(vg_clock_wall_ms(vg_clock_system()) % 1000);
    int lit = (int)((lit_ns + VG_NS_PER_MS - 1) / VG_NS_PER_MS);
    if (v->is_stale)
        return FRAME_MS;
    return lit_ns ? VG_MIN(ms, lit) : ms;
}

static int follow(struct live *v)
{
    struct vg_terminal *t = &v->cli->terminal;
    uint64_t drawn_ns = 0;
    int64_t drawn_s = 0;
    while (v->status < 0) {
        uint64_t now = vg_clock_mono_ns(vg_clock_system()), lit_ns = put_out(v, now);
        int64_t now_s = vg_clock_wall_ms(vg_clock_system()) / 1000;
        if ((v->is_stale && now - drawn_ns >= FRAME_MS * VG_NS_PER_MS) || now_s != drawn_s) {
            scroll(v);
            v->is_stale = false;
            drawn_ns = now;
            drawn_s = now_s;
            if (draw(v) < 0)
                return VG_EXIT_FAILED;
        }
        unsigned saw = vg_terminal_turn(t, v->cli->client, rest_ms(v, lit_ns));
        if (saw & VG_SAW_INTERRUPT)
            return VG_EXIT_INTERRUPTED;
        if (saw & VG_SAW_CHANGE) {
            scroll(v);
            v->is_stale = true;
            drawn_ns = 0; /* a person acts: at once */
        }
    }
    return v->status;
}

static int watch(struct live *v, struct vigil_informer *informer)
{
    struct vigil_error err;
    struct vigil_handler h = {.size = sizeof h,
                              .on_add = on_add,
                              .on_update = on_update,
                              .on_delete = on_delete,
                              .on_synced = on_synced,
                              .arg = v};
    if (vigil_informer_add_handler(informer, &h, NULL, &err) < 0)
        return vg_cli_complain(v->cli, &err);
    if (vigil_informer_start(informer) < 0)
        return vg_cli_no_memory();
    if (vg_terminal_enter(&v->cli->terminal) < 0) {
        fputs("vigil: cannot use this terminal; pipe the output through cat for plain lines\n",
              stderr);
        return VG_EXIT_FAILED;
    }
    int status = follow(v);
    vg_terminal_leave(&v->cli->terminal);
    return status;
}

int vg_live_watch(struct vg_cli *cli, const struct vg_kind *kind)
{
    struct live v = {.cli = cli, .kind = kind, .status = -1};
    char selector[VG_CLI_SELECTOR_SIZE];
    struct vigil_informer_opts opts;
    struct vigil_informer *informer;
    struct vigil_error err;
    if (!vg_cli_informer_opts(cli, kind, selector, &opts)) {
        fputs("vigil: the name and the selector together are too long\n", stderr);
        return VG_EXIT_USAGE;
    }
    opts.on_error = on_error;
    opts.on_lost = on_lost;
    opts.on_back = on_back;
    opts.arg = &v;
    if (vigil_informer_new(cli->client, &opts, &informer, &err) < 0)
        return vg_cli_complain(cli, &err);
    v.columns = vg_columns_of(&kind->r, cli->args.all_namespaces && kind->r.namespaced,
                              cli->args.output == VG_OUT_WIDE);
    vg_table_init(&v.table, vg_columns_count(&v.columns));
    vg_table_init(&v.foot, 1);
    int status = watch(&v, informer);
    vigil_informer_free(informer);
    for (size_t i = 0; i < v.n; i++)
        vigil_object_unref(v.rows[i].o);
    vg_free(v.rows);
    vg_table_done(&v.table);
    vg_table_done(&v.foot);
    vg_buf_done(&v.frame);
    vg_buf_done(&v.line);
    return status;
}
