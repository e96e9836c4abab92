/* log_sink.c - see log_sink.h. Writes into a fixed buffer whose last bytes are kept for the end of
 * the line, so that a cut line is still a line, and in JSON still an object. */
#include "log_sink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "utf8.h"

/* Room for a closing quote, the truncation note, a brace and the newline. */
#define END_ROOM 32

struct line {
    char *p;
    size_t n;
    size_t cap;
    bool is_full;
};

static void put_bytes(struct line *l, const char *s, size_t n)
{
    if (n > l->cap - l->n) {
        l->is_full = true;
        return;
    }
    memcpy(l->p + l->n, s, n);
    l->n += n;
}

static void put_text(struct line *l, const char *s)
{
    put_bytes(l, s, strlen(s));
}

/* Keys, events and components are our own words; anything else in them becomes '_'. */
static void put_word(struct line *l, struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        put_bytes(l, is_plain || (c && strchr("_.-/", c)) ? &c : "_", 1);
    }
}

static void put_time(struct line *l, int64_t wall_ms)
{
    char text[64];
    struct tm tm;
    time_t s = (time_t)(wall_ms / 1000 - (wall_ms % 1000 < 0));
    if (!gmtime_r(&s, &tm)) {
        put_text(l, "unknown-time");
        return;
    }
    int n = snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
                     tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                     (int)(wall_ms - (int64_t)s * 1000));
    put_bytes(l, text, (size_t)n);
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029;
}

static void put_invalid(struct line *l, unsigned char byte, enum vg_log_format f)
{
    char text[8];
    snprintf(text, sizeof text, "\\x%02x", (unsigned)byte);
    put_text(l, f == VG_LOG_JSON ? "\\ufffd" : text);
}

static void put_control(struct line *l, uint32_t code)
{
    char text[8];
    if (code == '\n' || code == '\r' || code == '\t')
        snprintf(text, sizeof text, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
    else
        snprintf(text, sizeof text, "\\u%04x", (unsigned)code & 0xFFFFu);
    put_text(l, text);
}

/* The first character of s; returns how many bytes it took. */
static size_t put_character(struct line *l, struct vg_slice s, enum vg_log_format f)
{
    uint32_t code = 0;
    size_t n = vg_utf8_next(s, &code);
    if (n == 0)
        put_invalid(l, (unsigned char)s.p[0], f);
    else if (is_control(code))
        put_control(l, code);
    else if (code == '"' || code == '\\')
        put_bytes(l, (char[]){'\\', s.p[0]}, 2);
    else
        put_bytes(l, s.p, n);
    return n ? n : 1;
}

/* Stops before the first character that does not fit. */
static void put_escaped(struct line *l, struct vg_slice s, enum vg_log_format f)
{
    while (s.n && !l->is_full) {
        size_t n = put_character(l, s, f);
        s = vg_slice(s.p + n, s.n - n);
    }
}

/* May the value stand in a text line without quotes? */
static bool is_bare(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c >= 0x7F || c == '"' || c == '\\' || c == '=')
            return false;
    }
    return s.n > 0;
}

static void put_value(struct line *l, const struct vg_log_field *field, enum vg_log_format f)
{
    bool is_quoted = f == VG_LOG_JSON ? !field->is_number : !is_bare(field->value);
    if (is_quoted)
        put_text(l, "\"");
    put_escaped(l, field->value, f);
    if (is_quoted) {
        l->cap += l->is_full; /* the quote must come; END_ROOM has a byte for it */
        put_text(l, "\"");
    }
}

/* A field whose key and first byte do not fit is left out whole. */
static void put_field(struct line *l, const struct vg_log_field *field, enum vg_log_format f)
{
    size_t start = l->n;
    put_text(l, f == VG_LOG_JSON ? ",\"" : " ");
    put_word(l, field->key);
    put_text(l, f == VG_LOG_JSON ? "\":" : "=");
    if (l->is_full || l->cap - l->n < 8 || (field->is_number && l->cap - l->n < field->value.n)) {
        l->n = start;
        l->is_full = true;
        return;
    }
    put_value(l, field, f);
}

static void put_head(struct line *l, enum vg_log_format f, int64_t wall_ms,
                     const struct vg_log_record *rec)
{
    static const char *const parts[2][4] = {
        {"", " ", " ", " "},
        {"{\"ts\":\"", "\",\"level\":\"", "\",\"component\":\"", "\",\"event\":\""}};
    const char *const *part = parts[f == VG_LOG_JSON];
    put_text(l, part[0]);
    put_time(l, wall_ms);
    put_text(l, part[1]);
    put_text(l, vg_log_level_name(rec->level));
    put_text(l, part[2]);
    put_word(l, vg_slice_str(rec->component));
    put_text(l, part[3]);
    put_word(l, vg_slice_str(rec->event));
    if (f == VG_LOG_JSON)
        put_text(l, "\"");
}

size_t vg_log_line(char *out, size_t size, enum vg_log_format format, int64_t wall_ms,
                   const struct vg_log_record *record)
{
    assert(size >= 512);
    struct line l = {.p = out, .cap = size - END_ROOM};
    put_head(&l, format, wall_ms, record);
    for (size_t i = 0; i < record->field_count && !l.is_full; i++)
        put_field(&l, &record->fields[i], format);
    bool is_cut = l.is_full || record->is_cut;
    l.cap = size;
    if (is_cut)
        put_text(&l, format == VG_LOG_JSON ? ",\"truncated\":true" : " truncated=true");
    put_text(&l, format == VG_LOG_JSON ? "}\n" : "\n");
    return l.n;
}

void vg_log_sink_init(struct vg_log_sink *sink, int fd, enum vg_log_format format,
                      const struct vg_clock *clock)
{
    *sink = (struct vg_log_sink){.fd = fd, .format = format, .clock = clock};
}

void vg_log_sink_write(void *arg, const struct vg_log_record *record)
{
    struct vg_log_sink *sink = arg;
    char text[VG_LOG_LINE_MAX];
    size_t n = vg_log_line(text, sizeof text, sink->format, vg_clock_wall_ms(sink->clock), record);
    ssize_t r;
    do
        r = write(sink->fd, text, n);
    while (r < 0 && errno == EINTR);
    if (r != (ssize_t)n)
        atomic_fetch_add_explicit(&sink->lost, 1, memory_order_relaxed);
}
