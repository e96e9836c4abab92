/* mux.h - libcurl's multi interface on a vg_loop: its sockets are polled by libuv, its one timer is
 * a timer of libuv's. libcurl does not like to be called from its own callbacks: what they want
 * done is deferred until it has returned (vg_mux_defer).
 * Thread: the loop's. */
#ifndef VG_CLIENT_TRANSPORT_MUX_H
#define VG_CLIENT_TRANSPORT_MUX_H

#include <curl/curl.h>

#include "base/list.h"
#include "loop/loop.h"

struct vg_mux;

/* Done when libcurl has returned; link is unlinked first. */
struct vg_mux_job {
    struct vg_list link;
    void (*run)(struct vg_mux_job *job);
};

/* done(arg of the handle's CURLOPT_PRIVATE, result): the transfer has ended; its handle is still
 * added. 0, -ENOMEM. */
VG_CHECK int vg_mux_new(struct vg_loop *loop, void (*done)(void *private_arg, CURLcode result),
                        struct vg_mux **ret);
/* No handle is added any more. The loop must turn once more or be freed. */
void vg_mux_free(struct vg_mux *m);

/* 0 or a CURLMcode. Not from within a callback of libcurl. */
int vg_mux_add(struct vg_mux *m, CURL *easy);
void vg_mux_remove(struct vg_mux *m, CURL *easy);
void vg_mux_unpause(struct vg_mux *m, CURL *easy);
/* At once when libcurl is not running. A job that waits already is done once; its run may have
 * changed meanwhile. Zeroed before its first use. */
void vg_mux_defer(struct vg_mux *m, struct vg_mux_job *job);

#endif
