/* merge_kinds_test.c - the merge tables against patches that a real API server applied.
 * Each recorded case is replayed as a function: the object as the server had it, the patch, the
 * object as it became. The server also defaults, ignores what /status owns and counts generations;
 * what is compared is therefore what the patch says: every member of our result is in the server's,
 * and nothing that the patch removed is left there. */
#include "test_support.h"

#include <stdio.h>

#include "base/buf.h"
#include "merge.h"
#include "json/equal.h"
#include "json/write.h"

static struct vg_slice text_of(const struct vg_json *v, const char *key)
{
    return vg_json_text(vg_json_get_str(v, key));
}

static bool starts_with(struct vg_slice s, const char *prefix)
{
    return vg_slice_has_prefix(s, vg_slice_str(prefix));
}

/* "apps/v1 Deployment" */
static const struct vg_kind *kind_of(struct vg_slice name)
{
    const char *blank = memchr(name.p, ' ', name.n);
    assert_non_null(blank);
    struct vg_slice version = vg_slice(name.p, (size_t)(blank - name.p));
    struct vg_slice kind = vg_slice(blank + 1, name.n - version.n - 1), group = VG_SLICE_LIT("");
    const char *slash = memchr(version.p, '/', version.n);
    if (slash) {
        group = vg_slice(version.p, (size_t)(slash - version.p));
        version = vg_slice(slash + 1, version.n - group.n - 1);
    }
    return vg_kind_find_kind(group, version, kind);
}

/* ---- comparing ---- */

static bool is_volatile(struct vg_slice key)
{
    static const char *const keys[] = {"resourceVersion", "managedFields", "generation",
                                       "observedGeneration"};
    for (size_t i = 0; i < VG_ARRAY_LEN(keys); i++)
        if (vg_slice_eq(key, vg_slice_str(keys[i])))
            return true;
    return false;
}

static bool agrees(const struct vg_json *ours, const struct vg_json *theirs);

static bool objects_agree(const struct vg_json *ours, const struct vg_json *theirs)
{
    VG_JSON_FOREACH_MEMBER (m, ours) {
        const struct vg_json *other = vg_json_get(theirs, vg_json_key(m));
        bool empty =
            (m->value.type == VG_JSON_OBJECT || m->value.type == VG_JSON_ARRAY) && m->value.n == 0;
        if (is_volatile(vg_json_key(m)) || (!other && empty))
            continue;
        if (!other || !agrees(&m->value, other)) {
            printf("  differs at %.*s\n", VG_SLICE_ARG(vg_json_key(m)));
            return false;
        }
    }
    return true;
}

static bool agrees(const struct vg_json *ours, const struct vg_json *theirs)
{
    if (ours->type != theirs->type)
        return false;
    if (ours->type == VG_JSON_OBJECT)
        return objects_agree(ours, theirs);
    if (ours->type != VG_JSON_ARRAY)
        return vg_json_equal(ours, theirs) == 1;
    for (uint32_t i = 0; i < ours->n && ours->n == theirs->n; i++)
        if (!agrees(&ours->items[i], &theirs->items[i]))
            return false;
    return ours->n == theirs->n;
}

/* Members that `before` had, `ours` has no more, and `theirs` still has. */
static bool all_gone(const struct vg_json *before, const struct vg_json *ours,
                     const struct vg_json *theirs)
{
    if (!vg_json_is(before, VG_JSON_OBJECT) || !vg_json_is(ours, VG_JSON_OBJECT))
        return true;
    VG_JSON_FOREACH_MEMBER (m, before) {
        const struct vg_json *mine = vg_json_get(ours, vg_json_key(m));
        const struct vg_json *other = vg_json_get(theirs, vg_json_key(m));
        if (other && !(mine ? all_gone(&m->value, mine, other) : false)) {
            printf("  not removed: %.*s\n", VG_SLICE_ARG(vg_json_key(m)));
            return false;
        }
    }
    return true;
}

/* ---- replaying ---- */

struct tally {
    unsigned applied, refused, skipped;
};

/* Cases whose outcome is that of another rule of the server, not of merging. */
static bool is_beyond_merging(struct vg_slice id)
{
    static const char *const ids[] = {
        /* a default comes back */
        "smp-strategy-null",
        "smp-null-defaulted-field",
        "smp-null-replicas",
        /* fields that the type does not have are dropped */
        "smp-unknown-directive-key",
        "smp-unknown-field-default",
        "smp-unknown-field-ignore",
        "smp-kind-change",
        "smp-apiversion-change",
        "smp-serviceaccount-replace",
        /* admission, allocation and strategies of the kind */
        "smp-pod-tolerations-replace",
        "smp-pod-status-podips",
        "smp-pod-status-ignores-spec",
        "smp-service-type",
        "smp-node-podcidrs",
        "smp-secret-stringdata",
        "smp-csinode-drivers",
        /* another type's patch */
        "smp-scale",
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(ids); i++)
        if (vg_slice_eq(id, vg_slice_str(ids[i])))
            return true;
    return false;
}

