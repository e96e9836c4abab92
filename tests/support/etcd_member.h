/* etcd_member.h - a real etcd for tests: one member on ports of its own, in a directory of its own,
 * that dies with the test. Nothing returns an error: what cannot be done ends the run. */
#ifndef VG_TEST_ETCD_MEMBER_H
#define VG_TEST_ETCD_MEMBER_H

#include <stdbool.h>
#include <sys/types.h>

/* The program of this version ("34", "35", "36": VG_ETCD_34 ... in the environment, which
 * vg_needs_etcd() in CMake sets). NULL: it is not there, which is said on stdout. */
const char *vg_test_etcd_binary(const char *version);

struct vg_test_etcd {
    char url[64]; /* http://127.0.0.1:port, or https:// */
    char dir[256];
    const char *binary;
    const char *const *extra; /* further arguments, up to NULL; borrowed until the end */
    bool is_tls;              /* its client side; `extra` names the files */
    int client_port, peer_port, metrics_port;
    pid_t pid;   /* 0: it does not run */
    bool is_new; /* may be moved to other ports */
};
/* Start it, and wait until it is healthy. Set binary, extra and is_tls; the rest is filled in. */
void vg_test_etcd_start(struct vg_test_etcd *e);
/* The same in two steps, for who has something else to do meanwhile. */
void vg_test_etcd_begin(struct vg_test_etcd *e);
void vg_test_etcd_wait(struct vg_test_etcd *e);
/* End it: kill -9. Its data and ports stay, so that start brings it back. */
void vg_test_etcd_kill(struct vg_test_etcd *e);
/* End it if it runs, and remove its data. */
void vg_test_etcd_remove(struct vg_test_etcd *e);
/* A fresh one that does not sync, for tests that need many: the next is started meanwhile. Ends the
 * run when there is none of this version. */
struct vg_test_etcd *vg_test_etcd_take(const char *version);
void vg_test_etcd_give(struct vg_test_etcd *e); /* takes NULL */
/* SIGSTOP and SIGCONT. */
void vg_test_etcd_pause(struct vg_test_etcd *e);
void vg_test_etcd_go_on(struct vg_test_etcd *e);

#endif
