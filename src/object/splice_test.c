/* splice_test.c - what goes to the wire is the stored object with the revision in its place. */
#include "test_support.h"

#include <errno.h>

#include "object_testing.h"
#include "splice.h"
#include "json/equal.h"
#include "json/json.h"

#define SMALL                                                                                      \
    "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'n','namespace':'ns','uid':'u','labels':{" \
    "'a':'1'}},'spec':{}}"

static void assert_splice(const struct vg_obj_splice *s, const char *want)
{
    VG_AUTO(buf) got;
    VG_AUTO(buf) text;
    vg_buf_init(&got, 0);
    vg_buf_init(&text, 0);
    assert_int_equal(vg_obj_splice_append(&got, s), 0);
    assert_int_equal(vg_obj_splice_size(s), got.n);
    for (const char *p = want; *p; p++)
        assert_int_equal(vg_buf_append_byte(&text, *p == '\'' ? '"' : *p), 0);
    vg_assert_slice_equal(vg_buf_slice(&got), vg_buf_slice(&text));
}

static void an_object_shows_the_revision_after_the_uid(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = vg_test_obj(&vg_test_pods, SMALL);
    struct vg_obj_splice s;
    vg_obj_splice_object(&s, &o.h, 42);
    assert_int_equal(s.n, 3);
    assert_splice(&s, "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'n','namespace':'ns',"
                      "'uid':'u','resourceVersion':'42','labels':{'a':'1'}},'spec':{}}");
    assert_ptr_equal(s.v[0].p, o.value.p); /* nothing is copied */
    assert_ptr_equal(s.v[2].p, o.value.p + o.h.rev_at);
}

static void revisions_of_any_length_are_written(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = vg_test_obj(&vg_test_pods, "{'metadata':{'name':'n'}}");
    struct vg_obj_splice s;
    vg_obj_splice_object(&s, &o.h, 0);
    assert_splice(&s, "{'metadata':{'name':'n','resourceVersion':'0'}}");
    vg_obj_splice_object(&s, &o.h, 10);
    assert_splice(&s, "{'metadata':{'name':'n','resourceVersion':'10'}}");
    vg_obj_splice_object(&s, &o.h, UINT64_MAX);
    assert_splice(&s, "{'metadata':{'name':'n','resourceVersion':'18446744073709551615'}}");
}

static void an_item_has_neither_kind_nor_api_version(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = vg_test_obj(&vg_test_pods, SMALL);
    struct vg_obj_splice s;
    vg_obj_splice_item(&s, &o.h, 7);
    assert_int_equal(s.n, 4);
    assert_splice(&s, "{'metadata':{'name':'n','namespace':'ns','uid':'u','resourceVersion':'7',"
                      "'labels':{'a':'1'}},'spec':{}}");
}

static void an_item_of_an_object_without_a_type_is_the_object(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = vg_test_obj(&vg_test_pods, "{'metadata':{'name':'n'},'x':1}");
    struct vg_obj_splice s;
    vg_obj_splice_item(&s, &o.h, 7);
    assert_splice(&s, "{'metadata':{'name':'n','resourceVersion':'7'},'x':1}");
}

static void frames_name_the_change_and_deleted_shows_another_revision(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = vg_test_obj(&vg_test_pods, "{'kind':'P','metadata':{'name':'n'}}");
    struct vg_obj_splice s;
    vg_obj_splice_frame(&s, VG_OBJ_ADDED, &o.h, 5);
    assert_int_equal(s.n, VG_OBJ_SLICES_MAX);
    assert_splice(&s, "{'type':'ADDED','object':{'kind':'P','metadata':{'name':'n',"
                      "'resourceVersion':'5'}}}\n");
    vg_obj_splice_frame(&s, VG_OBJ_MODIFIED, &o.h, 5);
    assert_splice(&s, "{'type':'MODIFIED','object':{'kind':'P','metadata':{'name':'n',"
                      "'resourceVersion':'5'}}}\n");
    vg_obj_splice_frame(&s, VG_OBJ_DELETED, &o.h, 6);
    assert_splice(&s, "{'type':'DELETED','object':{'kind':'P','metadata':{'name':'n',"
                      "'resourceVersion':'6'}}}\n");
}

