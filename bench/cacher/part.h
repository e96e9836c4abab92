/* part.h - the parts of this bench. Each runs in a process of its own: memory that one has freed
 * does not hide what the next one takes, and one that crashes does not end the others. */
#ifndef BENCH_CACHER_PART_H
#define BENCH_CACHER_PART_H

#include "report.h"

/* A report that child processes write to. */
struct report *part_shared_report(void);

/* Runs fn(r, arg) in a child and waits. False: it died, and stderr says how. Called while this
 * process has one thread. */
bool part_in_child(void (*fn)(struct report *r, void *arg), struct report *r, void *arg);

void part_dispatch(struct report *r);
void part_uninterested(struct report *r);
void part_resume(struct report *r);
void part_memory(struct report *r);
void part_watcher(struct report *r);
void part_tree(struct report *r);
void part_list(struct report *r);
void part_refill(struct report *r);

#endif
