/* status.c - the refusals of kube-apiserver in its own words, and how a Status is written.
 * Texts are built in a buffer, copied into the call's arena, and borrowed from there. No
 * constructor fails: without memory a constant 500 takes the place of what was to be said. */
#include "status.h"

#include <errno.h>

#include "object/quote.h"
#include "status_int.h"
#include "json/write.h"

/* ---- writing ---- */

static void put_text(struct vg_json_writer *w, const char *key, struct vg_slice s)
{
    if (s.n)
        vg_json_put_member(w, key, s);
}

static void put_causes(struct vg_json_writer *w, const struct vg_api_status *s)
{
    if (s->n_causes == 0)
        return;
    vg_json_put_key(w, VG_SLICE_LIT("causes"));
    vg_json_put_begin_array(w);
    for (size_t i = 0; i < s->n_causes; i++) {
        const struct vg_cause *c = &s->causes[i];
        vg_json_put_begin_object(w);
        put_text(w, "reason", vg_slice_str(c->reason ? c->reason : ""));
        put_text(w, "message", c->message);
        put_text(w, "field", c->field);
        vg_json_put_end_object(w);
    }
    vg_json_put_end_array(w);
}

static void put_details(struct vg_json_writer *w, const struct vg_api_status *s)
{
    vg_json_put_key(w, VG_SLICE_LIT("details"));
    vg_json_put_begin_object(w);
    put_text(w, "name", s->name);
    put_text(w, "group", s->group);
    put_text(w, "kind", s->kind);
    put_text(w, "uid", s->uid);
    put_causes(w, s);
    if (s->retry_after_s) {
        vg_json_put_key(w, VG_SLICE_LIT("retryAfterSeconds"));
        vg_json_put_uint(w, s->retry_after_s);
    }
    vg_json_put_end_object(w);
}

int vg_api_status_write(struct vg_buf *out, const struct vg_api_status *s)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, VG_JSON_ESCAPE_HTML);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "kind", VG_SLICE_LIT("Status"));
    vg_json_put_member(&w, "apiVersion", VG_SLICE_LIT("v1"));
    vg_json_put_key(&w, VG_SLICE_LIT("metadata"));
    vg_json_put_begin_object(&w);
    put_text(&w, "continue", s->continue_token);
    vg_json_put_end_object(&w);
    vg_json_put_member(&w, "status", vg_slice_str(s->is_success ? "Success" : "Failure"));
    put_text(&w, "message", s->message);
    put_text(&w, "reason", vg_slice_str(s->reason ? s->reason : ""));
    if (s->has_details)
        put_details(&w, s);
    /* A delete answers Success without a code, a binding with its 201. */
    if (!s->is_success || s->code != 200) {
        vg_json_put_key(&w, VG_SLICE_LIT("code"));
        vg_json_put_int(&w, s->code);
    }
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

/* ---- building ---- */

static const struct vg_cause no_memory_cause = {.message = {"out of memory", 13}};
static const struct vg_api_status no_memory = {
    .code = 500,
    .reason = "InternalError",
    .message = {"Internal error occurred: out of memory", 38},
    .has_details = true,
    .causes = &no_memory_cause,
    .n_causes = 1,
};

void vg_status_no_memory(struct vg_api_status *ret)
{
    *ret = no_memory;
}

/* The text of fmt after `prefix`. */
static void say_v(struct vg_arena *a, struct vg_api_status *s, const char *prefix, const char *fmt,
                  va_list ap) VG_PRINTF(4, 0);
static void say_v(struct vg_arena *a, struct vg_api_status *s, const char *prefix, const char *fmt,
                  va_list ap)
{
    VG_AUTO(buf) b = {0};
    int r = vg_buf_append(&b, prefix, strlen(prefix));
    if (r == 0)
        r = vg_buf_vprintf(&b, fmt, ap);
    if (r == 0)
        r = vg_arena_keep(a, vg_buf_slice(&b), &s->message);
    if (r < 0)
        *s = no_memory;
}

