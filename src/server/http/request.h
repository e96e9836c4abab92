/* request.h - one request, from its head to its close: the functions that net calls. */
#ifndef VG_SERVER_HTTP_REQUEST_H
#define VG_SERVER_HTTP_REQUEST_H

#include "net/http.h"

/* Its arg is the struct vg_gate. */
extern const struct vg_http_handler vg_request_handler;

#endif
