/* rules_parts_test.c - what rules are written with: texts that were seen, addresses, paths, names
 * of resources. */
#include "rules/ip.h"
#include "rules/names.h"
#include "rules/resources.h"
#include "rules/rules.h"
#include "test_support.h"

/* ---- texts that were seen ---- */

static void many_texts_are_found_like_few(void **state)
{
    (void)state;
    VG_AUTO(arena) arena = {0};
    VG_AUTO(names) seen = {0};
    struct vg_field_errors e = {.arena = &arena};
    struct vg_check c = {.errors = &e, .arena = &arena};
    struct vg_json values[3 * VG_NAMES_FEW];
    for (size_t i = 0; i < VG_ARRAY_LEN(values); i++) {
        struct vg_slice text;
        const struct vg_json *found = NULL;
        assert_int_equal(vg_arena_printf(&arena, &text, "n%zu", i), 0);
        assert_false(vg_names_has(&seen, text));
        assert_true(vg_names_add(&c, &seen, text, &values[i]));
        assert_false(vg_names_add(&c, &seen, text, NULL));
        assert_true(vg_names_find(&seen, text, &found));
        assert_ptr_equal(found, &values[i]);
        assert_true(vg_names_find(&seen, VG_SLICE_LIT("n0"), &found));
        assert_ptr_equal(found, &values[0]);
    }
    assert_false(vg_names_has(&seen, VG_SLICE_LIT("n")));
    assert_false(vg_names_has(&seen, VG_SLICE_LIT("")));
    assert_false(e.failed);
}

static void add_many(void *arg)
{
    VG_AUTO(names) seen = {0};
    struct vg_check *c = arg;
    char texts[2 * VG_NAMES_FEW];
    for (size_t i = 0; i < sizeof texts; i++) {
        texts[i] = (char)('A' + i);
        (void)vg_names_add(c, &seen, vg_slice(&texts[i], 1), NULL);
    }
}

static void short_memory_fails_the_check(void **state)
{
    (void)state;
    bool has_failed = false;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_field_errors e = {0};
        struct vg_check c = {.errors = &e};
        add_many(&c);
        has_failed = has_failed || e.failed;
    }
    assert_true(has_failed);
}

/* ---- addresses ---- */

static void addresses_are_read_as_go_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_ip, is_strict, is_mapped;
    } all[] = {
        {"1.2.3.4", true, true, false},
        {"01.2.3.4", true, false, false},
        {"1.2.3", false, false, false},
        {"1.2.3.4.5", false, false, false},
        {"1.2.3.256", false, false, false},
        {"", false, false, false},
        {"x", false, false, false},
        {"::", true, true, false},
        {"::1", true, true, false},
        {"1::", true, true, false},
        {"1:2:3:4:5:6:7:8", true, true, false},
        {"1:2:3:4:5:6:7::", true, true, false},
        {"1:2:3:4:5:6:7:8::", false, false, false},
        {"1::2::3", false, false, false},
        {"1:2:3:4:5:6:7", false, false, false},
        {"00001::", true, false, false},
        {"::ffff:1.2.3.4", true, true, true},
        {"::ffff:01.2.3.4", true, false, true},
        {"::ffff:102:304", true, true, true},
        {"1:2:3:4:5:6:1.2.3.4", true, true, false},
        {"1:2:3:4:5:6:7:1.2.3.4", false, false, false},
        {"fe80::1%eth0", false, false, false},
        {"1:", false, false, false},
        {":1", false, false, false},
        {"12345::", false, false, false},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(all); i++) {
        struct vg_ip ip;
        bool is_ip = vg_ip_parse(vg_slice_str(all[i].text), &ip);
        if (is_ip != all[i].is_ip || (is_ip && (ip.is_strict != all[i].is_strict ||
                                                vg_ip_is_mapped(&ip) != all[i].is_mapped)))
            fail_msg("%s", all[i].text);
    }
}

/* ---- paths and resources ---- */

