/* fixtures_test.c - the rules of kinds against tests/kinds/fixtures/<kind>.jsonl.
 * A line is a record {"name", "object", "want"}: the object is decoded, defaulted, prepared and
 * checked, and `want` lists the causes, each {"field", "reason", "message"}, in their order; an
 * empty list is a valid object. With "old" it is an update of that object (which is defaulted and
 * prepared too), with "status": true an update of its status. "becomes" is what the object is after
 * defaults and preparation. Lines that begin with # say something. Metadata has rules of its own,
 * which are not run here. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "convert.h"
#include "rules/rules.h"
#include "server/schema/decode.h"
#include "server/schema/default.h"
#include "test_support.h"
#include "types.h"
#include "json/equal.h"
#include "json/write.h"

/* The first argument is another folder of such files, whose objects may have unknown fields. */
static const char *folder = VG_SOURCE_DIR "/tests/kinds/fixtures";
static bool is_other_folder;

struct run {
    struct vg_arena *arena;
    const char *file;
    struct vg_slice name;
    const struct vg_schema_type *type;
    const struct vg_rules *rules; /* NULL: none */
    const struct vg_kind *kind;   /* NULL: not served */
};

/* "apps/v1" and "Deployment" as a type and its rules. */
static void find_kind(struct run *r, const struct vg_json *object)
{
    struct vg_slice version = vg_json_text(vg_json_get_str(object, "apiVersion")), group = {"", 0};
    struct vg_slice kind = vg_json_text(vg_json_get_str(object, "kind"));
    const char *slash = version.n ? memchr(version.p, '/', version.n) : NULL;
    if (slash) {
        group = vg_slice(version.p, (size_t)(slash - version.p));
        version = vg_slice(slash + 1, version.n - group.n - 1);
    }
    r->type = vg_schema_find(group, version, kind);
    r->rules = vg_rules_find(group, kind);
    r->kind = vg_kind_find_kind(group, version, kind);
    if (!r->type)
        fail_msg("%s: %.*s: no such kind", r->file, VG_SLICE_ARG(r->name));
}

/* Decoded, defaulted and prepared, as it is stored. 0, -ENOMEM. */
static int store(const struct run *r, struct vg_json *object, const struct vg_json *old,
                 bool is_status, struct vg_json *ret)
{
    struct vg_status why = {0};
    struct vg_json unknown = vg_json_array(), own;
    int err = vg_schema_decode(r->arena, r->type, object, &unknown, &why);
    if (err < 0 && err != -ENOMEM)
        fail_msg("%s: %.*s: %s", r->file, VG_SLICE_ARG(r->name), why.message);
    if (unknown.n && !is_other_folder)
        fail_msg("%s: %.*s: unknown %.*s", r->file, VG_SLICE_ARG(r->name),
                 VG_SLICE_ARG(vg_json_text(&unknown.items[0])));
    if (err == 0)
        err = vg_schema_default(r->arena, r->type, object);
    if (err == 0)
        err = vg_schema_arrange(r->arena, r->type, object, ret);
    if (err == 0 && r->kind && r->kind->stored) {
        own = *ret;
        err = vg_kind_to_stored(r->arena, r->kind, &own, ret);
    }
    vg_rules_prepare_fn *prepare = !r->rules   ? NULL
                                   : is_status ? r->rules->prepare_status
                                               : r->rules->prepare;
    return err == 0 && prepare ? prepare(r->arena, ret, old) : err;
}

static struct vg_json causes_of(const struct run *r, const struct vg_field_errors *e)
{
    struct vg_json list = vg_json_array();
    for (size_t i = 0; i < e->n; i++) {
        struct vg_json cause = vg_json_object();
        const struct vg_slice parts[][2] = {
            {VG_SLICE_LIT("field"), e->v[i].field},
            {VG_SLICE_LIT("reason"), vg_slice_str(e->v[i].reason)},
            {VG_SLICE_LIT("message"), e->v[i].message},
        };
        for (size_t p = 0; p < VG_ARRAY_LEN(parts); p++)
            assert_int_equal(
                vg_json_object_add(r->arena, &cause, parts[p][0], vg_json_string_ref(parts[p][1])),
                0);
        assert_int_equal(vg_json_array_push(r->arena, &list, cause), 0);
    }
    return list;
}

