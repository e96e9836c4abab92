/* accounts.c - what every namespace gets: the service account "default", and a config map with the
 * certificate by which clients know this server. Both come back when somebody removes them, and the
 * certificate when somebody changes it. */
#include <errno.h>

#include "control_int.h"
#include "json/scan.h"

#define ACCOUNT "default"
#define CONFIG_MAP "kube-root-ca.crt"
#define CONFIG_MAP_ABOUT "The certificates by which clients in the cluster know its API server."

/* Only namespaces that live get anything. */
static bool is_active(struct vg_control *c, struct vg_slice name)
{
    struct vg_obj_header h;
    struct vg_rec *ns = vg_control_get(c, c->namespaces, VG_SLICE_LIT(""), name);
    if (!ns)
        return false;
    vg_obj_header_read(vg_rec_header(ns), vg_rec_value(ns), &h);
    bool is = !vg_obj_is_deleting(&h);
    vg_rec_unref(ns);
    return is;
}

static void on_asked(struct vg_errand *e)
{
    /* 409: somebody else was faster. 403, 404: the namespace is going or gone. */
    bool is_over = e->call.err == 0 && (e->call.status == 403 || e->call.status == 404);
    vg_errand_settle(e, is_over ? e->call.status : 409);
}

static void ask(struct vg_control *c, struct vg_work_item *item, const char *method,
                const struct vg_kind *kind, const char *name, int (*write)(struct vg_errand *e))
{
    struct vg_errand *e = vg_errand_new(c, method, item, on_asked);
    int r = e ? vg_errand_path(e, kind, item->key, vg_slice_str(name), NULL) : -ENOMEM;
    if (r == 0)
        r = write(e);
    if (r == 0) {
        (void)vg_errand_send(e, VG_TYPE_JSON);
        return;
    }
    vg_errand_free(e);
    vg_work_failed(item);
}

/* ---- the service account ---- */

static int write_account(struct vg_errand *e)
{
    return vg_buf_printf(&e->body,
                         "{\"kind\":\"ServiceAccount\",\"apiVersion\":\"v1\",\"metadata\":{"
                         "\"name\":\"" ACCOUNT "\"}}");
}

static void run_account(struct vg_work_item *item)
{
    struct vg_control *c = item->work->arg;
    struct vg_rec *rec = vg_control_get(c, c->accounts, item->key, VG_SLICE_LIT(ACCOUNT));
    if (rec || !is_active(c, item->key))
        vg_work_done(item);
    else
        ask(c, item, "POST", c->accounts, "", write_account);
    vg_rec_unref(rec);
}

/* ---- the config map ---- */

static int write_config_map(struct vg_errand *e)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, &e->body, 0);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "kind", VG_SLICE_LIT("ConfigMap"));
    vg_json_put_member(&w, "apiVersion", VG_SLICE_LIT("v1"));
    vg_json_put_key(&w, VG_SLICE_LIT("metadata"));
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "name", VG_SLICE_LIT(CONFIG_MAP));
    vg_json_put_key(&w, VG_SLICE_LIT("annotations"));
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "kubernetes.io/description", VG_SLICE_LIT(CONFIG_MAP_ABOUT));
    vg_json_put_end_object(&w);
    vg_json_put_end_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("data"));
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "ca.crt", e->c->opts.root_ca);
    vg_json_put_end_object(&w);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

/* Has it the certificate, and nothing else? */
static bool is_right(const struct vg_control *c, const struct vg_rec *rec)
{
    const struct vg_json_step path[] = {vg_json_step_key("data")};
    VG_AUTO(arena) arena = {0};
    struct vg_slice data, text;
    struct vg_json_iter it;
    struct vg_json_raw raw;
    size_t n = 0;
    bool is = true;
    if (vg_json_find(vg_rec_value(rec), path, 1, &data) < 0 || vg_json_iter_init(&it, data) < 0)
        return false;
    for (; vg_json_iter_next(&it, &raw) > 0; n++)
        is = is && vg_json_raw_key_eq(raw.key, VG_SLICE_LIT("ca.crt")) &&
             vg_json_raw_text(&arena, raw.value, &text) == 0 && vg_slice_eq(text, c->opts.root_ca);
    return is && n == 1;
}

static void run_root_ca(struct vg_work_item *item)
{
    struct vg_control *c = item->work->arg;
    struct vg_rec *rec = vg_control_get(c, c->config_maps, item->key, VG_SLICE_LIT(CONFIG_MAP));
    if (!is_active(c, item->key) || (rec && is_right(c, rec)))
        vg_work_done(item);
    else if (rec)
        ask(c, item, "PUT", c->config_maps, CONFIG_MAP, write_config_map);
    else
        ask(c, item, "POST", c->config_maps, "", write_config_map);
    vg_rec_unref(rec);
}

/* ---- the controllers ---- */

static bool is_new_namespace(const struct vg_control *c, const struct vg_control_event *e)
{
    return e->kind == c->namespaces && e->change != VG_OBJ_DELETED && !vg_obj_is_deleting(&e->h);
}

static void on_account_event(struct vg_control *c, const struct vg_control_event *e)
{
    if (is_new_namespace(c, e))
        vg_control_add(c, VG_CONTROL_SERVICE_ACCOUNT, vg_obj_name(&e->h));
    else if (e->change == VG_OBJ_DELETED && e->kind == c->accounts &&
             vg_slice_eq(vg_obj_name(&e->h), VG_SLICE_LIT(ACCOUNT)))
        vg_control_add(c, VG_CONTROL_SERVICE_ACCOUNT, vg_obj_namespace(&e->h));
}

static void on_root_ca_event(struct vg_control *c, const struct vg_control_event *e)
{
    if (is_new_namespace(c, e))
        vg_control_add(c, VG_CONTROL_ROOT_CA, vg_obj_name(&e->h));
    else if (e->change != VG_OBJ_ADDED && e->kind == c->config_maps &&
             vg_slice_eq(vg_obj_name(&e->h), VG_SLICE_LIT(CONFIG_MAP)))
        vg_control_add(c, VG_CONTROL_ROOT_CA, vg_obj_namespace(&e->h));
}

static const char *const account_follows[] = {"serviceaccounts", NULL};
static const char *const root_ca_follows[] = {"configmaps", NULL};

const struct vg_controller_ops vg_account_controller = {
    .name = "serviceaccount-controller",
    .follows = account_follows,
    .event = on_account_event,
    .run = run_account,
};

const struct vg_controller_ops vg_root_ca_controller = {
    .name = "root-ca-certificate-publisher-controller",
    .follows = root_ca_follows,
    .event = on_root_ca_event,
    .run = run_root_ca,
};
