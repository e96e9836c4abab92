/* source.c - the reflector that feeds an informer, and a new one when something was lost. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "informer_int.h"

/* Memory was short: as long as the first step of a reflector's backoff. */
#define RESTART_NS (800 * VG_NS_PER_MS)

static size_t text_bytes(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

static const char *copy_text(char **at, const char *s)
{
    size_t n = text_bytes(s);
    char *copy = *at;
    if (!s)
        return NULL;
    memcpy(copy, s, n);
    *at += n;
    return copy;
}

int vg_source_init(struct vigil_informer *i, const struct vigil_informer_opts *opts)
{
    struct vigil_informer_opts *o = &i->opts;
    memcpy(o, opts, VG_MIN(opts->size, sizeof(*o))); /* of an older program: shorter */
    o->size = sizeof(*o);
    i->texts = vg_malloc(text_bytes(o->ns) + text_bytes(o->label_selector) +
                         text_bytes(o->field_selector) + 1);
    if (!i->texts)
        return -ENOMEM;
    char *at = i->texts;
    o->ns = copy_text(&at, o->ns);
    o->label_selector = copy_text(&at, o->label_selector);
    o->field_selector = copy_text(&at, o->field_selector);
    return 0;
}

int vg_source_start(struct vigil_informer *i)
{
    struct vigil_sink sink = vg_informer_sink(i);
    if (i->is_unfed)
        return 0;
    int r = vg_reflector_new(i->c, &i->opts, &sink, i->tuning, &i->reflector, NULL);
    return r < 0 ? r : vigil_reflector_start(i->reflector);
}

static void on_restart(struct vg_timer *t)
{
    struct vigil_informer *i = VG_CONTAINER_OF(t, struct vigil_informer, restart);
    vigil_reflector_free(vg_steal(i->reflector));
    i->is_full = false;
    if (vg_source_start(i) < 0)
        vg_source_restart(i);
}

void vg_source_restart(struct vigil_informer *i)
{
    if (!i->is_stopped)
        vg_timer_start(i->loop, &i->restart, RESTART_NS, on_restart);
}

void vg_source_lost(struct vigil_informer *i, int code)
{
    struct vigil_error err;
    vg_error_set(&err, code, "an event is lost, all is listed again: %s", vg_err_text(code));
    vg_source_restart(i);
    if (i->opts.on_error)
        i->opts.on_error(i->opts.arg, &err);
}

void vg_source_resume(struct vigil_informer *i)
{
    if (i->reflector)
        vg_reflector_resume(i->reflector);
}

void vg_source_stop(struct vigil_informer *i)
{
    vg_timer_stop(i->loop, &i->restart);
    vigil_reflector_free(vg_steal(i->reflector));
}
