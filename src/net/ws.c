/* ws.c - WebSocket frames: ours are written here, the client's are read by wslay.
 * A watch over a WebSocket lives for long and hears next to nothing, so that wslay's context (4
 * KiB) exists only while a frame of the client is under way. What clients send is unmasked, looked
 * at as far as the protocol asks, and dropped. */
#include "ws.h"

#include <errno.h>
#include <openssl/evp.h>
#include <strings.h>
#include <wslay/wslay.h>

#include "base/alloc.h"
#include "base/utf8.h"

/* RFC 6455, 1.3 */
#define ACCEPT_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
/* 24: 16 bytes in base64. */
#define KEY_LEN 24u
/* RFC 6455, 5.5: control frames carry no more. */
#define CONTROL_MAX 125u
/* 64 KiB: with more than this waiting, pings go unanswered: the client does not read. */
#define PONG_ROOM (64u * 1024u)

struct vg_ws {
    struct vg_outq *out;
    struct wslay_frame_context *frames; /* NULL: no frame is under way */
    const char *in;                     /* what receive() was given and wslay has not taken */
    size_t n_in;
    uint64_t n_given;   /* bytes that wslay took since its context was made */
    uint64_t n_whole;   /* of these, in frames that are complete */
    uint64_t n_payload; /* of the frame under way */
    uint8_t n_control;
    bool is_binary;
    bool in_message; /* between the fragments of a message */
    bool has_head;   /* the head of the frame under way has been looked at */
    bool did_close, is_closed;
    char control[CONTROL_MAX];
};

/* ---- the upgrade ---- */

