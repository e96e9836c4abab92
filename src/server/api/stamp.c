/* stamp.c - objects as they are stored: what the server sets, keeps and checks.
 * A body's tree is never changed: what is stored is built on a copy of its outermost level, in the
 * scratch memory of the try, so that a try can be repeated. */
#include "stamp.h"

#include <errno.h>

#include "admission.h"
#include "base/uuid.h"
#include "claims.h"
#include "respond.h"
#include "server/kinds/rules/rules.h"
#include "server/kinds/types.h"
#include "server/schema/decode.h"
#include "server/schema/default.h"
#include "server/schema/strconv.h"
#include "status_int.h"
#include "json/equal.h"

enum vg_verdict vg_change_refuse(struct vg_change *c, int err)
{
    if (err != VIGIL_E_FORBIDDEN) /* else a plugin has said why */
        vg_status_from_err(&c->call->ask->arena, &c->status, err, vg_err_text(err));
    c->is_current = true; /* nothing that storage says can help */
    return VG_CHANGE_FAIL;
}

enum vg_verdict vg_change_invalid(struct vg_change *c, struct vg_slice name,
                                  const struct vg_field_errors *e)
{
    /* The original names the type that its versions are made from. */
    const struct vg_kind *kind = vg_kind_stored(c->kind);
    vg_status_invalid(&c->call->ask->arena, &c->status, kind->group, kind->kind, name, e);
    return VG_CHANGE_FAIL;
}

int vg_json_top_copy(struct vg_arena *a, const struct vg_json *v, struct vg_json *ret)
{
    /* Room for what the server adds: kind, apiVersion, metadata, status. */
    uint8_t room_log2 = 3;
    while (((size_t)1 << room_log2) < (size_t)v->n + 4)
        room_log2++;
    struct vg_json_member *m = vg_arena_array(a, struct vg_json_member, (size_t)1 << room_log2);
    if (!m)
        return -ENOMEM;
    if (v->n)
        memcpy(m, v->members, v->n * sizeof *m);
    *ret = *v;
    ret->members = m;
    ret->room_log2 = room_log2;
    ret->begin = ret->end = 0;
    return 0;
}

/* Of what is written: bodies were converted when they were read. */
static const struct vg_schema_type *stored_type(const struct vg_change *c)
{
    return vg_kind_type(vg_kind_stored(c->kind));
}

enum vg_verdict vg_change_seal(struct vg_change *c, struct vg_json *root, const struct vg_meta *m,
                               const struct vg_json *cur)
{
    struct vg_json meta, arranged;
    struct vg_status why = {.err = 0};
    int err = vg_meta_write(&c->scratch, m, &meta);
    if (err == 0)
        err = vg_json_object_set(&c->scratch, root, VG_SLICE_LIT("metadata"), meta);
    /* Of another version the defaults of the stored one come last: kube-apiserver sets them when it
     * reads what it stored. */
    if (err == 0 && c->kind->stored)
        err = vg_schema_default(&c->scratch, stored_type(c), root);
    if (err == 0)
        err = vg_schema_arrange_like(&c->scratch, stored_type(c), root, cur, &arranged);
    if (err < 0)
        return vg_change_refuse(c, err);
    struct vg_slice source = cur ? vg_rec_value(c->cur) : (struct vg_slice){0};
    err = vg_obj_seal_from(c->kind->fields, &arranged, source, &c->call->loop->sealed, &why);
    if (err == 0)
        return VG_CHANGE_PUT;
    if (err == -ENOMEM)
        return vg_change_refuse(c, err);
    vg_status_from_err(&c->call->ask->arena, &c->status, err,
                       why.err ? why.message : vg_err_text(err));
    c->is_current = true;
    return VG_CHANGE_FAIL;
}

/* A write of the status has rules of its own. */
static bool is_of_status(const struct vg_change *c)
{
    const struct vg_kind_sub *sub = c->call->ask->target->sub;
    return sub && sub->type == VG_SUB_STATUS;
}

static const struct vg_rules *rules_of(const struct vg_change *c);

const struct vg_rules_part *vg_change_part(const struct vg_change *c)
{
    const struct vg_kind_sub *sub = c->call->ask->target->sub;
    return sub && sub->type == VG_SUB_PART ? vg_rules_part(rules_of(c), sub->name) : NULL;
}

