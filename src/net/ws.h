/* ws.h - WebSocket (RFC 6455) over an HTTP/1.1 connection that was upgraded: no I/O, bytes in and
 * out. The h1 codec recognises the upgrade and hands over what follows it. Thread: the loop's. */
#ifndef VG_NET_WS_H
#define VG_NET_WS_H

#include "outq.h"

struct vg_ws;

/* GET on HTTP/1.1 with Connection: upgrade, Upgrade: websocket, version 13 and a key of 16 bytes.
 */
bool vg_ws_is_upgrade(const struct vg_http_request *r);
/* Accept: the whole 101 head is put into out, which is kept (the connection's). `subprotocol` NULL:
 * none is named. 0, -ENOMEM. */
VG_CHECK int vg_ws_accept(const struct vg_http_request *r, const char *subprotocol, bool is_binary,
                          struct vg_outq *out, struct vg_ws **ret_ws);
void vg_ws_free(struct vg_ws *ws);
/* One message. 0, -ENOMEM. */
VG_CHECK int vg_ws_write(struct vg_ws *ws, const struct vg_slice *v, size_t n,
                         const struct vg_http_pin *pin);
/* Queue a close frame with code 1000. 0, -ENOMEM. Nothing is written after it. */
VG_CHECK int vg_ws_end(struct vg_ws *ws);
/* What the client sent: data is dropped, pings are answered into out, a close frame too.
 * 0; 1: the client closed: send what waits, then close; VIGIL_E_INVALID: it broke the protocol or
 * a limit, and a close frame that says so is in out; -ENOMEM. */
VG_CHECK int vg_ws_receive(struct vg_ws *ws, const char *p, size_t n);

#endif
