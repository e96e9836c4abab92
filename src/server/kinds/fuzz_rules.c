/* fuzz_rules.c - any object of any kind: decoded, defaulted, prepared, checked, converted.
 * Two lines of JSON: an object, and what is stored of it (empty: a create). Promises, for whatever
 * passes the decoder: R1 what is arranged stays as it is when it is arranged again. R2 protobuf can
 * be made of it. R3 preparing an object leaves the body alone. R4 an object that went to its stored
 * version and back is the same when it goes there again. */
#include <stdio.h>
#include <stdlib.h>

#include "convert.h"
#include "fuzz.h"
#include "proto_fuzz.h"
#include "rules/rules.h"
#include "server/schema/decode.h"
#include "server/schema/default.h"

struct run {
    struct vg_arena arena;
    const struct vg_schema_type *type;
    const struct vg_rules *rules; /* NULL: none */
    const struct vg_kind *kind;
    const struct vg_rules_part *part; /* that is written; NULL: none */
    int wants_part;                   /* which; 0 and less: none */
};

/* As many as a kind has. */
#define PARTS_MAX 2

static void write(struct vg_buf *b, const struct vg_json *v)
{
    VG_MUST(vg_json_write(b, v, VG_JSON_ESCAPE_HTML) == 0);
}

static void must_equal(const struct vg_buf *a, const struct vg_buf *b)
{
    if (vg_slice_eq(vg_buf_slice(a), vg_buf_slice(b)))
        return;
    fprintf(stderr, "%.*s\n%.*s\n", VG_SLICE_ARG(vg_buf_slice(a)), VG_SLICE_ARG(vg_buf_slice(b)));
    abort();
}

static bool find_kind(struct run *r, const struct vg_json *object)
{
    struct vg_slice version = vg_json_text(vg_json_get_str(object, "apiVersion")), group = {"", 0};
    const char *slash = version.n ? memchr(version.p, '/', version.n) : NULL;
    if (slash) {
        group = vg_slice(version.p, (size_t)(slash - version.p));
        version = vg_slice(slash + 1, version.n - group.n - 1);
    }
    r->kind = vg_kind_find_kind(group, version, vg_json_text(vg_json_get_str(object, "kind")));
    r->type = r->kind ? vg_kind_type(r->kind) : NULL;
    r->rules = r->kind ? vg_rules_of(r->kind) : NULL;
    return r->type != NULL;
}

/* R1, R2 */
static void check_arranged(struct run *r, const struct vg_schema_type *type,
                           const struct vg_json *v)
{
    VG_AUTO(buf) text = {0};
    VG_AUTO(buf) again = {0};
    VG_AUTO(buf) bytes = {0};
    VG_AUTO(proto_encoder) e = {0};
    struct vg_json other;
    write(&text, v);
    VG_MUST(vg_schema_arrange(&r->arena, type, v, &other) == 0);
    write(&again, &other);
    must_equal(&text, &again);
    int err = vg_proto_encode(&e, type, vg_buf_slice(&text), VG_SLICE_LIT("1"), &bytes);
    if (err < 0)
        fprintf(stderr, "%s: %.*s\n", vg_err_text(err), VG_SLICE_ARG(vg_buf_slice(&text)));
    VG_MUST(err == 0);
}

/* R4 */
static void check_versions(struct run *r, const struct vg_json *stored)
{
    VG_AUTO(buf) a = {0};
    VG_AUTO(buf) b = {0};
    struct vg_json own, back, own_again;
    VG_MUST(vg_kind_from_stored(&r->arena, r->kind, stored, &own) == 0);
    check_arranged(r, r->type, &own);
    VG_MUST(vg_kind_to_stored(&r->arena, r->kind, &own, &back) == 0);
    VG_MUST(vg_kind_from_stored(&r->arena, r->kind, &back, &own_again) == 0);
    write(&a, &own);
    write(&b, &own_again);
    must_equal(&a, &b);
}

/* What the server sets before rules see an object. */
static void stamp(struct run *r, struct vg_json *v)
{
    struct vg_json *meta = vg_json_get_str(v, "metadata");
    VG_MUST(vg_json_is(meta, VG_JSON_OBJECT));
    VG_MUST(vg_json_object_set(&r->arena, meta, VG_SLICE_LIT("creationTimestamp"),
                               vg_json_string_ref(VG_SLICE_LIT("2020-01-01T00:00:00Z"))) == 0);
    VG_MUST(vg_json_object_set(&r->arena, meta, VG_SLICE_LIT("uid"),
                               vg_json_string_ref(VG_SLICE_LIT("u"))) == 0);
}

