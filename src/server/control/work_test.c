/* work_test.c - keys in line: once each, never twice at a time, later and later after failures. */
#include "work.h"

#include "test_support.h"

#include "base/clock.h"

static struct vg_fake_clock now;
static struct vg_loop *loop;
static struct vg_work work;
static struct vg_work_item *running[64];
static size_t n_running, n_runs;

static void on_run(struct vg_work_item *item)
{
    n_runs++;
    running[n_running++] = item;
}

static int open_test(void **state)
{
    (void)state;
    n_running = n_runs = 0;
    vg_fake_clock_init(&now);
    assert_int_equal(vg_loop_new(&now.clock, &loop), 0);
    vg_work_init(&work, loop, on_run, NULL);
    return 0;
}

static int close_test(void **state)
{
    (void)state;
    while (n_running)
        vg_work_done(running[--n_running]);
    vg_work_free_all(&work);
    vg_loop_free(loop);
    vg_fake_clock_done(&now);
    return 0;
}

static void turn(uint64_t ms)
{
    vg_fake_clock_advance(&now, ms * VG_NS_PER_MS);
    for (int i = 0; i < 3; i++)
        vg_loop_turn(loop, false);
}

static void add(const char *key)
{
    assert_int_equal(vg_work_add(&work, vg_slice_str(key)), 0);
}

static struct vg_work_item *take(void)
{
    assert_true(n_running > 0);
    return running[--n_running];
}

static void test_each_key_once(void **state)
{
    (void)state;
    add("a");
    add("b");
    add("a");
    assert_int_equal(n_runs, 0); /* never from within */
    turn(0);
    assert_int_equal(n_runs, 2);
    vg_work_done(take());
    vg_work_done(take());
    turn(100000);
    assert_int_equal(n_runs, 2);
    assert_int_equal(vg_map_count(&work.items), 0);
}

static void test_news_meanwhile_run_it_again(void **state)
{
    (void)state;
    add("a");
    turn(0);
    add("a");
    add("a");
    turn(0);
    assert_int_equal(n_runs, 1); /* never twice at a time */
    vg_work_done(take());
    turn(0);
    assert_int_equal(n_runs, 2);
    vg_work_done(take());
    turn(100000);
    assert_int_equal(n_runs, 2);
}

static void test_failures_wait_longer_each_time(void **state)
{
    (void)state;
    add("a");
    turn(0);
    for (uint64_t wait = 50, i = 1; i < 15; i++, wait = VG_MIN(wait * 2, (uint64_t)60000)) {
        vg_work_failed(take());
        turn(wait - 1);
        assert_int_equal(n_runs, i);
        add("a"); /* news do not make it hurry */
        turn(1);
        assert_int_equal(n_runs, i + 1);
    }
    vg_work_done(take());
    add("a");
    turn(0);
    vg_work_failed(take()); /* a success has been in between */
    turn(50);
    assert_int_equal(n_running, 1);
}

static void test_a_few_at_a_time(void **state)
{
    (void)state;
    char key[16];
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "k%d", i);
        add(key);
    }
    turn(0);
    assert_int_equal(n_runs, VG_WORK_RUNNING_MAX);
    vg_work_done(take());
    turn(0);
    assert_int_equal(n_runs, VG_WORK_RUNNING_MAX + 1);
    while (n_running) {
        vg_work_done(take());
        turn(0);
    }
    assert_int_equal(n_runs, 20);
}

static void test_paused(void **state)
{
    (void)state;
    add("a");
    vg_work_pause(&work, true);
    turn(100);
    assert_int_equal(n_runs, 0);
    vg_work_pause(&work, false);
    turn(0);
    assert_int_equal(n_runs, 1);
}

static void test_closed_while_it_runs(void **state)
{
    (void)state;
    add("a");
    turn(0);
    add("b");
    vg_work_close(&work);
    vg_work_failed(take());
    turn(100000);
    assert_int_equal(n_runs, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_test, close_test)
    const struct CMUnitTest tests[] = {
        TEST(test_each_key_once),
        TEST(test_news_meanwhile_run_it_again),
        TEST(test_failures_wait_longer_each_time),
        TEST(test_a_few_at_a_time),
        TEST(test_paused),
        TEST(test_closed_while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
