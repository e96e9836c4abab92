/* list_table.c - lists as Tables: a row for each item, made as its turn comes. */
#include "list_int.h"

/* Visits that making a row costs: a turn makes some 64 of them. */
#define VISITS_PER_ROW (VG_LIST_TURN_VISITS / 64u)

static struct vg_table table_of(const struct vg_lister *l)
{
    const struct vg_api_loop *loop = l->call->loop;
    return (struct vg_table){.kind = l->kind,
                             .include = l->include,
                             .is_v1beta1 = l->call->ask->media.is_v1beta1,
                             .now_ms = vg_clock_wall_ms(loop->api->clock),
                             .scratch = &l->call->loop->scratch};
}

int vg_list_table_head(struct vg_lister *l, struct vg_slice meta, struct vg_buf *out)
{
    struct vg_table t = table_of(l);
    return vg_table_begin(&t, meta, true, out);
}

int vg_list_table_row(struct vg_lister *l, const struct vg_rec *rec, uint32_t *visits,
                      struct vg_buf *out)
{
    struct vg_table t = table_of(l);
    struct vg_obj_header h;
    struct vg_obj_splice s;
    *visits -= VG_MIN(*visits, VISITS_PER_ROW);
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    vg_obj_splice_object(&s, &h, rec->rev);
    vg_buf_clear(&l->item);
    vg_arena_reset(&l->rows);
    int r = vg_obj_splice_append(&l->item, &s);
    return r < 0 ? r : vg_table_row_of(&t, vg_buf_slice(&l->item), &l->rows, out);
}
