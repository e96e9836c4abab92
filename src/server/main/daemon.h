/* daemon.h - vigild, assembled: the store, the cache, the loops that serve, and their order of
 * coming and going.
 *
 *   start  data directory -> certificates (on a thread) beside store -> cache (on the feed loop)
 *          -> sockets -> loops
 *   drain  readyz fails -> no new connections -> watches and requests end in order
 *   stop   connections cut -> cache -> store -> lock
 *
 * Thread: the one that starts it, for everything here. */
#ifndef VG_MAIN_DAEMON_H
#define VG_MAIN_DAEMON_H

#include <signal.h>

#include "config.h"

struct vg_daemon;

/* 0, or an error with a sentence; then nothing is left open. */
VG_CHECK int vg_daemon_start(const struct vg_config *config, struct vg_daemon **ret_daemon,
                             struct vg_status *reterr_status);
/* The cache holds what the store has: requests can be answered. */
bool vg_daemon_is_ready(struct vg_daemon *d);
/* What to print when ready: where it is and how to connect. Valid as long as the daemon. */
const char *vg_daemon_greeting(struct vg_daemon *d);

/* Read certificates and tokens again; what fails is logged and the old ones stay. */
void vg_daemon_reload(struct vg_daemon *d);
/* Renew certificates that end soon. */
void vg_daemon_renew(struct vg_daemon *d);
/* Is the store still where it was? If not, that is logged once, and health checks fail from then
 * on.
 */
void vg_daemon_look_at_store(struct vg_daemon *d);
/* A sign of life from every loop since the last call? */
bool vg_daemon_is_alive(struct vg_daemon *d);

/* From now on /readyz fails. */
/* why: the signal that says so, for the log. */
void vg_daemon_announce_end(struct vg_daemon *d, const siginfo_t *why);
/* No new connections; watches and requests are to end. */
void vg_daemon_drain(struct vg_daemon *d);
bool vg_daemon_is_drained(struct vg_daemon *d);
/* Cut what is left and close everything. */
void vg_daemon_stop(struct vg_daemon *d);

#endif
