/* outq_test.c - queues against a plain buffer that holds the same bytes. */
#include "test_support.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rng.h"
#include "outq.h"

static int pins; /* held now */
static void pin_ref(const void *block)
{
    (void)block;
    pins++;
}
static void pin_unref(const void *block)
{
    (void)block;
    pins--;
}
static char block[8192];
static const struct vg_http_pin pin = {block, pin_ref, pin_unref};

static void assert_holds(const struct vg_outq *q, const char *p, size_t n)
{
    static char got[1 << 20];
    assert_int_equal(vg_outq_size(q), n);
    assert_int_equal(vg_outq_peek(q, got, sizeof got), n);
    assert_memory_equal(got, p, n);
    struct iovec iov[512];
    size_t vectors = vg_outq_vectors(q, iov, VG_ARRAY_LEN(iov)), at = 0;
    for (size_t i = 0; i < vectors; i++) {
        assert_true(iov[i].iov_len > 0);
        assert_memory_equal(iov[i].iov_base, p + at, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    if (vectors < VG_ARRAY_LEN(iov))
        assert_int_equal(at, n);
}

static void short_slices_are_copied_and_long_ones_referenced(void **state)
{
    (void)state;
    struct vg_outq_pool pool = {0};
    struct vg_outq q;
    vg_outq_init(&q, &pool);
    char shrt[] = "short";
    memset(block, 'x', sizeof block);
    struct vg_slice v[] = {{shrt, 5}, {block, 4000}, {"end", 3}};
    assert_int_equal(vg_outq_put(&q, v, 3, &pin), 0);
    assert_int_equal(pins, 1);
    memset(shrt, '!', 5);
    struct iovec iov[8];
    assert_int_equal(vg_outq_vectors(&q, iov, 8), 3);
    assert_memory_equal(iov[0].iov_base, "short", 5);
    assert_ptr_equal(iov[1].iov_base, block);
    assert_int_equal(vg_outq_vectors(&q, iov, 2), 2);
    vg_outq_consume(&q, 5 + 3999);
    assert_int_equal(pins, 1);
    vg_outq_consume(&q, 2);
    assert_int_equal(pins, 0);
    assert_holds(&q, "nd", 2);
    vg_outq_done(&q);
    assert_int_equal(vg_outq_size(&q), 0);
    vg_outq_pool_done(&pool);
}

static void without_a_pin_all_is_copied(void **state)
{
    (void)state;
    struct vg_outq_pool pool = {0};
    struct vg_outq q;
    vg_outq_init(&q, &pool);
    memset(block, 'y', sizeof block);
    struct vg_slice v = {block, sizeof block};
    assert_int_equal(vg_outq_put(&q, &v, 1, NULL), 0);
    struct iovec iov;
    assert_int_equal(vg_outq_vectors(&q, &iov, 1), 1);
    assert_true(iov.iov_base != (void *)block);
    assert_holds(&q, block, sizeof block);
    vg_outq_done(&q);
    vg_outq_pool_done(&pool);
}

static void a_queue_that_drains_stops_allocating(void **state)
{
    (void)state;
    struct vg_outq_pool pool = {0};
    struct vg_outq q;
    vg_outq_init(&q, &pool);
    struct vg_slice v[] = {{"5dc\r\n{\"type\":", 13}, {block, 1500}, {"}\n\r\n", 4}};
    for (int i = 0; i < 100; i++) {
        if (i == 1)
            vg_alloc_fail_at(0, 0);
        assert_int_equal(vg_outq_put(&q, v, 3, &pin), 0);
        vg_outq_consume(&q, vg_outq_size(&q));
    }
    assert_int_equal(vg_alloc_fail_at(0, 0), 0);
    vg_outq_done(&q);
    vg_outq_pool_done(&pool);
}

struct model {
    struct vg_outq q;
    char *bytes; /* the same */
    size_t n;
};

static void model_put(struct model *m, struct vg_rng *rng)
{
    struct vg_slice v[4];
    size_t n = vg_rng_below(rng, 5);
    for (size_t i = 0; i < n; i++) {
        size_t len = vg_rng_below(rng, vg_rng_below(rng, 2) ? 64 : 6000);
        v[i] = vg_slice(block + vg_rng_below(rng, sizeof block - len + 1), len);
        memcpy(m->bytes + m->n, v[i].p, len);
        m->n += len;
    }
    assert_int_equal(vg_outq_put(&m->q, v, n, vg_rng_below(rng, 3) ? &pin : NULL), 0);
}

static void model_consume(struct model *m, size_t n)
{
    memmove(m->bytes, m->bytes + n, m->n - n);
    m->n -= n;
}

static void random_steps_match_a_plain_buffer(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    vg_rng_bytes(&rng, block, sizeof block);
    struct vg_outq_pool pool = {0};
    struct model m[2] = {{.bytes = malloc(1 << 21)}, {.bytes = malloc(1 << 21)}};
    vg_outq_init(&m[0].q, &pool);
    vg_outq_init(&m[1].q, &pool);
    for (int i = 0; i < 20000; i++) {
        struct model *a = &m[vg_rng_below(&rng, 2)], *b = a == m ? m + 1 : m;
        size_t n = vg_rng_below(&rng, a->n + 1);
        switch (vg_rng_below(&rng, a->n + b->n > 100000 ? 3 : 2)) {
        case 0:
            model_put(a, &rng);
            break;
        case 1:
            assert_int_equal(vg_outq_move(&a->q, n, &b->q), 0);
            memcpy(b->bytes + b->n, a->bytes, n);
            b->n += n;
            model_consume(a, n);
            break;
        default:
            vg_outq_consume(&a->q, n);
            model_consume(a, n);
        }
        assert_holds(&a->q, a->bytes, a->n);
    }
    for (int i = 0; i < 2; i++) {
        vg_outq_done(&m[i].q);
        free(m[i].bytes);
    }
    assert_int_equal(pins, 0);
    vg_outq_pool_done(&pool);
}

static void lack_of_memory_leaks_nothing(void **state)
{
    (void)state;
    VG_ALLOC_FAIL_LOOP (n) {
        struct vg_outq_pool pool = {0};
        struct vg_outq a, b;
        vg_outq_init(&a, &pool);
        vg_outq_init(&b, &pool);
        struct vg_slice v[] = {{block, 4000}, {block, 10}, {block, 300}};
        int r = vg_outq_put(&a, v, 3, &pin);
        if (r == 0)
            r = vg_outq_copy(&a, block, 5000);
        if (r == 0)
            r = vg_outq_move(&a, 100, &b);
        assert_int_equal(r, vg_test_alloc_failed() ? -ENOMEM : 0);
        vg_outq_done(&a);
        vg_outq_done(&b);
        assert_int_equal(pins, 0);
        vg_outq_pool_done(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_slices_are_copied_and_long_ones_referenced),
        cmocka_unit_test(without_a_pin_all_is_copied),
        cmocka_unit_test(a_queue_that_drains_stops_allocating),
        cmocka_unit_test(random_steps_match_a_plain_buffer),
        cmocka_unit_test(lack_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
