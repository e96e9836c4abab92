/* log.c - switches, and the way from printf arguments to a record.
 * To part values from keys after vsnprintf has joined them, the format gets a mark before and after
 * each value. A value may itself contain marks, so they are counted: when there are not exactly as
 * many as were put in, or when the text was cut, the whole text becomes one value under "msg". So
 *   G1 a key of a record is text of the literal, never of an argument.
 * Levels are written under the root's lock and read without it: a call that races with a switch may
 * see either. */
#include "log.h"

#include <stdio.h>
#include <string.h>

#define MARK_OPEN '\x01'
#define MARK_CLOSE '\x02'
/* Literals with two marks per field; a longer literal is logged unparted. */
#define MARKED_FMT_MAX 1024

static const char *const level_names[] = {"error", "warn", "info", "debug"};

const char *vg_log_level_name(enum vg_log_level level)
{
    return (size_t)level < VG_ARRAY_LEN(level_names) ? level_names[level] : "unknown";
}

int vg_log_level_parse(struct vg_slice name, enum vg_log_level *ret_level)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(level_names); i++) {
        if (!vg_slice_eq(name, vg_slice_str(level_names[i])))
            continue;
        *ret_level = (enum vg_log_level)i;
        return 0;
    }
    return VIGIL_E_INVALID;
}

/* the spec */

struct spec_word {
    struct vg_slice name;
    enum vg_log_level level;
};

/* Cuts the next word off *rest; an empty word at the end ends the list. */
static struct vg_slice cut_word(struct vg_slice *rest)
{
    const char *comma = rest->n ? memchr(rest->p, ',', rest->n) : NULL;
    struct vg_slice word = vg_slice(rest->p, comma ? (size_t)(comma - rest->p) : rest->n);
    size_t used = word.n + (comma != NULL);
    *rest = vg_slice(rest->p + used, rest->n - used);
    return word;
}

static bool is_component_name(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'))
            return false;
    }
    return s.n > 0;
}

/* name, -name or name=level. */
static int parse_word(struct vg_slice text, struct spec_word *ret)
{
    struct spec_word w = {text, VG_LOG_DEBUG};
    const char *equals = text.n ? memchr(text.p, '=', text.n) : NULL;
    int r = 0;
    if (text.n && text.p[0] == '-') {
        w = (struct spec_word){vg_slice(text.p + 1, text.n - 1), VG_LOG_ERROR};
    } else if (equals) {
        size_t n = (size_t)(equals - text.p);
        w.name = vg_slice(text.p, n);
        r = vg_log_level_parse(vg_slice(equals + 1, text.n - n - 1), &w.level);
    }
    if (r < 0 || !is_component_name(w.name))
        return VIGIL_E_INVALID;
    *ret = w;
    return 0;
}

static int check_spec(const char *spec, struct vg_status *reterr_status)
{
    struct vg_slice rest = vg_slice_str(spec);
    if (rest.n >= VG_LOG_SPEC_MAX)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "the log spec is longer than %d bytes",
                       VG_LOG_SPEC_MAX - 1);
    while (rest.n) {
        struct spec_word ignored;
        struct vg_slice word = cut_word(&rest);
        if (parse_word(word, &ignored) < 0)
            return vg_fail(reterr_status, VIGIL_E_INVALID,
                           "log spec: '%.*s' is not name, -name or name=level", VG_SLICE_ARG(word));
    }
    return 0;
}

static void apply_locked(struct vg_log_root *root, struct vg_log *log)
{
    vg_mutex_assert_held(&root->mu);
    struct vg_slice rest = vg_slice_str(root->spec), name = vg_slice_str(log->component);
    enum vg_log_level level = root->level;
    while (rest.n) {
        struct spec_word w;
        int r = parse_word(cut_word(&rest), &w);
        if (VG_NEVER(r < 0))
            break;
        if (vg_slice_eq(w.name, name) || vg_slice_eq(w.name, VG_SLICE_LIT("all")))
            level = w.level;
    }
    vg_log_set_level(log, level);
}

/* logs and their root */

void vg_log_init(struct vg_log *log, const char *component, vg_log_fn *fn, void *arg,
                 enum vg_log_level level)
{
    *log = (struct vg_log){.component = component, .fn = fn, .arg = arg, .level = (int)level};
    vg_list_init(&log->link);
}

void vg_log_done(struct vg_log *log)
{
    if (!log || !log->root)
        return;
    vg_mutex_lock(&log->root->mu);
    vg_list_remove(&log->link);
    vg_mutex_unlock(&log->root->mu);
    log->root = NULL;
}

void vg_log_set_level(struct vg_log *log, enum vg_log_level level)
{
    atomic_store_explicit(&log->level, (int)level, memory_order_relaxed);
}

void vg_log_root_init(struct vg_log_root *root, vg_log_fn *fn, void *arg)
{
    *root = (struct vg_log_root){.fn = fn, .arg = arg, .level = VG_LOG_INFO};
    vg_mutex_init(&root->mu, VG_RANK_LOG);
    vg_list_init(&root->components);
}

void vg_log_root_done(struct vg_log_root *root)
{
    assert(vg_list_is_empty(&root->components));
    vg_mutex_done(&root->mu);
}

void vg_log_root_add(struct vg_log_root *root, struct vg_log *log, const char *component)
{
    vg_log_init(log, component, root->fn, root->arg, VG_LOG_INFO);
    log->root = root;
    vg_mutex_lock(&root->mu);
    vg_list_push_back(&root->components, &log->link);
    apply_locked(root, log);
    vg_mutex_unlock(&root->mu);
}

