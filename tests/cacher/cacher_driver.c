/* cacher_driver.c - see cacher_driver.h: opening, turning, objects. Sinks are in cacher_sink.c. */
#include "cacher_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "object/object_testing.h"
#include "storage_driver_int.h"
#include "test_support.h"

static const struct vg_obj_fields *fields_of(size_t kind)
{
    return kind == KIND_NODES ? &vg_test_no_fields : &vg_test_pods;
}

#define BOOKMARK(kind)                                                                             \
    "{\"kind\":\"" kind "\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\""

static const struct vg_cache_kind kinds[KINDS] = {
    [KIND_PODS] = {.name = "pods",
                   .prefix = "/registry/pods/",
                   .fields = &vg_test_pods,
                   .is_namespaced = true,
                   .bookmark_head = BOOKMARK("Pod"),
                   .bookmark_tail = ",\"spec\":{\"containers\":null},\"status\":{}}"},
    [KIND_NODES] = {.name = "nodes",
                    .prefix = "/registry/minions/",
                    .fields = &vg_test_no_fields,
                    .bookmark_head = BOOKMARK("Node"),
                    .bookmark_tail = ",\"spec\":{},\"status\":{}}"},
    [KIND_EVENTS] = {.name = "events",
                     .prefix = "/registry/events/",
                     .fields = &vg_test_pods,
                     .is_namespaced = true,
                     .is_uncached = true,
                     .bookmark_head = BOOKMARK("Event"),
                     .bookmark_tail = "}"},
};

/* ---- open and close ---- */

static struct vg_loop *make_loop(struct vg_cdrv *d)
{
    struct vg_loop *loop = NULL;
    if (vg_loop_new(d->opts.clock, &loop) < 0)
        vg_drv_die("loop", -1);
    vg_loop_turn(loop, false);
    return loop;
}

static void open_cacher(struct vg_cdrv *d)
{
    d->opts.storage = d->store.store;
    d->opts.kinds = d->kinds;
    d->opts.n_kinds = KINDS;
    int err = vg_cacher_open(&d->opts, d->feed, &d->c);
    if (err < 0)
        vg_drv_die("cacher", err);
}

void vg_cdrv_open_ports(struct vg_cdrv *d)
{
    for (size_t i = 0; i < d->n_ports; i++)
        if (vg_cache_port_open(d->c, d->loops[i], &d->ports[i]) < 0)
            vg_drv_die("port", -1);
}

void vg_cdrv_open_cold(struct vg_cdrv *d, const struct vg_cdrv_opts *opts)
{
    struct vg_cdrv_opts none = {0};
    opts = opts ? opts : &none;
    struct vg_storage_opts storage = opts->storage;
    *d = (struct vg_cdrv){.opts = opts->cacher, .is_threaded = opts->is_threaded};
    if (opts->is_threaded)
        storage.clock = vg_clock_system();
    vg_drv_open(&d->store, opts->engine ? opts->engine : "mem", &storage);
    d->opts.clock = d->store.opts.clock;
    memcpy(d->kinds, kinds, sizeof kinds);
    d->kinds[KIND_PODS].is_uncached = opts->pods_uncached;
    d->n_ports = opts->n_ports ? opts->n_ports : 1;
    d->feed = make_loop(d);
    for (size_t i = 0; i < d->n_ports; i++)
        d->loops[i] = make_loop(d);
    open_cacher(d);
}

void vg_cdrv_wait_ready(struct vg_cdrv *d)
{
    vg_drv_watchdog("the cache to be ready");
    while (!vg_cacher_is_ready(d->c))
        vg_loop_turn(d->feed, true);
    vg_drv_watchdog(NULL);
}

void vg_cdrv_open(struct vg_cdrv *d, const struct vg_cdrv_opts *opts)
{
    vg_cdrv_open_cold(d, opts);
    vg_cdrv_wait_ready(d);
    vg_cdrv_open_ports(d);
    vg_cdrv_turn_ports(d);
}

