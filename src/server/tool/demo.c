/* demo.c - demo: what the store does, in about ten lines with numbers measured here and now.
 * Every line is printed after what it says was checked; when a check fails the demo fails. */
#include "demo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"

/* ---- saying ---- */

static bool wants_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

void vg_demo_say(const struct vg_demo *d, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("  %s%-9s%s ", d->has_colour ? "\033[1;32m" : "", name, d->has_colour ? "\033[0m" : "");
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    fflush(stdout);
}

const char *vg_demo_number(uint64_t n, char text[VG_DEMO_NUMBER_SIZE])
{
    char *at = text + VG_DEMO_NUMBER_SIZE - 1;
    int digits = 0;
    *at = '\0';
    do {
        if (digits && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + n % 10);
        n /= 10;
        digits++;
    } while (n);
    return at;
}

static void say_what_next(const struct vg_demo *d)
{
    const char *p = d->o->program;
    printf("\nAll of it was checked. The store is yours to play with:\n"
           "  %s --dir %s list --keys-only --limit 3\n"
           "  %s --dir %s get --pretty " VG_DEMO_PREFIX "0000007\n"
           "  %s --dir %s watch --no-wait /registry/pods/killed/\n"
           "  %s --help\n",
           p, d->store, p, d->store, p, d->store, p);
}

/* ---- the whole ---- */

static int make_room(struct vg_demo *d, struct vg_status *reterr_status)
{
    d->acked = vg_calloc(VG_DEMO_OBJECTS, sizeof *d->acked);
    d->seen = vg_calloc(VG_DEMO_OBJECTS, sizeof *d->seen);
    d->waited = vg_calloc(VG_DEMO_OBJECTS, sizeof *d->waited);
    if (!d->acked || !d->seen || !d->waited)
        return vg_fail(reterr_status, -ENOMEM, "%s", vg_err_text(-ENOMEM));
    return 0;
}

static int step_open(struct vg_demo *d, struct vg_status *reterr_status)
{
    struct vg_session_opts opts = {
        .dir = d->store,
        .may_create = true,
        .unsafe_no_fsync = d->o->is_unsafe_no_fsync,
    };
    int r = vg_session_open(&d->s, &opts, reterr_status);
    if (r == 0)
        vg_demo_say(d, "open", "made a new store in %.1f ms", (double)d->s.open_ns / 1e6);
    return r;
}

static int run_steps(struct vg_demo *d, struct vg_status *reterr_status)
{
    static int (*const steps[])(struct vg_demo *, struct vg_status *) = {
        step_open, vg_demo_write, vg_demo_history, vg_demo_conflict, vg_demo_kill, vg_demo_backup,
    };
    int r = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(steps) && r == 0; i++)
        r = steps[i](d, reterr_status);
    return r;
}

int vg_cmd_demo(const struct vg_options *o, struct vg_status *reterr_status)
{
    struct vg_demo d = {.o = o, .has_colour = wants_colour(), .lock_fd = -1};
    int r = make_room(&d, reterr_status);
    if (r == 0)
        r = vg_demo_dir_take(&d, reterr_status);
    if (r == 0) {
        printf("vigil's embedded store, in %s:\n\n", d.dir);
        r = run_steps(&d, reterr_status);
    }
    vg_session_close(&d.s);
    if (r == 0)
        say_what_next(&d);
    vg_demo_dir_release(&d);
    vg_free(d.acked);
    vg_free(d.seen);
    vg_free(d.waited);
    if (r == 0 && fflush(stdout) != 0)
        r = vg_fail(reterr_status, -EIO, "cannot write to standard output");
    return r;
}
