/* namespaces.c - a namespace that is being deleted is emptied, then let go.
 *
 *   pods are deleted --> all other kinds are deleted --> nothing is left: "kubernetes" is taken
 * from spec.finalizers, and the API removes the namespace While something is left (finalizers, pods
 * that a node still runs) its conditions say what, and we look again in a moment. Everything in
 * here is read from the cache at a revision that is no older than our last delete, so an empty
 * namespace is empty. */
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "control_int.h"
#include "server/schema/gotime.h"

/* While something is left: when to look again. */
#define LEFT_FIRST_MS 100u
#define LEFT_MAX_MS 5000u
/* The cache has not caught up with storage yet. */
#define BEHIND_MS 20u
/* Kinds of finalizers that a condition names. */
#define FINALIZERS_MAX 16u

struct finalizer_count {
    struct vg_slice name; /* in the run's arena */
    size_t n;
};

/* One run: emptying a namespace once. */
struct emptying {
    struct vg_control *c;
    struct vg_work_item *item;
    struct vg_arena arena;
    struct vg_rec *ns; /* as it was when the run began */
    size_t kind;       /* the next to be looked at */
    bool only_pods;
    const char *failure; /* of a delete; NULL: none */
    struct vg_buf left;  /* "pods. has 2 resource instances, ..." */
    size_t n_left;
    struct finalizer_count finalizers[FINALIZERS_MAX];
    size_t n_finalizers;
};

static void next_kind(struct emptying *m);

static void emptying_free(struct emptying *m)
{
    vg_rec_unref(m->ns);
    vg_buf_done(&m->left);
    vg_arena_done(&m->arena);
    vg_free(m);
}

static void end_failed(struct emptying *m)
{
    vg_work_failed(m->item);
    emptying_free(m);
}

static bool is_content(const struct vg_kind *kind)
{
    return vg_kind_is(kind, VG_KIND_NAMESPACED) && !kind->stored &&
           !vg_kind_is(kind, VG_KIND_NOT_STORED) && (kind->verbs & VG_VERB_DELETECOLLECTION);
}

/* ---- what is left ---- */

static void count_finalizer(struct emptying *m, struct vg_slice quoted)
{
    struct vg_slice name;
    if (vg_json_raw_text(&m->arena, quoted, &name) < 0)
        return;
    for (size_t i = 0; i < m->n_finalizers; i++) {
        if (vg_slice_eq(m->finalizers[i].name, name)) {
            m->finalizers[i].n++;
            return;
        }
    }
    if (m->n_finalizers < FINALIZERS_MAX &&
        vg_arena_keep(&m->arena, name, &m->finalizers[m->n_finalizers].name) == 0)
        m->finalizers[m->n_finalizers++].n = 1;
}

static void count_finalizers(struct emptying *m, const struct vg_rec *rec)
{
    struct vg_json_iter it;
    struct vg_json_raw raw;
    if (!vg_control_finalizers(rec, &it))
        return;
    while (vg_json_iter_next(&it, &raw) > 0)
        count_finalizer(m, raw.value);
}

struct count {
    struct emptying *m;
    size_t n;
    bool detail;
};

static bool count_one(void *arg, const struct vg_kind *kind, const struct vg_rec *rec)
{
    struct count *k = arg;
    (void)kind;
    k->n++;
    if (k->detail)
        count_finalizers(k->m, rec);
    return k->detail;
}

/* How many objects of the kind the namespace has. detail: with what holds them; else whether any.
 * One that cannot be read counts: deleting the kind then says what is wrong. */
static size_t count_kind(struct emptying *m, const struct vg_kind *kind, bool detail)
{
    struct count k = {.m = m, .detail = detail};
    int r = vg_control_each(m->c, kind, m->item->key, count_one, &k);
    if (vg_kind_is(kind, VG_KIND_UNCACHED))
        return 0;           /* events: they hold nobody up */
    return r < 0 ? 1 : k.n; /* what is not known is not nothing: look again */
}

static int note_left(struct emptying *m, const struct vg_kind *kind, size_t n)
{
    m->n_left += n;
    return vg_buf_printf(&m->left, "%s%s.%s has %zu resource instances", m->left.n ? ", " : "",
                         kind->resource, kind->group, n);
}

