/* vigil/base.h - what every part of libvigil shares: visibility, errors, text, logging.
 *
 * Conventions of the whole library
 *   - Handles are opaque. `_new` makes one and the caller owns it, `_free` ends it; shared things
 *     have `_ref` and `_unref`. All of these accept NULL.
 *   - Functions return 0 or a positive number on success and a negative VIGIL_E_... on failure; the
 *     last argument, a struct vigil_error (NULL allowed), then says why in words.
 *   - `const char *` and struct vigil_text arguments are borrowed for the call unless said
 *     otherwise. What a function returns as text is borrowed from the object it was asked of.
 *   - Options structs begin with their size: fill them with VIGIL_INIT, set what you need.
 *   - Nothing is global: two clients in one process do not know of each other.
 *   - Each function says which threads may call it. "any" means at any time, by several at once. */
#ifndef VIGIL_BASE_H
#define VIGIL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define VIGIL_API __attribute__((visibility("default")))
#define VIGIL_CHECKED __attribute__((warn_unused_result))
#else
#define VIGIL_API
#define VIGIL_CHECKED
#endif

#define VIGIL_VERSION_MAJOR 0
#define VIGIL_VERSION_MINOR 2
/* Of the library that is linked, "0.2.0". Thread: any. */
VIGIL_API const char *vigil_version(void);

/* A run of bytes that belongs to somebody else; not ended by a 0 byte. */
struct vigil_text {
    const char *p;
    size_t n;
};
/* For printf: "%.*s". */
#define VIGIL_TEXT_ARG(t) (int)(t).n, (t).p
/* The text of a C string (NULL: empty), and a comparison with one. Thread: any. */
VIGIL_API struct vigil_text vigil_text(const char *s);
VIGIL_API bool vigil_text_is(struct vigil_text t, const char *s);

/* ---- errors ---- */

/* The library's own sources have these from their table of errors; a test compares the two. */
#ifndef VG_BASE_ERR_H
enum vigil_code {
    VIGIL_OK = 0,
    VIGIL_E_INVALID = -100001,  /* an argument, a file, or what the server refuses with 400, 422 */
    VIGIL_E_INTERNAL = -100002, /* the server answered 500, or a bug of ours */
    VIGIL_E_UNSUPPORTED = -100003, /* not by this server, or not by this library */
    VIGIL_E_BUSY = -100004,        /* 429 */
    VIGIL_E_CLOSED = -100005,      /* stopped, or shut down */
    VIGIL_E_TIMEOUT = -100006,
    VIGIL_E_TOO_LARGE = -100007,
    VIGIL_E_NOT_FOUND = -100008,
    VIGIL_E_EXISTS = -100009,
    VIGIL_E_CANCELED = -100010,
    VIGIL_E_CONFLICT = -100040, /* the object has been modified since it was read */
    VIGIL_E_EXPIRED = -100041,  /* 410: the resourceVersion is too old */
    VIGIL_E_FORBIDDEN = -100060,
    VIGIL_E_UNAUTHORIZED = -100061,
    VIGIL_E_NETWORK = -100062, /* refused, reset, no route, a broken answer */
    VIGIL_E_MEMORY = -100063
};
#endif

#define VIGIL_MESSAGE_MAX 512
struct vigil_error {
    int code;                        /* enum vigil_code */
    int http;                        /* status of the answer; 0: there was none */
    char reason[48];                 /* of the Kubernetes Status: "NotFound"; "" when unknown */
    char message[VIGIL_MESSAGE_MAX]; /* one sentence */
    uint32_t retry_after_s;          /* what the server asked for; 0: nothing */
};
/* A few words for a code. Thread: any. */
VIGIL_API const char *vigil_code_text(int code);

/* ---- logging ---- */

enum vigil_level { VIGIL_ERROR, VIGIL_WARN, VIGIL_INFO, VIGIL_DEBUG };
/* One line: component, event, "key=value ...", all ended by 0. Called on any thread of the library,
 * perhaps by several at once; must not call the library. */
typedef void vigil_log_fn(void *arg, enum vigil_level level, const char *component,
                          const char *event, const char *fields);

#define VIGIL_INIT(type)                                                                           \
    {                                                                                              \
        .size = sizeof(type)                                                                       \
    }

#ifdef __cplusplus
}
#endif

#endif
