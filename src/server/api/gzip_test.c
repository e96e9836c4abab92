/* What is compressed can be read by zlib, whatever the pieces; and nothing is touched after free.
 */

#include "test_support.h"

#include <zlib.h>

#include "base/rng.h"
#include "gzip.h"
#include "loop/loop.h"

struct rig {
    struct vg_loop *loop;
    struct vg_gzip *gzip;
    struct vg_buf out;
    bool is_done, is_released;
    int err;
};

static void on_done(void *arg, int err, struct vg_slice out)
{
    struct rig *r = arg;
    r->err = err;
    if (err == 0)
        assert_int_equal(vg_buf_append_slice(&r->out, out), 0);
    r->is_done = true;
}

static void on_released(void *arg)
{
    ((struct rig *)arg)->is_released = true;
}

static void set_up(struct rig *r)
{
    *r = (struct rig){0};
    vg_buf_init(&r->out, 0);
    assert_int_equal(vg_loop_new(vg_clock_system(), &r->loop), 0);
    assert_int_equal(vg_gzip_new(r->loop, on_done, r, &r->gzip), 0);
}

static void run(struct rig *r, bool is_last)
{
    r->is_done = false;
    vg_gzip_run(r->gzip, is_last);
    vg_loop_turn_until(r->loop, &r->is_done);
    assert_int_equal(r->err, 0);
}

static void tear_down(struct rig *r)
{
    vg_gzip_free(r->gzip, on_released, r);
    while (!r->is_released)
        vg_loop_turn(r->loop, true);
    vg_buf_done(&r->out);
    vg_loop_free(r->loop);
}

/* By zlib, which stops at the end of the first member. */
static void assert_inflates_to(const struct vg_buf *packed, const struct vg_buf *want)
{
    z_stream z = {.next_in = (Bytef *)packed->p, .avail_in = (uInt)packed->n};
    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    char *got = vg_malloc(want->n + 1);
    assert_non_null(got);
    z.next_out = (Bytef *)got;
    z.avail_out = (uInt)want->n + 1;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    assert_int_equal(z.total_out, want->n);
    assert_memory_equal(got, want->p, want->n);
    inflateEnd(&z);
    vg_free(got);
}

static void fill(struct vg_buf *text, struct vg_rng *rng, size_t n)
{
    while (text->n < n)
        assert_int_equal(vg_buf_printf(text, "{\"name\":\"pod-%u\",\"labels\":{\"a\":\"%llx\"}},",
                                       (unsigned)vg_rng_below(rng, 1000),
                                       (unsigned long long)vg_rng_u64(rng)),
                         0);
}

static void pieces_of_any_size_make_one_stream(void **state)
{
    (void)state;
    struct vg_rng rng;
    vg_rng_seed(&rng, vg_test_seed());
    for (int round = 0; round < 8; round++) {
        struct rig r;
        struct vg_buf text;
        set_up(&r);
        vg_buf_init(&text, 0);
        fill(&text, &rng, vg_rng_below(&rng, 2000000));
        for (size_t at = 0; at < text.n;) {
            size_t some = (size_t)vg_rng_below(&rng, round % 2 ? 500 : 100000) + 1;
            size_t n = VG_MIN(text.n - at, some);
            struct vg_slice piece = vg_slice(text.p + at, n);
            assert_int_equal(vg_gzip_put(r.gzip, &piece, 1), 0);
            at += n;
            if (vg_gzip_pending(r.gzip) > VG_GZIP_PIECE)
                run(&r, false);
        }
        run(&r, true);
        assert_inflates_to(&r.out, &text);
        vg_buf_done(&text);
        tear_down(&r);
    }
}

static void freeing_while_it_works_waits_for_the_worker(void **state)
{
    (void)state;
    struct rig r;
    struct vg_buf text;
    struct vg_rng rng;
    vg_rng_seed(&rng, 1);
    set_up(&r);
    vg_buf_init(&text, 0);
    fill(&text, &rng, 4000000);
    struct vg_slice piece = vg_buf_slice(&text);
    assert_int_equal(vg_gzip_put(r.gzip, &piece, 1), 0);
    vg_gzip_run(r.gzip, true);
    tear_down(&r);
    assert_false(r.is_done);
    vg_buf_done(&text);
}

static void a_whole_body_is_one_stream(void **state)
{
    (void)state;
    struct vg_buf text, out;
    struct vg_rng rng;
    vg_rng_seed(&rng, 2);
    vg_buf_init(&text, 0);
    vg_buf_init(&out, 0);
    assert_int_equal(vg_gzip_whole(&out, vg_slice("", 0)), 0);
    assert_inflates_to(&out, &text);
    vg_buf_clear(&out);
    fill(&text, &rng, 1000000);
    assert_int_equal(vg_gzip_whole(&out, vg_buf_slice(&text)), 0);
    assert_inflates_to(&out, &text);
    assert_true(out.n < text.n / 3);
    vg_buf_done(&text);
    vg_buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_size_make_one_stream),
        cmocka_unit_test(freeing_while_it_works_waits_for_the_worker),
        cmocka_unit_test(a_whole_body_is_one_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
