/* driver_back.c - what the driver does behind its server's back: writes to storage, looks at
 * metrics. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct write {
    struct vg_txn txn;
    struct vg_op op;
    bool is_done;
};

static void on_written(struct vg_store_req *req)
{
    VG_CONTAINER_OF(req, struct write, txn.req)->is_done = true;
}

static vg_rev commit(struct vg_adrv *d, enum vg_op_type type, struct vg_rec *take_rec)
{
    struct write w = {.op = {.type = type, .rec = take_rec, .expect = VG_EXPECT_ANY}};
    w.txn = (struct vg_txn){.req = {.loop = d->own, .done = on_written}, .ops = &w.op, .n_ops = 1};
    vg_adrv_must(vg_storage_txn(d->storage, &w.txn), "txn");
    vg_loop_turn_until(d->own, &w.is_done);
    vg_adrv_must(w.txn.req.err, "txn");
    vg_rev rev = w.txn.req.rev;
    vg_txn_done(&w.txn);
    return rev;
}

static const struct vg_kind *find_kind(const char *group, const char *resource)
{
    const struct vg_kind *k =
        vg_kind_find(vg_slice_str(group), VG_SLICE_LIT("v1"), vg_slice_str(resource));
    vg_adrv_must(k ? 0 : VIGIL_E_NOT_FOUND, resource);
    return k;
}

static struct vg_obj_key key_of(const struct vg_kind *k, const char *ns, const char *name)
{
    struct vg_obj_key key;
    vg_adrv_must(
        vg_obj_key_make(vg_slice_str(k->prefix), vg_slice_str(ns), vg_slice_str(name), &key),
        "key");
    return key;
}

vg_rev vg_adrv_put(struct vg_adrv *d, const char *group, const char *resource, const char *ns,
                   const char *name, const char *json)
{
    const struct vg_kind *k = find_kind(group, resource);
    struct vg_obj_key key = key_of(k, ns, name);
    VG_AUTO(obj_sealed) sealed;
    VG_AUTO(arena) arena;
    vg_obj_sealed_init(&sealed);
    vg_arena_init(&arena, 0, 0);
    vg_adrv_must(vg_obj_seal_text(k->fields, vg_slice_str(json), &arena, &sealed, NULL), "seal");
    struct vg_rec *rec;
    vg_adrv_must(vg_rec_new(VG_REC_PUT, vg_obj_key_slice(&key), vg_buf_slice(&sealed.header),
                            vg_buf_slice(&sealed.value), &rec),
                 "record");
    return commit(d, VG_OP_PUT, rec);
}

vg_rev vg_adrv_delete(struct vg_adrv *d, const char *group, const char *resource, const char *ns,
                      const char *name)
{
    struct vg_obj_key key = key_of(find_kind(group, resource), ns, name);
    struct vg_rec *rec;
    vg_adrv_must(
        vg_rec_new(VG_REC_DELETE, vg_obj_key_slice(&key), vg_slice("", 0), vg_slice("", 0), &rec),
        "record");
    return commit(d, VG_OP_DELETE, rec);
}

vg_rev vg_adrv_config(struct vg_adrv *d, const char *ns, const char *name, const char *data)
{
    VG_AUTO(buf) json = {0};
    vg_adrv_must(
        vg_buf_printf(&json,
                      "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                      "\"%s\",\"namespace\":\"%s\",\"uid\":\"u-%s\"},\"data\":{\"k\":\"%s\"}}%c",
                      name, ns, name, data, '\0'),
        "text");
    return vg_adrv_put(d, "", "configmaps", ns, name, json.p);
}

double vg_adrv_metric(struct vg_adrv *d, const char *name, const char *labels)
{
    VG_AUTO(buf) text = {0};
    double sum = 0;
    vg_adrv_must(vg_metrics_write(d->metrics, &text), "metrics");
    vg_adrv_must(vg_buf_append_byte(&text, '\0'), "metrics");
    size_t n = strlen(name);
    for (const char *line = text.p, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : NULL;
        const char *value = next ? memrchr(line, ' ', (size_t)(next - line)) : NULL;
        const char *found = strstr(line, labels);
        if (value && strncmp(line, name, n) == 0 && (line[n] == '{' || line[n] == ' ') && found &&
            found < value)
            sum += strtod(value, NULL);
    }
    return sum;
}

struct compaction {
    struct vg_compact compact;
    bool is_done;
};

static void on_compacted(struct vg_store_req *req)
{
    VG_CONTAINER_OF(req, struct compaction, compact.req)->is_done = true;
}

void vg_adrv_compact(struct vg_adrv *d, vg_rev rev)
{
    struct compaction c = {.compact = {.req = {.loop = d->own, .done = on_compacted}, .at = rev}};
    vg_adrv_must(vg_storage_compact(d->storage, &c.compact), "compact");
    vg_loop_turn_until(d->own, &c.is_done);
    vg_adrv_must(c.compact.req.err, "compact");
}