int vg_log_root_set(struct vg_log_root *root, enum vg_log_level level, const char *spec,
                    struct vg_status *reterr_status)
{
    int r = check_spec(spec, reterr_status);
    if (r < 0)
        return r;
    vg_mutex_lock(&root->mu);
    root->level = level;
    memcpy(root->spec, spec, strlen(spec) + 1);
    VG_LIST_FOREACH (n, &root->components)
        apply_locked(root, VG_CONTAINER_OF(n, struct vg_log, link));
    vg_mutex_unlock(&root->mu);
    return 0;
}

/* from arguments to a record */

struct marked_fmt {
    char text[MARKED_FMT_MAX];
    size_t n;
    size_t marks;                      /* 0: not of the form key=value, log it unparted */
    bool is_number[VG_LOG_FIELDS_MAX]; /* by field */
};

static void put(struct marked_fmt *m, char c)
{
    m->text[m->n++] = c;
}

/* %d, %i or %u with at most a length: flags and widths could print what JSON calls no number. */
static bool is_number_template(const char *value, const char *end)
{
    if (end - value < 2 || value[0] != '%')
        return false;
    const char *conversion = value + 1 + strspn(value + 1, "hljzt");
    return conversion == end - 1 && strchr("diu", *conversion) != NULL;
}

/* One "key=template" of the literal, up to a blank or the end. Returns past it, NULL: no '='. */
static const char *mark_field(struct marked_fmt *m, const char *at)
{
    size_t n = strcspn(at, " ");
    const char *equals = memchr(at, '=', n), *end = at + n;
    if (!equals || equals == at)
        return NULL;
    m->is_number[m->marks / 2] = is_number_template(equals + 1, end);
    for (; at < end; at++) {
        put(m, *at);
        if (at == equals)
            put(m, MARK_OPEN);
    }
    put(m, MARK_CLOSE);
    m->marks += 2;
    return end;
}

static void mark_fmt(struct marked_fmt *m, const char *fmt)
{
    m->n = m->marks = 0;
    bool fits = strlen(fmt) + 2 * VG_LOG_FIELDS_MAX < sizeof m->text;
    const char *at = fmt + strspn(fmt, " ");
    while (fits && at && *at && m->marks < 2 * VG_LOG_FIELDS_MAX) {
        at = mark_field(m, at);
        if (at)
            at += strspn(at, " ");
    }
    if (!fits || !at || *at)
        m->marks = 0;
    m->text[m->n] = '\0';
}

static size_t count_marks(const char *s, size_t n)
{
    size_t marks = 0;
    for (size_t i = 0; i < n; i++)
        marks += s[i] == MARK_OPEN || s[i] == MARK_CLOSE;
    return marks;
}

/* The marks alternate: as many as were put in means that none came from a value. */
static size_t part_fields(const struct marked_fmt *m, const char *text, size_t n,
                          struct vg_log_field *fields)
{
    const char *at = text, *end = text + n;
    size_t count = 0;
    for (; count < m->marks / 2; count++) {
        const char *open = memchr(at, MARK_OPEN, (size_t)(end - at));
        const char *close = memchr(open, MARK_CLOSE, (size_t)(end - open));
        fields[count].key = vg_slice(at, (size_t)(open - at) - 1); /* without its '=' */
        fields[count].value = vg_slice(open + 1, (size_t)(close - open) - 1);
        fields[count].is_number = m->is_number[count];
        at = close + 1;
    }
    return count;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* a checked literal with marks put in */
static bool format_parted(struct vg_log_record *rec, const char *fmt, va_list ap, char *text,
                          struct vg_log_field *fields)
{
    struct marked_fmt m;
    mark_fmt(&m, fmt);
    if (!m.marks)
        return false;
    int n = vsnprintf(text, VG_LOG_DETAIL_MAX, m.text, ap);
    if (n < 0 || n >= VG_LOG_DETAIL_MAX || count_marks(text, (size_t)n) != m.marks)
        return false;
    rec->field_count = part_fields(&m, text, (size_t)n, fields);
    return true;
}
#pragma GCC diagnostic pop

VG_PRINTF(2, 0)
static void format_whole(struct vg_log_record *rec, const char *fmt, va_list ap, char *text,
                         struct vg_log_field *fields)
{
    int n = vsnprintf(text, VG_LOG_DETAIL_MAX, fmt, ap);
    size_t blank = strspn(text, " "); /* the macros put one there */
    if (n < 0 || text[blank] == '\0')
        return;
    rec->is_cut = n >= VG_LOG_DETAIL_MAX;
    size_t used = VG_MIN((size_t)n, (size_t)VG_LOG_DETAIL_MAX - 1);
    fields[0] = (struct vg_log_field){.key = VG_SLICE_LIT("msg"),
                                      .value = vg_slice(text + blank, used - blank)};
    rec->field_count = 1;
}

void vg_log_write(const struct vg_log *log, enum vg_log_level level, const char *event,
                  const char *fmt, ...)
{
    char text[VG_LOG_DETAIL_MAX];
    struct vg_log_field fields[VG_LOG_FIELDS_MAX];
    struct vg_log_record rec = {
        .level = level, .component = log->component, .event = event, .fields = fields};
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    if (!format_parted(&rec, fmt, ap, text, fields))
        format_whole(&rec, fmt, again, text, fields);
    va_end(again);
    va_end(ap);
    log->fn(log->arg, &rec);
}
