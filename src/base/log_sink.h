/* log_sink.h - log lines as text or JSON on a file descriptor; what vigild and vigil use.
 *     2024-01-01T00:00:00.000Z warn cacher watch_expired rv=42 user="a b"
 *     {"ts":"2024-01-01T00:00:00.000Z","level":"warn","component":"cacher","event":"watch_expired",...}
 * A line is one write(2), so lines of several threads and processes do not mix. Values are escaped:
 * a line holds no control character and no invalid UTF-8, whatever they contain. A line that cannot
 * be written is counted and dropped; logging never waits and never fails. Thread: any. */
#ifndef VG_BASE_LOG_SINK_H
#define VG_BASE_LOG_SINK_H

#include "clock.h"
#include "log.h"

enum vg_log_format { VG_LOG_TEXT, VG_LOG_JSON };

/* 8 KiB: twice the longest detail; values that escaping makes longer are cut. */
#define VG_LOG_LINE_MAX 8192

struct vg_log_sink {
    int fd; /* borrowed */
    enum vg_log_format format;
    const struct vg_clock *clock;
    _Atomic uint64_t lost; /* lines that could not be written whole */
};

void vg_log_sink_init(struct vg_log_sink *sink, int fd, enum vg_log_format format,
                      const struct vg_clock *clock);
/* A vg_log_fn; arg is the sink. */
void vg_log_sink_write(void *arg, const struct vg_log_record *record);

/* The line with its newline, not NUL-terminated; `size` is at least 512. Returns its length. A line
 * that does not fit is cut inside a value and says truncated=true. */
size_t vg_log_line(char *out, size_t size, enum vg_log_format format, int64_t wall_ms,
                   const struct vg_log_record *record);

#endif
