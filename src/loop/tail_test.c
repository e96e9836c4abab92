/* tail_test.c - every batch is read in order and freed once, when its last reader has moved on.
 * Batches are numbered and really freed: ASan sees a read after free, the table of frees sees a
 * second or a missing one. */
#include "test_support.h"

#include <sched.h>
#include <stdlib.h>

#include "tail.h"
#include "waker.h"

#define BATCHES_MAX 100001u

struct item {
    struct vg_tail_batch batch;
    unsigned number;
};

static _Atomic unsigned frees[BATCHES_MAX]; /* by number */

static void free_item(struct vg_tail_batch *b)
{
    struct item *it = VG_CONTAINER_OF(b, struct item, batch);
    atomic_fetch_add(&frees[it->number], 1);
    it->number = UINT32_MAX; /* a write: TSan sees a reader that was not waited for */
    free(it);
}

static struct vg_tail_batch *new_item(unsigned number)
{
    struct item *it = calloc(1, sizeof *it);
    it->batch.free = free_item;
    it->number = number;
    return &it->batch;
}

static unsigned number_of(const struct vg_tail_batch *b)
{
    return VG_CONTAINER_OF(b, const struct item, batch)->number;
}

/* Each test starts with a tail that holds batch 0. */
static int begin(void **state)
{
    static struct vg_tail tail;
    for (size_t i = 0; i < BATCHES_MAX; i++)
        atomic_store(&frees[i], 0);
    vg_tail_init(&tail, new_item(0));
    *state = &tail;
    return 0;
}

static void publish(struct vg_tail *t, unsigned from, unsigned to)
{
    for (unsigned i = from; i <= to; i++)
        vg_tail_publish(t, new_item(i));
}

/* Batches [0, from) are freed once, [from, to] not at all. */
static void assert_held(unsigned from, unsigned to)
{
    for (unsigned i = 0; i <= to; i++)
        assert_int_equal(atomic_load(&frees[i]), i < from);
}

static void assert_reads(struct vg_tail_cursor *c, unsigned number)
{
    const struct vg_tail_batch *b = vg_tail_next(c);
    assert_non_null(b);
    assert_int_equal(number_of(b), number);
}

static void a_cursor_reads_what_is_published_after_it_was_opened(void **state)
{
    struct vg_tail *t = *state;
    struct vg_tail_cursor c;
    publish(t, 1, 3);
    assert_int_equal(number_of(vg_tail_open(t, &c)), 3);
    assert_false(vg_tail_has_next(&c));
    assert_null(vg_tail_next(&c));
    publish(t, 4, 5);
    assert_true(vg_tail_has_next(&c));
    assert_reads(&c, 4);
    assert_reads(&c, 5);
    assert_null(vg_tail_next(&c));
    publish(t, 6, 6);
    assert_reads(&c, 6);
    vg_tail_close(&c);
    vg_tail_done(t);
    assert_held(7, 6);
}

static void without_cursors_only_the_newest_batch_is_kept(void **state)
{
    struct vg_tail *t = *state;
    for (unsigned i = 1; i <= 10; i++) {
        publish(t, i, i);
        assert_held(i, i);
    }
    vg_tail_done(t);
    assert_held(11, 10);
}

static void a_batch_is_freed_when_the_slowest_cursor_has_moved_past_it(void **state)
{
    struct vg_tail *t = *state;
    struct vg_tail_cursor slow, fast;
    vg_tail_open(t, &slow);
    vg_tail_open(t, &fast);
    publish(t, 1, 4);
    for (unsigned i = 1; i <= 4; i++)
        assert_reads(&fast, i);
    assert_held(0, 4);
    for (unsigned i = 1; i <= 4; i++) {
        assert_reads(&slow, i);
        assert_held(i, 4);
    }
    vg_tail_close(&slow);
    vg_tail_close(&fast);
    assert_held(4, 4);
    vg_tail_done(t);
    assert_held(5, 4);
}

