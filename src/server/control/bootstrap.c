/* bootstrap.c - objects that every cluster has, and that come back when somebody removes them: the
 * priority classes of the system, the range of cluster addresses, the service "kubernetes" with its
 * endpoints, by which what runs in the cluster finds its API server, and the certificates by which
 * clients are known, for other servers that ask. What is there stays as it is, but for endpoints
 * that do not name this server and certificates that lack its own: a server that begins to lead
 * puts that right, once; of servers that share a store the leader is named. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control_int.h"
#include "json/scan.h"

struct basic {
    const char *group, *version, *resource, *ns, *name;
    /* VIGIL_E_NOT_FOUND: this server has none. */
    int (*write)(const struct vg_control *c, struct vg_buf *out);
    /* What is wrong with the one that is there, as a merge patch; nothing: it is right. NULL:
     * whatever is there is right. */
    int (*mend)(const struct vg_control *c, const struct vg_rec *rec, struct vg_buf *out);
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

/* ---- endpoints ---- */

static int write_subsets(const struct vg_control *c, struct vg_buf *out)
{
    return vg_buf_printf(out,
                         "\"subsets\":[{\"addresses\":[{\"ip\":\"%s\"}],\"ports\":[{\"name\":"
                         "\"https\",\"port\":%u,\"protocol\":\"TCP\"}]}]",
                         c->opts.advertised, c->opts.secure_port);
}

static int write_slice(const struct vg_control *c, struct vg_buf *out)
{
    return vg_buf_printf(out,
                         "\"endpoints\":[{\"addresses\":[\"%s\"],\"conditions\":{\"ready\":true}}],"
                         "\"ports\":[{\"name\":\"https\",\"protocol\":\"TCP\",\"port\":%u}]",
                         c->opts.advertised, c->opts.secure_port);
}

