/* managed.c - metadata.managedFields: who owns which fields after a write.
 * Ownership is reckoned on what the client wants, before rules change it, as kube-apiserver does;
 * so what the server sets by itself is nobody's. A write names its manager by `fieldManager`, else
 * by the first word of its User-Agent. */
#include "managed.h"

#include <errno.h>
#include <pthread.h>

#include "base/utf8.h"
#include "server/fields/fresh.h"
#include "server/fields/managers.h"
#include "server/kinds/convert.h"
#include "server/kinds/rules/rules.h"
#include "server/kinds/types.h"
#include "server/schema/decode.h"
#include "stamp.h"
#include "json/equal.h"

/* ---- what a write leaves alone ---- */

static const struct vg_fields_path nothing[] = {{NULL, NULL}};
static const struct vg_fields_path of_status[] = {{"status", NULL}, {NULL, NULL}};
static const struct vg_fields_path of_spec[] = {{"spec", NULL}, {NULL, NULL}};
static const struct vg_fields_path of_spec_and_meta[] = {
    {"spec", NULL}, {"metadata", NULL}, {NULL, NULL}};
static const struct vg_fields_path of_both[] = {{"spec", NULL}, {"status", NULL}, {NULL, NULL}};

/* Where the rule does not say it: by the resets of each kind's strategy. */
static const struct exception {
    const char *kind;
    const char *sub; /* "": the object itself */
    struct vg_fields_path without[4];
} exceptions[] = {
    {"CertificateSigningRequest", "status", {{"spec", NULL}, {"status", "conditions"}}},
    {"CertificateSigningRequest", "approval", {{"spec", NULL}, {"status", "certificate"}}},
    {"Deployment", "status", {{"spec", NULL}, {"metadata", "labels"}}},
    {"Pod",
     "status",
     {{"spec", NULL}, {"metadata", "deletionTimestamp"}, {"metadata", "ownerReferences"}}},
};

/* Kinds whose status is written without their metadata. */
static const char *const bare_status[] = {"APIService",
                                          "CustomResourceDefinition",
                                          "DeviceTaintRule",
                                          "FlowSchema",
                                          "PriorityLevelConfiguration",
                                          "PodGroup",
                                          "ResourceClaim",
                                          "ResourcePoolStatusRequest",
                                          "ServiceCIDR",
                                          "StorageVersion",
                                          "StorageVersionMigration",
                                          "ValidatingAdmissionPolicy",
                                          "VolumeAttachment",
                                          NULL};

/* Subresources that write some members of a pod's spec and leave all others alone, metadata and
 * status too: these members, and what follows from the table of the type. */
#define MEMBERS_MAX 96u
static struct narrow {
    const char *sub;
    const char *taken[3];
    struct vg_fields_path without[MEMBERS_MAX];
} narrows[] = {
    {.sub = "ephemeralcontainers", .taken = {"ephemeralContainers", NULL}},
    {.sub = "resize", .taken = {"containers", "initContainers", NULL}},
};

static bool is_among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

static void fill_narrows(void)
{
    const struct vg_schema_type *spec =
        vg_schema_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), VG_SLICE_LIT("PodSpec"));
    for (size_t i = 0; spec && i < VG_ARRAY_LEN(narrows); i++) {
        struct narrow *x = &narrows[i];
        size_t n = 0;
        x->without[n++] = (struct vg_fields_path){"metadata", NULL};
        x->without[n++] = (struct vg_fields_path){"status", NULL};
        assert(spec->n + n < MEMBERS_MAX);
        for (size_t k = 0; k < spec->n && n < MEMBERS_MAX - 1; k++)
            if (!is_among(spec->fields[k].name, x->taken))
                x->without[n++] = (struct vg_fields_path){"spec", spec->fields[k].name};
    }
}

static const struct vg_fields_path *narrow_of(const struct vg_kind_sub *sub)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, fill_narrows);
    for (size_t i = 0; i < VG_ARRAY_LEN(narrows); i++)
        if (strcmp(sub->name, narrows[i].sub) == 0)
            return narrows[i].without;
    return NULL;
}