int vg_change_share(struct vg_json *v, const struct vg_json *old)
{
    VG_JSON_FOREACH_MEMBER (m, v) {
        const struct vg_json *was = vg_json_get(old, vg_json_key(m));
        int same = was ? vg_json_equal(&m->value, was) : 0;
        if (same < 0)
            return same;
        if (same)
            m->value = *was;
    }
    return 0;
}

/* With the metadata in place, of which a rule may set labels and annotations. */
static int prepare_with_meta(struct vg_arena *a, vg_rules_prepare_fn *prepare, struct vg_json *root,
                             const struct vg_json *old, struct vg_meta *m)
{
    struct vg_json meta;
    int err = vg_meta_write(a, m, &meta);
    if (err == 0)
        err = vg_json_object_set(a, root, VG_SLICE_LIT("metadata"), meta);
    if (err == 0)
        err = prepare(a, root, old);
    if (err < 0)
        return err;
    const struct vg_json *set = vg_json_get_str(root, "metadata");
    m->labels = vg_json_get_str(set, "labels");
    m->annotations = vg_json_get_str(set, "annotations");
    return 0;
}

static int sign(struct vg_change *c, const struct vg_rules *rules, struct vg_json *root)
{
    const struct vg_api_user *u = c->call->user;
    struct vg_rules_user user = {.name = VG_SLICE_LIT(""), .uid = VG_SLICE_LIT("")};
    if (u)
        user =
            (struct vg_rules_user){u->name, u->uid, u->groups, u->n_groups, u->extra, u->n_extra};
    return rules->sign(&c->scratch, root, &user);
}

/* Rules of what it is written as, on what it is stored as; most versions share theirs. */
static const struct vg_rules *rules_of(const struct vg_change *c)
{
    const struct vg_rules *own = vg_rules_of(c->kind);
    return own ? own : vg_rules_of(vg_kind_stored(c->kind));
}

/* A namespace's finalizers are set by now, which its writer does not own. */
static int manage(struct vg_change *c, struct vg_json *own, const struct vg_body *given,
                  const struct vg_body *old, struct vg_meta *m)
{
    struct vg_json plain;
    if (given->is_managed) {
        m->managed = given->meta.managed;
        return 0;
    }
    if (!vg_kind_is(c->kind, VG_KIND_FINALIZED_BY_SPEC))
        return vg_change_manage(c, own, given, old, &m->managed);
    int err = vg_schema_arrange(&c->scratch, stored_type(c), given->root, &plain);
    return err < 0 ? err : vg_change_manage(c, &plain, given, old, &m->managed);
}

/* The part that stands alone, in what is stored: arranged again, as whoever compares expects it. */
static int take_part(struct vg_change *c, const struct vg_rules_part *part, struct vg_json *own,
                     const struct vg_json *old)
{
    struct vg_json taken = *own;
    int err = part->prepare(&c->scratch, &taken, old);
    return err < 0 ? err : vg_schema_arrange(&c->scratch, stored_type(c), &taken, own);
}

int vg_change_prepare(struct vg_change *c, struct vg_json *root, const struct vg_body *given,
                      const struct vg_body *was, struct vg_meta *m)
{
    const struct vg_json *old = was ? was->root : NULL;
    const struct vg_rules *rules = rules_of(c);
    const struct vg_rules_part *part = vg_change_part(c);
    vg_rules_prepare_fn *prepare = !rules            ? NULL
                                   : part            ? part->prepare
                                   : is_of_status(c) ? rules->prepare_status
                                                     : rules->prepare;
    /* Arranged it shares no list or object with the body, which must stay as it is, and can be
     * compared with what is stored. */
    struct vg_json own;
    c->given = *root;
    int err = vg_schema_arrange(&c->scratch, stored_type(c), root, &own);
    if (err == 0 && part && part->is_alone)
        err = take_part(c, part, &own, old);
    if (err == 0 && old)
        err = vg_change_share(&own, old);
    if (err == 0)
        err = manage(c, &own, given, was, m);
    if (err == 0)
        err = vg_admission_set(c, &own, given, was, m);
    if (err == 0 && part && part->is_alone)
        prepare = vg_prepare_meta;
    if (err == 0 && prepare && rules && rules->ignores_meta)
        err = prepare(&c->scratch, &own, old);
    else if (err == 0 && prepare)
        err = prepare_with_meta(&c->scratch, prepare, &own, old, m);
    if (err == 0 && !old && rules && rules->sign)
        err = sign(c, rules, &own);
    if (err == 0 && old)
        err = vg_change_share(&own, old);
    if (err == 0)
        *root = own;
    return err;
}

