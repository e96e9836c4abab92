/* crowd.h - many sockets that are read and forgotten, by a thread of its own: the readers of a
 * fan-out, at the least cost that a reader can have (the kernel drops the bytes, nothing is copied
 * or decrypted). Counts bytes for each socket and notes when each first got something after a mark.
 * Thread: made, added to and asked by one; the reading thread is the crowd's. */
#ifndef BENCH_SERVER_CROWD_H
#define BENCH_SERVER_CROWD_H

#include "measure.h"

struct crowd;

struct crowd *crowd_new(size_t max);
void crowd_free(struct crowd *c); /* closes the sockets */
/* Taken. */
void crowd_add(struct crowd *c, int take_fd);
/* Read only when no socket has got anything new for so long; when bytes came is what the kernel
 * says (late.h). For all sockets that were added before. */
#define LULL_MS 2u
void crowd_read_late(struct crowd *c, unsigned lull_ms);
size_t crowd_size(const struct crowd *c);

uint64_t crowd_bytes(const struct crowd *c); /* in all */
size_t crowd_closed(const struct crowd *c);  /* ended by the other side */
/* Wait until the whole crowd has got so many bytes in all, or nothing comes for 10 s. */
bool crowd_await(const struct crowd *c, uint64_t bytes);
/* Wait until nothing has come for so long. */
void crowd_await_quiet(const struct crowd *c, uint64_t ms);
/* From now on the time of each socket's first bytes is kept; *into gets how long after `since_ns`
 * they came, 0 when before. */
void crowd_mark(struct crowd *c);
void crowd_first_arrivals(const struct crowd *c, uint64_t since_ns, struct vg_hist *into);

#endif
