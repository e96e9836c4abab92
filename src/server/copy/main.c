/* main.c - vigil-copy: backup, restore and migrate, which `vigil` hands on to it. The work is in
 * copy.c; here the arguments are read, and the result or the reason is told. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "copy_args.h"
#include "out.h"
#include "safe_text.h"

static const struct {
    int err, status;
} outcomes[] = {
    {VIGIL_E_INVALID, 2},       {VIGIL_E_NOT_FOUND, 3},     {-ENOENT, 3},
    {VIGIL_E_STORE_LOCKED, 6},  {VIGIL_E_STORE_DAMAGED, 7}, {VIGIL_E_STORE_FOREIGN, 7},
    {VIGIL_E_STORE_VERSION, 7}, {VIGIL_E_NETWORK, 3},       {VIGIL_E_TIMEOUT, 3},
};

static int status_of(int err)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(outcomes); i++) {
        if (outcomes[i].err == err)
            return outcomes[i].status;
    }
    return EXIT_FAILURE;
}

/* Messages may name keys, which may hold anything. */
static int complain(const struct vg_status *status, int err)
{
    VG_AUTO(buf) text = {0};
    const char *message =
        status->err == err && status->message[0] ? status->message : vg_err_text(err);
    if (vg_safe_append(&text, vg_slice_str(message), VG_SAFE_DISPLAY) == 0)
        fprintf(stderr, "vigil: %.*s\n", VG_SLICE_ARG(text));
    else
        fprintf(stderr, "vigil: %s\n", vg_err_text(err));
    if (err == VIGIL_E_INVALID)
        fputs("vigil backup --help tells how it is used.\n", stderr);
    return status_of(err);
}

static int tell(const struct vg_copy_args *a, const struct vg_copy_result *r,
                struct vg_status *reterr_status)
{
    VG_AUTO(out) out;
    vg_out_init(&out, &(struct vg_options){.is_json = a->is_json});
    vg_out_begin(&out);
    vg_out_string(&out, "from", "from", vg_slice_str(a->opts.from));
    vg_out_string(&out, "to", "to", vg_slice_str(a->opts.to));
    vg_out_uint(&out, "keys", "keys", r->keys);
    vg_out_uint(&out, "keysWithTTL", "with time to live", r->with_ttl);
    vg_out_bytes(&out, "bytes", "size", r->bytes);
    vg_out_uint(&out, "revision", "as of revision", r->from_rev);
    if (!a->opts.is_to_file)
        vg_out_uint(&out, "targetRevision", "target revision", r->to_rev);
    if (r->source_now > r->from_rev)
        vg_out_uint(&out, "sourceRevision", "source meanwhile at", r->source_now);
    vg_out_string(&out, "sha256", "sha256", vg_slice_str(r->digest));
    vg_out_seconds(&out, "seconds", "took", r->took_ns);
    return vg_out_end(&out, reterr_status);
}

int main(int argc, char **argv)
{
    struct vg_copy_args a = {0};
    struct vg_copy_result result = {0};
    struct vg_status status = {0};
    int r = vg_copy_args_parse(argc, argv, &a, &status);
    if (r == 0 && (a.is_help || a.is_version)) {
        if (a.is_help)
            vg_copy_help(stdout);
        else
            printf("vigil-copy %s\n", VG_COPY_VERSION);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (r == 0)
        r = vg_copy_run(&a.opts, &result, &status);
    if (r == 0)
        r = tell(&a, &result, &status);
    return r < 0 ? complain(&status, r) : EXIT_SUCCESS;
}
