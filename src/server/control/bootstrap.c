/* bootstrap.c - objects that every cluster has, and that come back when somebody removes them: the
 * priority classes of the system, the range of cluster addresses, and the service "kubernetes", by
 * which what runs in the cluster finds its API server. What is there stays as it is. */
#include <errno.h>
#include <stdio.h>

#include "control_int.h"

struct basic {
    const char *group, *version, *resource, *ns, *name;
    int (*write)(const struct vg_control *c, struct vg_buf *out);
};

static int write_class(struct vg_buf *out, const char *name, unsigned value, const char *about)
{
    return vg_buf_printf(out,
                         "{\"kind\":\"PriorityClass\",\"apiVersion\":\"scheduling.k8s.io/v1\","
                         "\"metadata\":{\"name\":\"%s\"},\"value\":%u,\"description\":\"%s\"}",
                         name, value, about);
}

static int write_node_critical(const struct vg_control *c, struct vg_buf *out)
{
    (void)c;
    return write_class(out, "system-node-critical", 2000001000,
                       "For pods that a node cannot be without.");
}

static int write_cluster_critical(const struct vg_control *c, struct vg_buf *out)
{
    (void)c;
    return write_class(out, "system-cluster-critical", 2000000000,
                       "For pods that the cluster cannot be without.");
}

static int write_range(const struct vg_control *c, struct vg_buf *out)
{
    const char *second = c->opts.service_ranges[1];
    return vg_buf_printf(
        out,
        "{\"kind\":\"ServiceCIDR\",\"apiVersion\":\"networking.k8s.io/v1\","
        "\"metadata\":{\"name\":\"kubernetes\"},\"spec\":{\"cidrs\":[\"%s\"%s%s%s]}}",
        c->opts.service_ranges[0], second ? ",\"" : "", second ? second : "", second ? "\"" : "");
}

static int write_service(const struct vg_control *c, struct vg_buf *out)
{
    return vg_buf_printf(out,
                         "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{"
                         "\"name\":\"kubernetes\",\"namespace\":\"default\",\"labels\":{"
                         "\"component\":\"apiserver\",\"provider\":\"kubernetes\"}},\"spec\":{"
                         "\"clusterIP\":\"%s\",\"ports\":[{\"name\":\"https\",\"protocol\":\"TCP\","
                         "\"port\":443,\"targetPort\":%u}]}}",
                         c->opts.service_ip, c->opts.secure_port);
}

static const struct basic basics[] = {
    {"scheduling.k8s.io", "v1", "priorityclasses", "", "system-node-critical", write_node_critical},
    {"scheduling.k8s.io", "v1", "priorityclasses", "", "system-cluster-critical",
     write_cluster_critical},
    {"networking.k8s.io", "v1", "servicecidrs", "", "kubernetes", write_range},
    {"", "v1", "services", "default", "kubernetes", write_service},
};

static const struct vg_kind *kind_of(const struct basic *b)
{
    return vg_kind_find(vg_slice_str(b->group), vg_slice_str(b->version),
                        vg_slice_str(b->resource));
}

/* ---- work: the key is the index ---- */

static void look_at(struct vg_control *c, size_t i)
{
    char key = (char)('0' + i);
    vg_control_add(c, VG_CONTROL_BOOTSTRAP, vg_slice(&key, 1));
}

static void on_made(struct vg_errand *e)
{
    vg_errand_settle(e, 409); /* another was faster */
}

static void run(struct vg_work_item *item)
{
    struct vg_control *c = item->work->arg;
    const struct basic *b = &basics[item->key.p[0] - '0'];
    const struct vg_kind *kind = kind_of(b);
    struct vg_rec *rec = vg_control_get(c, kind, vg_slice_str(b->ns), vg_slice_str(b->name));
    bool is_there = rec;
    vg_rec_unref(rec);
    if (is_there) {
        vg_work_done(item);
        return;
    }
    struct vg_errand *e = vg_errand_new(c, "POST", item, on_made);
    int r = e ? vg_errand_path(e, kind, vg_slice_str(b->ns), VG_SLICE_LIT(""), NULL) : -ENOMEM;
    if (r == 0)
        r = b->write(c, &e->body);
    if (r == 0) {
        (void)vg_errand_send(e, VG_TYPE_JSON);
        return;
    }
    vg_errand_free(e);
    vg_work_failed(item);
}

static void on_event(struct vg_control *c, const struct vg_control_event *e)
{
    if (e->change != VG_OBJ_DELETED)
        return;
    for (size_t i = 0; i < VG_ARRAY_LEN(basics); i++) {
        if (e->kind == kind_of(&basics[i]) &&
            vg_slice_eq(vg_obj_name(&e->h), vg_slice_str(basics[i].name)) &&
            vg_slice_eq(vg_obj_namespace(&e->h), vg_slice_str(basics[i].ns)))
            look_at(c, i);
    }
}

static void on_synced(struct vg_control *c)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(basics); i++)
        look_at(c, i);
}

static const char *const follows[] = {"priorityclasses", "servicecidrs", "services", NULL};

const struct vg_controller_ops vg_bootstrap_controller = {
    .name = "bootstrap-controller",
    .follows = follows,
    .event = on_event,
    .run = run,
    .synced = on_synced,
};
