/* stored_form_test.c - what lies in a shared store is read in both forms and written in either. */
#include "test_support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "object/header.h"
#include "stored_form.h"

#define CONFIG_MAP                                                                                 \
    "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":"    \
    "\"default\",\"uid\":\"u1\",\"creationTimestamp\":\"2026-01-02T03:04:05Z\"},\"data\":{\"k\":"  \
    "\"v\"}}"
#define KEY VG_SLICE_LIT("/registry/configmaps/default/a")

struct read {
    struct vg_buf header, value;
};

static void read_bytes(struct vg_slice key, struct vg_slice bytes, struct read *ret)
{
    struct vg_stored_form form;
    vg_stored_form(VG_STORED_JSON, NULL, &form);
    *ret = (struct read){0};
    assert_int_equal(form.from_bytes(form.arg, key, bytes, &ret->header, &ret->value), 0);
}

static void read_done(struct read *r)
{
    vg_buf_done(&r->header);
    vg_buf_done(&r->value);
}

static void write_as(enum vg_stored_media media, struct vg_slice key, const struct read *r,
                     struct vg_buf *out)
{
    struct vg_stored_form form;
    struct vg_rec *rec;
    vg_stored_form(media, NULL, &form);
    assert_int_equal(
        vg_rec_new(VG_REC_PUT, key, vg_buf_slice(&r->header), vg_buf_slice(&r->value), &rec), 0);
    assert_int_equal(form.to_bytes(form.arg, rec, out), 0);
    vg_rec_unref(rec);
}

static void assert_is(const struct vg_buf *b, const char *want)
{
    assert_int_equal(b->n, strlen(want));
    assert_memory_equal(b->p, want, b->n);
}

static void json_of_another_server_becomes_canonical(void **state)
{
    struct read r;
    struct vg_obj_header h;
    (void)state;
    read_bytes(KEY,
               VG_SLICE_LIT("{\"apiVersion\":\"v1\", \"kind\":\"ConfigMap\",\"data\":{\"k\":\"v\"},"
                            "\"metadata\":{\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"name\":"
                            "\"a\",\"namespace\":\"default\",\"uid\":\"u1\",\"labels\":null}}\n"),
               &r);
    assert_is(&r.value, CONFIG_MAP);
    assert_int_equal(vg_obj_header_open(vg_buf_slice(&r.header), vg_buf_slice(&r.value), &h), 0);
    assert_true(vg_slice_eq(vg_obj_name(&h), VG_SLICE_LIT("a")));
    read_done(&r);
}

static void protobuf_comes_back_as_it_was(void **state)
{
    struct read first, second;
    struct vg_buf bytes = {0};
    (void)state;
    read_bytes(KEY, VG_SLICE_LIT(CONFIG_MAP), &first);
    write_as(VG_STORED_PROTOBUF, KEY, &first, &bytes);
    assert_memory_equal(bytes.p, "k8s", 4);
    read_bytes(KEY, vg_buf_slice(&bytes), &second);
    assert_is(&second.value, CONFIG_MAP);
    assert_int_equal(first.header.n, second.header.n);
    assert_memory_equal(first.header.p, second.header.p, first.header.n);
    vg_buf_clear(&bytes);
    write_as(VG_STORED_JSON, KEY, &second, &bytes);
    assert_is(&bytes, CONFIG_MAP);
    vg_buf_done(&bytes);
    read_done(&first);
    read_done(&second);
}

/* Into no kind, or not what the key says, or no object at all: nobody sees it, and it is not
 * changed. */