/* As it would be stored. False: the decoder refuses it. */
static bool read(struct run *r, struct vg_json *object, const struct vg_json *old, bool is_status,
                 struct vg_json *ret)
{
    VG_AUTO(buf) before = {0};
    VG_AUTO(buf) after = {0};
    struct vg_json unknown = vg_json_array();
    struct vg_status why;
    vg_rules_prepare_fn *prepare = !r->rules        ? NULL
                                   : r->part && old ? r->part->prepare
                                   : is_status      ? r->rules->prepare_status
                                                    : r->rules->prepare;
    if (vg_schema_decode(&r->arena, r->type, object, &unknown, &why) < 0)
        return false;
    VG_MUST(vg_schema_default(&r->arena, r->type, object) == 0);
    VG_MUST(vg_schema_arrange(&r->arena, r->type, object, ret) == 0);
    check_arranged(r, r->type, ret);
    write(&before, object);
    if (r->kind->stored) {
        struct vg_json own = *ret;
        VG_MUST(vg_kind_to_stored(&r->arena, r->kind, &own, ret) == 0);
        VG_MUST(vg_schema_default(&r->arena, r->kind->stored->type, ret) == 0);
    }
    stamp(r, ret);
    VG_MUST(!prepare || prepare(&r->arena, ret, old) == 0);
    struct vg_json prepared = *ret;
    VG_MUST(vg_schema_arrange(&r->arena, vg_kind_type(vg_kind_stored(r->kind)), &prepared, ret) ==
            0);
    check_arranged(r, vg_kind_type(vg_kind_stored(r->kind)), ret);
    if (r->kind->stored)
        check_versions(r, ret);
    write(&after, object);
    must_equal(&before, &after); /* R3 */
    return true;
}

static void warn(void *arg, const char *text)
{
    (void)arg;
    VG_MUST(text != NULL);
}

static void check(struct run *r, const struct vg_json *now, const struct vg_json *old,
                  bool is_status)
{
    struct vg_field_errors e = {.arena = &r->arena};
    struct vg_check c = {.errors = &e, .arena = &r->arena, .warn = warn};
    struct vg_at at = vg_at_root(now);
    VG_AUTO(buf) text = {0};
    if (!r->rules)
        return;
    if (!old && r->rules->check)
        r->rules->check(&c, &at);
    if (old && r->part) {
        r->part->check(&c, &at, old);
        VG_MUST(!e.failed && vg_field_errors_append(&text, &e) == 0);
        return;
    }
    if (old && is_status && r->rules->check_status)
        r->rules->check_status(&c, &at, old);
    if (old && !is_status && r->rules->check_update)
        r->rules->check_update(&c, &at, old);
    if (!is_status && r->rules->warn)
        r->rules->warn(&c, &at, old);
    if (is_status && old && r->rules->warn_status)
        r->rules->warn_status(&c, &at, old);
    VG_MUST(!e.failed && vg_field_errors_append(&text, &e) == 0);
}

static struct vg_json *parse(struct run *r, struct vg_slice text)
{
    struct vg_json_opts opts = {.replace_bad_utf8 = true};
    struct vg_json *v = NULL;
    if (vg_json_parse(&r->arena, text, &opts, &v, NULL) < 0 || v->type != VG_JSON_OBJECT)
        return NULL;
    return v;
}

/* Whether there is as many a part. */
static bool find_part(struct run *r)
{
    const struct vg_rules_part *p = r->rules ? r->rules->parts : NULL;
    for (int i = 1; p && p->sub && i < r->wants_part; i++)
        p++;
    r->part = p && p->sub ? p : NULL;
    return r->part;
}

static void run(struct run *r, struct vg_slice text, struct vg_slice old_text, bool is_status)
{
    struct vg_json *object = parse(r, text), *before = parse(r, old_text);
    struct vg_json now, old;
    if (!object || !find_kind(r, object) || (is_status && !before))
        return;
    if (r->wants_part > 0 && (!before || !find_part(r)))
        return;
    if (before && !read(r, before, NULL, false, &old))
        return;
    if (read(r, object, before ? &old : NULL, is_status, &now))
        check(r, &now, before ? &old : NULL, is_status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_slice text = vg_slice(data, size), old = {"", 0};
    const char *end = size ? memchr(text.p, '\n', text.n) : NULL;
    if (end) {
        text.n = (size_t)(end - text.p);
        old = vg_slice(end + 1, size - text.n - 1);
    }
    for (int i = 0; i < 2 + PARTS_MAX; i++) {
        struct run r = {.kind = NULL, .wants_part = i - 1};
        run(&r, text, old, i == 1);
        vg_arena_done(&r.arena);
    }
    return 0;
}
