/* cmd_data.c - put, get, del and list. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "cmd.h"
#include "out.h"

int vg_cmd_open(struct vg_session *s, const struct vg_options *o, struct vg_status *reterr_status)
{
    return vg_session_open(s,
                           &(struct vg_session_opts){
                               .dir = vg_options_dir(o),
                               .unsafe_no_fsync = o->is_unsafe_no_fsync,
                           },
                           reterr_status);
}

/* ---- put, del ---- */

static int read_stdin(struct vg_buf *out, struct vg_status *reterr_status)
{
    int r = 0;
    ssize_t n = 1;
    while (r == 0 && n > 0) {
        char chunk[16384];
        n = read(STDIN_FILENO, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            r = -errno;
        else
            r = vg_buf_append(out, chunk, (size_t)n);
    }
    if (r == VIGIL_E_TOO_LARGE)
        return vg_fail(reterr_status, VIGIL_E_VALUE_TOO_LARGE,
                       "standard input has more than %zu bytes, the largest value a store takes",
                       VG_STORAGE_VALUE_MAX);
    return r < 0 ? vg_fail(reterr_status, r, "cannot read standard input: %s", vg_err_text(r)) : 0;
}

/* What changed: a line, or a JSON document. */
static int print_change(const struct vg_options *o, const struct vg_change *c,
                        struct vg_status *reterr_status)
{
    VG_AUTO(out) out;
    vg_out_init(&out, o);
    vg_out_begin(&out);
    if (out.is_json) {
        vg_out_json_bytes(&out, "key", c->key);
        vg_out_uint(&out, "revision", "", c->rev);
        vg_out_uint(&out, "previousRevision", "", c->prev_rev);
    } else {
        vg_out_escaped(&out, c->key);
        vg_out_printf(&out, ": %s at revision %" PRIu64,
                      c->type == VG_OP_DELETE ? "deleted"
                      : c->prev_rev           ? "replaced"
                                              : "created",
                      c->rev);
        if (c->prev_rev)
            vg_out_printf(&out, ", was at %" PRIu64, c->prev_rev);
        vg_out_printf(&out, "\n");
    }
    return vg_out_end(&out, reterr_status);
}

int vg_cmd_put(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    VG_AUTO(buf) input = {.max = VG_STORAGE_VALUE_MAX};
    struct vg_change c = {
        .type = VG_OP_PUT,
        .key = vg_slice_str(o->args[0]),
        .value = vg_slice_str(o->args[1]),
        .expect = o->expect,
        .ttl_ms = o->ttl_ms,
    };
    int r = strcmp(o->args[1], "-") == 0 ? read_stdin(&input, reterr_status) : 0;
    if (strcmp(o->args[1], "-") == 0)
        c.value = vg_buf_slice(&input);
    struct vg_session_opts opts = {
        .dir = vg_options_dir(o),
        .may_create = true,
        .unsafe_no_fsync = o->is_unsafe_no_fsync,
    };
    if (r == 0)
        r = vg_session_check_key(c.key, reterr_status); /* before a store is made for it */
    if (r == 0)
        r = vg_session_open(&s, &opts, reterr_status);
    if (r == 0)
        r = vg_session_change(&s, &c, reterr_status);
    return r < 0 ? r : print_change(o, &c, reterr_status);
}

int vg_cmd_del(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    struct vg_change c = {
        .type = VG_OP_DELETE,
        .key = vg_slice_str(o->args[0]),
        .expect = o->expect,
    };
    int r = vg_cmd_open(&s, o, reterr_status);
    if (r == 0)
        r = vg_session_change(&s, &c, reterr_status);
    if (r < 0)
        return r;
    if (!c.prev_rev)
        return vg_fail(
            reterr_status, VIGIL_E_NOT_FOUND,
            "there is no key '%s'; nothing was changed: vigil-store list shows those there are",
            o->args[0]);
    return print_change(o, &c, reterr_status);
}

/* ---- get ---- */

static int print_record(const struct vg_options *o, const struct vg_rec *rec,
                        struct vg_status *reterr_status)
{
    VG_AUTO(out) out;
    vg_out_init(&out, o);
    vg_out_begin(&out);
    if (out.is_json)
        vg_out_json_record(&out, rec, true);
    else
        vg_out_value(&out, vg_rec_value(rec), o->is_raw || !isatty(STDOUT_FILENO));
    return vg_out_end(&out, reterr_status);
}

int vg_cmd_get(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    struct vg_rec *rec = NULL;
    int r = vg_cmd_open(&s, o, reterr_status);
    if (r == 0)
        r = vg_session_get(&s, vg_slice_str(o->args[0]), o->at, &rec, reterr_status);
    if (r == 0)
        r = print_record(o, rec, reterr_status);
    vg_rec_unref(rec);
    return r;
}

/* ---- list ---- */

/* Written at once: many lines, but little memory. */
#define LIST_CHUNK ((size_t)64 << 10)

struct listing {
    struct vg_out out;
    bool is_keys_only;
    uint64_t n;
};

static void list_as_text(struct listing *l, const struct vg_rec *rec)
{
    vg_out_escaped(&l->out, vg_rec_key(rec));
    if (!l->is_keys_only) {
        vg_out_printf(&l->out, "\t%" PRIu64 "\t", rec->rev);
        vg_out_escaped(&l->out, vg_rec_value(rec));
    }
    vg_out_printf(&l->out, "\n");
}

static int list_one(void *arg, const struct vg_rec *rec, struct vg_status *reterr_status)
{
    struct listing *l = arg;
    l->n++;
    if (l->out.is_json) {
        vg_json_put_begin_object(&l->out.json);
        vg_out_json_record(&l->out, rec, !l->is_keys_only);
        vg_json_put_end_object(&l->out.json);
    } else {
        list_as_text(l, rec);
    }
    return l->out.text.n < LIST_CHUNK ? 0 : vg_out_flush(&l->out, reterr_status);
}

/* What the keys alone do not say; on standard error, so that the output is nothing but keys. */
static int end_listing(struct listing *l, const struct vg_each *each,
                       struct vg_status *reterr_status)
{
    if (l->out.is_json) {
        vg_json_put_end_array(&l->out.json);
        vg_out_uint(&l->out, "revision", "", each->at);
        vg_json_put_key(&l->out.json, VG_SLICE_LIT("more"));
        vg_json_put_bool(&l->out.json, each->has_more);
    } else if (isatty(STDERR_FILENO) || each->has_more) {
        fprintf(stderr, "%" PRIu64 " key%s at revision %" PRIu64 "%s\n", l->n, l->n == 1 ? "" : "s",
                each->at, each->has_more ? "; there are more: raise --limit to see them" : "");
    }
    return vg_out_end(&l->out, reterr_status);
}

int vg_cmd_list(const struct vg_options *o, struct vg_status *reterr_status)
{
    VG_AUTO(session) s = {0};
    struct listing l = {.is_keys_only = o->is_keys_only};
    struct vg_each each = {
        .prefix = vg_slice_str(o->n_args ? o->args[0] : ""),
        .at = o->at,
        .limit = o->limit,
        .is_keys_only = o->is_keys_only,
        .fn = list_one,
        .arg = &l,
    };
    vg_out_init(&l.out, o);
    int r = vg_cmd_open(&s, o, reterr_status);
    if (r < 0)
        return r;
    vg_out_begin(&l.out);
    if (l.out.is_json) {
        vg_json_put_key(&l.out.json, VG_SLICE_LIT("items"));
        vg_json_put_begin_array(&l.out.json);
    }
    r = vg_session_each(&s, &each, reterr_status);
    if (r == 0)
        r = end_listing(&l, &each, reterr_status);
    vg_out_done(&l.out);
    return r;
}