/* `prefix` as vg_kind_qualified, the quoted name, `text`. */
static void say_of(struct vg_arena *a, struct vg_api_status *s, const char *before,
                   const struct vg_kind *kind, struct vg_slice name, const char *after)
{
    VG_AUTO(buf) b = {0};
    int r = vg_buf_printf(&b, "%s%s ", before, vg_kind_qualified(kind));
    if (r == 0)
        r = vg_quote_append(&b, name);
    if (r == 0)
        r = vg_buf_append(&b, after, strlen(after));
    if (r == 0)
        r = vg_arena_keep(a, vg_buf_slice(&b), &s->message);
    if (r < 0)
        *s = no_memory;
}

static struct vg_api_status about(int code, const char *reason, const struct vg_kind *kind,
                                  struct vg_slice name)
{
    return (struct vg_api_status){.code = code,
                                  .reason = reason,
                                  .has_details = true,
                                  .name = name,
                                  .group = vg_slice_str(kind ? kind->group : ""),
                                  .kind = vg_slice_str(kind ? kind->resource : "")};
}

/* ---- the constructors, by code ---- */

void vg_status_bad_request(struct vg_arena *a, struct vg_api_status *ret, const char *fmt, ...)
{
    *ret = (struct vg_api_status){.code = 400, .reason = "BadRequest"};
    va_list ap;
    va_start(ap, fmt);
    say_v(a, ret, "", fmt, ap);
    va_end(ap);
}

void vg_status_unauthorized(struct vg_api_status *ret)
{
    *ret = (struct vg_api_status){
        .code = 401, .reason = "Unauthorized", .message = VG_SLICE_LIT("Unauthorized")};
}

static int forbidden_text(struct vg_buf *b, const struct vg_kind *kind, struct vg_slice name,
                          const char *fmt, va_list ap) VG_PRINTF(4, 0);
static int forbidden_text(struct vg_buf *b, const struct vg_kind *kind, struct vg_slice name,
                          const char *fmt, va_list ap)
{
    int r = kind ? vg_buf_printf(b, "%s ", vg_kind_qualified(kind)) : 0;
    if (r == 0 && kind && name.n)
        r = vg_quote_append(b, name);
    if (r == 0 && kind)
        r = vg_buf_printf(b, "%sis forbidden: ", name.n ? " " : "");
    else if (r == 0)
        r = vg_buf_printf(b, "forbidden: ");
    return r < 0 ? r : vg_buf_vprintf(b, fmt, ap);
}

void vg_status_forbidden(struct vg_arena *a, struct vg_api_status *ret, const struct vg_kind *kind,
                         struct vg_slice name, const char *fmt, ...)
{
    *ret = about(403, "Forbidden", kind, name);
    VG_AUTO(buf) b = {0};
    va_list ap;
    va_start(ap, fmt);
    int r = forbidden_text(&b, kind, name, fmt, ap);
    va_end(ap);
    if (r == 0)
        r = vg_arena_keep(a, vg_buf_slice(&b), &ret->message);
    if (r < 0)
        *ret = no_memory;
}

void vg_status_not_found(struct vg_arena *a, struct vg_api_status *ret, const struct vg_kind *kind,
                         struct vg_slice name)
{
    *ret = about(404, "NotFound", kind, name);
    say_of(a, ret, "", kind, name, " not found");
}

void vg_status_no_resource(struct vg_api_status *ret)
{
    *ret = (struct vg_api_status){
        .code = 404,
        .reason = "NotFound",
        .message = VG_SLICE_LIT("the server could not find the requested resource"),
        .has_details = true};
}

void vg_status_method(struct vg_api_status *ret)
{
    *ret = (struct vg_api_status){
        .code = 405,
        .reason = "MethodNotAllowed",
        .message = VG_SLICE_LIT("the server does not allow this method on the requested resource"),
        .has_details = true};
}

