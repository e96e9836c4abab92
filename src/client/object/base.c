/* base.c - vigil/base.h: version, texts and errors. */
#include "error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *vigil_version(void)
{
    return TEXT(VIGIL_VERSION_MAJOR) "." TEXT(VIGIL_VERSION_MINOR) ".0";
}

struct vigil_text vigil_text(const char *s)
{
    return (struct vigil_text){s, s ? strlen(s) : 0};
}

bool vigil_text_is(struct vigil_text t, const char *s)
{
    return vg_slice_eq(vg_slice_of(t), vg_slice_str(s));
}

int vg_error_code(int code)
{
    if (code >= 0)
        return code;
    if (code == -ENOMEM)
        return VIGIL_E_MEMORY;
    if (code > VIGIL_E_BASE)
        return VIGIL_E_INTERNAL;
    bool is_json = code <= VIGIL_E_JSON_SYNTAX && code >= VIGIL_E_PATCH_TEST;
    return is_json ? VIGIL_E_INVALID : code;
}

const char *vigil_code_text(int code)
{
    return code >= 0 ? "success" : vg_err_text(code);
}

int vg_error_set(struct vigil_error *err, int code, const char *fmt, ...)
{
    code = vg_error_code(code);
    if (!err)
        return code;
    struct vg_status status;
    va_list ap;
    va_start(ap, fmt);
    vg_fail_v(&status, code, fmt, ap); /* cuts at a character boundary */
    va_end(ap);
    *err = (struct vigil_error){.code = code};
    snprintf(err->message, sizeof(err->message), "%s", status.message);
    return code;
}
