/* connect.c - subresources behind which a node stands: log, exec, attach, portforward, proxy.
 * There is none to ask: vigil connects to nobody. What can be said without one is said as
 * kube-apiserver does, which answers most requests of a cluster without nodes: that an object is
 * not there, a pod has no host yet, a container has another name, options are wrong. */
#include "look.h"
#include "respond_int.h"
#include "server/schema/strconv.h"
#include "status_int.h"
#include "update.h"

struct connection {
    struct vg_look look;  /* first: vg_look_op */
    struct vg_slice port; /* of a proxy; empty: none was named */
};

static void refuse(struct connection *w, const struct vg_api_status *status)
{
    struct vg_api_call *call = w->look.call;
    vg_look_release(&w->look);
    vg_respond_status(call, status);
}

static struct vg_arena *arena(struct connection *w)
{
    return &w->look.call->ask->arena;
}

static void say_no_node(struct connection *w, struct vg_api_status *ret)
{
    *ret = (struct vg_api_status){
        .code = 503,
        .reason = "ServiceUnavailable",
        .message = VG_SLICE_LIT("there is no node to ask: vigil does not connect to nodes")};
    refuse(w, ret);
}

/* ---- nodes ---- */

static void on_node(struct vg_look *l)
{
    struct connection *w = VG_CONTAINER_OF(l, struct connection, look);
    struct vg_api_status status;
    struct vg_json *node;
    if (l->call->is_closed) {
        vg_look_release(l);
        vg_call_finish(l->call);
    } else if (vg_look_tree(l, &node, &status) < 0)
        refuse(w, &status);
    else
        say_no_node(w, &status);
}

/* ---- pods ---- */

static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};

static struct vg_slice name_of(const struct vg_json *container)
{
    return vg_json_text(vg_json_get_str(container, "name"));
}

static bool has_container(const struct vg_json *spec, struct vg_slice name)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(lists); i++) {
        const struct vg_json *list = vg_json_get_str(spec, lists[i]);
        if (list)
            VG_JSON_FOREACH_ITEM (it, list)
                if (vg_slice_eq(name_of(it), name))
                    return true;
    }
    return false;
}

/* One of several has to be named. */
static void ask_for_container(struct connection *w, const struct vg_json *spec,
                              struct vg_api_status *ret)
{
    VG_AUTO(buf) names = {0};
    int err = 0;
    for (size_t i = 0; i < VG_ARRAY_LEN(lists); i++) {
        const struct vg_json *list = vg_json_get_str(spec, lists[i]);
        if (list)
            VG_JSON_FOREACH_ITEM (it, list)
                if (err == 0)
                    err = vg_buf_printf(&names, "%s%.*s", names.n ? " " : "",
                                        VG_SLICE_ARG(name_of(it)));
    }
    if (err < 0)
        vg_status_no_memory(ret);
    else
        vg_status_bad_request(arena(w), ret,
                              "a container name must be specified for pod %.*s, choose one of: "
                              "[%.*s]",
                              VG_SLICE_ARG(w->look.name), VG_SLICE_ARG(vg_buf_slice(&names)));
}

/* Does the request name a container that is there, or need it name none? */
static int check_container(struct connection *w, const struct vg_json *spec,
                           struct vg_api_status *ret)
{
    struct vg_slice name = vg_query_get(w->look.call->ask->target, "container");
    const struct vg_json *regular = vg_json_get_str(spec, "containers");
    if (name.n ? has_container(spec, name) : regular && regular->n == 1)
        return 0;
    if (name.n)
        vg_status_bad_request(arena(w), ret, "container %.*s is not valid for pod %.*s",
                              VG_SLICE_ARG(name), VG_SLICE_ARG(w->look.name));
    else
        ask_for_container(w, spec, ret);
    return VIGIL_E_INVALID;
}

static void say_nothing(struct connection *w)
{
    struct vg_head_opts opts = {.code = 204};
    struct vg_api_call *call = w->look.call;
    vg_look_release(&w->look);
    vg_respond_slices(call, &opts, NULL, 0, NULL);
}

static bool is_sub(const struct connection *w, const char *name)
{
    return strcmp(w->look.call->ask->target->sub->name, name) == 0;
}