void vg_status_not_acceptable(struct vg_arena *a, struct vg_api_status *ret, const char *message)
{
    *ret = (struct vg_api_status){.code = 406, .reason = "NotAcceptable"};
    if (vg_arena_keep(a, vg_slice_str(message), &ret->message) < 0)
        *ret = no_memory;
}

void vg_status_exists(struct vg_arena *a, struct vg_api_status *ret, const struct vg_kind *kind,
                      struct vg_slice name, bool is_being_deleted)
{
    *ret = about(409, "AlreadyExists", kind, name);
    say_of(a, ret, is_being_deleted ? "object is being deleted: " : "", kind, name,
           " already exists");
}

void vg_status_conflict(struct vg_arena *a, struct vg_api_status *ret, const struct vg_kind *kind,
                        struct vg_slice name, const char *fmt, ...)
{
    VG_AUTO(buf) why = {0};
    va_list ap;
    va_start(ap, fmt);
    int r = vg_buf_append(&why, ": ", 2);
    if (r == 0)
        r = vg_buf_vprintf(&why, fmt, ap);
    va_end(ap);
    if (r == 0)
        r = vg_buf_append_byte(&why, '\0');
    *ret = about(409, "Conflict", kind, name);
    if (r < 0)
        *ret = no_memory;
    else
        say_of(a, ret, "Operation cannot be fulfilled on ", kind, name, why.p);
}

void vg_status_modified(struct vg_arena *a, struct vg_api_status *ret, const struct vg_kind *kind,
                        struct vg_slice name)
{
    vg_status_conflict(a, ret, kind, name,
                       "the object has been modified; please apply your changes to the latest "
                       "version and try again");
}

void vg_status_expired(struct vg_arena *a, struct vg_api_status *ret, const char *fmt, ...)
{
    *ret = (struct vg_api_status){.code = 410, .reason = "Expired"};
    va_list ap;
    va_start(ap, fmt);
    say_v(a, ret, "", fmt, ap);
    va_end(ap);
}

void vg_status_too_large_body(struct vg_arena *a, struct vg_api_status *ret, size_t limit)
{
    *ret = (struct vg_api_status){.code = 413, .reason = "RequestEntityTooLarge"};
    if (vg_arena_printf(a, &ret->message, "Request entity too large: limit is %zu", limit) < 0)
        *ret = no_memory;
}

void vg_status_unsupported_media(struct vg_arena *a, struct vg_api_status *ret, const char *message)
{
    *ret = (struct vg_api_status){.code = 415, .reason = "UnsupportedMediaType"};
    if (vg_arena_keep(a, vg_slice_str(message), &ret->message) < 0)
        *ret = no_memory;
}

void vg_status_too_many(struct vg_arena *a, struct vg_api_status *ret, uint32_t retry_after_s,
                        const char *message)
{
    *ret = (struct vg_api_status){.code = 429,
                                  .reason = "TooManyRequests",
                                  .has_details = true,
                                  .retry_after_s = retry_after_s};
    if (vg_arena_keep(a, vg_slice_str(message), &ret->message) < 0)
        *ret = no_memory;
}