/* Both are shown when they differ. false: they do. */
static bool is_same(const struct run *r, const char *what, const struct vg_json *got,
                    const struct vg_json *want)
{
    VG_AUTO(buf) a = {0};
    VG_AUTO(buf) b = {0};
    if (vg_json_equal(got, want) == 1)
        return true;
    assert_int_equal(vg_json_write(&a, got, 0), 0);
    assert_int_equal(vg_json_write(&b, want, 0), 0);
    print_error("%s: %.*s: %s\n got %.*s\nwant %.*s\n", r->file, VG_SLICE_ARG(r->name), what,
                VG_SLICE_ARG(vg_buf_slice(&a)), VG_SLICE_ARG(vg_buf_slice(&b)));
    return false;
}

/* Whoever checks metadata asks this of the rules. */
static void check_name(const struct run *r, struct vg_check *c, const struct vg_at *obj)
{
    struct vg_at meta = vg_at(obj, "metadata"), name = vg_at(&meta, "name");
    const char *why = r->rules->refuse_name && vg_at_text(&name).n
                          ? r->rules->refuse_name(c->errors, obj->v, vg_at_text(&name))
                          : NULL;
    if (why)
        vg_bad(c, &name, "%s", why);
}

static void check(const struct run *r, struct vg_field_errors *e, const struct vg_json *object,
                  const struct vg_json *old, bool is_status)
{
    struct vg_check c = {.errors = e, .arena = r->arena};
    struct vg_at at = vg_at_root(object);
    if (!r->rules)
        return;
    if (!old)
        check_name(r, &c, &at);
    if (!old && r->rules->check)
        r->rules->check(&c, &at);
    else if (old && is_status && r->rules->check_status)
        r->rules->check_status(&c, &at, old);
    else if (old && !is_status && r->rules->check_update) {
        r->rules->check_update(&c, &at, old);
        vg_rules_forgive(&c, 0, r->rules, old);
    }
}

struct record {
    struct run r;
    struct vg_json *object, *old; /* NULL: a create */
    const struct vg_json *want, *becomes;
    bool is_status;
};

static void read_record(struct vg_arena *arena, const char *file, struct vg_slice line,
                        struct record *ret)
{
    struct vg_status why = {0};
    struct vg_json *record;
    if (vg_json_parse(arena, line, NULL, &record, &why) < 0)
        fail_msg("%s: %s: %.*s", file, why.message, (int)VG_MIN(line.n, (size_t)80), line.p);
    *ret = (struct record){
        .r = {.arena = arena, .file = file, .name = vg_json_text(vg_json_get_str(record, "name"))},
        .object = vg_json_get_str(record, "object"),
        .old = vg_json_get_str(record, "old"),
        .want = vg_json_get_str(record, "want"),
        .becomes = vg_json_get_str(record, "becomes"),
        .is_status = vg_json_is_true(vg_json_get_str(record, "status")),
    };
    find_kind(&ret->r, ret->object);
}

/* What the object becomes, and what is wrong with it. 0, -ENOMEM. */
static int judge(const struct record *x, struct vg_json *ret, struct vg_field_errors *e)
{
    struct vg_json old = vg_json_null();
    const struct vg_json *before = x->old ? &old : NULL;
    int err = x->old ? store(&x->r, x->old, NULL, false, &old) : 0;
    if (err == 0)
        err = store(&x->r, x->object, before, x->is_status, ret);
    if (err == 0)
        check(&x->r, e, ret, before, x->is_status);
    return err == 0 && e->failed ? -ENOMEM : err;
}

/* Does the notation say that a place cannot be changed: its field, or one above it? */
static bool is_immutable(const struct vg_schema_type *type, struct vg_slice path)
{
    while (type && path.n) {
        size_t n = 0;
        while (n < path.n && path.p[n] != '.' && path.p[n] != '[')
            n++;
        const struct vg_schema_field *f = vg_schema_field(type, vg_slice(path.p, n));
        if (!f || vg_schema_is(f, VG_SCHEMA_IMMUTABLE))
            return f != NULL;
        const char *dot = memchr(path.p + n, '.', path.n - n);
        path = dot ? vg_slice(dot + 1, path.n - (size_t)(dot - path.p) - 1) : vg_slice(NULL, 0);
        type = f->type;
    }
    return false;
}

/* Kinds whose fields cannot be changed under some condition only: an object that says so, a job
 * that runs, an event of the newer kind, a volume that is bound; or that are blamed by another
 * name. */
static bool is_conditional(const struct vg_json *object)
{
    static const char *const kinds[] = {"ConfigMap", "Secret",        "Job",
                                        "Event",     "Pod",           "PersistentVolume",
                                        "CSIDriver", "ResourceSlice", NULL};
    for (const char *const *kind = kinds; *kind; kind++)
        if (vg_slice_eq(vg_json_text(vg_json_get_str(object, "kind")), vg_slice_str(*kind)))
            return true;
    return false;
}