static void closing_a_cursor_lets_go_up_to_the_next_one(void **state)
{
    struct vg_tail *t = *state;
    struct vg_tail_cursor behind, middle;
    vg_tail_open(t, &behind);
    publish(t, 1, 50000);
    vg_tail_open(t, &middle);
    publish(t, 50001, BATCHES_MAX - 1);
    assert_held(0, BATCHES_MAX - 1);
    vg_tail_close(&behind); /* by a loop: a recursion this deep would end the stack */
    assert_held(50000, BATCHES_MAX - 1);
    vg_tail_close(&middle);
    vg_tail_close(&middle);
    assert_held(BATCHES_MAX - 1, BATCHES_MAX - 1);
    vg_tail_done(t);
    assert_held(BATCHES_MAX, BATCHES_MAX - 1);
}

static void a_cursor_may_outlive_the_tail(void **state)
{
    struct vg_tail *t = *state;
    struct vg_tail_cursor c;
    vg_tail_open(t, &c);
    publish(t, 1, 2);
    vg_tail_done(t);
    assert_held(0, 2);
    assert_reads(&c, 1);
    assert_reads(&c, 2);
    assert_null(vg_tail_next(&c));
    assert_held(2, 2);
    vg_tail_close(&c);
    assert_held(3, 2);
}

struct ear {
    struct vg_tail_listener listener;
    struct vg_tail_cursor cursor;
    unsigned heard; /* wakes that found a batch */
    unsigned vain;
};

static void hear(void *arg)
{
    struct ear *e = arg;
    if (vg_tail_next(&e->cursor))
        e->heard++;
    else
        e->vain++;
}

static void a_listener_is_woken_after_the_batch_is_linked_until_it_is_removed(void **state)
{
    struct vg_tail *t = *state;
    struct ear e = {.listener = {.wake = hear, .arg = &e}};
    vg_tail_open(t, &e.cursor);
    vg_tail_listen(t, &e.listener);
    publish(t, 1, 3);
    assert_int_equal(e.heard, 3);
    assert_int_equal(e.vain, 0);
    vg_tail_unlisten(t, &e.listener);
    vg_tail_unlisten(t, &e.listener);
    publish(t, 4, 5);
    assert_int_equal(e.heard, 3);
    vg_tail_close(&e.cursor);
    vg_tail_done(t);
}

/* Thread 0 writes; the readers park when there is nothing and read on when they are woken. Reader i
 * dawdles after every i-th batch and every third reader starts again in the middle. */
#define READERS 5u

struct crowd {
    struct vg_tail *tail;
    unsigned last;
    pthread_barrier_t ready;
    _Atomic unsigned wrong;
};

struct reader {
    struct vg_tail_listener listener;
    struct vg_tail_cursor cursor;
    struct vg_waker waker;
    unsigned at;
};

static void reader_begin(struct reader *r, struct crowd *c)
{
    vg_waker_init(&r->waker, vg_clock_system());
    r->listener = (struct vg_tail_listener){.wake = vg_waker_wake_cb, .arg = &r->waker};
    vg_tail_listen(c->tail, &r->listener);
    r->at = number_of(vg_tail_open(c->tail, &r->cursor));
}

static void reader_end(struct reader *r, struct crowd *c)
{
    vg_tail_unlisten(c->tail, &r->listener);
    vg_tail_close(&r->cursor);
}

static void read_until(struct reader *r, struct crowd *c, unsigned index, unsigned end)
{
    while (r->at < end) {
        const struct vg_tail_batch *b = vg_tail_next(&r->cursor);
        if (!b) {
            vg_waker_wait(&r->waker, VG_WAIT_FOREVER);
            continue;
        }
        r->at++;
        if (number_of(b) != r->at)
            atomic_fetch_add(&c->wrong, 1);
        for (unsigned i = 0; index && r->at % index == 0 && i < index; i++)
            sched_yield();
    }
}

