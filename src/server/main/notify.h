/* notify.h - what systemd wants to know, without its library: the protocol is one datagram.
 * Without NOTIFY_SOCKET in the environment nothing is sent. Thread: one. */
#ifndef VG_MAIN_NOTIFY_H
#define VG_MAIN_NOTIFY_H

#include <stdint.h>

#include "base/macros.h"

/* "READY=1", "STOPPING=1", "WATCHDOG=1"; several lines may go together. */
void vg_notify(const char *state);
/* How often a sign of life is wanted; 0: not at all. */
uint64_t vg_notify_watchdog_ms(void);
/* Sockets that came with the process (LISTEN_FDS); they begin at *ret_first. */
int vg_notify_sockets(int *ret_first);

#endif