static void what_is_not_understood_stays_as_it_is(void **state)
{
    static const struct {
        struct vg_slice key, bytes;
    } rows[] = {
        {VG_SLICE_LIT("/registry/things.example.com/default/a"), VG_SLICE_LIT(CONFIG_MAP)},
        {VG_SLICE_LIT("/registry/pods/default/a"), VG_SLICE_LIT(CONFIG_MAP)},
        {VG_SLICE_LIT("/registry/configmaps/default/a"), VG_SLICE_LIT("{\"kind\":")},
        {VG_SLICE_LIT("/registry/configmaps/default/a"), VG_SLICE_LIT("k8s\0\xff\xff\xff")},
        {VG_SLICE_LIT("/registry/configmaps/default/a"), VG_SLICE_LIT("k8s:enc:aescbc:v1:k:xx")},
        {VG_SLICE_LIT("/registry/configmaps/default/a"), VG_SLICE_LIT("")},
        {VG_SLICE_LIT("/registry/configmaps/default/a"),
         VG_SLICE_LIT(
             "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v9\",\"metadata\":{\"name\":\"a\"}}")},
        {VG_SLICE_LIT("a"), VG_SLICE_LIT("b")},
    };
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct read r;
        struct vg_buf bytes = {0};
        read_bytes(rows[i].key, rows[i].bytes, &r);
        assert_int_equal(r.header.n, 0);
        write_as(VG_STORED_PROTOBUF, rows[i].key, &r, &bytes);
        assert_true(vg_slice_eq(vg_buf_slice(&bytes), rows[i].bytes));
        vg_buf_done(&bytes);
        read_done(&r);
    }
}

static void another_version_becomes_the_stored_one(void **state)
{
    struct read r;
    (void)state;
    read_bytes(VG_SLICE_LIT("/registry/horizontalpodautoscalers/default/h"),
               VG_SLICE_LIT("{\"kind\":\"HorizontalPodAutoscaler\",\"apiVersion\":\"autoscaling/"
                            "v1\",\"metadata\":{\"name\":\"h\",\"namespace\":\"default\"},\"spec\":"
                            "{\"scaleTargetRef\":{\"kind\":\"Deployment\",\"name\":\"d\"},"
                            "\"maxReplicas\":3,\"targetCPUUtilizationPercentage\":50}}"),
               &r);
    assert_true(r.header.n > 0);
    assert_int_equal(vg_buf_append_byte(&r.value, '\0'), 0);
    assert_non_null(strstr(r.value.p, "\"apiVersion\":\"autoscaling/v2\""));
    assert_non_null(strstr(r.value.p, "\"averageUtilization\":50"));
    read_done(&r);
}

static void every_kind_is_found_by_its_keys(void **state)
{
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        char key[256];
        int len = snprintf(key, sizeof key, "%sx/y", kinds[i].prefix ? kinds[i].prefix : "");
        if (kinds[i].stored || !kinds[i].prefix)
            continue;
        const struct vg_kind *found = vg_kind_of_key(vg_slice(key, (size_t)len));
        assert_non_null(found);
        assert_string_equal(found->prefix, kinds[i].prefix);
    }
    assert_null(vg_kind_of_key(VG_SLICE_LIT("/registry/")));
    assert_null(vg_kind_of_key(VG_SLICE_LIT("")));
}

static void memory_that_is_missing_is_told(void **state)
{
    struct vg_stored_form form;
    (void)state;
    vg_stored_form(VG_STORED_PROTOBUF, NULL, &form);
    VG_ALLOC_FAIL_LOOP (n) {
        struct read r = {0};
        int err = form.from_bytes(form.arg, KEY, VG_SLICE_LIT(CONFIG_MAP), &r.header, &r.value);
        if (vg_test_alloc_failed())
            assert_int_equal(err, -ENOMEM);
        else
            assert_is(&r.value, CONFIG_MAP);
        read_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_of_another_server_becomes_canonical),
        cmocka_unit_test(protobuf_comes_back_as_it_was),
        cmocka_unit_test(what_is_not_understood_stays_as_it_is),
        cmocka_unit_test(another_version_becomes_the_stored_one),
        cmocka_unit_test(every_kind_is_found_by_its_keys),
        cmocka_unit_test(memory_that_is_missing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