static void warn(void *arg, const char *text)
{
    struct vg_change *c = arg;
    vg_call_warn(c->call, "%s", text);
}

static void check_update(struct vg_check *c, const struct vg_at *obj, const struct vg_rules *rules,
                         const struct vg_rules_part *part, const struct vg_json *old)
{
    size_t before = c->errors->n;
    if (part)
        part->check(c, obj, old);
    else
        rules->check_update(c, obj, old);
    if (c->errors->n > before)
        vg_rules_forgive(c, before, rules, old);
}

void vg_change_check(struct vg_change *c, struct vg_field_errors *e, const struct vg_json *root,
                     const struct vg_json *old)
{
    const struct vg_rules *rules = rules_of(c);
    struct vg_check check = {
        .errors = e, .arena = e->arena, .warn = warn, .warn_arg = c, .given = &c->given};
    const struct vg_rules_part *part = vg_change_part(c);
    struct vg_at at = vg_at_root(root);
    if (!old && rules && rules->check)
        rules->check(&check, &at);
    if (!old && c->kind->name_max && c->name.n > c->kind->name_max)
        vg_field_invalid(e, "metadata.name", vg_api_quote(e->arena, c->name),
                         "must be no more than %u characters", c->kind->name_max);
    if (!rules)
        return;
    if (old && is_of_status(c) && rules->check_status)
        rules->check_status(&check, &at, old);
    else if (old && !is_of_status(c) && rules->check_update)
        check_update(&check, &at, rules, part, old);
    if (e->n == 0 && !is_of_status(c) && !part && rules->warn)
        rules->warn(&check, &at, old);
    else if (e->n == 0 && is_of_status(c) && rules->warn_status)
        rules->warn_status(&check, &at, old);
}

static int load(struct vg_change *c, const struct vg_json_path *left, struct vg_body *ret_cur)
{
    struct vg_json_opts opts = {.on_dup = VG_JSON_DUP_NONE,
                                .left = left,
                                .scratch = &c->call->loop->scratch,
                                .max_depth = VG_JSON_DEPTH_MAX};
    struct vg_status why;
    int err = vg_json_parse(&c->scratch, vg_rec_value(c->cur), &opts, &ret_cur->root, &why);
    if (err == 0)
        err = vg_meta_read(&c->scratch, vg_json_get_str(ret_cur->root, "metadata"), c->kind->kind,
                           &ret_cur->meta, NULL, &why);
    if (err < 0)
        (void)vg_change_refuse(c, err == -ENOMEM ? err : VIGIL_E_STORE_DAMAGED);
    return err;
}

int vg_change_load(struct vg_change *c, struct vg_body *ret_cur)
{
    return load(c, NULL, ret_cur);
}

int vg_change_load_closed(struct vg_change *c, struct vg_body *ret_cur)
{
    static const struct vg_slice keys[] = {{"metadata", 8}, {"managedFields", 13}, {"fieldsV1", 8}};
    static const struct vg_json_path sets = {keys, VG_ARRAY_LEN(keys)};
    return load(c, &sets, ret_cur);
}

/* ---- new objects ---- */

/* 16 bytes that nobody had before. */
static int take_random(struct vg_api_loop *l, unsigned char b[16])
{
    if (l->n_random == 0) {
        int err = vg_random_bytes(l->random, sizeof l->random);
        if (err < 0)
            return err;
        l->n_random = sizeof l->random;
    }
    l->n_random -= 16;
    memcpy(b, l->random + l->n_random, 16);
    return 0;
}

int vg_stamp_uid(struct vg_change *c, struct vg_slice *ret)
{
    unsigned char b[16];
    char text[VG_UUID_TEXT];
    int err = take_random(c->call->loop, b);
    if (err < 0)
        return err;
    vg_uuid_mark(b);
    vg_uuid_write(b, text);
    return vg_arena_keep(&c->scratch, vg_slice(text, sizeof text), ret);
}

int vg_stamp_time(struct vg_change *c, int64_t plus_s, struct vg_slice *ret)
{
    char text[VG_TIME_TEXT_MAX];
    int64_t now = vg_clock_wall_ms(c->call->loop->api->clock);
    return vg_arena_keep(&c->scratch, vg_slice(text, vg_time_format(now + plus_s * 1000, text)),
                         ret);
}

