/* header_test.c - a header that lies about its bytes is refused, whatever the lie. */
#include "test_support.h"

#include "base/rng.h"
#include "header_int.h"
#include "object_testing.h"

static struct vg_test_obj sample(void)
{
    return vg_test_obj(&vg_test_pods,
                       "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'n','namespace':'ns',"
                       "'uid':'u','labels':{'a':'1','b':'2'}},'spec':{'nodeName':'x\\n'}}");
}

/* Opens a changed copy of exact size. */
static int open_with(const struct vg_test_obj *o, size_t at, uint32_t v, size_t n)
{
    struct vg_slice copy = vg_test_exact(o->header);
    struct vg_obj_header h;
    memcpy((char *)copy.p + at, &v, n);
    int err = vg_obj_header_open(copy, o->value, &h);
    vg_free((char *)copy.p);
    return err;
}

static void a_sound_header_opens_at_any_address(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = sample();
    for (size_t shift = 0; shift < 8; shift++) {
        char *block = vg_malloc(shift + o.header.n);
        assert_non_null(block);
        memcpy(block + shift, o.header.p, o.header.n);
        struct vg_obj_header h;
        assert_int_equal(vg_obj_header_open(vg_slice(block + shift, o.header.n), o.value, &h), 0);
        vg_assert_slice_equal(vg_obj_name(&h), VG_SLICE_LIT("n"));
        vg_assert_slice_equal(vg_obj_trigger(&h), VG_SLICE_LIT("x\n"));
        vg_assert_slice_equal(vg_labels_value(&h.labels, 1), VG_SLICE_LIT("2"));
        vg_free(block);
    }
}

static void reading_gives_what_opening_gave(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = sample();
    struct vg_obj_header h;
    struct vg_obj_view view = {.header = o.header, .value = o.value, .rev = 3};
    vg_obj_view_read(&view, &h);
    assert_ptr_equal(h.tail, o.h.tail);
    assert_ptr_equal(h.labels.v, o.h.labels.v);
    assert_ptr_equal(h.labels.base, o.h.labels.base);
    assert_int_equal(h.labels.n, 2);
    assert_int_equal(h.rev_at, o.h.rev_at);
    assert_int_equal(h.item_at, o.h.item_at);
    assert_int_equal(h.value_n, o.value.n);
    vg_assert_slice_equal(vg_obj_uid(&h), VG_SLICE_LIT("u"));
}

static void every_cut_header_is_refused(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = sample();
    for (size_t n = 0; n < o.header.n; n++) {
        struct vg_slice cut = vg_test_exact(vg_slice(o.header.p, n));
        struct vg_obj_header h;
        if (vg_obj_header_open(cut, o.value, &h) != VIGIL_E_STORE_DAMAGED)
            fail_msg("a header cut at %zu of %zu was opened", n, o.header.n);
        vg_free((char *)cut.p);
    }
}

static void a_header_of_another_value_is_refused(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = sample();
    struct vg_obj_header h;
    assert_int_equal(vg_obj_header_open(o.header, vg_slice(o.value.p, o.value.n - 1), &h),
                     VIGIL_E_STORE_DAMAGED);
    assert_int_equal(vg_obj_header_open(o.header, vg_slice(NULL, 0), &h), VIGIL_E_STORE_DAMAGED);
}

