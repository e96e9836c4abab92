/* write_opts.c - the options of writes, from the query. */
#include <inttypes.h>
#include <strings.h>

#include "base/utf8.h"
#include "status_int.h"
#include "write.h"

/* As the original allows. */
#define FIELD_MANAGER_MAX 128u

/* Go's unicode.IsPrint, near enough: control characters and broken UTF-8 are not. */
bool vg_is_printable(uint32_t code)
{
    return code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0) && code != 0xfffd;
}

static void check_manager(struct vg_field_errors *e, struct vg_slice manager)
{
    if (manager.n > FIELD_MANAGER_MAX) {
        vg_field_too_long(e, "fieldManager", "bytes", FIELD_MANAGER_MAX);
        return;
    }
    for (size_t at = 0; at < manager.n;) {
        uint32_t code = 0xfffd;
        size_t n = vg_utf8_next(vg_slice(manager.p + at, manager.n - at), &code);
        if (!vg_is_printable(code))
            vg_field_invalid(e, "fieldManager", vg_api_quote(e->arena, manager),
                             "invalid character U+%04" PRIX32 " (at position %zu)", code, at);
        at += n ? n : 1;
    }
}

/* dryRun may be given several times; all of them must be All. */
static void read_dry_run(struct vg_field_errors *e, const struct vg_target *t, bool *ret)
{
    static const char *const supported[] = {"All", NULL};
    struct vg_json all = vg_json_array();
    bool is_fine = true;
    for (size_t i = 0; i < t->n_params; i++) {
        const struct vg_query_param *p = &t->params[i];
        if (!vg_slice_eq(p->name, VG_SLICE_LIT("dryRun")))
            continue;
        is_fine = is_fine && vg_slice_eq(p->value, VG_SLICE_LIT("All"));
        e->failed |= vg_json_array_push(e->arena, &all, vg_json_string_ref(p->value)) < 0;
    }
    *ret = all.n > 0;
    if (!is_fine)
        vg_field_not_supported(e, "dryRun", vg_api_json(e->arena, &all), supported);
}

static void read_fields_mode(struct vg_field_errors *e, struct vg_slice text,
                             enum vg_fields_mode *ret)
{
    static const char *const supported[] = {"", "Ignore", "Strict", "Warn", NULL};
    if (text.n == 0 || vg_slice_eq(text, VG_SLICE_LIT("Warn")))
        *ret = VG_FIELDS_WARN;
    else if (vg_slice_eq(text, VG_SLICE_LIT("Ignore")))
        *ret = VG_FIELDS_IGNORE;
    else if (vg_slice_eq(text, VG_SLICE_LIT("Strict")))
        *ret = VG_FIELDS_STRICT;
    else
        vg_field_not_supported(e, "fieldValidation", vg_api_quote(e->arena, text), supported);
}

static int read_opts(struct vg_api_call *call, const char *type, struct vg_field_errors *e,
                     struct vg_write_opts *ret, struct vg_api_status *ret_status)
{
    const struct vg_target *t = call->ask->target;
    *ret = (struct vg_write_opts){0};
    check_manager(e, vg_query_get(t, "fieldManager"));
    read_dry_run(e, t, &ret->is_dry_run);
    read_fields_mode(e, vg_query_get(t, "fieldValidation"), &ret->fields);
    if (e->n == 0 && !e->failed)
        return 0;
    vg_status_invalid(e->arena, ret_status, "meta.k8s.io", type, VG_SLICE_LIT(""), e);
    return VIGIL_E_INVALID;
}

int vg_write_opts_read(struct vg_api_call *call, const char *type, struct vg_write_opts *ret,
                       struct vg_api_status *ret_status)
{
    const struct vg_target *t = call->ask->target;
    struct vg_field_errors e = {.arena = &call->ask->arena};
    if (t->verb == VG_API_PATCH && vg_query_get(t, "force").p)
        vg_field_forbidden(&e, "force", "may not be specified for non-apply patch");
    return read_opts(call, type, &e, ret, ret_status);
}

/* As every boolean of a query is read. */
static bool is_true(struct vg_slice text)
{
    bool is_false =
        (text.n == 1 && text.p[0] == '0') || (text.n == 5 && strncasecmp(text.p, "false", 5) == 0);
    return text.p && !is_false;
}

int vg_apply_opts_read(struct vg_api_call *call, struct vg_apply_opts *ret,
                       struct vg_api_status *ret_status)
{
    const struct vg_target *t = call->ask->target;
    struct vg_field_errors e = {.arena = &call->ask->arena};
    ret->manager = vg_query_get(t, "fieldManager");
    ret->is_forced = is_true(vg_query_get(t, "force"));
    if (ret->manager.n == 0)
        vg_field_required(&e, "fieldManager", "is required for apply patch");
    return read_opts(call, "PatchOptions", &e, &ret->write, ret_status);
}
