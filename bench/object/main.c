/* main.c - bench_object: the memory of a cached object, and the time of a look at its header beside
 * the time of parsing it. The objects are a thousand label-rich pods of about 4 KB, all different,
 * which do not fit the inner caches; times are medians of CPU time over rounds. Fails when the bar
 * of memory is missed: 1.25 times the JSON plus 200 bytes, with everything that malloc gives. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "object/object_testing.h"
#include "object/predicate.h"
#include "server/storage/record.h"
#include "timing.h"
#include "json/json.h"

#define PODS 1000u
#define LABELS 20u
#define ROUNDS 15u

struct bench {
    struct vg_rec *recs[PODS];
    struct vg_buf texts[PODS]; /* as clients send them */
    struct vg_arena arena;
    struct vg_json_scratch scratch;
    struct vg_obj_sealed sealed;
    struct vg_obj_predicate *predicate;
    uint64_t sink; /* what is computed is used */
};

/* ---- the objects ---- */

static void make_pod(struct bench *b, unsigned i)
{
    vg_buf_init(&b->texts[i], 0);
    vg_test_pod(&b->texts[i], i, LABELS);
    vg_arena_reset(&b->arena);
    vg_test_must(
        vg_obj_seal_text(&vg_test_pods, vg_buf_slice(&b->texts[i]), &b->arena, &b->sealed, NULL));
    char key[64];
    snprintf(key, sizeof key, "/registry/pods/team-%u/web-%u-7f9c6d5b4-x%04x", i % 20, i % 50, i);
    vg_test_must(vg_rec_new(VG_REC_PUT, vg_slice_str(key), vg_buf_slice(&b->sealed.header),
                            vg_buf_slice(&b->sealed.value), &b->recs[i]));
}

static struct bench *bench_new(void)
{
    struct bench *b = vg_new(struct bench);
    vg_test_must(b ? 0 : -1);
    vg_arena_init(&b->arena, 0, 0);
    vg_obj_sealed_init(&b->sealed);
    for (unsigned i = 0; i < PODS; i++)
        make_pod(b, i);
    return b;
}

static void bench_free(struct bench *b)
{
    for (unsigned i = 0; i < PODS; i++) {
        vg_rec_unref(b->recs[i]);
        vg_buf_done(&b->texts[i]);
    }
    vg_json_scratch_done(&b->scratch);
    vg_obj_sealed_done(&b->sealed);
    vg_arena_done(&b->arena);
    vg_free(b);
}

/* ---- memory ---- */

/* Average bytes of one; 0 when the bar is held, 1 when missed. */
static int report_memory(const struct bench *b)
{
    double json = 0, header = 0, key = 0, block = 0;
    for (unsigned i = 0; i < PODS; i++) {
        json += b->recs[i]->value_len;
        header += b->recs[i]->header_len;
        key += b->recs[i]->key_len;
        block += (double)malloc_usable_size(b->recs[i]) + sizeof(size_t); /* malloc's own word */
    }
    double bar = 1.25 * json + 200.0 * PODS;
    printf("memory of a cached pod with %u labels, bytes\n", LABELS);
    printf("  JSON             %7.0f\n", json / PODS);
    printf("  header           %7.0f\n", header / PODS);
    printf("  key              %7.0f\n", key / PODS);
    printf("  struct vg_rec    %7zu\n", sizeof(struct vg_rec));
    printf("  block in all     %7.0f  (%.3f times the JSON)\n", block / PODS, block / json);
    printf("  bar              %7.0f  %s\n\n", bar / PODS, block <= bar ? "held" : "MISSED");
    return block <= bar ? 0 : 1;
}

/* ---- time ---- */

typedef void job_fn(struct bench *b, unsigned i);

static void job_parse(struct bench *b, unsigned i)
{
    struct vg_json_opts opts = {.scratch = &b->scratch};
    struct vg_json *root;
    vg_arena_reset(&b->arena);
    vg_test_must(vg_json_parse(&b->arena, vg_rec_value(b->recs[i]), &opts, &root, NULL));
    b->sink += root->n;
}

static void job_seal(struct bench *b, unsigned i)
{
    vg_arena_reset(&b->arena);
    vg_test_must(
        vg_obj_seal_text(&vg_test_pods, vg_buf_slice(&b->texts[i]), &b->arena, &b->sealed, NULL));
    b->sink += b->sealed.header.n;
}