const struct vg_fields_path *vg_managed_left_alone(const struct vg_kind *kind,
                                                   const struct vg_kind_sub *sub)
{
    for (size_t i = 0; i < VG_ARRAY_LEN(exceptions); i++)
        if (strcmp(kind->kind, exceptions[i].kind) == 0 &&
            strcmp(sub ? sub->name : "", exceptions[i].sub) == 0)
            return exceptions[i].without;
    if (sub && sub->type == VG_SUB_PART && strcmp(kind->kind, "Pod") == 0 && narrow_of(sub))
        return narrow_of(sub);
    if (sub && sub->type == VG_SUB_STATUS)
        return is_among(kind->kind, bare_status) ? of_spec_and_meta : of_spec;
    if (strcmp(kind->kind, "CertificateSigningRequest") == 0)
        return of_both;
    return vg_kind_is(kind, VG_KIND_HAS_STATUS) ? of_status : nothing;
}

/* ---- who writes ---- */

/* Of a User-Agent: what stands before the first slash, as far as it can be printed. */
#define AGENT_NAME_MAX 128u

static int name_of_agent(struct vg_arena *a, struct vg_slice agent, struct vg_slice *ret)
{
    char name[AGENT_NAME_MAX];
    size_t n = 0;
    const char *slash = agent.n ? memchr(agent.p, '/', agent.n) : NULL;
    if (slash)
        agent.n = (size_t)(slash - agent.p);
    for (size_t at = 0; at < agent.n;) {
        uint32_t code = 0xfffd;
        size_t len = vg_utf8_next(vg_slice(agent.p + at, agent.n - at), &code);
        len = len ? len : 1;
        if (vg_is_printable(code)) {
            if (n + len > AGENT_NAME_MAX)
                break;
            memcpy(name + n, agent.p + at, len);
            n += len;
        }
        at += len;
    }
    return vg_arena_keep(a, vg_slice(name, n), ret);
}

/* What the server calls itself, as manager of what it writes unasked. */
#define OWN_NAME VG_SLICE_LIT("vigild")

static const struct vg_kind_sub *sub_of(const struct vg_change *c)
{
    return c->own_sub ? c->own_sub : c->call->ask->target->sub;
}

static int find_name(struct vg_change *c, struct vg_slice *ret)
{
    if (c->own_sub) {
        *ret = OWN_NAME;
        return 0;
    }
    *ret = vg_query_get(c->call->ask->target, "fieldManager");
    int err = 0;
    if (ret->n == 0)
        err = name_of_agent(&c->scratch, vg_http_field(c->call->x, "user-agent"), ret);
    if (err == 0 && ret->n == 0)
        *ret = VG_SLICE_LIT("unknown");
    return err;
}

/* ---- what differs, in each version ---- */

struct managing {
    struct vg_change *change;
    const struct vg_json *now, *old; /* as stored; old NULL: nothing */
    const struct vg_kind *kind;      /* what they are stored as */
    struct vg_status *status;
    /* One kind has two versions at most. */
    struct {
        const struct vg_kind *kind;
        struct vg_fields_delta delta;
    } known[2];
};

const struct vg_kind *vg_managed_version(const struct vg_kind *stored, struct vg_slice api_version)
{
    if (vg_slice_eq(api_version, vg_slice_str(stored->api_version)))
        return stored;
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    for (size_t i = 0; i < n; i++)
        if (kinds[i].stored == stored &&
            vg_slice_eq(api_version, vg_slice_str(kinds[i].api_version)))
            return &kinds[i];
    return NULL;
}

static int as_version(struct vg_arena *a, const struct vg_kind *kind, const struct vg_json *stored,
                      struct vg_json *room, const struct vg_json **ret)
{
    *ret = stored;
    if (!stored || !kind->stored)
        return 0;
    int err = vg_kind_from_stored(a, kind, stored, room);
    *ret = room;
    return err;
}

static int reckon(struct managing *g, const struct vg_kind *kind, struct vg_fields_delta *ret)
{
    struct vg_arena *a = &g->change->scratch;
    struct vg_json rooms[2];
    const struct vg_json *old = NULL, *now = NULL;
    int err = as_version(a, kind, g->old, &rooms[0], &old);
    if (err == 0)
        err = as_version(a, kind, g->now, &rooms[1], &now);
    if (err < 0)
        return err;
    return vg_fields_compare(a, vg_kind_type(kind), old, now,
                             vg_managed_left_alone(g->kind, sub_of(g->change)), ret, g->status);
}