void vg_status_internal(struct vg_arena *a, struct vg_api_status *ret, const char *fmt, ...)
{
    static const char prefix[] = "Internal error occurred: ";
    *ret = (struct vg_api_status){.code = 500, .reason = "InternalError", .has_details = true};
    struct vg_cause *cause = vg_arena_new(a, struct vg_cause);
    if (!cause) {
        *ret = no_memory;
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    say_v(a, ret, prefix, fmt, ap);
    va_end(ap);
    if (ret->causes) /* memory was short */
        return;
    size_t skip = sizeof prefix - 1;
    *cause = (struct vg_cause){.message = vg_slice(ret->message.p + skip, ret->message.n - skip)};
    ret->causes = cause;
    ret->n_causes = 1;
}

void vg_status_unknown(struct vg_arena *a, struct vg_api_status *ret, const char *fmt, ...)
{
    *ret = (struct vg_api_status){.code = 500, .reason = ""};
    va_list ap;
    va_start(ap, fmt);
    say_v(a, ret, "", fmt, ap);
    va_end(ap);
}

void vg_status_unavailable(struct vg_arena *a, struct vg_api_status *ret, uint32_t retry_after_s,
                           const char *message)
{
    *ret = (struct vg_api_status){.code = 503,
                                  .reason = "ServiceUnavailable",
                                  .has_details = retry_after_s > 0,
                                  .retry_after_s = retry_after_s};
    if (vg_arena_keep(a, vg_slice_str(message), &ret->message) < 0)
        *ret = no_memory;
}

void vg_status_timeout(struct vg_arena *a, struct vg_api_status *ret, const char *fmt, ...)
{
    *ret = (struct vg_api_status){.code = 504, .reason = "Timeout", .has_details = true};
    va_list ap;
    va_start(ap, fmt);
    say_v(a, ret, "Timeout: ", fmt, ap);
    va_end(ap);
}

void vg_status_too_large_rev(struct vg_arena *a, struct vg_api_status *ret, uint64_t wanted,
                             uint64_t current, bool with_retry)
{
    static const struct vg_cause cause = {.reason = "ResourceVersionTooLarge",
                                          .message = {"Too large resource version", 26}};
    vg_status_timeout(a, ret, "Too large resource version: %llu, current: %llu",
                      (unsigned long long)wanted, (unsigned long long)current);
    if (ret->code != 504)
        return;
    ret->causes = &cause;
    ret->n_causes = 1;
    ret->retry_after_s = with_retry;
}

void vg_status_unreadable(struct vg_arena *a, struct vg_api_status *ret, struct vg_slice key)
{
    vg_status_internal(a, ret,
                       "what is stored under the key \"%.*s\" cannot be read: it is encrypted, "
                       "damaged or of a form that is not known here. Put back what was there, or "
                       "delete it with the option ignoreStoreReadErrorWithClusterBreakingPotential",
                       VG_SLICE_ARG(key));
}

/* A client cannot do anything about a damaged store or a full disk, but it can wait out a busy one;
 * what kube-apiserver has no words for is an internal error with the table's text. */
void vg_status_from_err(struct vg_arena *a, struct vg_api_status *ret, int err, const char *message)
{
    if (!message || !*message)
        message = vg_err_text(err);
    int code = vg_err_http(err);
    if (code == 500) {
        vg_status_internal(a, ret, "%s", message);
        return;
    }
    *ret = (struct vg_api_status){.code = code, .reason = vg_err_reason(err)};
    if (vg_err_is_retriable(err)) {
        ret->has_details = true;
        ret->retry_after_s = 1;
    }
    if (vg_arena_keep(a, vg_slice_str(message), &ret->message) < 0)
        *ret = no_memory;
}

void vg_status_invalid(struct vg_arena *a, struct vg_api_status *ret, const char *group,
                       const char *kind, struct vg_slice name, const struct vg_field_errors *e)
{
    *ret = (struct vg_api_status){.code = 422,
                                  .reason = "Invalid",
                                  .has_details = true,
                                  .name = name,
                                  .group = vg_slice_str(group),
                                  .kind = vg_slice_str(kind),
                                  .causes = e->v,
                                  .n_causes = e->n};
    VG_AUTO(buf) b = {0};
    int r = vg_buf_printf(&b, "%s%s%s ", kind, *group ? "." : "", group);
    if (r == 0)
        r = vg_quote_append(&b, name);
    if (r == 0)
        r = vg_buf_printf(&b, " is invalid%s", e->n ? ": " : "");
    if (r == 0)
        r = vg_field_errors_append(&b, e);
    if (r == 0)
        r = vg_arena_keep(a, vg_buf_slice(&b), &ret->message);
    if (r < 0 || e->failed)
        vg_status_no_memory(ret);
}