static void a_frame_goes_around_any_body(void **state)
{
    (void)state;
    struct vg_obj_splice s;
    vg_obj_splice_frame_of(&s, VG_OBJ_DELETED, VG_SLICE_LIT("{}"));
    assert_int_equal(s.n, 3);
    assert_splice(&s, "{'type':'DELETED','object':{}}\n");
}

static void changes_have_names(void **state)
{
    (void)state;
    assert_string_equal(vg_obj_change_name(VG_OBJ_NONE), "");
    assert_string_equal(vg_obj_change_name(VG_OBJ_ADDED), "ADDED");
    assert_string_equal(vg_obj_change_name(VG_OBJ_MODIFIED), "MODIFIED");
    assert_string_equal(vg_obj_change_name(VG_OBJ_DELETED), "DELETED");
    assert_string_equal(vg_obj_change_name((enum vg_obj_change)9), "");
}

static struct vg_json *parse(struct vg_arena *a, struct vg_slice text)
{
    struct vg_json *v = NULL;
    assert_int_equal(vg_json_parse(a, text, NULL, &v, NULL), 0);
    return v;
}

/* The pod comes with the resourceVersion i + 2; the spliced one must equal it. */
static void sealing_then_splicing_gives_the_original_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        VG_AUTO(arena) arena;
        VG_AUTO(buf) text;
        VG_AUTO(buf) back;
        vg_arena_init(&arena, 0, 0);
        vg_buf_init(&text, 0);
        vg_buf_init(&back, 0);
        vg_test_pod(&text, i * 977, i % 30);
        VG_AUTO(test_obj) o = vg_test_seal(&vg_test_pods, vg_buf_slice(&text));
        struct vg_obj_splice s;
        vg_obj_splice_object(&s, &o.h, i * 977 + 2);
        assert_int_equal(vg_obj_splice_append(&back, &s), 0);
        assert_int_equal(
            vg_json_equal(parse(&arena, vg_buf_slice(&text)), parse(&arena, vg_buf_slice(&back))),
            1);
    }
}

static void appending_is_all_or_nothing(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = vg_test_obj(&vg_test_pods, SMALL);
    struct vg_obj_splice s;
    vg_obj_splice_frame(&s, VG_OBJ_ADDED, &o.h, 5);
    VG_ALLOC_FAIL_LOOP (n) {
        VG_AUTO(buf) out;
        vg_buf_init(&out, 0);
        int err = vg_obj_splice_append(&out, &s);
        bool failed = vg_test_alloc_failed();
        assert_int_equal(err, failed ? -ENOMEM : 0);
        assert_int_equal(out.n, failed ? 0 : vg_obj_splice_size(&s));
    }
    VG_AUTO(buf) small;
    vg_buf_init(&small, vg_obj_splice_size(&s) - 1);
    assert_int_equal(vg_obj_splice_append(&small, &s), VIGIL_E_TOO_LARGE);
    assert_int_equal(small.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_shows_the_revision_after_the_uid),
        cmocka_unit_test(revisions_of_any_length_are_written),
        cmocka_unit_test(an_item_has_neither_kind_nor_api_version),
        cmocka_unit_test(an_item_of_an_object_without_a_type_is_the_object),
        cmocka_unit_test(frames_name_the_change_and_deleted_shows_another_revision),
        cmocka_unit_test(a_frame_goes_around_any_body),
        cmocka_unit_test(changes_have_names),
        cmocka_unit_test(sealing_then_splicing_gives_the_original_back),
        cmocka_unit_test(appending_is_all_or_nothing),
    };
    return cmocka_run_group_tests_name("splice", tests, NULL, NULL);
}
