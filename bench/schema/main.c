/* main.c - bench_schema: protobuf by our tables beside protobuf-c's generated code. Ours reads JSON
 * text and makes trees of JSON, the other packs structs that are there already and makes structs:
 * this is what a server would do with each. Rates are of protobuf bytes on both sides, medians of
 * CPU time over rounds in which the sides take turns; the bar is 0.7 of the other's rate.
 *     bench_schema          all of it
 *     bench_schema encode   ours alone, a fixed number of passes, for callgrind; also: decode, size
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_schema.h"
#include "timing.h"

#define ROUNDS 15u
#define PASSES 8u
#define BAR 0.7

void must(int r)
{
    if (r < 0) {
        fprintf(stderr, "bench_schema: %s\n", vg_err_text(r));
        abort();
    }
}

static double time_of(void (*run)(void *), void *state)
{
    double start = bench_thread_ns();
    for (unsigned i = 0; i < PASSES; i++)
        run(state);
    return (bench_thread_ns() - start) * 1e-9 / PASSES;
}

#if defined(HAVE_PROTOBUF_C)
static const struct contender *const other = &with_protobuf_c;
#else
static const struct contender *const other = NULL;
#endif

static void *open_checked(const struct contender *c, const struct pods *pods)
{
    void *state = c->open(pods);
    if (!c->check(state)) {
        fprintf(stderr, "bench_schema: %s makes other bytes\n", c->name);
        abort();
    }
    return state;
}

/* One line; false: below the bar. */
static bool compare(const struct pods *p, const char *what, void (*ours)(void *), void *our_state,
                    void (*theirs)(void *), void *their_state)
{
    double a[ROUNDS], b[ROUNDS], ratio[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        a[i] = time_of(ours, our_state);
        b[i] = theirs ? time_of(theirs, their_state) : a[i];
        ratio[i] = b[i] / a[i];
    }
    double mine = bench_median(a, ROUNDS), r = bench_median(ratio, ROUNDS);
    printf("%-26s %-7s %7.0f MB/s of protobuf, %5.0f MB/s of JSON", p->name, what,
           (double)p->bytes_n / mine / 1e6, (double)p->json_n / mine / 1e6);
    if (theirs)
        printf("; protobuf-c %5.0f MB/s, ratio %.2f (%.2f to %.2f)",
               (double)p->bytes_n / bench_median(b, ROUNDS) / 1e6, r, ratio[0], ratio[ROUNDS - 1]);
    printf("\n");
    return !theirs || r >= BAR;
}

static bool run(void (*make)(struct pods *))
{
    static struct pods p;
    make(&p);
    printf("%s: %zu bytes of JSON, %zu of protobuf each\n", p.name, p.json_n / PODS,
           p.bytes_n / PODS);
    void *ours = open_checked(&with_vigil, &p);
    void *theirs = other ? open_checked(other, &p) : NULL;
    bool ok = compare(&p, "encode", with_vigil.encode, ours, other ? other->encode : NULL, theirs);
    ok &= compare(&p, "decode", with_vigil.decode, ours, other ? other->decode : NULL, theirs);
    (void)compare(&p, "size", with_vigil.measure, ours, other ? other->measure : NULL, theirs);
    with_vigil.close(ours);
    if (other)
        other->close(theirs);
    for (unsigned i = 0; i < PODS; i++) {
        vg_buf_done(&p.json[i]);
        vg_buf_done(&p.bytes[i]);
    }
    return ok;
}

static int run_alone(const char *what)
{
    static struct pods p;
    pods_make_labelled(&p);
    void *state = with_vigil.open(&p);
    for (unsigned i = 0; i < PASSES; i++)
        (strcmp(what, "encode") == 0 ? with_vigil.encode
         : strcmp(what, "size") == 0 ? with_vigil.measure
                                     : with_vigil.decode)(state);
    printf("%zu bytes of JSON, %zu of protobuf\n", PASSES * p.json_n, PASSES * p.bytes_n);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_alone(argv[1]);
    bool ok = run(pods_make_labelled);
    ok &= run(pods_make_managed);
    if (!ok)
        printf("the bar of %.1f times protobuf-c is missed\n", BAR);
    return ok ? 0 : 1;
}
