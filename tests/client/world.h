/* world.h - a server that can be killed and started again, vigild or another behind a kubeconfig,
 * and a follower: an informer with a handler that keeps a model of its own from what it is told.
 * What cannot be done ends the test. */
#ifndef VG_TESTS_CLIENT_WORLD_H
#define VG_TESTS_CLIENT_WORLD_H

#include "test_support.h"

#include <sys/types.h>

#include "client/informer/informer_int.h"

struct server {
    const char *binary, *dir;
    pid_t pid;
    uint16_t port; /* the same after each start */
    char host[256];
    /* Another server: where it is, and a program that takes "start" and "kill" (NULL: it runs). */
    const char *kubeconfig, *control;
};
void server_start(struct server *s);
void server_kill(struct server *s); /* SIGKILL */
void server_end(struct server *s);  /* SIGTERM; it must end well */
/* cmocka's fixtures for a whole group: *state is a server, vigild as server_binary says. */
extern const char *server_binary;
int server_set_up(void **state);
int server_tear_down(void **state);
/* As administrator, through this port of 127.0.0.1. */
struct vigil_client *server_client(const struct server *s, uint16_t port,
                                   enum vigil_loop_mode mode);
/* The same on another clock; the test turns it (VIGIL_OWN_LOOP). */
struct vigil_client *server_client_on(const struct server *s, const struct vg_clock *clock);

struct follower {
    const char *name;
    const struct vigil_resource *resource;
    const char *ns, *selector;
    bool merges; /* its buffer does: then `before` may be older or newer than what was told */
    struct vigil_informer *i;
    struct vg_mutex mu;
    struct vg_cond told;
    struct vg_map model; /* key -> object that was told */
    size_t n_added, n_updated, n_deleted, n_tombstones;
};
struct follower_opts {
    enum vigil_queue queue;
    bool own_thread, no_watch_list;
    size_t buffer_max;
    unsigned page_size;
};
void follower_start(struct follower *f, struct vigil_client *c, const struct follower_opts *o);
void follower_end(struct follower *f);
/* Wait until store and handler show a write, then compare both with the server's list. */
void follower_compare(struct follower *f, struct vigil_client *direct, const char *mark,
                      struct vigil_text version);

#endif
