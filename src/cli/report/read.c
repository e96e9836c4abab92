/* read.c - the file of one run ("vigil-bench/1") or of many ("vigil-bench-peers/1") as a list of
 * results. Both become the same: one run is one peer in one round. */
#include <errno.h>

#include "report_int.h"

#define FORMAT_RUN "vigil-bench/1"
#define FORMAT_PEERS "vigil-bench-peers/1"
/* Of the tree, beside the text: a node takes 24 to 40 bytes where its text takes 2 at least. */
#define TREE_BYTES_MAX ((size_t)512 << 20)

static bool is_text(const struct vg_json *v, const char *text)
{
    return vg_json_is(v, VG_JSON_STRING) && vg_slice_eq(vg_json_text(v), vg_slice_str(text));
}

static struct vg_slice text_of(const struct vg_json *object, const char *key)
{
    const struct vg_json *v = vg_json_get_str(object, key);
    return vg_json_is(v, VG_JSON_STRING) ? vg_json_text(v) : (struct vg_slice){"", 0};
}

static const struct vg_json *object_of(const struct vg_json *from, const char *key)
{
    const struct vg_json *v = vg_json_get_str(from, key);
    return vg_json_is(v, VG_JSON_OBJECT) ? v : NULL;
}

/* Results that `from` holds; 0 when there is no list of them. */
static size_t results_in(const struct vg_json *from)
{
    const struct vg_json *list = vg_json_get_str(from, "results");
    return vg_json_is(list, VG_JSON_ARRAY) ? list->n : 0;
}

static void take_results(struct vg_report *r, const struct vg_json *from, unsigned peer,
                         unsigned round)
{
    const struct vg_json *list = vg_json_get_str(from, "results");
    for (size_t i = 0; i < results_in(from); i++) {
        const struct vg_json *v = &list->items[i];
        r->results[r->results_n++] = (struct vg_report_result){
            .peer = peer,
            .round = round,
            .scenario = text_of(v, "scenario"),
            .error = text_of(v, "error"),
            .params = object_of(v, "params"),
            .metrics = object_of(v, "metrics"),
            .was_limited = vg_json_is_true(vg_json_get_str(object_of(v, "tool"), "was_the_limit")),
        };
    }
    r->rounds_n = VG_MAX(r->rounds_n, round + 1);
}

static int make_room(struct vg_report *r, size_t n, struct vg_status *reterr_status)
{
    if (n > VG_REPORT_RESULTS_MAX)
        return vg_fail(reterr_status, VIGIL_E_TOO_LARGE, "%zu results are more than the %u allowed",
                       n, VG_REPORT_RESULTS_MAX);
    r->results = vg_arena_array(&r->arena, struct vg_report_result, n + 1);
    return r->results ? 0 : vg_fail(reterr_status, -ENOMEM, "out of memory");
}

static int read_run(struct vg_report *r, struct vg_status *reterr_status)
{
    const struct vg_json *server = object_of(r->root, "server");
    int err = make_room(r, results_in(r->root), reterr_status);
    if (err < 0)
        return err;
    r->peers[0].name = text_of(server, "name");
    r->peers[0].version = text_of(server, "version");
    if (r->peers[0].name.n == 0)
        r->peers[0].name = VG_SLICE_LIT("server");
    r->peers_n = 1;
    take_results(r, r->root, 0, 0);
    return 0;
}

static int read_peer(struct vg_report *r, const struct vg_json *v, struct vg_status *reterr_status)
{
    struct vg_report_peer *p = &r->peers[r->peers_n];
    if (r->peers_n == VG_REPORT_PEERS_MAX)
        return vg_fail(reterr_status, VIGIL_E_TOO_LARGE, "more than %u peers", VG_REPORT_PEERS_MAX);
    p->name = text_of(v, "name");
    p->version = text_of(v, "version");
    p->is_floor = vg_json_is_true(vg_json_get_str(v, "floor"));
    if (p->name.n == 0)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "peer %u has no name", r->peers_n + 1);
    r->peers_n++;
    return 0;
}

static int read_one_of_many(struct vg_report *r, const struct vg_json *run,
                            struct vg_status *reterr_status)
{
    struct vg_slice name = text_of(run, "peer");
    uint64_t round = 0;
    unsigned peer = 0;
    while (peer < r->peers_n && !vg_slice_eq(r->peers[peer].name, name))
        peer++;
    if (peer == r->peers_n)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "a run names the peer '%.*s', which is none",
                       VG_SLICE_ARG(name));
    if (vg_json_to_uint64(vg_json_get_str(run, "round"), &round) < 0 || round == 0 ||
        round > VG_REPORT_ROUNDS_MAX)
        return vg_fail(reterr_status, VIGIL_E_INVALID, "a run's round is not from 1 to %u",
                       VG_REPORT_ROUNDS_MAX);
    take_results(r, run, peer, (unsigned)round - 1);
    return 0;
}

static int read_peers(struct vg_report *r, struct vg_status *reterr_status)
{
    const struct vg_json *peers = vg_json_get_str(r->root, "peers");
    const struct vg_json *runs = vg_json_get_str(r->root, "runs");
    size_t n = 0;
    int err = 0;
    if (!vg_json_is(peers, VG_JSON_ARRAY) || !vg_json_is(runs, VG_JSON_ARRAY))
        return vg_fail(reterr_status, VIGIL_E_INVALID, "the lists 'peers' and 'runs' are missing");
    for (size_t i = 0; i < peers->n && err == 0; i++)
        err = read_peer(r, &peers->items[i], reterr_status);
    for (size_t i = 0; i < runs->n; i++)
        n += results_in(&runs->items[i]);
    if (err == 0)
        err = make_room(r, n, reterr_status);
    for (size_t i = 0; i < runs->n && err == 0; i++)
        err = read_one_of_many(r, &runs->items[i], reterr_status);
    return err;
}

int vg_report_read(struct vg_report *r, struct vg_slice text, struct vg_status *reterr_status)
{
    struct vg_json *root;
    *r = (struct vg_report){0};
    vg_arena_init(&r->arena, 0, TREE_BYTES_MAX);
    int err = vg_json_parse(&r->arena, text, NULL, &root, reterr_status);
    if (err < 0)
        return err;
    r->root = root;
    const struct vg_json *format = vg_json_get_str(root, "format");
    if (is_text(format, FORMAT_RUN))
        err = read_run(r, reterr_status);
    else if (is_text(format, FORMAT_PEERS))
        err = read_peers(r, reterr_status);
    else
        err = vg_fail(reterr_status, VIGIL_E_INVALID,
                      "this is no file of vigil bench: its format is not " FORMAT_RUN
                      " or " FORMAT_PEERS);
    return err < 0 ? err : vg_report_group(r);
}

void vg_report_done(struct vg_report *r)
{
    vg_arena_done(&r->arena);
    *r = (struct vg_report){0};
}

unsigned vg_report_first(const struct vg_report *r)
{
    for (unsigned i = 0; i < r->peers_n; i++)
        if (!r->peers[i].is_floor)
            return i;
    return 0;
}

struct vg_slice vg_report_text(const struct vg_report *r, const char *object, const char *key)
{
    return text_of(object ? object_of(r->root, object) : r->root, key);
}