static void write_or_read(unsigned index, void *arg)
{
    struct crowd *c = arg;
    struct reader r;
    if (index == 0) {
        pthread_barrier_wait(&c->ready);
        publish(c->tail, 1, c->last);
        return;
    }
    reader_begin(&r, c);
    pthread_barrier_wait(&c->ready);
    if (index % 3 == 0) {
        read_until(&r, c, index, c->last / 3);
        reader_end(&r, c);
        reader_begin(&r, c);
    }
    read_until(&r, c, index, c->last);
    reader_end(&r, c);
}

static void readers_at_every_speed_see_every_batch_in_order_and_it_is_freed_once(void **state)
{
    struct crowd c = {.tail = *state, .last = vg_test_is_long() ? BATCHES_MAX - 1 : 10000};
    pthread_barrier_init(&c.ready, NULL, READERS + 1);
    vg_test_threads(READERS + 1, write_or_read, &c);
    pthread_barrier_destroy(&c.ready);
    assert_int_equal(atomic_load(&c.wrong), 0);
    assert_held(c.last, c.last);
    vg_tail_done(c.tail);
    assert_held(c.last + 1, c.last);
}

/* Thread 0 writes, the others act over and over until it is done. */
struct churn {
    struct vg_tail *tail;
    void (*act)(struct churn *c);
    unsigned last;
    _Atomic bool done;
    _Atomic unsigned wrong;
};

static void visit(struct churn *c)
{
    struct vg_tail_cursor cursor;
    unsigned at = number_of(vg_tail_open(c->tail, &cursor));
    for (unsigned i = 0; i < 7; i++) {
        const struct vg_tail_batch *b = vg_tail_next(&cursor);
        if (b && number_of(b) != ++at)
            atomic_fetch_add(&c->wrong, 1);
    }
    vg_tail_close(&cursor);
}

static void write_or_act(unsigned index, void *arg)
{
    struct churn *c = arg;
    if (index == 0) {
        publish(c->tail, 1, c->last);
        atomic_store(&c->done, true);
        return;
    }
    while (!atomic_load(&c->done))
        c->act(c);
}

static void run_churn(struct vg_tail *t, void (*act)(struct churn *c))
{
    struct churn c = {.tail = t, .act = act, .last = 10000};
    vg_test_threads(4, write_or_act, &c);
    assert_int_equal(atomic_load(&c.wrong), 0);
    vg_tail_done(c.tail);
    assert_held(c.last + 1, c.last);
}

static void cursors_come_and_go_while_batches_are_published(void **state)
{
    run_churn(*state, visit);
}

static void count_wake(void *arg)
{
    ++*(unsigned *)arg; /* plain: only the writer, and only while it listens */
}

static void eavesdrop(struct churn *c)
{
    unsigned *wakes = calloc(1, sizeof *wakes);
    struct vg_tail_listener l = {.wake = count_wake, .arg = wakes};
    vg_tail_listen(c->tail, &l);
    sched_yield();
    vg_tail_unlisten(c->tail, &l);
    if (*wakes > c->last)
        atomic_fetch_add(&c->wrong, 1);
    free(wakes); /* a wake after unlisten would write here */
}

static void listeners_come_and_go_while_batches_are_published(void **state)
{
    run_churn(*state, eavesdrop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_cursor_reads_what_is_published_after_it_was_opened, begin),
        cmocka_unit_test_setup(without_cursors_only_the_newest_batch_is_kept, begin),
        cmocka_unit_test_setup(a_batch_is_freed_when_the_slowest_cursor_has_moved_past_it, begin),
        cmocka_unit_test_setup(closing_a_cursor_lets_go_up_to_the_next_one, begin),
        cmocka_unit_test_setup(a_cursor_may_outlive_the_tail, begin),
        cmocka_unit_test_setup(a_listener_is_woken_after_the_batch_is_linked_until_it_is_removed,
                               begin),
        cmocka_unit_test_setup(readers_at_every_speed_see_every_batch_in_order_and_it_is_freed_once,
                               begin),
        cmocka_unit_test_setup(cursors_come_and_go_while_batches_are_published, begin),
        cmocka_unit_test_setup(listeners_come_and_go_while_batches_are_published, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