static int delta_of(void *arg, struct vg_slice api_version, const struct vg_fields_delta **ret)
{
    struct managing *g = arg;
    const struct vg_kind *kind = vg_managed_version(g->kind, api_version);
    if (!kind)
        return 0;
    size_t i = kind->stored ? 1 : 0;
    if (g->known[i].kind != kind) {
        int err = reckon(g, kind, &g->known[i].delta);
        if (err < 0)
            return err;
        g->known[i].kind = kind;
    }
    *ret = &g->known[i].delta;
    return 1;
}

/* ---- the list that a write begins with ---- */

static bool asks_to_forget(const struct vg_json *list)
{
    return list && (list->n == 0 || (list->n == 1 && list->items[0].n == 0));
}

/* A client mostly sends back what it was given: then the texts are equal. */
static bool is_same(const struct vg_change *c, const struct vg_json *given,
                    const struct vg_json *stored)
{
    struct vg_slice sent = vg_fields_source(given, vg_http_request(c->call->x)->body);
    return given->items == stored->items ||
           (sent.n && vg_slice_eq(sent, vg_fields_source(stored, vg_change_source(c)))) ||
           vg_json_equal(given, stored) == 1;
}

/* The client's if it sent a good one, else what is stored. Subresources cannot set them. */
static int begin_with(struct vg_change *c, const struct vg_json *given,
                      const struct vg_json *stored, struct vg_managers *ret)
{
    struct vg_status why;
    int err;
    *ret = (struct vg_managers){0};
    if (!sub_of(c) && given && !(stored && is_same(c, given, stored))) {
        if (asks_to_forget(given))
            return 0;
        err = vg_managers_read(&c->scratch, given, false, ret, &why);
        if (err == -ENOMEM || (err == 0 && ret->n))
            return err;
        *ret = (struct vg_managers){0};
    }
    err = vg_managers_read(&c->scratch, stored, true, ret, &why);
    return err == -ENOMEM ? err : 0;
}

/* ---- a write ---- */

/* A list that is printed as null may have been given empty, which is not the same to its owner. */
static int keep_empties(struct vg_arena *a, struct vg_json *v, const struct vg_json *given,
                        int depth)
{
    int err = 0;
    VG_JSON_FOREACH_MEMBER (m, v) {
        const struct vg_json *was = NULL;
        bool is_null = m->value.type == VG_JSON_NULL;
        bool is_deep = depth > 0 && m->value.type == VG_JSON_OBJECT && m->value.n;
        if (is_null || is_deep)
            was = vg_json_get(given, vg_json_key(m));
        if (is_null && was && was->type >= VG_JSON_ARRAY)
            m->value = *was;
        struct vg_json copy;
        bool has_null = false;
        for (uint32_t i = 0; is_deep && was && i < m->value.n; i++)
            has_null = has_null || m->value.members[i].value.type == VG_JSON_NULL;
        if (!has_null)
            continue;
        err = vg_json_top_copy(a, &m->value, &copy);
        if (err == 0)
            err = keep_empties(a, &copy, was, depth - 1);
        if (err < 0)
            return err;
        m->value = copy;
    }
    return err;
}

/* Inside of what differs most is as it was: found here once, in a copy of the level, it costs
 * nothing any more where sets are made. */
static int share_inside(struct vg_arena *a, struct vg_json *v, const struct vg_json *old)
{
    int err = 0;
    VG_JSON_FOREACH_MEMBER (m, v) {
        const struct vg_json *was = vg_json_get(old, vg_json_key(m));
        struct vg_json copy;
        if (!vg_json_is(was, VG_JSON_OBJECT) || m->value.type != VG_JSON_OBJECT ||
            m->value.members == was->members)
            continue;
        err = vg_json_top_copy(a, &m->value, &copy);
        if (err == 0)
            err = vg_change_share(&copy, was);
        if (err < 0)
            break;
        m->value = copy;
    }
    return err;
}