static int look_what_is_left(struct emptying *m)
{
    size_t n_kinds;
    const struct vg_kind *kinds = vg_kinds(&n_kinds);
    for (size_t i = 0; i < n_kinds; i++) {
        size_t n = is_content(&kinds[i]) ? count_kind(m, &kinds[i], true) : 0;
        int r = n ? note_left(m, &kinds[i], n) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- writing ---- */

/* Both writes name the revision that the run looked at: whoever changed the namespace meanwhile, a
 * new finalizer above all, makes them a conflict, and the next run looks again. */
static int put_revision(struct emptying *m, struct vg_json_writer *w)
{
    struct vg_slice text;
    int r = vg_arena_printf(&m->arena, &text, "%" PRIu64, m->ns->rev);
    if (r == 0)
        vg_json_put_member(w, "resourceVersion", text);
    return r;
}

/* ---- its conditions ---- */

struct condition {
    const char *type, *reason;
    bool is_true;
    struct vg_slice message;
};

/* When the condition became what it is: as it stands if it is the same, else now. */
static struct vg_slice since(struct emptying *m, const struct vg_json *old,
                             const struct condition *k)
{
    for (size_t i = 0; vg_json_is(old, VG_JSON_ARRAY) && i < old->n; i++) {
        const struct vg_json *o = vg_json_at(old, i);
        if (!vg_slice_eq(vg_json_text(vg_json_get_str(o, "type")), vg_slice_str(k->type)) ||
            !vg_slice_eq(vg_json_text(vg_json_get_str(o, "status")),
                         vg_slice_str(k->is_true ? "True" : "False")))
            continue;
        return vg_json_text(vg_json_get_str(o, "lastTransitionTime"));
    }
    char *text = vg_arena_alloc(&m->arena, VG_TIME_TEXT_MAX, 1);
    size_t n = text ? vg_time_format(vg_clock_wall_ms(vg_loop_clock(m->c->loop)), text) : 0;
    return vg_slice(text, n);
}

static struct vg_slice describe_finalizers(struct emptying *m)
{
    VG_AUTO(buf) out = {0};
    struct vg_slice text = VG_SLICE_LIT("");
    int r = vg_buf_printf(&out, "Some content in the namespace has finalizers remaining: ");
    for (size_t i = 0; i < m->n_finalizers && r == 0; i++)
        r = vg_buf_printf(&out, "%s%.*s in %zu resource instances", i ? ", " : "",
                          VG_SLICE_ARG(m->finalizers[i].name), m->finalizers[i].n);
    if (r == 0)
        r = vg_arena_keep(&m->arena, vg_buf_slice(&out), &text);
    return r < 0 ? VG_SLICE_LIT("") : text;
}

static struct vg_slice describe_left(struct emptying *m)
{
    struct vg_slice text;
    if (vg_arena_printf(&m->arena, &text, "Some resources are remaining: %.*s",
                        VG_SLICE_ARG(vg_buf_slice(&m->left))) < 0)
        return VG_SLICE_LIT("");
    return text;
}

static void fill_conditions(struct emptying *m, struct condition k[5])
{
    k[0] = (struct condition){"NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", false,
                              VG_SLICE_LIT("All resources successfully discovered")};
    k[1] = (struct condition){"NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
                              false, VG_SLICE_LIT("All legacy kube types successfully parsed")};
    k[2] = m->failure
               ? (struct condition){"NamespaceDeletionContentFailure", "ContentDeletionFailed",
                                    true, vg_slice_str(m->failure)}
               : (struct condition){"NamespaceDeletionContentFailure", "ContentDeleted", false,
                                    VG_SLICE_LIT("All content successfully deleted, may be "
                                                 "waiting on finalization")};
    k[3] = m->n_left ? (struct condition){"NamespaceContentRemaining", "SomeResourcesRemain", true,
                                          describe_left(m)}
                     : (struct condition){"NamespaceContentRemaining", "ContentRemoved", false,
                                          VG_SLICE_LIT("All content successfully removed")};
    k[4] = m->n_finalizers
               ? (struct condition){"NamespaceFinalizersRemaining", "SomeFinalizersRemain", true,
                                    describe_finalizers(m)}
               : (struct condition){"NamespaceFinalizersRemaining", "ContentHasNoFinalizers", false,
                                    VG_SLICE_LIT("All content-preserving finalizers finished")};
}

static int write_conditions(struct emptying *m, struct vg_buf *out)
{
    struct vg_json *root;
    struct vg_json_writer w;
    struct condition k[5];
    int r = vg_json_parse(&m->arena, vg_rec_value(m->ns), NULL, &root, NULL);
    if (r < 0)
        return r;
    const struct vg_json *old = vg_json_get_str(vg_json_get_str(root, "status"), "conditions");
    fill_conditions(m, k);
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("metadata"));
    vg_json_put_begin_object(&w);
    r = put_revision(m, &w);
    vg_json_put_end_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("status"));
    vg_json_put_begin_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("conditions"));
    vg_json_put_begin_array(&w);
    for (size_t i = 0; i < VG_ARRAY_LEN(k); i++) {
        vg_json_put_begin_object(&w);
        vg_json_put_member(&w, "type", vg_slice_str(k[i].type));
        vg_json_put_member(&w, "status", vg_slice_str(k[i].is_true ? "True" : "False"));
        vg_json_put_member(&w, "lastTransitionTime", since(m, old, &k[i]));
        vg_json_put_member(&w, "reason", vg_slice_str(k[i].reason));
        vg_json_put_member(&w, "message", k[i].message);
        vg_json_put_end_object(&w);
    }
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    vg_json_put_end_object(&w);
    int err = vg_json_writer_end(&w);
    return r < 0 ? r : err;
}