void vg_cdrv_close_cacher(struct vg_cdrv *d)
{
    bool is_done = false;
    for (size_t i = 0; i < d->n_ports; i++) {
        if (d->ports[i]) {
            vg_cache_port_drain(d->ports[i]);
            vg_cache_port_close(vg_steal(d->ports[i]));
        }
        while (vg_loop_turn(d->loops[i], false))
            ;
    }
    vg_cacher_close(vg_steal(d->c), &is_done);
    vg_drv_watchdog("the cacher to close");
    while (!is_done)
        vg_loop_turn(d->feed, true);
    vg_drv_watchdog(NULL);
}

void vg_cdrv_open_again(struct vg_cdrv *d)
{
    open_cacher(d);
    vg_cdrv_wait_ready(d);
    vg_cdrv_open_ports(d);
    vg_cdrv_turn_ports(d);
}

void vg_cdrv_close(struct vg_cdrv *d)
{
    if (d->c)
        vg_cdrv_close_cacher(d);
    vg_drv_close_store(&d->store);
    vg_loop_turn(d->feed, false);
    vg_loop_free(d->feed);
    for (size_t i = 0; i < d->n_ports; i++) {
        while (vg_loop_turn(d->loops[i], false))
            ;
        vg_loop_free(d->loops[i]);
    }
    vg_drv_close(&d->store);
}

/* ---- turning ---- */

void vg_cdrv_start_threads(struct vg_cdrv *d)
{
    if (!d->is_threaded)
        return;
    int err = vg_loop_start(d->feed, "feed");
    for (size_t i = 0; i < d->n_ports; i++)
        err = err < 0 ? err : vg_loop_start(d->loops[i], "port");
    if (err < 0)
        vg_drv_die("threads", err);
}

void vg_cdrv_stop_threads(struct vg_cdrv *d)
{
    if (!d->is_threaded)
        return;
    vg_loop_stop(d->feed);
    for (size_t i = 0; i < d->n_ports; i++)
        vg_loop_stop(d->loops[i]);
}

bool vg_cdrv_turn_feed(struct vg_cdrv *d)
{
    return vg_loop_turn(d->feed, false);
}

void vg_cdrv_turn_ports(struct vg_cdrv *d)
{
    for (size_t i = 0; i < d->n_ports; i++)
        while (vg_loop_turn(d->loops[i], false))
            ;
}

void vg_cdrv_sync_feed(struct vg_cdrv *d)
{
    vg_rev want = vg_storage_revision(d->store.store);
    vg_drv_watchdog("the feed to catch up");
    while (vg_cacher_revision(d->c) < want)
        vg_loop_turn(d->feed, true);
    while (vg_loop_turn(d->feed, false))
        ;
    vg_drv_watchdog(NULL);
}

void vg_cdrv_sync(struct vg_cdrv *d)
{
    vg_cdrv_sync_feed(d);
    vg_cdrv_turn_ports(d);
}

void vg_cdrv_advance_ms(struct vg_cdrv *d, uint64_t ms)
{
    while (ms) {
        uint64_t step = VG_MIN(ms, (uint64_t)1000);
        vg_drv_advance_ms(&d->store, step);
        while (vg_loop_turn(d->feed, false))
            ;
        vg_cdrv_turn_ports(d);
        ms -= step;
    }
}

struct call {
    struct vg_mail mail;
    void (*fn)(void *arg);
    void *arg;
    pthread_mutex_t mu;
    pthread_cond_t cond;
    bool is_done;
};

static void on_call(struct vg_mail *mail)
{
    struct call *call = VG_CONTAINER_OF(mail, struct call, mail);
    call->fn(call->arg);
    pthread_mutex_lock(&call->mu);
    call->is_done = true;
    pthread_cond_signal(&call->cond);
    pthread_mutex_unlock(&call->mu);
}

void vg_cdrv_call(struct vg_cdrv *d, size_t port, void (*fn)(void *arg), void *arg)
{
    if (!d->is_threaded) {
        fn(arg);
        return;
    }
    struct call call = {.mail = {.run = on_call}, .fn = fn, .arg = arg};
    pthread_mutex_init(&call.mu, NULL);
    pthread_cond_init(&call.cond, NULL);
    vg_loop_post(d->loops[port], &call.mail);
    pthread_mutex_lock(&call.mu);
    while (!call.is_done)
        pthread_cond_wait(&call.cond, &call.mu);
    pthread_mutex_unlock(&call.mu);
    pthread_mutex_destroy(&call.mu);
    pthread_cond_destroy(&call.cond);
}