static const char *message_of(const struct vg_json *response)
{
    static char text[VG_STATUS_MESSAGE_MAX];
    struct vg_slice m = text_of(response, "message");
    snprintf(text, sizeof text, "%.*s", VG_SLICE_ARG(m));
    return text;
}

static bool is_merge_refusal(const char *message)
{
    static const char *const parts[] = {"does not contain declared merge key",
                                        "unknown patch type",
                                        "invalid patch format",
                                        "The order in patch list",
                                        "merging lists cannot yet",
                                        "expected a []interface",
                                        "list element types are not identical"};
    for (size_t i = 0; i < VG_ARRAY_LEN(parts); i++)
        if (strstr(message, parts[i]))
            return true;
    return false;
}

static void check_applied(struct vg_slice id, const struct vg_json *before,
                          const struct vg_json *ours, const struct vg_json *theirs, struct tally *t)
{
    if (agrees(ours, theirs) && all_gone(before, ours, theirs)) {
        t->applied++;
        return;
    }
    VG_AUTO(buf) got = {0};
    assert_int_equal(vg_json_write(&got, ours, 0), 0);
    fail_msg("%.*s: merged into %.*s", VG_SLICE_ARG(id), (int)got.n, got.p);
}

/* One step; *state is the object as the server has it. */
static void replay_step(struct vg_arena *a, struct vg_slice id, const struct vg_kind *kind,
                        const struct vg_json *step, const struct vg_json **state, struct tally *t)
{
    const struct vg_json *body = vg_json_get_str(step, "body");
    const struct vg_json *response = vg_json_get_str(step, "response");
    struct vg_slice type = text_of(vg_json_get_str(step, "headers"), "Content-Type");
    uint64_t status = 0;
    assert_int_equal(vg_json_to_uint64(vg_json_get_str(step, "status"), &status), 0);
    struct vg_json ours;
    struct vg_status st = {0};
    bool is_patch = starts_with(type, "application/strategic-merge-patch+json") && *state &&
                    vg_json_is(body, VG_JSON_OBJECT);
    if (!is_patch || !response) {
        t->skipped++;
    } else if (status < 300 && !is_beyond_merging(id)) {
        int r = vg_json_strategic_apply(a, *state, body, vg_kind_merge_schema(kind), &ours, &st);
        if (r < 0)
            fail_msg("%.*s: %s", VG_SLICE_ARG(id), st.message);
        check_applied(id, *state, &ours, response, t);
    } else if (status >= 400 && is_merge_refusal(message_of(response))) {
        int r = vg_json_strategic_apply(a, *state, body, vg_kind_merge_schema(kind), &ours, &st);
        assert_int_equal(vg_err_http(r), status);
        /* Ours names no values of the document. */
        if (strncmp(st.message, message_of(response), strlen(st.message)) != 0)
            fail_msg("%.*s: says %s", VG_SLICE_ARG(id), st.message);
        t->refused++;
    }
    if (status < 300 && response)
        *state = response;
}

static void replay_case(struct vg_slice line, struct tally *t)
{
    VG_AUTO(arena) a = {0};
    struct vg_json *c;
    const struct vg_json *state = NULL;
    assert_int_equal(vg_json_parse(&a, line, NULL, &c, NULL), 0);
    const struct vg_kind *kind = kind_of(text_of(c, "kind"));
    if (!kind) {
        t->skipped++;
        return;
    }
    VG_JSON_FOREACH_ITEM (step, vg_json_get_str(c, "steps")) {
        replay_step(&a, text_of(c, "id"), kind, step, &state, t);
    }
}

static void recorded_patches_merge_as_recorded(void **state)
{
    (void)state;
    VG_AUTO(buf) text = {0};
    struct tally t = {0};
    vg_test_vector("patches/strategic.jsonl", &text);
    for (const char *p = text.p, *end = text.p + text.n; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        if (stop > p)
            replay_case(vg_slice(p, (size_t)(stop - p)), &t);
        p = stop + 1;
    }
    printf("applied %u, refused %u, other steps %u\n", t.applied, t.refused, t.skipped);
    assert_true(t.applied > 100 && t.refused >= 10);
}

/* ---- the tables ---- */

static const struct vg_merge_field *field_of(const struct vg_merge_schema *s, const char *name)
{
    for (const struct vg_merge_field *f = s->fields; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static void every_kind_merges_its_metadata(void **state)
{
    (void)state;
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    for (size_t i = 0; i < n; i++) {
        const struct vg_merge_schema *s = vg_kind_merge_schema(&kinds[i]);
        const struct vg_merge_field *meta = field_of(s, "metadata");
        assert_non_null(meta);
        assert_string_equal(field_of(meta->schema, "ownerReferences")->merge_key, "uid");
        assert_int_equal(field_of(meta->schema, "finalizers")->strategy, VG_MERGE_LIST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_patches_merge_as_recorded),
        cmocka_unit_test(every_kind_merges_its_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