static int with_meta(struct vg_change *c, const struct vg_json *now, const struct vg_body *given,
                     const struct vg_body *old, struct vg_json *ret)
{
    struct vg_meta m = given->meta;
    struct vg_json meta = vg_json_object();
    m.managed = NULL;
    int err = 0;
    if (vg_kind_is(c->kind, VG_KIND_FINALIZED_BY_SPEC)) {
        m.name = m.name.n ? m.name : c->name;
        err = m.name.n ? vg_stamp_name_label(&c->scratch, &m) : 0;
    }
    if (err == 0)
        err = vg_meta_write(&c->scratch, &m, &meta);
    const struct vg_rules *rules = vg_rules_of(vg_kind_stored(c->kind));
    if (err == 0 && rules && rules->show)
        err = rules->show(&c->scratch, &meta);
    if (err == 0)
        err = vg_json_top_copy(&c->scratch, now, ret);
    if (err == 0)
        err = keep_empties(&c->scratch, ret, given->root, 1);
    if (err == 0 && old)
        err = share_inside(&c->scratch, ret, old->root);
    return err < 0 ? err : vg_json_object_set(&c->scratch, ret, VG_SLICE_LIT("metadata"), meta);
}

/* Of most objects the set is shorter; so it is one piece of memory, of a size that is at hand. */
#define SET_BYTES ((size_t)1000)

/* A new object of which nobody else has anything: its set is written as it is found. */
static int manage_fresh(struct managing *g, struct vg_managers *m, struct vg_manager *who)
{
    struct vg_arena *a = &g->change->scratch;
    const struct vg_kind *kind = vg_managed_version(g->kind, who->api_version);
    const struct vg_json *now = NULL;
    struct vg_json room;
    struct vg_slice text;
    VG_AUTO(buf) out = {0};
    if (!kind)
        return VIGIL_E_INTERNAL;
    int err = as_version(a, kind, g->now, &room, &now);
    if (err == 0)
        err = vg_buf_reserve(&out, SET_BYTES);
    if (err == 0)
        err = vg_fields_print_fresh(a, vg_kind_type(kind), now,
                                    vg_managed_left_alone(g->kind, sub_of(g->change)), &out,
                                    g->status);
    if (err < 0 || out.n == 2) /* it has nothing */
        return err;
    err = vg_arena_keep(a, vg_buf_slice(&out), &text);
    if (err < 0)
        return err;
    who->fields = vg_fields_text(text);
    return vg_managers_add(a, m, who);
}

int vg_change_manage(struct vg_change *c, const struct vg_json *now, const struct vg_body *given,
                     const struct vg_body *old, struct vg_json **ret)
{
    const struct vg_kind_sub *sub = sub_of(c);
    struct vg_status why;
    struct vg_json wanted;
    struct vg_managers m;
    struct vg_manager who = {.api_version = vg_slice_str(vg_kind_api_version(c->kind)),
                             .subresource = vg_slice_str(sub ? sub->name : "")};
    *ret = NULL;
    int err = begin_with(c, given->meta.managed, old ? old->meta.managed : NULL, &m);
    if (err < 0 || (old && m.n == 0)) /* an object without managers has none until an apply */
        return err;
    err = find_name(c, &who.name);
    if (err == 0)
        err = vg_stamp_time(c, 0, &who.time);
    if (err == 0 && old && sub && sub->type == VG_SUB_SCALE)
        return vg_change_manage_scale(c, now, old->root, &m, &who, ret);
    if (err == 0)
        err = with_meta(c, now, given, old, &wanted);
    if (err < 0)
        return err;
    struct managing g = {.change = c,
                         .now = &wanted,
                         .old = old ? old->root : NULL,
                         .kind = vg_kind_stored(c->kind),
                         .status = &why};
    err = !old && m.n == 0 ? manage_fresh(&g, &m, &who)
                           : vg_managers_update(&c->scratch, &m, &who, delta_of, &g);
    if (err == VIGIL_E_INVALID) /* what cannot be tracked is not */
        return 0;
    return err < 0 ? err : vg_managers_write(&c->scratch, &m, vg_change_source(c), ret);
}