/* ---- objects ---- */

static struct vg_test_obj seal_pod(size_t kind, const struct vg_pod *pod)
{
    VG_AUTO(buf) text;
    vg_buf_init(&text, 0);
    bool is_node = kind == KIND_NODES;
    vg_test_must(vg_buf_printf(
        &text,
        "{\"kind\":\"%s\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\""
        "%s%s%s%s%s%s},\"spec\":{%s%s%s},\"data\":%d%s%*s%s}",
        is_node ? "Node" : "Pod", pod->name, is_node ? "" : ",\"namespace\":\"",
        is_node ? "" : pod->ns, is_node ? "" : "\"", pod->labels ? ",\"labels\":{" : "",
        pod->labels ? pod->labels : "", pod->labels ? "}" : "", pod->node ? "\"nodeName\":\"" : "",
        pod->node ? pod->node : "", pod->node ? "\"" : "", pod->n, pod->pad ? ",\"pad\":\"" : "",
        pod->pad, "", pod->pad ? "\"" : ""));
    return vg_test_seal(fields_of(kind), vg_buf_slice(&text));
}

static struct vg_obj_key key_of(size_t kind, const char *ns, const char *name)
{
    struct vg_obj_key key;
    vg_test_must(vg_obj_key_make(vg_slice_str(kinds[kind].prefix),
                                 vg_slice_str(kinds[kind].is_namespaced ? ns : ""),
                                 vg_slice_str(name), &key));
    return key;
}

struct vg_op vg_cdrv_put_op(size_t kind, const struct vg_pod *pod)
{
    struct vg_test_obj o = seal_pod(kind, pod);
    struct vg_obj_key key = key_of(kind, pod->ns, pod->name);
    struct vg_op op = vg_drv_op_put(vg_obj_key_slice(&key), o.header, o.value, VG_EXPECT_ANY);
    vg_test_obj_cleanup(&o);
    return op;
}

struct vg_op vg_cdrv_delete_op(size_t kind, const char *ns, const char *name)
{
    struct vg_obj_key key = key_of(kind, ns, name);
    return vg_drv_op_delete(vg_obj_key_slice(&key), VG_EXPECT_ANY);
}

static vg_rev run_op(struct vg_cdrv *d, struct vg_op op)
{
    vg_rev rev = 0;
    int err = vg_drv_run(&d->store, &op, 1, &rev);
    if (err < 0)
        vg_drv_die("write", err);
    return rev;
}

vg_rev vg_cdrv_put(struct vg_cdrv *d, size_t kind, const struct vg_pod *pod)
{
    return run_op(d, vg_cdrv_put_op(kind, pod));
}

vg_rev vg_cdrv_delete(struct vg_cdrv *d, size_t kind, const char *ns, const char *name)
{
    return run_op(d, vg_cdrv_delete_op(kind, ns, name));
}

char *vg_cdrv_frame(const char *type, size_t kind, const struct vg_pod *pod, vg_rev rev)
{
    struct vg_test_obj o = seal_pod(kind, pod);
    size_t room = o.value.n + 128;
    char *text = calloc(1, room);
    vg_test_must(text ? 0 : -1);
    snprintf(text, room, "{\"type\":\"%s\",\"object\":%.*s,\"resourceVersion\":\"%llu\"%.*s}\n",
             type, (int)o.h.rev_at, o.value.p, (unsigned long long)rev,
             (int)(o.value.n - o.h.rev_at), o.value.p + o.h.rev_at);
    vg_test_obj_cleanup(&o);
    return text;
}

struct vg_obj_predicate *vg_cdrv_predicate(size_t kind, const char *ns, const char *name,
                                           const char *labels, const char *fields)
{
    struct vg_obj_predicate *p = NULL;
    struct vg_obj_predicate_opts o = {
        .fields = fields_of(kind),
        .ns = vg_slice_str(ns ? ns : ""),
        .name = vg_slice_str(name ? name : ""),
    };
    if (labels)
        vg_test_must(vg_label_selector_parse(vg_slice_str(labels), &o.take_labels, NULL));
    if (fields)
        vg_test_must(vg_field_selector_parse(vg_slice_str(fields), &o.take_fields, NULL));
    vg_test_must(vg_obj_predicate_new(&o, &p, NULL));
    return p;
}