static int add_finalizer(struct vg_arena *a, struct vg_meta *m, const char *name)
{
    struct vg_json *list = vg_arena_new(a, struct vg_json);
    if (!list)
        return -ENOMEM;
    *list = vg_json_array();
    int err = 0;
    for (uint32_t i = 0; m->finalizers && i < m->finalizers->n && err == 0; i++)
        err = vg_json_array_push(a, list, m->finalizers->items[i]);
    if (err == 0)
        err = vg_json_array_push(a, list, vg_json_string_ref(vg_slice_str(name)));
    m->finalizers = list;
    return err;
}

static int stamp_meta(struct vg_change *c, struct vg_meta *m)
{
    m->ns = c->ns;
    m->name = c->name;
    m->deleted = VG_SLICE_LIT("");
    m->has_grace = false;
    if (vg_kind_is(c->kind, VG_KIND_HAS_GENERATION))
        m->generation = 1;
    int err = vg_stamp_time(c, 0, &m->created);
    if (err == 0 && c->kind->finalizer && !vg_meta_has_finalizer(m, c->kind->finalizer))
        err = add_finalizer(&c->scratch, m, c->kind->finalizer);
    return err < 0 ? err : vg_stamp_uid(c, &m->uid);
}

int vg_stamp_last(struct vg_arena *a, struct vg_json *root, const char *name,
                  const struct vg_json *v)
{
    (void)vg_json_object_remove(root, vg_slice_str(name));
    if (!v)
        return 0;
    struct vg_json copy = *v;
    copy.begin = copy.end = 0;
    return vg_json_object_add(a, root, vg_slice_str(name), copy);
}

/* What status begins with. */
static int stamp_status(struct vg_change *c, struct vg_json *root)
{
    if (!vg_kind_is(c->kind, VG_KIND_HAS_STATUS) || !c->kind->new_status)
        return 0;
    struct vg_json_opts opts = {.scratch = &c->call->loop->scratch};
    struct vg_json *status = NULL;
    int err = vg_json_parse(&c->scratch, vg_slice_str(c->kind->new_status), &opts, &status, NULL);
    return err < 0 ? err : vg_stamp_last(&c->scratch, root, "status", status);
}

/* A revision in the body of a create is an error of the client that no validation finds. */
static bool has_rev(struct vg_arena *a, struct vg_slice text)
{
    uint64_t rev;
    struct vg_slice why;
    return text.n && vg_strconv_uint(a, text, &rev, &why) == 0 && rev != 0;
}

enum vg_verdict vg_stamp_new(struct vg_change *c, const struct vg_body *body)
{
    struct vg_meta m = body->meta;
    struct vg_json root;
    int err = vg_json_top_copy(&c->scratch, body->root, &root);
    if (err == 0)
        err = stamp_meta(c, &m);
    if (err == 0 && vg_kind_is(c->kind, VG_KIND_FINALIZED_BY_SPEC))
        err = vg_stamp_namespace(&c->scratch, &root, &m, NULL);
    if (err == 0 && vg_kind_is(c->kind, VG_KIND_HAS_STRING_DATA))
        err = vg_stamp_string_data(&c->scratch, &root);
    if (err == 0)
        err = stamp_status(c, &root);
    if (err == 0)
        err = vg_change_prepare(c, &root, body, NULL, &m);
    if (err < 0)
        return vg_change_refuse(c, err);
    enum vg_verdict verdict = vg_change_claim(c, &root, NULL);
    if (verdict != VG_CHANGE_PUT) {
        c->is_current = true;
        return verdict;
    }
    struct vg_field_errors e = {.arena = &c->call->ask->arena};
    vg_meta_check(&e, &m, c->kind, &root, false);
    vg_meta_check_finalizers(&e, &m, c->kind);
    vg_change_check(c, &e, &root, NULL);
    if (e.n || e.failed) {
        c->is_current = true;
        return vg_change_invalid(c, m.name, &e);
    }
    verdict = vg_admission_check(c, &root, NULL);
    if (verdict != VG_CHANGE_PUT) {
        c->is_current = true;
        return verdict;
    }
    if (c->is_create && !c->is_dry_run && has_rev(&c->call->ask->arena, body->meta.rev)) {
        c->is_current = true;
        vg_status_unknown(&c->call->ask->arena, &c->status,
                          "resourceVersion should not be set on objects to be created");
        return VG_CHANGE_FAIL;
    }
    if (vg_obj_key_make(vg_slice_str(c->kind->prefix), c->ns, c->name, &c->key) < 0)
        return vg_change_refuse(c, VIGIL_E_KEY_INVALID);
    return vg_change_seal(c, &root, &m, NULL);
}
