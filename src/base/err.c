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

static size_t utf8_length(unsigned char lead)
{
    return lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
}

/* A cut must not leave half a UTF-8 sequence: when the last one misses bytes, it goes. */
static void trim_to_character(char *s, size_t len)
{
    size_t lead = len;
    while (lead > 0 && ((unsigned char)s[lead - 1] & 0xC0) == 0x80)
        lead--;
    if (lead > 0 && lead - 1 + utf8_length((unsigned char)s[lead - 1]) > len)
        s[lead - 1] = '\0';
}

int vg_fail_v(struct vg_status *status, int err, const char *fmt, va_list ap)
{
    if (!status)
        return err;
    char text[VG_STATUS_MESSAGE_MAX]; /* fmt may quote status->message, to say more about it */
    int n = vsnprintf(text, sizeof text, fmt, ap);
    if (n < 0)
        text[0] = '\0';
    else if ((size_t)n >= sizeof text)
        trim_to_character(text, sizeof text - 1);
    status->err = err;
    memcpy(status->message, text, strlen(text) + 1);
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
