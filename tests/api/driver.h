/* driver.h - storage, cacher, api and HTTP servers in one process, and a small blocking client.
 * The server runs on threads of its own with the system's clock; tests talk to it over loopback
 * sockets. Whoever connects may do everything: server/http is not part of it. What cannot be done
 * ends the process. Thread: the test's; requests of the client may come from any. */
#ifndef VG_TESTS_API_DRIVER_H
#define VG_TESTS_API_DRIVER_H

#include "base/metrics.h"
#include "net/server.h"
#include "server/api/api.h"
#include "server/api/stored_form.h"
#include "test_support.h"

struct vg_adrv_loop;

struct vg_adrv {
    struct vg_storage *storage;
    struct vg_loop *feed, *own; /* own: turned by the driver's calls, for its own writes */
    struct vg_cacher *cacher;
    struct vg_metrics *metrics;
    struct vg_issuer *issuer;
    struct vg_api *api;
    struct vg_http_handler handler;
    struct vg_http_shared *shared;
    struct vg_listener *listener;
    struct vg_adrv_loop *loops;
    size_t n_loops;
    uint16_t port;
    const char *dir;
    struct vg_test_etcd *etcd; /* NULL: another engine */
};

struct vg_adrv_opts {
    const char *engine;             /* mem, lmdb, etcd36 (34, 35); NULL: mem. etcd36raw: objects lie
                                     * there as they are, so that they may be of any shape */
    size_t n_loops;                 /* 0: 1 */
    struct vg_storage_opts storage; /* dir and size are the driver's */
    struct vg_cacher_opts cacher;   /* limits alone */
    struct vg_api_opts api;         /* limits alone */
    struct vg_http_limits limits;
    bool is_cold; /* the cache gets no turn until vg_adrv_warm */
    /* Serve through another handler than the driver's; it is told of each loop before the first one
     * serves. Both NULL: the driver's own. */
    const struct vg_http_handler *handler;
    void (*on_loop)(void *arg, struct vg_loop *loop, struct vg_api_loop *api);
    void *on_loop_arg;
};
/* Is the engine there? Else the test is skipped, which is said. */
bool vg_adrv_has(const char *engine);
/* The cache is ready when it returns. opts may be NULL. */
void vg_adrv_open(struct vg_adrv *d, const struct vg_adrv_opts *opts);
void vg_adrv_close(struct vg_adrv *d);
void vg_adrv_warm(struct vg_adrv *d);
/* End every watch, as a shutdown does. */
void vg_adrv_drain(struct vg_adrv *d);
/* Run fn(arg) on a serving loop and wait for it. */
void vg_adrv_call(struct vg_adrv *d, size_t loop, void (*fn)(struct vg_api_loop *l, void *arg),
                  void *arg);

/* What failed is said, and the process ends. */
void vg_adrv_must(int r, const char *what);

/* ---- behind the server's back ---- */

/* Seal and store an object; its revision. */
vg_rev vg_adrv_put(struct vg_adrv *d, const char *group, const char *resource, const char *ns,
                   const char *name, const char *json);
vg_rev vg_adrv_delete(struct vg_adrv *d, const char *group, const char *resource, const char *ns,
                      const char *name);
void vg_adrv_compact(struct vg_adrv *d, vg_rev rev);
/* The sum of a metric's series whose labels contain this text. */
double vg_adrv_metric(struct vg_adrv *d, const char *name, const char *labels);
/* A config map with these data; its revision. */
vg_rev vg_adrv_config(struct vg_adrv *d, const char *ns, const char *name, const char *data);

/* ---- a client ---- */

struct vg_reply {
    int status;
    bool is_cut;        /* it ended before its end */
    struct vg_buf head; /* all header lines, NUL-terminated */
    struct vg_buf body; /* without chunks, NUL-terminated (n does not count it) */
};
void vg_reply_done(struct vg_reply *r);
static inline void vg_reply_cleanup(struct vg_reply *r)
{
    vg_reply_done(r);
}
/* The value of a header line, or NULL; valid until the next call. */
const char *vg_reply_field(const struct vg_reply *r, const char *name);

/* One request on a connection of its own. headers: lines that end with \r\n, or NULL. body: NULL
 * for none. What *ret held before is dropped; zeroed to start. */
void vg_adrv_request(struct vg_adrv *d, const char *method, const char *target, const char *headers,
                     const char *body, struct vg_reply *ret);
/* The same; false: the connection ended before there was a head. */
bool vg_adrv_try(struct vg_adrv *d, const char *method, const char *target, const char *headers,
                 const char *body, struct vg_reply *ret);
/* With a body of any bytes; p NULL: none. */
bool vg_adrv_try_bytes(struct vg_adrv *d, const char *method, const char *target,
                       const char *headers, struct vg_slice body, struct vg_reply *ret);
static inline void vg_adrv_get(struct vg_adrv *d, const char *target, struct vg_reply *ret)
{
    vg_adrv_request(d, "GET", target, NULL, NULL, ret);
}

/* With a body of a type: "json" of application/json. */
void vg_adrv_send(struct vg_adrv *d, const char *method, const char *target, const char *type,
                  const char *body, struct vg_reply *ret);
/* Asserts the status, and that the body has this text. */
void vg_reply_expect(const struct vg_reply *r, int status, const char *text);
/* A target that is printed; valid until the next call. */
const char *vg_adrv_path(const char *fmt, ...) VG_PRINTF(1, 2);

/* One request, and gone before its answer: the connection is reset. */
void vg_adrv_shoot(struct vg_adrv *d, const char *method, const char *target, const char *headers,
                   const char *body);

/* A stream that is read as it comes. */
struct vg_stream {
    int fd;
    int status;
    struct vg_buf head, in, body, line;
    bool is_chunked, is_over;
    bool is_cut;   /* it ended before its end */
    uint64_t left; /* of this chunk, or of the body */
};
/* Returns when the head is there. */
void vg_stream_open(struct vg_adrv *d, const char *target, const char *headers,
                    struct vg_stream *ret);
/* The same; false: the connection ended before that, and there is nothing to close. */
bool vg_stream_try(struct vg_adrv *d, const char *target, const char *headers,
                   struct vg_stream *ret);
/* The next line of the body without its end, or NULL at the end of the stream. NUL-terminated,
 * valid until the next call. */
const char *vg_stream_line(struct vg_stream *s);
/* The next frame of protobuf without its length; false at the end of the stream. Likewise. */
bool vg_stream_frame(struct vg_stream *s, struct vg_slice *ret);
/* More bytes as they came, into s->in; false at the end. For what is no HTTP any more. */
bool vg_stream_receive(struct vg_stream *s);
void vg_stream_close(struct vg_stream *s);

#endif
