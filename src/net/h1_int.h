/* h1_int.h - what the files of the HTTP/1.1 codec share.
 *
 *   IDLE --first byte--> HEAD --on_head--> BODY --whole--> WHOLE --answer sent--> IDLE, or finish
 *                          |                 |               |
 *                          +-----------------+---------------+--> refused or cut: finish
 *
 * One exchange at a time: what arrives after a whole request waits in `ahead` until its answer has
 * been taken by the socket.
 *   H1 a byte reaches llhttp only after our own look at the lines of the head (h1_lines.c): no bare
 *      CR or LF, no folded line, no NUL.
 *   H2 every byte in conn->out belongs to the one exchange: x.unsent == conn->out.n. */
#ifndef VG_NET_H1_INT_H
#define VG_NET_H1_INT_H

#include <llhttp.h>

#include "conn_int.h"
#include "ws.h"

/* 256 KiB: what is read of a body that nobody wants, to keep the connection. */
#define VG_H1_UNWANTED_MAX (256u * 1024u)

enum vg_h1_state { VG_H1_IDLE, VG_H1_HEAD, VG_H1_BODY, VG_H1_WHOLE };

/* Where the look at the head's lines stands, between two pieces. */
struct vg_h1_lines {
    bool after_cr;
    bool in_line;  /* the line is not empty */
    bool has_line; /* there was one that was not empty */
};

/* Where the look at a chunked body stands, between two pieces. */
struct vg_h1_chunks {
    uint64_t left; /* of the chunk's size while it is read, then of its bytes */
    uint8_t state; /* of h1_chunks.c */
    uint8_t n_digits;
};

struct vg_h1 {
    struct vg_codec codec;
    struct vg_http_exchange x;
    llhttp_t parser;
    struct vg_ws *ws; /* from its acceptance on */
    struct vg_buf ahead;
    size_t ahead_at;      /* how much of it was used */
    uint64_t read_due_ns; /* IDLE and HEAD: too late then */
    uint64_t arrived;     /* bytes of this head, then of this body */
    const char *refuse_why;
    int refuse_status; /* set by a callback that stops the parser */
    uint32_t held;     /* by the socket after the last send or look, while the answer waits */
    struct vg_h1_lines lines;
    struct vg_h1_chunks chunks;
    uint8_t state;      /* enum vg_h1_state */
    uint8_t preface;    /* how much of HTTP/2's came; NOT_H2: it is not one */
    bool is_keep_alive; /* after this answer */
    bool is_chunked;    /* the answer */
    bool has_length, has_host, is_body_chunked;
    bool wants_continue; /* the client waits for it before it sends the body */
    bool is_draining;
    bool is_ending; /* no more is read: finish when the answer is sent */
    bool is_ws_over;
};

/* h1_lines.c: look at n bytes of a head. How many of them belong to it, and whether it is whole;
 * VIGIL_E_INVALID. */
VG_CHECK int vg_h1_lines_check(struct vg_h1_lines *l, const char *p, size_t n, size_t *ret_n,
                               bool *ret_is_whole);

/* h1_chunks.c: look at n bytes of a chunked body. The first *ret_pass of them are for the parser,
 * the *ret_skip bytes after those belong to an extension; more may follow. VIGIL_E_INVALID. */
VG_CHECK int vg_h1_chunks_next(struct vg_h1_chunks *c, const char *p, size_t n, size_t *ret_pass,
                               size_t *ret_skip);

/* h1_parse.c: begin a request; give bytes of its head or body to llhttp. */
VG_CHECK int vg_h1_begin(struct vg_h1 *h);
/* How many bytes were used; all, unless the request became whole or was refused (refuse_status). */
size_t vg_h1_parse(struct vg_h1 *h, const char *p, size_t n);
/* Stop the parser with this answer to come. */
int vg_h1_refuse_with(struct vg_h1 *h, int status, const char *why);

/* h1.c: when the body must have come, or its next piece. */
uint64_t vg_h1_body_due(const struct vg_h1 *h);
/* h1_answer.c */
extern const struct vg_exchange_ops vg_h1_exchange_ops;
/* "100 Continue", if the client waits for it. 0, -ENOMEM. */
VG_CHECK int vg_h1_say_continue(struct vg_h1 *h);
/* What a client says on its WebSocket. */
void vg_h1_receive_ws(struct vg_h1 *h, const char *p, size_t n);

static inline struct vg_h1 *vg_h1_of(struct vg_http_exchange *x)
{
    return VG_CONTAINER_OF(x, struct vg_h1, x);
}

#endif