static void look_again(struct emptying *m)
{
    uint64_t delay = (uint64_t)LEFT_FIRST_MS << VG_MIN(m->item->failures, 10u);
    m->item->failures++; /* without a complaint: waiting is what there is to do */
    vg_work_later(m->item, VG_MIN(delay, (uint64_t)LEFT_MAX_MS));
    emptying_free(m);
}

static void on_conditions(struct vg_errand *e)
{
    look_again(e->state);
}

static void tell_conditions(struct emptying *m)
{
    struct vg_errand *e = vg_errand_new(m->c, "PATCH", m->item, on_conditions);
    int r =
        e ? vg_errand_path(e, m->c->namespaces, VG_SLICE_LIT(""), m->item->key, "status") : -ENOMEM;
    if (r == 0)
        r = write_conditions(m, &e->body);
    if (r < 0) {
        vg_errand_free(e);
        end_failed(m);
        return;
    }
    e->state = m;
    if (!vg_errand_send(e, VG_TYPE_MERGE))
        emptying_free(m);
}

/* ---- letting go ---- */

static void on_finalized(struct vg_errand *e)
{
    struct emptying *m = e->state;
    vg_errand_settle(e, 404);
    emptying_free(m);
}

/* The namespace without "kubernetes" among its spec's finalizers, at the revision we looked at. */
static int write_finalized(struct emptying *m, struct vg_buf *out)
{
    struct vg_json *root;
    struct vg_json_writer w;
    struct vg_obj_header h;
    int r = vg_json_parse(&m->arena, vg_rec_value(m->ns), NULL, &root, NULL);
    if (r < 0)
        return r;
    vg_obj_header_read(vg_rec_header(m->ns), vg_rec_value(m->ns), &h);
    const struct vg_json *old = vg_json_get_str(vg_json_get_str(root, "spec"), "finalizers");
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "kind", VG_SLICE_LIT("Namespace"));
    vg_json_put_member(&w, "apiVersion", VG_SLICE_LIT("v1"));
    vg_json_put_key(&w, VG_SLICE_LIT("metadata"));
    vg_json_put_begin_object(&w);
    vg_json_put_member(&w, "name", m->item->key);
    vg_json_put_member(&w, "uid", vg_obj_uid(&h));
    r = put_revision(m, &w);
    vg_json_put_end_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("spec"));
    vg_json_put_begin_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("finalizers"));
    vg_json_put_begin_array(&w);
    for (size_t i = 0; vg_json_is(old, VG_JSON_ARRAY) && i < old->n; i++) {
        struct vg_slice name = vg_json_text(vg_json_at(old, i));
        if (!vg_slice_eq(name, VG_SLICE_LIT("kubernetes")))
            vg_json_put_string(&w, name);
    }
    vg_json_put_end_array(&w);
    vg_json_put_end_object(&w);
    vg_json_put_end_object(&w);
    int err = vg_json_writer_end(&w);
    return r < 0 ? r : err;
}

