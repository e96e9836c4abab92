/* convert_test.c - conversions against tests/kinds/conversions.jsonl.
 * A line is {"name", "group", "version", "resource", "stored", "served"}: an object as it is stored
 * and as that kind shows it, in the order that is printed. "way" is "from" or "to" where only one
 * of the directions gives the other one exactly. Three of the autoscalers are as a real server gave
 * them; the others follow from the original's rules. */
#include "convert.h"
#include "server/schema/decode.h"
#include "test_support.h"
#include "types.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const path = VG_SOURCE_DIR "/tests/kinds/conversions.jsonl";

static void expect(const struct vg_json *record, const struct vg_json *got, const char *want)
{
    VG_AUTO(buf) a = {0};
    VG_AUTO(buf) b = {0};
    assert_int_equal(vg_json_write(&a, got, 0), 0);
    assert_int_equal(vg_json_write(&b, vg_json_get_str(record, want), 0), 0);
    if (!vg_slice_eq(vg_buf_slice(&a), vg_buf_slice(&b)))
        fail_msg("%.*s: %s\n got %.*s\nwant %.*s",
                 VG_SLICE_ARG(vg_json_text(vg_json_get_str(record, "name"))), want, (int)a.n, a.p,
                 (int)b.n, b.p);
}

static struct vg_json decoded(struct vg_arena *a, const struct vg_kind *kind,
                              const struct vg_json *record, const char *name)
{
    struct vg_json copy, unknown = vg_json_array();
    struct vg_status why;
    assert_int_equal(vg_json_clone(a, vg_json_get_str(record, name), &copy), 0);
    assert_int_equal(vg_schema_decode(a, kind->type, &copy, &unknown, &why), 0);
    assert_int_equal(unknown.n, 0);
    return copy;
}

static void check(struct vg_arena *a, const struct vg_json *record)
{
    struct vg_slice way = vg_json_text(vg_json_get_str(record, "way"));
    const struct vg_kind *kind = vg_kind_find(vg_json_text(vg_json_get_str(record, "group")),
                                              vg_json_text(vg_json_get_str(record, "version")),
                                              vg_json_text(vg_json_get_str(record, "resource")));
    assert_true(kind && kind->stored);
    struct vg_json made;
    if (!vg_slice_eq(way, VG_SLICE_LIT("to"))) {
        struct vg_json stored = decoded(a, kind->stored, record, "stored");
        assert_int_equal(vg_kind_from_stored(a, kind, &stored, &made), 0);
        expect(record, &made, "served");
    }
    if (!vg_slice_eq(way, VG_SLICE_LIT("from"))) {
        struct vg_json served = decoded(a, kind, record, "served");
        assert_int_equal(vg_kind_to_stored(a, kind, &served, &made), 0);
        expect(record, &made, "stored");
    }
}

static void each_way_gives_what_a_real_server_gives(void **state)
{
    (void)state;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t room = 0, n = 0;
    for (ssize_t len; (len = getline(&line, &room, f)) > 0; n++) {
        VG_AUTO(arena) arena = {0};
        struct vg_json *record;
        assert_int_equal(vg_json_parse(&arena, vg_slice(line, (size_t)len), NULL, &record, NULL),
                         0);
        check(&arena, record);
    }
    free(line); /* getline's */
    fclose(f);
    assert_true(n >= 6);
}

/* There and back nothing is lost, whatever v1 can say of it. */
static void a_round_trip_by_the_other_version_keeps_everything(void **state)
{
    (void)state;
    static const char text[] =
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"scaleTargetRef\":{\"kind\":\"D\",\"name\":"
        "\"d\"},"
        "\"maxReplicas\":4,\"metrics\":[{\"type\":\"Pods\",\"pods\":{\"metric\":{\"name\":\"r\"},"
        "\"target\":{\"type\":\"AverageValue\",\"averageValue\":\"1\"}}},{\"type\":\"Resource\","
        "\"resource\":{\"name\":\"cpu\",\"target\":{\"type\":\"Utilization\","
        "\"averageUtilization\":9}}}],\"behavior\":{\"scaleDown\":{\"selectPolicy\":\"Disabled\"}}}"
        ","
        "\"status\":{\"desiredReplicas\":1,\"currentMetrics\":[{\"type\":\"External\",\"external\":"
        "{"
        "\"metric\":{\"name\":\"q\"},\"current\":{\"value\":\"3\"}}}],\"conditions\":[{\"type\":"
        "\"X\",\"status\":\"True\",\"lastTransitionTime\":null}]}}";
    VG_AUTO(arena) arena = {0};
    VG_AUTO(buf) a = {0};
    VG_AUTO(buf) b = {0};
    const struct vg_kind *kind = vg_kind_find(VG_SLICE_LIT("autoscaling"), VG_SLICE_LIT("v1"),
                                              VG_SLICE_LIT("horizontalpodautoscalers"));
    struct vg_json *root, first, other, back;
    assert_non_null(kind);
    assert_int_equal(vg_json_parse(&arena, VG_SLICE_LIT(text), NULL, &root, NULL), 0);
    assert_int_equal(vg_schema_decode(&arena, kind->stored->type, root, NULL, NULL), 0);
    assert_int_equal(vg_kind_from_stored(&arena, kind, root, &other), 0);
    assert_int_equal(vg_kind_to_stored(&arena, kind, &other, &back), 0);
    vg_json_object_remove(&back, VG_SLICE_LIT("kind"));
    vg_json_object_remove(&back, VG_SLICE_LIT("apiVersion"));
    assert_int_equal(vg_schema_arrange(&arena, kind->stored->type, root, &first), 0);
    assert_int_equal(vg_json_write(&a, &first, 0), 0);
    assert_int_equal(vg_json_write(&b, &back, 0), 0);
    vg_assert_slice_equal(vg_buf_slice(&b), vg_buf_slice(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_gives_what_a_real_server_gives),
        cmocka_unit_test(a_round_trip_by_the_other_version_keeps_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
