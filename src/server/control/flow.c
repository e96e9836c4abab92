/* flow.c - the objects of API priority and fairness: those that every cluster has are there, and
 * each FlowSchema says whether its priority level exists. kube-apiserver does both itself.
 *
 * A mandatory object gets its spec back whatever its annotation says. A suggested one is kept up to
 * date while apf.kubernetes.io/autoupdate-spec is true, or is missing on an object that was never
 * changed; with false the user's spec stays. An object with the annotation true that is not among
 * the defaults is one of another release, and goes. */
#include <errno.h>
#include <stdio.h>

#include "control_int.h"
#include "server/flow/defaults.h"
#include "server/schema/gotime.h"
#include "json/equal.h"

#define API "flowcontrol.apiserver.k8s.io"
#define PRODUCER "?fieldManager=api-priority-and-fairness-config-producer-v1"
#define CONSUMER "?force=true&fieldManager=api-priority-and-fairness-config-consumer-v1"

static const struct flow_kind {
    char letter; /* a key is this and the name */
    const char *resource, *kind;
    const struct vg_flow_default *defaults;
} kinds[] = {
    {'l', "prioritylevelconfigurations", "PriorityLevelConfiguration", vg_flow_default_levels},
    {'s', "flowschemas", "FlowSchema", vg_flow_default_schemas},
};

static const struct vg_kind *kind_of(const struct flow_kind *k)
{
    return vg_kind_find(VG_SLICE_LIT(API), VG_SLICE_LIT("v1"), vg_slice_str(k->resource));
}

static void look_at(struct vg_control *c, const struct flow_kind *k, struct vg_slice name)
{
    VG_AUTO(buf) key = {0};
    if (vg_buf_append_byte(&key, k->letter) == 0 && vg_buf_append_slice(&key, name) == 0)
        vg_control_add(c, VG_CONTROL_FLOW, vg_buf_slice(&key));
}

/* ---- what is wrong with an object ---- */

struct state {
    struct vg_arena arena;
    const struct vg_json *object; /* NULL: there is none */
    const struct vg_flow_default *usual;
    const struct flow_kind *kind;
    struct vg_slice name;
    vg_rev rev;
};

static const struct vg_json *meta_of(const struct state *s)
{
    return vg_json_get_str(s->object, "metadata");
}

static struct vg_slice annotation_of(const struct state *s)
{
    return vg_json_text(
        vg_json_get_str(vg_json_get_str(meta_of(s), "annotations"), VG_FLOW_AUTOUPDATE));
}

/* As Go's strconv.ParseBool: 1 true, 0 false, -1 neither. */
static int parse_bool(struct vg_slice v)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"}, *const no[] = {
                                                                                  "0",     "f",
                                                                                  "F",     "false",
                                                                                  "FALSE", "False"};
    for (size_t i = 0; i < VG_ARRAY_LEN(yes); i++) {
        if (vg_slice_eq(v, vg_slice_str(yes[i])))
            return 1;
        if (vg_slice_eq(v, vg_slice_str(no[i])))
            return 0;
    }
    return -1;
}

static bool is_kept_up_to_date(const struct state *s)
{
    int64_t generation = 0;
    int said = parse_bool(annotation_of(s));
    const struct vg_json *g = vg_json_get_str(meta_of(s), "generation");
    if (s->usual->is_mandatory || said >= 0)
        return s->usual->is_mandatory || said;
    return g && vg_json_to_int64(g, &generation) == 0 && generation == 1;
}

/* The numbers of the exempt level are the user's. */
static bool is_spec_right(const struct state *s, const struct vg_json *usual)
{
    const struct vg_json *spec = vg_json_get_str(s->object, "spec");
    if (strcmp(s->usual->name, "exempt") == 0 && s->kind->letter == 'l')
        return vg_slice_eq(vg_json_text(vg_json_get_str(spec, "type")), VG_SLICE_LIT("Exempt")) &&
               vg_json_get_str(spec, "exempt");
    return vg_json_equal(spec, usual) != 0; /* without memory: not now */
}