static int write_endpoints(const struct vg_control *c, struct vg_buf *out)
{
    if (!c->opts.advertised)
        return VIGIL_E_NOT_FOUND;
    int r = vg_buf_printf(out, "{\"kind\":\"Endpoints\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"kubernetes\",\"labels\":{"
                               "\"endpointslice.kubernetes.io/skip-mirror\":\"true\"}},");
    if (r == 0)
        r = write_subsets(c, out);
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

static int write_endpoint_slice(const struct vg_control *c, struct vg_buf *out)
{
    if (!c->opts.advertised)
        return VIGIL_E_NOT_FOUND;
    int r = vg_buf_printf(out,
                          "{\"kind\":\"EndpointSlice\",\"apiVersion\":\"discovery.k8s.io/v1\","
                          "\"metadata\":{\"name\":\"kubernetes\",\"labels\":{"
                          "\"kubernetes.io/service-name\":\"kubernetes\"}},\"addressType\":\"%s\",",
                          strchr(c->opts.advertised, ':') ? "IPv6" : "IPv4");
    if (r == 0)
        r = write_slice(c, out);
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

/* Does it name this server? Of a value that is stored, a piece is a piece of its text. */
static bool names_us(const struct vg_control *c, const struct vg_rec *rec)
{
    struct vg_slice v = vg_rec_value(rec);
    char address[96], port[32];
    int n = snprintf(address, sizeof address, "\"%s\"", c->opts.advertised);
    int k = snprintf(port, sizeof port, "\"port\":%u", c->opts.secure_port);
    const char *at = memmem(v.p, v.n, port, (size_t)k);
    bool has_port = at && at + k < v.p + v.n && (at[k] == ',' || at[k] == '}');
    return has_port && memmem(v.p, v.n, address, (size_t)n);
}

static int mend_with(const struct vg_control *c, const struct vg_rec *rec, struct vg_buf *out,
                     int (*write)(const struct vg_control *c, struct vg_buf *out))
{
    if (!c->opts.advertised || names_us(c, rec))
        return 0;
    int r = vg_buf_append_byte(out, '{');
    if (r == 0)
        r = write(c, out);
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

static int mend_endpoints(const struct vg_control *c, const struct vg_rec *rec, struct vg_buf *out)
{
    return mend_with(c, rec, out, write_subsets);
}

static int mend_endpoint_slice(const struct vg_control *c, const struct vg_rec *rec,
                               struct vg_buf *out)
{
    return mend_with(c, rec, out, write_slice);
}

/* ---- certificates ---- */

#define CLIENT_CA "client-ca-file"

static int write_certificates(struct vg_buf *out, struct vg_slice before, struct vg_slice own)
{
    VG_AUTO(buf) all = {0};
    int r = vg_buf_append_slice(&all, before);
    if (r == 0 && before.n && before.p[before.n - 1] != '\n')
        r = vg_buf_append_byte(&all, '\n');
    if (r == 0)
        r = vg_buf_append_slice(&all, own);
    if (r == 0)
        r = vg_buf_printf(out, "\"data\":{\"" CLIENT_CA "\":");
    if (r == 0)
        r = vg_json_write_string(out, vg_buf_slice(&all), 0);
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

static int write_authentication(const struct vg_control *c, struct vg_buf *out)
{
    if (!c->opts.client_ca.n)
        return VIGIL_E_NOT_FOUND;
    int r = vg_buf_printf(out, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"extension-apiserver-authentication\"},");
    if (r == 0)
        r = write_certificates(out, VG_SLICE_LIT(""), c->opts.client_ca);
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

/* Others that serve the same store may have certificates of their own: they stay. */
static int mend_authentication(const struct vg_control *c, const struct vg_rec *rec,
                               struct vg_buf *out)
{
    const struct vg_json_step path[] = {vg_json_step_key("data"), vg_json_step_key(CLIENT_CA)};
    struct vg_slice own = c->opts.client_ca, raw, text = VG_SLICE_LIT("");
    VG_AUTO(arena) arena = {0};
    if (vg_json_find(vg_rec_value(rec), path, 2, &raw) == 0 &&
        vg_json_raw_text(&arena, raw, &text) < 0)
        return 0;
    if (!own.n || (text.n && memmem(text.p, text.n, own.p, own.n)))
        return 0;
    int r = vg_buf_append_byte(out, '{');
    if (r == 0)
        r = write_certificates(out, text, own);
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

static const struct basic basics[] = {
    {"scheduling.k8s.io", "v1", "priorityclasses", "", "system-node-critical", write_node_critical,
     NULL},
    {"scheduling.k8s.io", "v1", "priorityclasses", "", "system-cluster-critical",
     write_cluster_critical, NULL},
    {"networking.k8s.io", "v1", "servicecidrs", "", "kubernetes", write_range, NULL},
    {"", "v1", "services", "default", "kubernetes", write_service, NULL},
    {"", "v1", "endpoints", "default", "kubernetes", write_endpoints, mend_endpoints},
    {"discovery.k8s.io", "v1", "endpointslices", "default", "kubernetes", write_endpoint_slice,
     mend_endpoint_slice},
    {"", "v1", "configmaps", "kube-system", "extension-apiserver-authentication",
     write_authentication, mend_authentication},
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

static void put_right(struct vg_work_item *item, const struct basic *b, struct vg_rec *rec)
{
    struct vg_control *c = item->work->arg;
    struct vg_slice name = rec ? vg_slice_str(b->name) : VG_SLICE_LIT("");
    struct vg_errand *e = vg_errand_new(c, rec ? "PATCH" : "POST", item, on_made);
    int r = e ? vg_errand_path(e, kind_of(b), vg_slice_str(b->ns), name, NULL) : -ENOMEM;
    if (r == 0)
        r = rec ? b->mend(c, rec, &e->body) : b->write(c, &e->body);
    if (r == 0 && e->body.n) {
        (void)vg_errand_send(e, rec ? VG_TYPE_MERGE : VG_TYPE_JSON);
        return;
    }
    vg_errand_free(e);
    if (r == 0 || r == VIGIL_E_NOT_FOUND)
        vg_work_done(item);
    else
        vg_work_failed(item);
}

static void run(struct vg_work_item *item)
{
    struct vg_control *c = item->work->arg;
    const struct basic *b = &basics[item->key.p[0] - '0'];
    struct vg_rec *rec = vg_control_get(c, kind_of(b), vg_slice_str(b->ns), vg_slice_str(b->name));
    if (rec && !b->mend)
        vg_work_done(item);
    else
        put_right(item, b, rec);
    vg_rec_unref(rec);
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

static const char *const follows[] = {"priorityclasses", "servicecidrs", "services", "endpoints",
                                      "endpointslices",  "configmaps",   NULL};

const struct vg_controller_ops vg_bootstrap_controller = {
    .name = "bootstrap-controller",
    .follows = follows,
    .event = on_event,
    .run = run,
    .synced = on_synced,
};
