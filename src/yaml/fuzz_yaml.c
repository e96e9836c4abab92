/* fuzz_yaml.c - any bytes as YAML.
 * Checked: what is read can be written as YAML and reads back as the same value; what is refused
 * says why; the limits hold. */
#include <errno.h>

#include "fuzz.h"
#include "yaml.h"
#include "json/equal.h"

/* Written YAML may be refused for one reason alone: folding and indenting made it too long. */
static void check_round(struct vg_arena *a, const struct vg_json *v)
{
    VG_AUTO(buf) text = {0};
    struct vg_json *again;
    struct vg_yaml_opts wide = {.max_bytes = (size_t)1 << 30};
    VG_MUST(vg_yaml_write(&text, v) == 0);
    VG_MUST(vg_yaml_parse(a, vg_buf_slice(&text), &wide, &again, NULL) == 0);
    VG_MUST(vg_json_equal(v, again) == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    VG_AUTO(arena) a = {0};
    struct vg_json_dups dups;
    struct vg_yaml_opts opts = {
        .on_dup = VG_JSON_DUP_REPORT, .max_nodes = 20000, .ret_dups = &dups};
    struct vg_json *v;
    struct vg_status st = {0};
    int r = vg_yaml_parse(&a, vg_slice(data, size), &opts, &v, &st);
    if (r == 0)
        check_round(&a, v);
    else
        VG_MUST(r == -ENOMEM || st.message[0] != '\0');
    return 0;
}