static void steps_back_are_seen(void **state)
{
    (void)state;
    static const char *const bad[] = {"..", "../a", "a/..", "a/../b", "/.."};
    static const char *const good[] = {"", ".", "...", "..a", "a..", "a/..b/c", "a/b..", "./a"};
    for (size_t i = 0; i < VG_ARRAY_LEN(bad); i++)
        assert_true(vg_path_has_backstep(vg_slice_str(bad[i])));
    for (size_t i = 0; i < VG_ARRAY_LEN(good); i++)
        assert_false(vg_path_has_backstep(vg_slice_str(good[i])));
}

static void resources_belong_to_someone(void **state)
{
    (void)state;
    assert_true(vg_resource_is_native(VG_SLICE_LIT("cpu")));
    assert_true(vg_resource_is_native(VG_SLICE_LIT("x.kubernetes.io/y")));
    assert_false(vg_resource_is_native(VG_SLICE_LIT("example.com/gpu")));
    assert_true(vg_resource_is_extended(VG_SLICE_LIT("example.com/gpu")));
    assert_false(vg_resource_is_extended(VG_SLICE_LIT("requests.example.com/gpu")));
    assert_false(vg_resource_is_extended(VG_SLICE_LIT("memory")));
    assert_true(vg_resource_is_whole(VG_SLICE_LIT("pods")));
    assert_false(vg_resource_is_whole(VG_SLICE_LIT("cpu")));
    assert_true(vg_resource_may_overcommit(VG_SLICE_LIT("memory")));
    assert_false(vg_resource_may_overcommit(VG_SLICE_LIT("hugepages-2Mi")));
    assert_false(vg_resource_may_overcommit(VG_SLICE_LIT("example.com/gpu")));
    assert_true(vg_resource_is_standard(VG_SLICE_LIT("requests.hugepages-1Gi")));
    assert_false(vg_resource_is_standard(VG_SLICE_LIT("gpu")));
}

/* ---- when a volume changed its phase ---- */

static struct vg_slice phase_time(struct vg_arena *a, const char *now, const char *before)
{
    const struct vg_rules *rules =
        vg_rules_find(VG_SLICE_LIT(""), VG_SLICE_LIT("PersistentVolume"));
    struct vg_json *obj, *old;
    assert_int_equal(vg_json_parse(a, vg_slice_str(now), NULL, &obj, NULL), 0);
    assert_int_equal(vg_json_parse(a, vg_slice_str(before), NULL, &old, NULL), 0);
    assert_int_equal(rules->prepare_status(a, obj, old), 0);
    return vg_json_text(vg_json_at_path(obj, "status.lastPhaseTransitionTime"));
}

static void the_time_of_a_phase_is_when_it_changed(void **state)
{
    (void)state;
    VG_AUTO(arena) a = {0};
    static const char old[] = "{\"status\":{\"phase\":\"Pending\",\"lastPhaseTransitionTime\":"
                              "\"2020-01-01T00:00:00Z\"}}";
    static const char kept[] = "{\"status\":{\"phase\":\"Bound\",\"lastPhaseTransitionTime\":"
                               "\"2020-01-01T00:00:00Z\"}}";
    static const char said[] = "{\"status\":{\"phase\":\"Bound\",\"lastPhaseTransitionTime\":"
                               "\"2021-01-01T00:00:00Z\"}}";
    struct vg_slice then = VG_SLICE_LIT("2020-01-01T00:00:00Z");
    struct vg_slice t = phase_time(&a, "{\"status\":{\"phase\":\"Pending\"}}", old);
    vg_assert_slice_equal(t, then);
    t = phase_time(&a, "{\"status\":{\"phase\":\"Bound\"}}", old);
    assert_true(t.n == then.n && vg_slice_cmp(t, then) > 0);
    t = phase_time(&a, kept, old);
    assert_true(vg_slice_cmp(t, then) > 0);
    vg_assert_slice_equal(phase_time(&a, said, old), VG_SLICE_LIT("2021-01-01T00:00:00Z"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_texts_are_found_like_few),
        cmocka_unit_test(short_memory_fails_the_check),
        cmocka_unit_test(addresses_are_read_as_go_reads_them),
        cmocka_unit_test(steps_back_are_seen),
        cmocka_unit_test(resources_belong_to_someone),
        cmocka_unit_test(the_time_of_a_phase_is_when_it_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
