/* lossy_proxy.h - a TCP proxy on loopback that can lose what passes through it, for tests of
 * answers that never come. It has a thread of its own. What cannot be done ends the process. */
#ifndef VG_TESTS_LOSSY_PROXY_H
#define VG_TESTS_LOSSY_PROXY_H

#include <pthread.h>
#include <stdatomic.h>

#define VG_PROXY_PAIRS_MAX 32

enum vg_proxy_mode {
    VG_PROXY_PASS,
    VG_PROXY_LOSE_ANSWERS,  /* requests arrive; what comes back is thrown away */
    VG_PROXY_LOSE_REQUESTS, /* what the client sends is thrown away */
    VG_PROXY_BREAK,         /* every connection is closed; then PASS */
};

struct vg_proxy {
    int upstream_port, listener, wake[2];
    char url[64]; /* http://127.0.0.1:port */
    pthread_t thread;
    _Atomic int mode;
    _Atomic unsigned lost;            /* pieces that were thrown away since the mode was set */
    int pairs[VG_PROXY_PAIRS_MAX][2]; /* client, upstream */
    int n_pairs;
};

void vg_proxy_start(struct vg_proxy *p, int upstream_port);
void vg_proxy_stop(struct vg_proxy *p);
void vg_proxy_set(struct vg_proxy *p, enum vg_proxy_mode mode);
/* Until something was thrown away. */
void vg_proxy_wait_lost(struct vg_proxy *p);

#endif