static void job_open(struct bench *b, unsigned i)
{
    struct vg_obj_header h;
    vg_test_must(vg_obj_header_open(vg_rec_header(b->recs[i]), vg_rec_value(b->recs[i]), &h));
    b->sink += h.rev_at;
}

static void job_match(struct bench *b, unsigned i)
{
    struct vg_obj_header h;
    vg_obj_header_read(vg_rec_header(b->recs[i]), vg_rec_value(b->recs[i]), &h);
    b->sink += vg_obj_predicate_matches(b->predicate, &h);
}

static void job_frame(struct bench *b, unsigned i)
{
    struct vg_obj_header h;
    struct vg_obj_splice s;
    vg_obj_header_read(vg_rec_header(b->recs[i]), vg_rec_value(b->recs[i]), &h);
    vg_obj_splice_frame(&s, VG_OBJ_MODIFIED, &h, 1000000000 + i);
    b->sink += s.v[2].n;
}

/* Median nanoseconds per object. */
static double measure(struct bench *b, job_fn *job, unsigned passes)
{
    double v[ROUNDS];
    for (unsigned r = 0; r < ROUNDS; r++) {
        double start = bench_thread_ns();
        for (unsigned p = 0; p < passes; p++)
            for (unsigned i = 0; i < PODS; i++)
                job(b, i);
        v[r] = (bench_thread_ns() - start) / PODS / passes;
    }
    return bench_median(v, ROUNDS);
}

static void set_predicate(struct bench *b, const char *ns, const char *labels, const char *fields)
{
    struct vg_obj_predicate_opts opts = {.fields = &vg_test_pods, .ns = vg_slice_str(ns)};
    vg_test_must(vg_label_selector_parse(vg_slice_str(labels), &opts.take_labels, NULL));
    vg_test_must(vg_field_selector_parse(vg_slice_str(fields), &opts.take_fields, NULL));
    vg_obj_predicate_unref(b->predicate);
    vg_test_must(vg_obj_predicate_new(&opts, &b->predicate, NULL));
}

static void report(const char *what, double ns, double parse)
{
    if (ns * 10 < parse)
        printf("  %-44s %8.1f   1/%.0f of a parse\n", what, ns, parse / ns);
    else
        printf("  %-44s %8.1f   %.2f of a parse\n", what, ns, ns / parse);
}

static void report_predicates(struct bench *b, double parse)
{
    static const struct {
        const char *what, *ns, *labels, *fields;
    } cases[] = {
        {"match everything", "", "", ""},
        {"match a namespace", "team-3", "", ""},
        {"match spec.nodeName=node-7", "", "", "spec.nodeName=node-7"},
        {"match one label of 20", "", "app.kubernetes.io/name=web-7", ""},
        {"match three labels, all there", "",
         "app.kubernetes.io/name,example.com/label-07,example.com/label-19", ""},
        {"match in (), !=, exists, two fields", "",
         "app.kubernetes.io/name in (web-1,web-2,web-3),example.com/label-03!=x,!absent",
         "status.phase=Running,spec.nodeName!=node-3"},
    };
    size_t sizes[VG_ARRAY_LEN(cases)];
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        set_predicate(b, cases[i].ns, cases[i].labels, cases[i].fields);
        report(cases[i].what, measure(b, job_match, 100), parse);
        sizes[i] = vg_obj_predicate_size(b->predicate);
    }
    printf("\nbytes of these predicates:");
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++)
        printf(" %zu", sizes[i]);
    printf("\n");
    b->predicate = vg_obj_predicate_unref(b->predicate);
}

int main(void)
{
    struct bench *b = bench_new();
    int missed = report_memory(b);
    double parse = measure(b, job_parse, 2);
    printf("time per pod, nanoseconds of CPU\n");
    report("parse", parse, parse);
    report("parse and seal (a write)", measure(b, job_seal, 2), parse);
    report("open with all checks (a load)", measure(b, job_open, 20), parse);
    report("slices of a watch frame", measure(b, job_frame, 100), parse);
    report_predicates(b, parse);
    if (b->sink == 0)
        printf("nothing was computed\n");
    bench_free(b);
    return missed;
}