/* A JSON patch, or nothing when all is right. It names the revision that was looked at. */
static int write_revision(struct state *s, struct vg_buf *out)
{
    struct vg_json *usual;
    bool is_kept = is_kept_up_to_date(s);
    int r = vg_json_parse(&s->arena, vg_slice_str(s->usual->spec), NULL, &usual, NULL);
    if (r < 0)
        return r;
    bool is_wrong = is_kept && !is_spec_right(s, usual);
    bool is_annotated = parse_bool(annotation_of(s)) == is_kept;
    if (!is_wrong && is_annotated)
        return 0;
    r = vg_buf_printf(out,
                      "[{\"op\":\"add\",\"path\":\"/metadata/resourceVersion\",\"value\":\"%llu\"}",
                      (unsigned long long)s->rev);
    if (r == 0 && is_wrong)
        r = vg_buf_printf(out, ",{\"op\":\"replace\",\"path\":\"/spec\",\"value\":%s}",
                          s->usual->spec);
    const char *value = is_kept ? "true" : "false";
    if (r == 0 && !is_annotated && vg_json_get_str(meta_of(s), "annotations"))
        r = vg_buf_printf(out,
                          ",{\"op\":\"add\",\"path\":\"/metadata/annotations/"
                          "apf.kubernetes.io~1autoupdate-spec\",\"value\":\"%s\"}",
                          value);
    else if (r == 0 && !is_annotated)
        r = vg_buf_printf(out,
                          ",{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":"
                          "{\"" VG_FLOW_AUTOUPDATE "\":\"%s\"}}",
                          value);
    return r < 0 ? r : vg_buf_append_byte(out, ']');
}

static int write_new(const struct state *s, struct vg_buf *out)
{
    return vg_buf_printf(out,
                         "{\"kind\":\"%s\",\"apiVersion\":\"" API "/v1\",\"metadata\":{\"name\":"
                         "\"%s\",\"annotations\":{\"" VG_FLOW_AUTOUPDATE "\":\"true\"}},"
                         "\"spec\":%s}",
                         s->kind->kind, s->usual->name, s->usual->spec);
}

/* ---- the condition of a schema ---- */

static bool has_condition(const struct state *s, const char *status, const char *reason,
                          struct vg_slice message)
{
    const struct vg_json *list =
        vg_json_get_str(vg_json_get_str(s->object, "status"), "conditions");
    for (size_t i = 0; vg_json_is(list, VG_JSON_ARRAY) && i < list->n; i++) {
        const struct vg_json *o = &list->items[i];
        if (vg_slice_eq(vg_json_text(vg_json_get_str(o, "type")), VG_SLICE_LIT("Dangling")))
            return vg_slice_eq(vg_json_text(vg_json_get_str(o, "status")), vg_slice_str(status)) &&
                   vg_slice_eq(vg_json_text(vg_json_get_str(o, "reason")), vg_slice_str(reason)) &&
                   vg_slice_eq(vg_json_text(vg_json_get_str(o, "message")), message);
    }
    return false;
}

static int write_status(struct vg_buf *out, struct vg_slice name, const char *status,
                        const char *reason, struct vg_slice message)
{
    char when[VG_TIME_TEXT_MAX];
    struct vg_json_writer w;
    size_t n = vg_time_format(vg_clock_wall_ms(vg_clock_system()), when);
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "apiVersion", VG_SLICE_LIT(API "/v1"));
    vg_json_put_member(&w, "kind", VG_SLICE_LIT("FlowSchema"));
    vg_json_put_key(&w, VG_SLICE_LIT("metadata"));
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "name", name);
    vg_json_put_end_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("status"));
    vg_json_put_begin_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("conditions"));
    vg_json_put_begin_array(&w);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "type", VG_SLICE_LIT("Dangling"));
    vg_json_put_member(&w, "status", vg_slice_str(status));
    vg_json_put_member(&w, "lastTransitionTime", vg_slice(when, n));
    vg_json_put_member(&w, "reason", vg_slice_str(reason));
    vg_json_put_member(&w, "message", message);
    vg_json_put_end_object(&w);
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}

/* Nothing is written when the condition is right. */
static int write_condition(struct vg_control *c, const struct state *s, struct vg_buf *out)
{
    const struct vg_json *spec = vg_json_get_str(s->object, "spec");
    struct vg_slice level =
        vg_json_text(vg_json_get_str(vg_json_get_str(spec, "priorityLevelConfiguration"), "name"));
    struct vg_rec *rec = vg_control_get(c, kind_of(&kinds[0]), VG_SLICE_LIT(""), level);
    const char *status = rec ? "False" : "True", *reason = rec ? "Found" : "NotFound";
    VG_AUTO(buf) message = {0};
    int r =
        vg_buf_printf(&message,
                      "This FlowSchema references the PriorityLevelConfiguration object named "
                      "\"%.*s\" %s",
                      VG_SLICE_ARG(level), rec ? "and it exists" : "but there is no such object");
    vg_rec_unref(rec);
    if (r == 0 && !has_condition(s, status, reason, vg_buf_slice(&message)))
        r = write_status(out, s->name, status, reason, vg_buf_slice(&message));
    return r;
}

/* ---- work ---- */

static void on_answer(struct vg_errand *e)
{
    /* Another was faster, or it has gone: an event tells. */
    vg_errand_settle(e, e->call.err == 0 && e->call.status == 404 ? 404 : 409);
}

