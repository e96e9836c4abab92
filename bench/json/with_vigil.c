/* with_vigil.c - our own module. Parsing means: a full tree into a reused arena, UTF-8 checked,
 * duplicate keys detected (and fatal). Scanning means: look for a member at the top level that is
 * not there, so that every byte of the document is passed over. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "bench_json.h"
#include "json/json.h"
#include "json/scan.h"
#include "json/write.h"

struct state {
    struct vg_arena arena; /* reset for every parsed document */
    struct vg_arena kept;
    struct vg_json_scratch scratch;
    struct vg_json **trees;
    struct vg_buf out;
};

static void close_vigil(void *p)
{
    struct state *s = p;
    vg_arena_done(&s->arena);
    vg_arena_done(&s->kept);
    vg_json_scratch_done(&s->scratch);
    vg_buf_done(&s->out);
    free(s->trees);
    free(s);
}

static struct vg_json *parse(struct state *s, struct vg_arena *a, struct doc d)
{
    struct vg_json_opts o = {.on_dup = VG_JSON_DUP_FAIL, .scratch = &s->scratch};
    struct vg_json *root = NULL;
    return vg_json_parse(a, vg_slice(d.p, d.n), &o, &root, NULL) == 0 ? root : NULL;
}

static void *open_vigil(const struct docs *docs)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->trees = calloc(docs->n, sizeof(struct vg_json *));
    for (size_t i = 0; s->trees && i < docs->n; i++) {
        s->trees[i] = parse(s, &s->kept, docs->v[i]);
        if (!s->trees[i]) {
            close_vigil(s);
            return NULL;
        }
    }
    return s;
}

static size_t run_parse(void *p, const struct docs *docs)
{
    struct state *s = p;
    size_t sum = 0;
    for (size_t i = 0; i < docs->n; i++) {
        vg_arena_reset(&s->arena);
        const struct vg_json *root = parse(s, &s->arena, docs->v[i]);
        if (!root)
            return SIZE_MAX;
        sum += root->n;
    }
    return sum;
}

static size_t run_write(void *p, const struct docs *docs)
{
    struct state *s = p;
    size_t sum = 0;
    for (size_t i = 0; i < docs->n; i++) {
        vg_buf_clear(&s->out);
        if (vg_json_write(&s->out, s->trees[i], 0) < 0)
            return SIZE_MAX;
        sum += s->out.n;
    }
    return sum;
}

static size_t run_scan(void *p, const struct docs *docs)
{
    (void)p;
    struct vg_json_step path = vg_json_step_key("absent");
    size_t absent = 0;
    for (size_t i = 0; i < docs->n; i++) {
        struct vg_slice value;
        int r = vg_json_find(vg_slice(docs->v[i].p, docs->v[i].n), &path, 1, &value);
        if (r != VIGIL_E_NOT_FOUND)
            return SIZE_MAX;
        absent++;
    }
    return absent;
}

const struct contender with_vigil = {
    .name = "vigil",
    .open = open_vigil,
    .run = {[JOB_PARSE] = run_parse, [JOB_WRITE] = run_write, [JOB_SCAN] = run_scan},
    .close = close_vigil};
