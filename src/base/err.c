/* err.c - the error table and what is read from it. */
#include "err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct err_row {
    int err;
    int http;
    bool retriable;
    const char *name;
    const char *reason;
    const char *text; /* NULL: ask strerror */
};

static const struct err_row rows[] = {
#define VG_ERR(n, number, http, reason, retriable, text)                                           \
    {VIGIL_E_##n, http, retriable, "VIGIL_E_" #n, reason, text},
#define VG_ERRNO(n, http, reason, retriable) {-(n), http, retriable, #n, reason, NULL},
#include "err.def"
#undef VG_ERR
#undef VG_ERRNO
};

static const struct err_row ok_row = {0, 200, false, "OK", "", "success"};
static const struct err_row other_row = {0, 500, false, "E_OTHER", "InternalError", NULL};

static const struct err_row *find_row(int err)
{
    if (err >= 0)
        return &ok_row;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        if (rows[i].err == err)
            return &rows[i];
    }
    return &other_row;
}

const char *vg_err_text(int err)
{
    const struct err_row *row = find_row(err);
    if (row->text)
        return row->text;
    if (err <= VIGIL_E_BASE)
        return "internal error";
    const char *text = strerrordesc_np(-err);
    return text ? text : "internal error";
}

const char *vg_err_name(int err)
{
    const struct err_row *row = find_row(err);
    if (row != &other_row || err <= VIGIL_E_BASE)
        return row->name;
    const char *name = strerrorname_np(-err);
    return name ? name : row->name;
}

const char *vg_err_reason(int err)
{
    return find_row(err)->reason;
}

int vg_err_http(int err)
{
    return find_row(err)->http;
}

bool vg_err_is_retriable(int err)
{
    return find_row(err)->retriable;
}

/* A cut must not leave half a UTF-8 sequence: drop continuation bytes and the lead before them. */
static void trim_to_character(char *s, size_t len)
{
    size_t i = len;
    while (i > 0 && ((unsigned char)s[i - 1] & 0xC0) == 0x80)
        i--;
    if (i > 0 && (unsigned char)s[i - 1] >= 0xC0)
        s[i - 1] = '\0';
}

int vg_fail_v(struct vg_status *status, int err, const char *fmt, va_list ap)
{
    if (!status)
        return err;
    status->err = err;
    int n = vsnprintf(status->message, sizeof status->message, fmt, ap);
    if (n < 0)
        status->message[0] = '\0';
    else if ((size_t)n >= sizeof status->message)
        trim_to_character(status->message, sizeof status->message - 1);
    return err;
}

int vg_fail(struct vg_status *status, int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vg_fail_v(status, err, fmt, ap);
    va_end(ap);
    return err;
}
