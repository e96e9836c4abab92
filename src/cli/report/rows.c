/* rows.c - results of the same scenario with the same parameters belong together: they are one row,
 * whose figures come from several peers and rounds. */
#include "base/hash.h"
#include "report_int.h"

static int put_param(struct vg_buf *out, const struct vg_json_member *m)
{
    const struct vg_json *v = &m->value;
    struct vg_slice text = vg_json_text(v);
    if (vg_json_is(v, VG_JSON_BOOL))
        text = vg_json_is_true(v) ? VG_SLICE_LIT("true") : VG_SLICE_LIT("false");
    int err = vg_buf_append_byte(out, ' ');
    if (err == 0)
        err = vg_buf_append_slice(out, vg_json_key(m));
    if (err == 0)
        err = vg_buf_append_byte(out, '=');
    return err < 0 ? err : vg_buf_append_slice(out, text);
}

/* "fanout watchers=1000 tls=true", in the order of the file; `work` is used meanwhile. */
static int describe(struct vg_report *r, struct vg_report_result *it, struct vg_buf *work)
{
    vg_buf_clear(work);
    int err = vg_buf_append_slice(work, it->scenario);
    if (it->params)
        VG_JSON_FOREACH_MEMBER (m, it->params) {
            err = err < 0 ? err : put_param(work, m);
        }
    return err < 0 ? err : vg_arena_keep(&r->arena, vg_buf_slice(work), &it->text);
}

int vg_report_group(struct vg_report *r)
{
    static const struct vg_hash_key key; /* the file is one's own: nobody needs to be kept out */
    VG_AUTO(buf) work = {0};
    for (size_t i = 0; i < r->results_n; i++) {
        struct vg_report_result *it = &r->results[i];
        size_t same = 0;
        int err = describe(r, it, &work);
        if (err < 0)
            return err;
        it->hash = vg_hash(&key, it->text);
        while (same < i &&
               (r->results[same].hash != it->hash || !vg_slice_eq(r->results[same].text, it->text)))
            same++;
        it->row = same;
    }
    return 0;
}

void vg_row_spread(const struct vg_report *r, size_t row, struct vg_slice metric, unsigned peer,
                   struct vg_spread *ret)
{
    struct vg_rounds all = {0};
    double value, scale;
    (void)vg_unit_of(metric, &scale);
    for (size_t i = row; i < r->results_n; i++) {
        const struct vg_report_result *it = &r->results[i];
        if (it->row == row && it->peer == peer &&
            vg_json_to_double(vg_json_get(it->metrics, metric), &value) == 0)
            vg_rounds_add(&all, it, value * scale);
    }
    vg_rounds_spread(&all, ret);
}

bool vg_row_has_metric(const struct vg_report *r, size_t row, size_t before, struct vg_slice metric)
{
    for (size_t i = row; i < before; i++)
        if (r->results[i].row == row && vg_json_get(r->results[i].metrics, metric))
            return true;
    return false;
}