/* A pod that runs nowhere has logged nothing yet. */
static void answer_pod(struct connection *w, const struct vg_json *pod)
{
    struct vg_api_status status;
    const struct vg_json *spec = vg_json_get_str(pod, "spec");
    struct vg_slice node = vg_json_text(vg_json_get_str(spec, "nodeName"));
    if (!is_sub(w, "portforward") && check_container(w, spec, &status) < 0) {
        refuse(w, &status);
        return;
    }
    if (node.n == 0 && is_sub(w, "log")) {
        say_nothing(w);
        return;
    }
    if (node.n == 0) {
        vg_status_bad_request(arena(w), &status, "pod %.*s does not have a host assigned",
                              VG_SLICE_ARG(w->look.name));
        refuse(w, &status);
        return;
    }
    w->look.kind = vg_kind_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), VG_SLICE_LIT("nodes"));
    w->look.ns = VG_SLICE_LIT("");
    w->look.name = node; /* in the arena */
    w->look.done = on_node;
    vg_look_start(&w->look);
}

/* ---- proxies ---- */

static void answer_pod_proxy(struct connection *w, const struct vg_json *pod)
{
    struct vg_api_status status;
    const struct vg_json *ips = vg_json_get_str(vg_json_get_str(pod, "status"), "podIPs");
    if (vg_json_is(ips, VG_JSON_ARRAY) && ips->n) {
        say_no_node(w, &status);
        return;
    }
    vg_status_bad_request(arena(w), &status, "address not allowed");
    refuse(w, &status);
}

static bool has_port(const struct vg_json *service, int64_t port)
{
    const struct vg_json *ports = vg_json_get_str(vg_json_get_str(service, "spec"), "ports");
    int64_t i;
    if (ports)
        VG_JSON_FOREACH_ITEM (it, ports)
            if (vg_json_to_int64(vg_json_get_str(it, "port"), &i) == 0 && i == port)
                return true;
    return false;
}

static void answer_service_proxy(struct connection *w, const struct vg_json *service)
{
    struct vg_api_status status = {.code = 503, .reason = "ServiceUnavailable"};
    struct vg_arena *a = arena(w);
    struct vg_slice why, name = vg_api_quote(a, w->look.name);
    int64_t port;
    int err;
    if (vg_strconv_int(a, w->port, &port, &why) == 0 && !has_port(service, port))
        err = vg_arena_printf(a, &status.message, "no service port %lld found for service %.*s",
                              (long long)port, VG_SLICE_ARG(name));
    else
        err = vg_arena_printf(a, &status.message, "no endpoints available for service %.*s",
                              VG_SLICE_ARG(name));
    if (err < 0)
        vg_status_no_memory(&status);
    refuse(w, &status);
}

static void answer_node_proxy(struct connection *w, const struct vg_json *node)
{
    struct vg_api_status status;
    (void)node;
    say_no_node(w, &status);
}

/* name, name:port, scheme:name:port. False: something else. */
static bool split_name(struct vg_slice id, struct vg_slice *ret_name, struct vg_slice *ret_port)
{
    size_t colons = 0;
    for (size_t i = 0; i < id.n; i++)
        colons += id.p[i] == ':';
    struct vg_slice rest = id, scheme = VG_SLICE_LIT("");
    if (colons > 2)
        return false;
    if (colons == 2)
        scheme = vg_cut(&rest, ':');
    *ret_name = vg_cut(&rest, ':');
    *ret_port = rest; /* empty when there is none */
    bool is_scheme = scheme.n == 0 || vg_slice_eq(scheme, VG_SLICE_LIT("http")) ||
                     vg_slice_eq(scheme, VG_SLICE_LIT("https"));
    return is_scheme && ret_name->n;
}

/* ---- options of logs ---- */

static void check_number(struct vg_field_errors *e, const char *name, struct vg_slice text,
                         int64_t v, int64_t least)
{
    if (text.p && v < least)
        vg_field_invalid(e, name, text, "must be greater than %s0", least ? "" : "or equal to ");
}

