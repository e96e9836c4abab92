/* answer.c - what a server says when it refuses: a Status, or something else (a proxy's page). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"
#include "transport.h"
#include "json/json.h"

static int code_of(int http, struct vg_slice reason)
{
    switch (http) {
    case 401:
        return VIGIL_E_UNAUTHORIZED;
    case 403:
        return VIGIL_E_FORBIDDEN;
    case 404:
        return VIGIL_E_NOT_FOUND;
    case 405:
    case 406:
    case 415:
    case 501:
        return VIGIL_E_UNSUPPORTED;
    case 409:
        return vg_slice_eq(reason, VG_SLICE_LIT("AlreadyExists")) ? VIGIL_E_EXISTS
                                                                  : VIGIL_E_CONFLICT;
    case 410:
        return VIGIL_E_COMPACTED; /* VIGIL_E_EXPIRED outside */
    case 413:
        return VIGIL_E_TOO_LARGE;
    case 429:
        return VIGIL_E_BUSY;
    case 502:
    case 503:
        return VIGIL_E_NETWORK;
    case 504:
        return VIGIL_E_TIMEOUT;
    default:
        return http >= 500 ? VIGIL_E_INTERNAL : VIGIL_E_INVALID;
    }
}

/* A few words of a body that is not a Status, on one line. */
static void quote_body(struct vg_slice body, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < body.n && n + 5 < size && n < 200;) {
        uint32_t code = 0;
        size_t len = vg_utf8_next(vg_slice(body.p + i, body.n - i), &code);
        if (len && code > ' ' && code != 0x7f) {
            memcpy(out + n, body.p + i, len);
            n += len;
        } else if (n && out[n - 1] != ' ') {
            out[n++] = ' ';
        }
        i += len ? len : 1;
    }
    out[n] = 0;
}

static bool has_words(struct vg_slice s)
{
    static const char WORDS[] = "Too large resource version";
    return s.n && memmem(s.p, s.n, WORDS, sizeof(WORDS) - 1) != NULL;
}

/* The three ways in which servers have said it: a cause's type, a cause's words, the message. */
static bool says_too_large(const struct vg_json *status, struct vg_slice reason)
{
    const struct vg_json *causes = vg_json_get_str(vg_json_get_str(status, "details"), "causes");
    bool is_timeout = vg_slice_eq(reason, VG_SLICE_LIT("Timeout"));
    if (causes)
        VG_JSON_FOREACH_ITEM (it, causes) {
            if (vg_slice_eq(vg_json_text(vg_json_get_str(it, "reason")),
                            VG_SLICE_LIT("ResourceVersionTooLarge")) ||
                (is_timeout && has_words(vg_json_text(vg_json_get_str(it, "message")))))
                return true;
        }
    return is_timeout && has_words(vg_json_text(vg_json_get_str(status, "message")));
}

static bool read_status(const struct vg_json *status, int http, struct vigil_error *err)
{
    struct vg_slice reason = vg_json_text(vg_json_get_str(status, "reason"));
    struct vg_slice message = vg_json_text(vg_json_get_str(status, "message"));
    int64_t code = 0, after = 0;
    if (http == 0 && vg_json_to_int64(vg_json_get_str(status, "code"), &code) == 0 && code > 0 &&
        code < 1000)
        http = (int)code;
    if (http == 0)
        http = 500;
    bool is_expired =
        vg_slice_eq(reason, VG_SLICE_LIT("Expired")) || vg_slice_eq(reason, VG_SLICE_LIT("Gone"));
    vg_error_set(err, is_expired ? VIGIL_E_COMPACTED : code_of(http, reason), "%.*s",
                 message.n ? (int)VG_MIN(message.n, (size_t)VIGIL_MESSAGE_MAX) : 30,
                 message.n ? message.p : "the server gave no explanation");
    err->http = http;
    snprintf(err->reason, sizeof(err->reason), "%.*s", VG_SLICE_ARG(reason));
    const struct vg_json *details = vg_json_get_str(status, "details");
    if (vg_json_to_int64(vg_json_get_str(details, "retryAfterSeconds"), &after) == 0 && after > 0 &&
        after < INT32_MAX)
        err->retry_after_s = (uint32_t)after;
    return says_too_large(status, reason);
}

bool vg_answer_error(struct vg_slice body, int http, struct vigil_error *err)
{
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, (size_t)64 << 20);
    struct vg_json *root = NULL;
    const struct vg_json_opts opts = {.replace_bad_utf8 = true};
    if (body.n && vg_json_parse(&arena, body, &opts, &root, NULL) == 0 &&
        vg_slice_eq(vg_json_text(vg_json_get_str(root, "kind")), VG_SLICE_LIT("Status")))
        return read_status(root, http, err);
    char words[256];
    quote_body(body, words, sizeof(words));
    vg_error_set(err, http ? code_of(http, VG_SLICE_LIT("")) : VIGIL_E_INTERNAL,
                 "the server answered %d%s%s", http, words[0] ? ": " : "", words);
    err->http = http;
    return false;
}
