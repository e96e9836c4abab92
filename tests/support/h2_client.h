/* h2_client.h - an HTTP/2 client for tests: a real nghttp2 client session on a connected socket.
 * It never blocks: a test turns the server's loop and steps the client until what it waits for is
 * there. Bodies are kept whole; flow control is automatic unless the test takes it over. */
#ifndef VG_TEST_H2_CLIENT_H
#define VG_TEST_H2_CLIENT_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct vg_h2c_stream {
    int32_t id;
    int status;           /* 0: no head yet */
    struct vg_buf fields; /* "name: value\n" each */
    struct vg_buf body;
    const char *send; /* what is left of the request's body */
    size_t send_n;
    size_t n_data;     /* DATA frames */
    bool has_trailers; /* set by the test: the body does not end the stream */
    bool is_endless;   /* so is this: its body never ends */
    bool has_end, is_closed;
    uint32_t error; /* of the RST_STREAM that closed it; 0: it ended well */
};

struct vg_h2c {
    nghttp2_session *session;
    int fd;
    struct vg_buf out; /* not sent yet */
    struct vg_h2c_stream *streams[4096];
    size_t n_streams, n_closed;
    bool has_goaway, is_eof, is_broken;
    uint32_t goaway_error;
    int32_t goaway_last;
    unsigned n_goaways, n_ping_acks, n_settings_acks;
    uint64_t bytes_in;
};

struct vg_h2c_opts {
    uint32_t stream_window; /* 0: 1 MiB */
    uint32_t conn_window;   /* 0: 16 MiB */
    bool is_manual;         /* windows are opened by vg_h2c_consume alone */
};

/* The descriptor is made non-blocking and taken. */
void vg_h2c_open(struct vg_h2c *c, int take_fd, const struct vg_h2c_opts *opts);
void vg_h2c_close(struct vg_h2c *c);

/* A request; extra fields are pairs of name and value up to NULL. The body is borrowed. */
struct vg_h2c_stream *vg_h2c_request(struct vg_h2c *c, const char *method, const char *path,
                                     const char *body, size_t n_body, const char *const *extra);
struct vg_h2c_stream *vg_h2c_get(struct vg_h2c *c, const char *path);
void vg_h2c_reset(struct vg_h2c *c, const struct vg_h2c_stream *s, uint32_t error);
/* Open the windows again by n bytes; manual flow control only. stream NULL: the connection's. */
void vg_h2c_consume(struct vg_h2c *c, const struct vg_h2c_stream *s, size_t n);

/* Send what can be sent, read what is there. Returns the number of bytes read. */
size_t vg_h2c_step(struct vg_h2c *c);
/* Append one frame to b, for what a decent client never sends. */
void vg_h2c_frame(struct vg_buf *b, uint8_t type, uint8_t flags, uint32_t id, const void *p,
                  size_t n);
/* Raw bytes past nghttp2, for what a decent client never sends. */
void vg_h2c_raw(struct vg_h2c *c, const void *p, size_t n);

#endif