/* Numbers and a time, in the order of the original. 0, or VIGIL_E_INVALID with the 400. */
static int read_log_options(struct connection *w, struct vg_slice text[4], int64_t v[3],
                            struct vg_api_status *ret)
{
    static const char *const names[] = {"sinceSeconds", "sinceTime", "tailLines", "limitBytes"};
    const struct vg_target *t = w->look.call->ask->target;
    struct vg_status status = {.err = 0};
    struct vg_slice why;
    for (size_t i = 0, k = 0; i < VG_ARRAY_LEN(names); i++) {
        text[i] = vg_query_get(t, names[i]);
        if (!text[i].p)
            ;
        else if (i == 1) {
            int64_t s;
            if (text[i].n == 0 || vg_time_parse(text[i], &s, &status) == 0)
                continue;
            vg_status_bad_request(arena(w), ret, "%s", status.message);
            return VIGIL_E_INVALID;
        } else if (vg_strconv_int(arena(w), text[i], &v[k], &why) < 0) {
            vg_status_bad_request(arena(w), ret, "%.*s", VG_SLICE_ARG(why));
            return VIGIL_E_INVALID;
        }
        k += i != 1;
    }
    return 0;
}

static int check_log_options(struct connection *w, struct vg_api_status *ret)
{
    const struct vg_target *t = w->look.call->ask->target;
    struct vg_field_errors e = {.arena = arena(w)};
    struct vg_slice text[4];
    int64_t v[3] = {0};
    if (read_log_options(w, text, v, ret) < 0)
        return VIGIL_E_INVALID;
    check_number(&e, "tailLines", text[2], v[1], 0);
    check_number(&e, "limitBytes", text[3], v[2], 1);
    if (text[0].p && text[1].p)
        vg_field_forbidden(&e, "[]",
                           "at most one of `sinceTime` or `sinceSeconds` may be specified");
    else
        check_number(&e, "sinceSeconds", text[0], v[0], 1);
    if (vg_query_get(t, "stream").p)
        vg_field_forbidden(&e, "stream", "may not be specified");
    if (e.n == 0 && !e.failed)
        return 0;
    vg_status_invalid(arena(w), ret, "", "PodLogOptions", t->name, &e);
    return VIGIL_E_INVALID;
}

/* ---- the request ---- */

typedef void answer_fn(struct connection *w, const struct vg_json *object);

static answer_fn *answer_of(const struct vg_target *t)
{
    static const struct {
        const char *kind, *sub;
        answer_fn *answer;
    } answers[] = {
        {"Node", "proxy", answer_node_proxy},
        {"Pod", "proxy", answer_pod_proxy},
        {"Pod", NULL, answer_pod},
        {"Service", "proxy", answer_service_proxy},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(answers); i++)
        if (strcmp(t->kind->kind, answers[i].kind) == 0 &&
            (!answers[i].sub || strcmp(t->sub->name, answers[i].sub) == 0))
            return answers[i].answer;
    return NULL;
}

static void on_found(struct vg_look *l)
{
    struct connection *w = VG_CONTAINER_OF(l, struct connection, look);
    answer_fn *answer = answer_of(l->call->ask->target);
    struct vg_api_status status;
    struct vg_json *object;
    if (l->call->is_closed) {
        vg_look_release(l);
        vg_call_finish(l->call);
    } else if (vg_look_tree(l, &object, &status) < 0)
        refuse(w, &status);
    else if (answer)
        answer(w, object);
    else
        say_no_node(w, &status);
}

static int begin(struct connection *w, struct vg_api_status *ret)
{
    const struct vg_target *t = w->look.call->ask->target;
    w->look.name = t->name;
    if (is_sub(w, "log"))
        return check_log_options(w, ret);
    if (!is_sub(w, "proxy") || split_name(t->name, &w->look.name, &w->port))
        return 0;
    vg_status_bad_request(arena(w), ret, "invalid %s request %.*s", t->kind->singular,
                          VG_SLICE_ARG(vg_api_quote(arena(w), t->name)));
    return VIGIL_E_INVALID;
}

void vg_api_connect(struct vg_api_call *call)
{
    const struct vg_target *t = call->ask->target;
    struct vg_api_status status;
    struct connection *w = vg_call_new(call, struct connection);
    if (!w)
        return;
    w->look = (struct vg_look){.call = call, .kind = t->kind, .ns = t->ns, .done = on_found};
    if (begin(w, &status) < 0) {
        vg_respond_status(call, &status);
        return;
    }
    call->state = w;
    call->op = &vg_look_op;
    vg_look_start(&w->look);
}