static bool are_declared(const struct run *r, const struct vg_json *object,
                         const struct vg_json *causes)
{
    static const struct vg_slice words = {": field is immutable", 20};
    VG_JSON_FOREACH_ITEM (cause, causes) {
        struct vg_slice field = vg_json_text(vg_json_get_str(cause, "field"));
        struct vg_slice text = vg_json_text(vg_json_get_str(cause, "message"));
        bool is_meant =
            text.n > words.n && memcmp(text.p + text.n - words.n, words.p, words.n) == 0;
        if (is_meant && !is_conditional(object) && !is_immutable(r->type, field)) {
            print_error("%s: %.*s: the notation does not say that %.*s is immutable\n", r->file,
                        VG_SLICE_ARG(r->name), VG_SLICE_ARG(field));
            return false;
        }
    }
    return true;
}

/* true: as it should be. */
static bool run_record(const char *file, struct vg_slice line)
{
    VG_AUTO(arena) arena = {0};
    struct vg_field_errors e = {.arena = &arena};
    struct vg_json now, none = vg_json_array();
    struct record x;
    read_record(&arena, file, line, &x);
    assert_int_equal(judge(&x, &now, &e), 0);
    bool is_good = !x.becomes || is_same(&x.r, "becomes", &now, x.becomes);
    struct vg_json got = causes_of(&x.r, &e);
    return is_same(&x.r, "causes", &got, x.want ? x.want : &none) &&
           are_declared(&x.r, x.object, &got) && is_good;
}

/* With memory that fails at each place in turn: it is said, or nothing is different for it. An
 * object that is let through because an error did not fit would be the worst. */
static bool run_short(const char *file, struct vg_slice line)
{
    bool is_good = true, is_over = false;
    for (uint64_t n = 1; !is_over; n++) {
        VG_AUTO(arena) reading = {0};
        VG_AUTO(arena) arena = {0};
        struct vg_field_errors e = {.arena = &arena};
        struct vg_json now, none = vg_json_array();
        struct record x;
        vg_arena_init(&arena, 64, 0);
        read_record(&reading, file, line, &x);
        x.r.arena = &arena;
        vg_alloc_fail_at(n, 0);
        int err = judge(&x, &now, &e);
        is_over = vg_alloc_fail_at(0, 0) < n;
        assert_true(err == 0 || (err == -ENOMEM && !is_over));
        if (err < 0)
            continue;
        struct vg_json got = causes_of(&x.r, &e);
        is_good = is_same(&x.r, "causes", &got, x.want ? x.want : &none) && is_good;
    }
    return is_good;
}

typedef bool run_fn(const char *file, struct vg_slice line);

/* How many records there are, and how many of them fail; every `step`th is run. */
static size_t run_file(const char *file, run_fn *run, size_t step, size_t *failed)
{
    char path[1200];
    VG_AUTO(buf) text = {0};
    char room[4096];
    size_t n = 0, got;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while ((got = fread(room, 1, sizeof room, f)) > 0)
        assert_int_equal(vg_buf_append(&text, room, got), 0);
    fclose(f);
    for (struct vg_slice rest = vg_buf_slice(&text); rest.n;) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t len = end ? (size_t)(end - rest.p) : rest.n;
        if (len && rest.p[0] != '#') {
            *failed += n % step == 0 && !run(file, vg_slice(rest.p, len));
            n++;
        }
        rest = vg_slice(rest.p + len + (end ? 1 : 0), rest.n - len - (end ? 1 : 0));
    }
    return n;
}

static void run_folder(run_fn *run, size_t step)
{
    size_t n = 0, failed = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *f = readdir(dir); f; f = readdir(dir))
        if (f->d_name[0] != '.')
            n += run_file(f->d_name, run, step, &failed);
    closedir(dir);
    printf("%zu records\n", n);
    if (failed)
        fail_msg("%zu of %zu records", failed, n);
    assert_true(n > 0);
}

static void objects_are_defaulted_and_refused_as_the_fixtures_say(void **state)
{
    (void)state;
    run_folder(run_record, 1);
}

/* Some of each kind; all of them in the long round. */
static void short_memory_lets_nothing_through(void **state)
{
    (void)state;
    run_folder(run_short, vg_test_is_long() ? 1 : 8);
}

int main(int argc, char **argv)
{
    is_other_folder = argc > 1;
    if (is_other_folder)
        folder = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_defaulted_and_refused_as_the_fixtures_say),
        cmocka_unit_test(short_memory_lets_nothing_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
