/* informers.h - clients as controllers are: they watch, go on from the last event when a watch
 * breaks, and list again only when the server makes them. For a server that is restarted under
 * them. Thread: one owner, who turns them. */
#ifndef VG_CLI_BENCH_INFORMERS_H
#define VG_CLI_BENCH_INFORMERS_H

#include "base/hist.h"
#include "conn.h"

struct vg_bench_informers;

struct vg_bench_informers_opts {
    struct vg_bench_engine *engine; /* shared with the owner */
    const struct vg_bench_target *target;
    uint32_t n;
    unsigned streams;
    bool is_h2, is_protobuf;
    const char *collection; /* path; outlives them */
    const char *version;    /* that they have listed at; copied */
};

struct vg_bench_informers_count {
    uint32_t watching;
    uint32_t broken;    /* that have lost a watch at least once */
    uint32_t caught_up; /* that know of the change named below */
    uint64_t relists, list_bytes, tries;
    uint64_t broke_ns;     /* when the first watch broke; 0: none has */
    uint64_t caught_up_ns; /* when the last one caught up */
};

VG_CHECK int vg_bench_informers_new(const struct vg_bench_informers_opts *opts,
                                    struct vg_bench_informers **ret);
void vg_bench_informers_free(struct vg_bench_informers *x);
/* After each turn of the engine: those whose time has come try again. 0, -ENOMEM. */
VG_CHECK int vg_bench_informers_tend(struct vg_bench_informers *x);
/* The change to know of: its mark's number, and the resourceVersion that it was acknowledged with
 * (0: not yet), for those who list it. */
void vg_bench_informers_expect(struct vg_bench_informers *x, uint64_t number, uint64_t version);
void vg_bench_informers_count(const struct vg_bench_informers *x,
                              struct vg_bench_informers_count *ret);

#endif
