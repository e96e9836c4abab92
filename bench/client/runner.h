/* runner.h - a program that follows pods, ours or client-go's, led through pipes (see follower.c)
 * and looked at from outside: processor time by its own clock, memory through /proc. Thread: main.
 */
#ifndef BENCH_CLIENT_RUNNER_H
#define BENCH_CLIENT_RUNNER_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct runner {
    pid_t pid;
    FILE *to, *from;
};

/* Dies when it does not say that it is ready, or later does not answer as expected. */
void runner_start(struct runner *r, const char *program, const char *kubeconfig,
                  unsigned informers);
void runner_stop(struct runner *r);

/* Send a line; read the answer, which begins with `answer`: the number that follows, or 0. */
unsigned long runner_ask(struct runner *r, const char *line, const char *answer);
unsigned long runner_await(struct runner *r, const char *answer);

uint64_t runner_cpu_ns(const struct runner *r);
uint64_t runner_anonymous(const struct runner *r); /* bytes */
uint64_t runner_peak(const struct runner *r);      /* most bytes that were resident at once */

#endif
