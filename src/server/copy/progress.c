/* progress.c - see progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "out.h"

#define WIDTH 30
#define DRAW_NS 100000000u /* ten times in a second: a person sees no more */

static uint64_t now_ns(void)
{
    return vg_clock_mono_ns(vg_clock_system());
}

static void draw(struct vg_progress *p, uint64_t now)
{
    char size[VG_SIZE_TEXT_SIZE];
    uint64_t done = VG_MIN(p->done, p->total);
    int full = p->total ? (int)(done * WIDTH / p->total) : WIDTH;
    double seconds = (double)(now - p->began_ns) / 1e9;
    double left = done ? seconds * (double)(p->total - done) / (double)done : 0;
    fprintf(stderr, "\r%-9s [%.*s%.*s] %3d%%  %" PRIu64 " of %" PRIu64 " keys, %s", p->what, full,
            "##############################", WIDTH - full, "..............................",
            p->total ? (int)(done * 100 / p->total) : 100, p->done, p->total,
            vg_size_text(p->bytes, size));
    if (seconds > 1 && left >= 1)
        fprintf(stderr, ", %.0f s left", left);
    fputs("\033[K", stderr);
    (void)fflush(stderr);
}

void vg_progress_begin(struct vg_progress *p, const char *what, uint64_t total, bool is_quiet)
{
    *p = (struct vg_progress){
        .what = what,
        .total = total,
        .began_ns = now_ns(),
        .is_shown = !is_quiet && isatty(STDERR_FILENO) == 1,
    };
    if (p->is_shown)
        draw(p, p->began_ns);
}

void vg_progress_add(struct vg_progress *p, uint64_t done, uint64_t bytes)
{
    p->done += done;
    p->bytes += bytes;
    if (!p->is_shown)
        return;
    uint64_t now = now_ns();
    if (now - p->drawn_ns < DRAW_NS)
        return;
    p->drawn_ns = now;
    draw(p, now);
}

void vg_progress_end(struct vg_progress *p)
{
    if (!p->is_shown)
        return;
    fputs("\r\033[K", stderr);
    (void)fflush(stderr);
}
