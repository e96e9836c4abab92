/* hostile.h - a server that does what no server should, in one of many ways, until it is healed;
 * then it serves the truth. HTTP/1.1 on plain sockets, a thread per connection. What it knows is a
 * few pods; everything else is 404. Nothing here checks anything: hostile_test.c does. */
#ifndef VG_TESTS_CLIENT_HOSTILE_H
#define VG_TESTS_CLIENT_HOSTILE_H

#include "client/transport/script_server_testing.h"

enum hostile_ask { ASK_LIST = 1, ASK_WATCH = 2, ASK_STREAM = 4, ASK_OTHER = 8 };
#define ASK_POD_WATCH (ASK_WATCH | ASK_STREAM)
#define ASK_ALL 15

enum hostile_end {
    END_CLOSE,
    END_RESET,
    END_HOLD,   /* nothing more comes */
    END_FLOOD,  /* the last `tail` bytes again and again, up to HOSTILE_FLOOD_MAX */
    END_SLOW,   /* a byte now and then */
    END_CUT,    /* the truth, closed after a few bytes, more each time */
    END_REFUSE, /* the connection is reset before anything is read */
};

struct hostile_way {
    const char *name;
    unsigned asks;     /* which requests are treated so; others are served the truth */
    const char *bytes; /* what is sent, from the status line on */
    enum hostile_end end;
    size_t tail;
    bool is_harmless; /* the truth comes through: nobody needs to be told */
};
extern const struct hostile_way hostile_ways[];
extern const size_t hostile_n_ways;

#define HOSTILE_FLOOD_MAX ((size_t)4 << 20)
#define HOSTILE_CONNS_MAX 4096
#define HOSTILE_PODS 8

struct hostile {
    int fd, port;
    pthread_t thread;
    pthread_mutex_t mu; /* guards what follows */
    const struct hostile_way *way;
    bool is_healed, is_stopping;
    unsigned version; /* of the truth */
    unsigned n_asked, n_cut;
    int conns[HOSTILE_CONNS_MAX];
    pthread_t threads[HOSTILE_CONNS_MAX];
    unsigned n_conns;
};

void hostile_start(struct hostile *s, const struct hostile_way *way);
/* The truth changes, connections are cut, and from now on it is served. */
void hostile_heal(struct hostile *s);
void hostile_stop(struct hostile *s);
/* The truth: pod i of HOSTILE_PODS, its version; 0: there is none. */
unsigned hostile_truth(unsigned version, unsigned i);

#endif
