/* log.h - one line per event: level, component, a constant event name, key=value.
 *     vg_warn(L, "watch_expired", "rv=%" PRIu64 " user=%s", rev, user);
 * L is a const struct vg_log *, one per component, given to an object when it is made; NULL is a
 * log that is off. Library code knows nothing of where lines go: it calls the callback that L
 * carries. A component that is switched off costs one relaxed load per call; nothing here allocates
 * or fails.
 *
 * The text is a literal of the form "key=%x key=%y", keys and values parted by one space. Values
 * may hold any bytes: the record carries them apart from the keys, and the sink escapes them, so
 * that what a peer sends can forge neither a line nor a field. Object bodies, tokens and Secrets
 * are never logged, escaped or not. Thread: any. */
#ifndef VG_BASE_LOG_H
#define VG_BASE_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "err.h"
#include "list.h"
#include "lock.h"
#include "slice.h"

enum vg_log_level { VG_LOG_ERROR, VG_LOG_WARN, VG_LOG_INFO, VG_LOG_DEBUG };

const char *vg_log_level_name(enum vg_log_level level); /* "warn" */
/* 0, or VIGIL_E_INVALID: not the name of a level. */
VG_CHECK int vg_log_level_parse(struct vg_slice name, enum vg_log_level *ret_level);

/* 24: more than a line can show to a person; a literal with more is logged whole, under "msg". */
#define VG_LOG_FIELDS_MAX 24
/* 4 KiB: what PIPE_BUF promises to write whole; longer details are cut. */
#define VG_LOG_DETAIL_MAX 4096

struct vg_log_field {
    struct vg_slice key;   /* from the literal */
    struct vg_slice value; /* raw bytes */
    bool is_number;        /* printed by %d, %i or %u alone */
};

/* What a sink gets; all of it borrowed for the call. */
struct vg_log_record {
    enum vg_log_level level;
    const char *component;
    const char *event;
    const struct vg_log_field *fields;
    size_t field_count;
    bool is_cut; /* the text was longer than VG_LOG_DETAIL_MAX */
};

/* Called on the thread that logs, possibly by many at once, with that thread's locks held: it must
 * not take a lock of rank below LOG, nor log. */
typedef void vg_log_fn(void *arg, const struct vg_log_record *record);

/* One component's log. Embedded; const after init but for the level. */
struct vg_log {
    const char *component;
    vg_log_fn *fn;
    void *arg;
    _Atomic int level;        /* the most detailed level that passes */
    struct vg_log_root *root; /* NULL: stands alone */
    struct vg_list link;      /* in root->components, under its lock */
};

/* A log of its own, outside any root; `component` is borrowed. */
void vg_log_init(struct vg_log *log, const char *component, vg_log_fn *fn, void *arg,
                 enum vg_log_level level);
/* Leaves its root, if any. NULL and zeroed logs are fine. */
void vg_log_done(struct vg_log *log);
void vg_log_set_level(struct vg_log *log, enum vg_log_level level);

/* The switchboard of one process or one library handle: where lines go and how much of each
 * component. It outlives the logs that were added to it. */
#define VG_LOG_SPEC_MAX 1024
struct vg_log_root {
    vg_log_fn *fn;      /* const after init */
    void *arg;          /* const after init */
    struct vg_mutex mu; /* rank LOG */
    struct vg_list components VG_GUARDED_BY(mu);
    enum vg_log_level level VG_GUARDED_BY(mu);
    char spec[VG_LOG_SPEC_MAX] VG_GUARDED_BY(mu);
};

void vg_log_root_init(struct vg_log_root *root, vg_log_fn *fn, void *arg); /* level info, no spec */
void vg_log_root_done(struct vg_log_root *root);
/* Make `log` the log of a component under root: it follows the root's switches from here on. */
void vg_log_root_add(struct vg_log_root *root, struct vg_log *log, const char *component);
/* Switch at run time. `level` is for components that spec does not name; spec is a list such as
 * "h2,cacher,-tls,loop=warn": a name alone means debug, -name means errors only, `all` is every
 * component, later words win. Names of components that do not exist yet are kept for them.
 * 0, or VIGIL_E_INVALID: a malformed spec; nothing changed. */
VG_CHECK int vg_log_root_set(struct vg_log_root *root, enum vg_log_level level, const char *spec,
                             struct vg_status *reterr_status);

static inline bool vg_log_is_on(const struct vg_log *log, enum vg_log_level level)
{
    return log && (int)level <= atomic_load_explicit(&log->level, memory_order_relaxed);
}

/* The slow way behind the macros; fmt as said above. */
void vg_log_write(const struct vg_log *log, enum vg_log_level level, const char *event,
                  const char *fmt, ...) VG_PRINTF(4, 5);

/* The blank makes a missing text legal and proves that a given one is a literal. */
#define VG_LOG_AT(log, at_level, event, ...)                                                       \
    do {                                                                                           \
        const struct vg_log *vg_log_here = (log);                                                  \
        if (VG_UNLIKELY(vg_log_is_on(vg_log_here, (at_level))))                                    \
            vg_log_write(vg_log_here, (at_level), "" event, " " __VA_ARGS__);                      \
    } while (0)
#define vg_error(log, event, ...) VG_LOG_AT(log, VG_LOG_ERROR, event, __VA_ARGS__)
#define vg_warn(log, event, ...) VG_LOG_AT(log, VG_LOG_WARN, event, __VA_ARGS__)
#define vg_info(log, event, ...) VG_LOG_AT(log, VG_LOG_INFO, event, __VA_ARGS__)
#define vg_debug(log, event, ...) VG_LOG_AT(log, VG_LOG_DEBUG, event, __VA_ARGS__)

#endif
