/* listener_int.h - what server.c asks of listener.c. */
#ifndef VG_NET_LISTENER_INT_H
#define VG_NET_LISTENER_INT_H

#include "server.h"

void vg_listening_close_all(struct vg_http_server *s);
/* The same, for a server that drains. */
void vg_listening_drain(struct vg_http_server *s);
/* A server that closes: what others accepted for it is closed. */
void vg_listening_drop_arrivals(struct vg_http_server *s);
/* Close a socket that was accepted and may not stay. */
void vg_listening_refuse(struct vg_http_server *s, int take_fd);

#endif