struct request {
    const char *method, *sub, *query, *type;
};

static const struct request create = {"POST", NULL, PRODUCER, VG_TYPE_JSON},
                            revise = {"PATCH", NULL, PRODUCER, "application/json-patch+json"},
                            erase = {"DELETE", NULL, "", NULL},
                            tell = {"PATCH", "status", CONSUMER, "application/apply-patch+yaml"};

/* Consumes the body. */
static void ask(struct vg_work_item *item, const struct state *s, const struct request *q,
                struct vg_buf *take_body)
{
    struct vg_errand *e = vg_errand_new(item->work->arg, q->method, item, on_answer);
    struct vg_slice name = q == &create ? VG_SLICE_LIT("") : s->name;
    int r = e ? vg_errand_path(e, kind_of(s->kind), VG_SLICE_LIT(""), name, q->sub) : -ENOMEM;
    if (r == 0)
        r = vg_buf_append(&e->target, q->query, strlen(q->query));
    if (r == 0) {
        e->body = *take_body;
        *take_body = (struct vg_buf){0};
        (void)vg_errand_send(e, q->type);
        return;
    }
    vg_buf_done(take_body);
    vg_errand_free(e);
    vg_work_failed(item);
}

/* The first thing that is to be done about it; NULL: nothing. */
static const struct request *decide(struct vg_control *c, struct state *s, struct vg_buf *body,
                                    int *ret_err)
{
    if (!s->object) {
        *ret_err = s->usual ? write_new(s, body) : 0;
        return s->usual ? &create : NULL;
    }
    if (!s->usual && parse_bool(annotation_of(s)) == 1)
        return &erase;
    *ret_err = s->usual ? write_revision(s, body) : 0;
    if (*ret_err < 0 || body->n)
        return &revise;
    if (s->kind->letter == 's')
        *ret_err = write_condition(c, s, body);
    return body->n ? &tell : NULL;
}

static int read_state(struct vg_control *c, struct vg_slice key, struct state *s)
{
    s->kind = key.p[0] == kinds[0].letter ? &kinds[0] : &kinds[1];
    s->name = vg_slice(key.p + 1, key.n - 1);
    s->usual = vg_flow_default_find(s->kind->defaults, s->name);
    struct vg_rec *rec = vg_control_get(c, kind_of(s->kind), VG_SLICE_LIT(""), s->name);
    struct vg_json *object = NULL;
    int r = 0;
    if (rec) {
        struct vg_slice v = vg_rec_value(rec);
        const char *copy = vg_arena_copy(&s->arena, v.p, v.n);
        s->rev = rec->rev;
        r = copy ? vg_json_parse(&s->arena, vg_slice(copy, v.n), NULL, &object, NULL) : -ENOMEM;
    }
    s->object = object;
    vg_rec_unref(rec);
    return r;
}

static void run(struct vg_work_item *item)
{
    struct vg_control *c = item->work->arg;
    struct state s = {0};
    struct vg_buf body = {0};
    int r = read_state(c, item->key, &s);
    const struct request *q = r == 0 ? decide(c, &s, &body, &r) : NULL;
    if (r == 0 && q) {
        ask(item, &s, q, &body);
    } else {
        vg_buf_done(&body);
        if (r == 0)
            vg_work_done(item);
        else
            vg_work_failed(item);
    }
    vg_arena_done(&s.arena);
}

/* ---- events ---- */

static bool look_at_schema(void *arg, const struct vg_kind *kind, const struct vg_rec *rec)
{
    struct vg_obj_header h;
    (void)kind;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    look_at(arg, &kinds[1], vg_obj_name(&h));
    return true;
}

static void on_event(struct vg_control *c, const struct vg_control_event *e)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(kinds); i++)
        if (e->kind == kind_of(&kinds[i]))
            look_at(c, &kinds[i], vg_obj_name(&e->h));
    /* Schemas refer to a level that has come or gone. */
    if (e->kind == kind_of(&kinds[0]) && e->change != VG_OBJ_MODIFIED)
        (void)vg_control_each(c, kind_of(&kinds[1]), VG_SLICE_LIT(""), look_at_schema, c);
}

static void on_synced(struct vg_control *c)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(kinds); i++)
        for (const struct vg_flow_default *d = kinds[i].defaults; d->name; d++)
            look_at(c, &kinds[i], vg_slice_str(d->name));
}

static const char *const follows[] = {"flowschemas", "prioritylevelconfigurations", NULL};

const struct vg_controller_ops vg_flow_controller = {
    .name = "priority-and-fairness-config-producer",
    .follows = follows,
    .event = on_event,
    .run = run,
    .synced = on_synced,
};