static void a_header_that_breaks_an_invariant_is_refused(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = sample();
    uint32_t value_n = (uint32_t)o.value.n;
    uint32_t tail_n = (uint32_t)(o.header.p + o.header.n - o.h.tail);
    size_t labels = (size_t)((const char *)o.h.labels.v - o.header.p);
    const struct {
        size_t at;
        uint32_t v;
        size_t n;
    } cases[] = {
        {VG_HEADER_AT_VERSION, 0, 1},
        {VG_HEADER_AT_VERSION, 2, 1},
        {VG_HEADER_AT_FLAGS, 4, 1},
        {VG_HEADER_AT_FLAGS, VG_OBJ_LABELS_IN_TAIL, 1},
        {VG_HEADER_AT_FIELDS_N, 255, 1},
        {VG_HEADER_AT_TRIGGER, 9, 1},
        {VG_HEADER_AT_VALUE_N, value_n + 1, 4},
        {VG_HEADER_AT_ITEM, 0, 4},
        {VG_HEADER_AT_ITEM, o.h.rev_at + 1, 4},
        {VG_HEADER_AT_REV, o.h.item_at - 1, 4},
        {VG_HEADER_AT_REV, value_n, 4},
        {VG_HEADER_AT_LABELS_N, 3, 4},
        {VG_HEADER_AT_LABELS_N, UINT32_MAX, 4},
        {VG_HEADER_AT_NAME, value_n + tail_n, 4},
        {VG_HEADER_AT_NAME, UINT32_MAX, 4},
        {VG_HEADER_AT_NAME + 4, 0, 4},
        {VG_HEADER_AT_NAME + 4, value_n, 4},
        {VG_HEADER_AT_UID + 4, UINT32_MAX, 4},
        {VG_HEADER_AT_FIELDS, value_n + tail_n, 4},
        {VG_HEADER_AT_FIELDS + 4, tail_n + 1, 4},
        {labels, value_n, 4},
        {labels + 4, UINT32_MAX, 4},
        {labels + 8, 0xffff, 2},
        {labels + 10, 0xffff, 2},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++)
        if (open_with(&o, cases[i].at, cases[i].v, cases[i].n) != VIGIL_E_STORE_DAMAGED)
            fail_msg("case %zu: byte %zu set to %u was not noticed", i, cases[i].at, cases[i].v);
    assert_int_equal(open_with(&o, VG_HEADER_AT_TRIGGER, VG_OBJ_NO_TRIGGER, 1), 0);
}

static void labels_out_of_order_are_refused(void **state)
{
    (void)state;
    VG_AUTO(test_obj) o = sample();
    struct vg_slice copy = vg_test_exact(o.header);
    size_t at = (size_t)((const char *)o.h.labels.v - o.header.p);
    struct vg_obj_header h;
    memcpy((char *)copy.p + at, o.h.labels.v + 1, sizeof(struct vg_label_ref));
    assert_int_equal(vg_obj_header_open(copy, o.value, &h), VIGIL_E_STORE_DAMAGED);
    memcpy((char *)copy.p + at + sizeof(struct vg_label_ref), o.h.labels.v,
           sizeof(struct vg_label_ref));
    assert_int_equal(vg_obj_header_open(copy, o.value, &h), VIGIL_E_STORE_DAMAGED);
    vg_free((char *)copy.p);
}

/* ASan sees whether a byte outside was touched. */
static void touch_all(const struct vg_obj_header *h)
{
    struct vg_slice v;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < h->n_fields + 3u; i++) {
        v = i == 0   ? vg_obj_name(h)
            : i == 1 ? vg_obj_namespace(h)
            : i == 2 ? vg_obj_uid(h)
                     : vg_obj_field(h, i - 3);
        for (size_t k = 0; k < v.n; k++)
            sum += (unsigned char)v.p[k];
    }
    for (uint32_t i = 0; i < h->labels.n; i++)
        assert_true(vg_labels_find(&h->labels, vg_labels_key(&h->labels, i), &v));
    assert_true(sum > 0);
}

static void random_damage_is_refused_or_harmless(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    VG_AUTO(test_obj) o = sample();
    unsigned opened = 0;
    for (int round = 0; round < 20000; round++) {
        struct vg_slice copy = vg_test_exact(o.header);
        for (uint64_t n = 1 + vg_rng_below(&rng, 3); n > 0; n--)
            ((char *)copy.p)[vg_rng_below(&rng, copy.n)] = (char)vg_rng_below(&rng, 256);
        struct vg_obj_header h;
        if (vg_obj_header_open(copy, o.value, &h) == 0) {
            touch_all(&h);
            opened++;
        }
        vg_free((char *)copy.p);
    }
    assert_true(opened > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_header_opens_at_any_address),
        cmocka_unit_test(reading_gives_what_opening_gave),
        cmocka_unit_test(every_cut_header_is_refused),
        cmocka_unit_test(a_header_of_another_value_is_refused),
        cmocka_unit_test(a_header_that_breaks_an_invariant_is_refused),
        cmocka_unit_test(labels_out_of_order_are_refused),
        cmocka_unit_test(random_damage_is_refused_or_harmless),
    };
    return cmocka_run_group_tests_name("header", tests, NULL, NULL);
}