static struct vg_slice field(const struct vg_http_request *r, const char *name)
{
    struct vg_slice want = vg_slice_str(name);
    for (size_t i = 0; i < r->n_fields; i++)
        if (vg_slice_eq(r->fields[i].name, want))
            return r->fields[i].value;
    return (struct vg_slice){NULL, 0};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Is it one of a list with commas, in any case of letters? */
static bool has_token(struct vg_slice list, const char *token)
{
    size_t len = strlen(token), at = 0;
    while (at < list.n) {
        const char *comma = memchr(list.p + at, ',', list.n - at);
        size_t end = comma ? (size_t)(comma - list.p) : list.n, next = end + 1;
        while (at < end && is_blank(list.p[at]))
            at++;
        while (end > at && is_blank(list.p[end - 1]))
            end--;
        if (end - at == len && strncasecmp(list.p + at, token, len) == 0)
            return true;
        at = next;
    }
    return false;
}

static bool is_base64(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

static bool is_key(struct vg_slice key)
{
    for (size_t i = 0; i < key.n; i++)
        if (i < KEY_LEN - 2 ? !is_base64(key.p[i]) : key.p[i] != '=')
            return false;
    return key.n == KEY_LEN;
}

bool vg_ws_is_upgrade(const struct vg_http_request *r)
{
    return r->method == VG_HTTP_GET && r->carrier == VG_HTTP_1_1 &&
           has_token(field(r, "connection"), "upgrade") &&
           has_token(field(r, "upgrade"), "websocket") &&
           vg_slice_eq(field(r, "sec-websocket-version"), VG_SLICE_LIT("13")) &&
           is_key(field(r, "sec-websocket-key"));
}

/* 28 characters and a NUL. */
static int accept_text(struct vg_slice key, char ret_text[32])
{
    char text[KEY_LEN + sizeof(ACCEPT_GUID)];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n;
    if (VG_NEVER(key.n != KEY_LEN)) /* vg_ws_is_upgrade said that it is */
        return VIGIL_E_INVALID;
    memcpy(text, key.p, KEY_LEN);
    memcpy(text + KEY_LEN, ACCEPT_GUID, sizeof(ACCEPT_GUID));
    if (EVP_Digest(text, sizeof(text) - 1, digest, &n, EVP_sha1(), NULL) != 1 || n != 20)
        return -ENOMEM;
    EVP_EncodeBlock((unsigned char *)ret_text, digest, 20);
    return 0;
}

static int put_head(const struct vg_http_request *r, const char *subprotocol, struct vg_outq *out)
{
    char accept[32];
    VG_AUTO(buf) head = {0};
    int e = accept_text(field(r, "sec-websocket-key"), accept);
    if (e == 0)
        e = vg_buf_printf(&head,
                          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                          "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n",
                          accept);
    if (e == 0 && subprotocol)
        e = vg_buf_printf(&head, "Sec-WebSocket-Protocol: %s\r\n", subprotocol);
    if (e == 0)
        e = vg_buf_append(&head, "\r\n", 2);
    return e < 0 ? e : vg_outq_copy(out, head.p, head.n);
}

int vg_ws_accept(const struct vg_http_request *r, const char *subprotocol, bool is_binary,
                 struct vg_outq *out, struct vg_ws **ret_ws)
{
    struct vg_ws *ws = vg_new(struct vg_ws);
    if (!ws)
        return -ENOMEM;
    ws->out = out;
    ws->is_binary = is_binary;
    int e = put_head(r, subprotocol, out);
    if (e < 0) {
        vg_ws_free(ws);
        return e;
    }
    *ret_ws = ws;
    return 0;
}

void vg_ws_free(struct vg_ws *ws)
{
    if (!ws)
        return;
    if (ws->frames)
        wslay_frame_context_free(ws->frames);
    vg_free(ws);
}

/* ---- our frames ---- */

/* A head without a mask, in one frame that is final: 2, 4 or 10 bytes. */
static size_t frame_head(uint8_t opcode, uint64_t n, uint8_t ret_head[10])
{
    size_t wide = n < 126 ? 0 : n <= UINT16_MAX ? 2 : 8;
    ret_head[0] = (uint8_t)(0x80u | opcode);
    ret_head[1] = (uint8_t)(wide == 0 ? n : wide == 2 ? 126u : 127u);
    for (size_t i = 0; i < wide; i++)
        ret_head[2 + i] = (uint8_t)(n >> (8 * (wide - 1 - i)));
    return 2 + wide;
}

static int put_control(struct vg_ws *ws, uint8_t opcode, const char *p, size_t n)
{
    uint8_t frame[2 + CONTROL_MAX];
    size_t head = frame_head(opcode, n, frame);
    if (n > 0)
        memcpy(frame + head, p, n);
    return vg_outq_copy(ws->out, frame, head + n);
}

/* code 0: a close frame that says nothing. */
static int put_close(struct vg_ws *ws, unsigned code)
{
    char text[2] = {(char)(code >> 8), (char)(code & 0xff)};
    if (ws->did_close)
        return 0;
    ws->did_close = true;
    return put_control(ws, WSLAY_CONNECTION_CLOSE, text, code ? 2 : 0);
}

int vg_ws_write(struct vg_ws *ws, const struct vg_slice *v, size_t n, const struct vg_http_pin *pin)
{
    uint8_t head[10];
    uint64_t total = 0;
    if (ws->did_close)
        return 0; /* the client said goodbye */
    for (size_t i = 0; i < n; i++)
        total += v[i].n;
    size_t len = frame_head(ws->is_binary ? WSLAY_BINARY_FRAME : WSLAY_TEXT_FRAME, total, head);
    int e = vg_outq_copy(ws->out, head, len);
    return e < 0 ? e : vg_outq_put(ws->out, v, n, pin);
}

int vg_ws_end(struct vg_ws *ws)
{
    return put_close(ws, WSLAY_CODE_NORMAL_CLOSURE);
}

/* ---- the client's frames ---- */

static int broken(struct vg_ws *ws, unsigned code)
{
    ws->is_closed = true;
    int e = put_close(ws, code);
    return e < 0 ? e : VIGIL_E_INVALID;
}

static ssize_t give_bytes(uint8_t *buf, size_t max, int flags, void *arg)
{
    struct vg_ws *ws = arg;
    size_t n = VG_MIN(max, ws->n_in);
    (void)flags;
    if (n == 0)
        return -1;
    memcpy(buf, ws->in, n);
    ws->in += n;
    ws->n_in -= n;
    ws->n_given += n;
    return (ssize_t)n;
}

static int begin_frames(struct vg_ws *ws)
{
    struct wslay_frame_callbacks cb = {.recv_callback = give_bytes};
    if (!ws->frames && wslay_frame_context_init(&ws->frames, &cb, ws) != 0) {
        ws->frames = NULL;
        return -ENOMEM;
    }
    return 0;
}

/* wslay holds nothing of a frame to come: let its context go. */
static void end_frames(struct vg_ws *ws)
{
    if (!ws->frames || ws->has_head || ws->n_given != ws->n_whole)
        return;
    wslay_frame_context_free(ws->frames);
    ws->frames = NULL;
    ws->n_given = ws->n_whole = 0;
}

/* Codes that may be sent: RFC 6455, 7.4. */
static bool is_close_code(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

static int on_close_frame(struct vg_ws *ws)
{
    unsigned code = 0;
    if (ws->n_control == 1)
        return broken(ws, WSLAY_CODE_PROTOCOL_ERROR);
    if (ws->n_control >= 2) {
        code = ((unsigned)(uint8_t)ws->control[0] << 8) | (uint8_t)ws->control[1];
        if (!is_close_code(code))
            return broken(ws, WSLAY_CODE_PROTOCOL_ERROR);
        if (!vg_utf8_is_valid(vg_slice(ws->control + 2, ws->n_control - 2u)))
            return broken(ws, WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA);
    }
    ws->is_closed = true;
    int e = put_close(ws, code);
    return e < 0 ? e : 1;
}

static bool is_head_valid(const struct vg_ws *ws, const struct wslay_frame_iocb *f)
{
    if (!f->mask || f->rsv != WSLAY_RSV_NONE)
        return false;
    switch (f->opcode) {
    case WSLAY_CONTINUATION_FRAME:
        return ws->in_message;
    case WSLAY_TEXT_FRAME:
    case WSLAY_BINARY_FRAME:
        return !ws->in_message;
    case WSLAY_CONNECTION_CLOSE:
    case WSLAY_PING:
    case WSLAY_PONG:
        return true;
    default:
        return false;
    }
}

static int on_frame_end(struct vg_ws *ws, const struct wslay_frame_iocb *f)
{
    uint64_t wide = f->payload_length < 126 ? 0 : f->payload_length <= UINT16_MAX ? 2 : 8;
    ws->n_whole += 2 + wide + 4 + f->payload_length;
    ws->has_head = false;
    if (!wslay_is_ctrl_frame(f->opcode))
        ws->in_message = !f->fin;
    if (f->opcode == WSLAY_CONNECTION_CLOSE)
        return on_close_frame(ws);
    if (f->opcode == WSLAY_PING && !ws->did_close && vg_outq_size(ws->out) < PONG_ROOM)
        return put_control(ws, WSLAY_PONG, ws->control, ws->n_control);
    return 0;
}

/* A piece of a frame, with its head each time. */
static int on_piece(struct vg_ws *ws, const struct wslay_frame_iocb *f)
{
    if (!ws->has_head) {
        if (!is_head_valid(ws, f))
            return broken(ws, WSLAY_CODE_PROTOCOL_ERROR);
        ws->has_head = true;
        ws->n_payload = 0;
        ws->n_control = 0;
    }
    ws->n_payload += f->data_length;
    if (wslay_is_ctrl_frame(f->opcode) && f->data_length > 0) { /* wslay keeps to CONTROL_MAX */
        memcpy(ws->control + ws->n_control, f->data, f->data_length);
        ws->n_control = (uint8_t)(ws->n_control + f->data_length);
    }
    return ws->n_payload == f->payload_length ? on_frame_end(ws, f) : 0;
}

int vg_ws_receive(struct vg_ws *ws, const char *p, size_t n)
{
    int e = 0;
    if (ws->is_closed || n == 0)
        return ws->is_closed;
    e = begin_frames(ws);
    ws->in = p;
    ws->n_in = n;
    while (e == 0) {
        struct wslay_frame_iocb f = {0};
        ssize_t r = wslay_frame_recv(ws->frames, &f);
        if (r == WSLAY_ERR_WANT_READ)
            break;
        e = r < 0 ? broken(ws, WSLAY_CODE_PROTOCOL_ERROR) : on_piece(ws, &f);
    }
    ws->in = NULL;
    ws->n_in = 0;
    if (e == 0)
        end_frames(ws);
    return e;
}
