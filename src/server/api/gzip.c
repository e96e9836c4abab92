/* gzip.c - see gzip.h. The worker is one of libuv's pool; while a run is under way the struct
 * belongs to it (is_running), and what the owner wants meanwhile is noted and done when it comes
 * back. */
#include "gzip.h"

#include <assert.h>
#include <errno.h>
#include <isa-l/igzip_lib.h>

#include "base/alloc.h"
#include "loop/loop.h"

#define COPY_MAX 256u
/* Compressed bytes appear in steps of this. */
#define OUT_STEP ((size_t)64 * 1024)

/* A slice of the piece: either elsewhere, or in `copies` at an offset (which may move as it grows).
 */
struct part {
    const char *p; /* NULL: copied */
    size_t at, n;
};

struct vg_gzip {
    uv_work_t work;
    struct vg_loop *loop;
    vg_gzip_done_fn *done;
    void *arg;
    void (*released)(void *arg);
    void *released_arg;
    struct vg_buf parts, copies, out;
    size_t pending;
    int err;
    bool is_running, is_last, is_freed;
    struct isal_zstream stream;
    uint8_t level[ISAL_DEF_LVL1_DEFAULT];
};

static void stream_init(struct isal_zstream *s, uint8_t *level)
{
    isal_deflate_init(s);
    s->gzip_flag = IGZIP_GZIP;
    s->level = 1;
    s->level_buf = level;
    s->level_buf_size = ISAL_DEF_LVL1_DEFAULT;
    s->flush = NO_FLUSH;
}

int vg_gzip_new(struct vg_loop *loop, vg_gzip_done_fn *done, void *arg, struct vg_gzip **ret_gzip)
{
    struct vg_gzip *g = vg_new(struct vg_gzip);
    if (!g)
        return -ENOMEM;
    g->loop = loop;
    g->done = done;
    g->arg = arg;
    g->work.data = g;
    vg_buf_init(&g->parts, 0);
    vg_buf_init(&g->copies, 0);
    vg_buf_init(&g->out, 0);
    stream_init(&g->stream, g->level);
    *ret_gzip = g;
    return 0;
}

static void release(struct vg_gzip *g)
{
    if (g->released)
        g->released(g->released_arg);
    vg_buf_done(&g->parts);
    vg_buf_done(&g->copies);
    vg_buf_done(&g->out);
    vg_free(g);
}

void vg_gzip_free(struct vg_gzip *g, void (*released)(void *arg), void *arg)
{
    if (!g) {
        if (released)
            released(arg);
        return;
    }
    g->released = released;
    g->released_arg = arg;
    g->is_freed = true;
    if (!g->is_running)
        release(g);
}

int vg_gzip_put(struct vg_gzip *g, const struct vg_slice *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct part part = {.p = v[i].p, .n = v[i].n};
        if (v[i].n <= COPY_MAX) {
            part = (struct part){.at = g->copies.n, .n = v[i].n};
            int r = vg_buf_append_slice(&g->copies, v[i]);
            if (r < 0)
                return r;
        }
        int r = vg_buf_append(&g->parts, &part, sizeof part);
        if (r < 0)
            return r;
        g->pending += v[i].n;
    }
    return 0;
}

size_t vg_gzip_pending(const struct vg_gzip *g)
{
    return g->pending;
}

/* Compress one run of bytes into `out`, which grows as needed. */
static int deflate_part(struct isal_zstream *s, struct vg_slice in, bool is_last,
                        struct vg_buf *out)
{
    s->next_in = (uint8_t *)(uintptr_t)in.p;
    s->avail_in = (uint32_t)in.n;
    s->end_of_stream = is_last;
    do {
        int r = vg_buf_reserve(out, OUT_STEP);
        if (r < 0)
            return r;
        s->next_out = (uint8_t *)out->p + out->n;
        s->avail_out = (uint32_t)OUT_STEP;
        if (isal_deflate(s) != COMP_OK)
            return VIGIL_E_INTERNAL;
        out->n += OUT_STEP - s->avail_out;
    } while (s->avail_out == 0 || s->avail_in > 0 ||
             (is_last && s->internal_state.state != ZSTATE_END));
    return 0;
}

static void on_worker(uv_work_t *work)
{
    struct vg_gzip *g = work->data;
    const struct part *parts = (const void *)g->parts.p;
    size_t n = g->parts.n / sizeof *parts;
    for (size_t i = 0; i < n && g->err == 0; i++) {
        struct vg_slice in =
            vg_slice(parts[i].p ? parts[i].p : g->copies.p + parts[i].at, parts[i].n);
        g->err = deflate_part(&g->stream, in, false, &g->out);
    }
    if (g->is_last && g->err == 0)
        g->err = deflate_part(&g->stream, vg_slice("", 0), true, &g->out);
}

static void on_back(uv_work_t *work, int status)
{
    struct vg_gzip *g = work->data;
    g->is_running = false;
    if (g->is_freed) {
        release(g);
        return;
    }
    vg_buf_clear(&g->parts);
    vg_buf_clear(&g->copies);
    g->pending = 0;
    g->done(g->arg, status < 0 ? status : g->err, vg_buf_slice(&g->out));
}

void vg_gzip_run(struct vg_gzip *g, bool is_last)
{
    assert(!g->is_running);
    vg_buf_clear(&g->out);
    g->is_last = is_last;
    g->is_running = true;
    /* Fails only without a work function. */
    (void)uv_queue_work(vg_loop_uv(g->loop), &g->work, on_worker, on_back);
}

int vg_gzip_whole(struct vg_buf *out, struct vg_slice body)
{
    struct isal_zstream *s = vg_malloc(sizeof *s + ISAL_DEF_LVL1_DEFAULT);
    if (!s)
        return -ENOMEM;
    stream_init(s, (uint8_t *)(s + 1));
    int r = 0;
    /* Lengths are 32 bits wide there. */
    for (size_t at = 0; at < body.n && r == 0; at += VG_GZIP_PIECE)
        r = deflate_part(s, vg_slice(body.p + at, VG_MIN(body.n - at, VG_GZIP_PIECE)), false, out);
    if (r == 0)
        r = deflate_part(s, vg_slice("", 0), true, out);
    vg_free(s);
    return r;
}