static void let_go(struct emptying *m)
{
    struct vg_errand *e = vg_errand_new(m->c, "PUT", m->item, on_finalized);
    int r = e ? vg_errand_path(e, m->c->namespaces, VG_SLICE_LIT(""), m->item->key, "finalize")
              : -ENOMEM;
    if (r == 0)
        r = write_finalized(m, &e->body);
    if (r < 0) {
        vg_errand_free(e);
        end_failed(m);
        return;
    }
    e->state = m;
    if (!vg_errand_send(e, VG_TYPE_JSON))
        emptying_free(m);
}

/* ---- emptying ---- */

/* All was asked for. Is anything left, as of now? */
static void take_stock(struct emptying *m)
{
    if (vg_cacher_revision(m->c->cacher) < vg_storage_revision(m->c->opts.storage)) {
        vg_work_later(m->item, BEHIND_MS);
        emptying_free(m);
    } else if (look_what_is_left(m) < 0) {
        end_failed(m);
    } else if (m->n_left || m->failure) {
        tell_conditions(m);
    } else {
        let_go(m);
    }
}

static void on_deleted(struct vg_errand *e)
{
    struct emptying *m = e->state;
    if (!vg_errand_ok(e) && !(e->call.err == 0 && e->call.status == 404)) {
        if (e->call.err < 0) {
            end_failed(m);
            return;
        }
        m->failure = "some content could not be deleted";
    }
    next_kind(m);
}

static void delete_kind(struct emptying *m, const struct vg_kind *kind)
{
    struct vg_errand *e = vg_errand_new(m->c, "DELETE", m->item, on_deleted);
    int r = e ? vg_errand_path(e, kind, m->item->key, VG_SLICE_LIT(""), NULL) : -ENOMEM;
    if (r == 0) /* what they own goes too, or is in this namespace and gone anyway */
        r = vg_buf_append_slice(&e->target, VG_SLICE_LIT("?propagationPolicy=Background"));
    if (r < 0) {
        vg_errand_free(e);
        end_failed(m);
        return;
    }
    e->state = m;
    if (!vg_errand_send(e, NULL))
        emptying_free(m);
}

static void next_kind(struct emptying *m)
{
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    while (m->kind < n) {
        const struct vg_kind *kind = &kinds[m->kind++];
        if (!is_content(kind) || (m->only_pods && kind != m->c->pods))
            continue;
        if (vg_kind_is(kind, VG_KIND_UNCACHED) || count_kind(m, kind, false)) {
            delete_kind(m, kind);
            return;
        }
    }
    take_stock(m);
}

static void run(struct vg_work_item *item)
{
    struct vg_control *c = item->work->arg;
    struct vg_obj_header h;
    struct vg_rec *ns = vg_control_get(c, c->namespaces, VG_SLICE_LIT(""), item->key);
    if (ns)
        vg_obj_header_read(vg_rec_header(ns), vg_rec_value(ns), &h);
    if (!ns || !vg_obj_is_deleting(&h)) {
        vg_rec_unref(ns);
        vg_work_done(item);
        return;
    }
    struct emptying *m = vg_new(struct emptying);
    if (!m) {
        vg_rec_unref(ns);
        vg_work_failed(item);
        return;
    }
    *m = (struct emptying){.c = c, .item = item, .ns = ns};
    vg_arena_init(&m->arena, 0, 0);
    /* What runs may need its secrets and volumes to end well. */
    m->only_pods = count_kind(m, c->pods, false) > 0;
    next_kind(m);
}

/* ---- the controller ---- */

/* One that has been let go of by all others may have finalizers of its own: then nothing is to do.
 */
static bool wants_emptying(const struct vg_control_event *e)
{
    const struct vg_json_step path[] = {vg_json_step_key("spec"), vg_json_step_key("finalizers")};
    struct vg_slice list;
    return e->change != VG_OBJ_DELETED && vg_obj_is_deleting(&e->h) &&
           vg_json_find(vg_rec_value(e->rec), path, 2, &list) == 0 &&
           memmem(list.p, list.n, "\"kubernetes\"", strlen("\"kubernetes\""));
}

static void on_event(struct vg_control *c, const struct vg_control_event *e)
{
    if (e->kind == c->namespaces && wants_emptying(e))
        vg_control_add(c, VG_CONTROL_NAMESPACE, vg_obj_name(&e->h));
}

const struct vg_controller_ops vg_namespace_controller = {
    .name = "namespace-controller",
    .event = on_event,
    .run = run,
};
