/* mailbox_test.c - order, wakes and the bound, alone and under many senders. */
#include "test_support.h"

#include <sched.h>
#include <stdlib.h>

#include "mailbox.h"
#include "waker.h"

#define SENDERS 6u

struct letter {
    struct vg_mail mail;
    unsigned sender;
    unsigned number;
};

static struct letter *letter_of(struct vg_mail *m)
{
    return VG_CONTAINER_OF(m, struct letter, mail);
}

static void count_wake(void *arg)
{
    ++*(unsigned *)arg;
}

static size_t length(const struct vg_mail *m)
{
    size_t n = 0;
    for (; m; m = m->next)
        n++;
    return n;
}

static void an_empty_box_gives_nothing(void **state)
{
    (void)state;
    struct vg_mailbox box;
    vg_mailbox_init(&box, 0, NULL, NULL);
    assert_null(vg_mailbox_take_all(&box));
    assert_int_equal(vg_mailbox_count(&box), 0);
}

static void mails_are_taken_in_the_order_of_posting(void **state)
{
    (void)state;
    struct vg_mailbox box;
    struct letter l[5] = {0};
    vg_mailbox_init(&box, 0, NULL, NULL);
    for (size_t i = 0; i < VG_ARRAY_LEN(l); i++)
        assert_int_equal(vg_mailbox_post(&box, &l[i].mail), 0);
    assert_int_equal(vg_mailbox_count(&box), 5);
    struct vg_mail *m = vg_mailbox_take_all(&box);
    for (size_t i = 0; i < VG_ARRAY_LEN(l); i++, m = m->next)
        assert_ptr_equal(m, &l[i].mail);
    assert_null(m);
    assert_int_equal(vg_mailbox_count(&box), 0);
}

static void only_the_mail_that_finds_the_box_empty_wakes(void **state)
{
    (void)state;
    struct vg_mailbox box;
    struct letter a = {0}, b = {0};
    unsigned wakes = 0;
    vg_mailbox_init(&box, 0, count_wake, &wakes);
    assert_int_equal(vg_mailbox_post(&box, &a.mail), 0);
    assert_int_equal(vg_mailbox_post(&box, &b.mail), 0);
    assert_int_equal(wakes, 1);
    assert_int_equal(length(vg_mailbox_take_all(&box)), 2);
    assert_int_equal(vg_mailbox_post(&box, &a.mail), 0);
    assert_int_equal(wakes, 2);
}

static void a_full_box_answers_busy_and_leaves_the_mail_with_its_sender(void **state)
{
    (void)state;
    struct vg_mailbox box, other;
    struct letter a = {0}, b = {0}, late = {0};
    unsigned wakes = 0;
    vg_mailbox_init(&box, 2, count_wake, &wakes);
    vg_mailbox_init(&other, 1, NULL, NULL);
    assert_int_equal(vg_mailbox_post(&box, &a.mail), 0);
    assert_int_equal(vg_mailbox_post(&box, &b.mail), 0);
    assert_int_equal(vg_mailbox_post(&box, &late.mail), VIGIL_E_BUSY);
    assert_int_equal(vg_mailbox_count(&box), 2);
    assert_int_equal(wakes, 1);
    assert_int_equal(vg_mailbox_post(&other, &late.mail), 0);
    assert_ptr_equal(vg_mailbox_take_all(&other), &late.mail);
    assert_int_equal(length(vg_mailbox_take_all(&box)), 2);
}

static void a_box_has_room_again_after_it_was_emptied(void **state)
{
    (void)state;
    struct vg_mailbox box;
    struct letter a = {0}, b = {0};
    vg_mailbox_init(&box, 1, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(vg_mailbox_post(&box, &a.mail), 0);
        assert_int_equal(vg_mailbox_post(&box, &b.mail), VIGIL_E_BUSY);
        assert_ptr_equal(vg_mailbox_take_all(&box), &a.mail);
    }
}

/* Senders on threads 1.., a receiver on thread 0 that sleeps whenever the box is empty: a wake that
 * is lost leaves it asleep for ever. */
struct traffic {
    struct vg_mailbox box;
    struct vg_waker waker;
    unsigned each; /* mails per sender */
    unsigned next[SENDERS + 1];
    size_t most; /* mails taken at once */
    unsigned out_of_order;
    size_t received;
};

static void send_all(struct traffic *t, unsigned sender)
{
    for (unsigned i = 0; i < t->each; i++) {
        struct letter *l = calloc(1, sizeof *l);
        *l = (struct letter){.sender = sender, .number = i};
        while (vg_mailbox_post(&t->box, &l->mail) == VIGIL_E_BUSY)
            sched_yield();
    }
}

static void receive(struct traffic *t, struct vg_mail *m)
{
    size_t n = 0;
    for (struct vg_mail *next; m; m = next, n++) {
        next = m->next;
        struct letter *l = letter_of(m);
        t->out_of_order += l->number != t->next[l->sender]++;
        free(l);
    }
    t->received += n;
    t->most = VG_MAX(t->most, n);
}

static void send_or_receive(unsigned index, void *arg)
{
    struct traffic *t = arg;
    if (index) {
        send_all(t, index);
        return;
    }
    while (t->received < (size_t)t->each * SENDERS) {
        vg_waker_wait(&t->waker, VG_WAIT_FOREVER);
        receive(t, vg_mailbox_take_all(&t->box));
    }
}

static void run_traffic(struct traffic *t, size_t cap)
{
    *t = (struct traffic){.each = vg_test_is_long() ? 200000 : 10000};
    vg_waker_init(&t->waker, vg_clock_system());
    vg_mailbox_init(&t->box, cap, vg_waker_wake_cb, &t->waker);
    vg_test_threads(SENDERS + 1, send_or_receive, t);
    assert_int_equal(t->out_of_order, 0);
    assert_null(vg_mailbox_take_all(&t->box));
    assert_int_equal(vg_mailbox_count(&t->box), 0);
}

static void many_senders_lose_no_mail_and_no_wake_and_keep_their_order(void **state)
{
    (void)state;
    struct traffic t;
    run_traffic(&t, 0);
}

static void a_bounded_box_never_holds_more_than_its_bound(void **state)
{
    (void)state;
    struct traffic t;
    run_traffic(&t, 3);
    assert_in_range(t.most, 1, 3);
}

/* One round: the box is full; thread 0 empties it and posts, the others post once each. Whoever
 * comes first after the emptying must be let in, whatever the refused ones were doing. */
struct contest {
    struct vg_mailbox box;
    pthread_barrier_t gate;
    _Atomic unsigned accepted;
    unsigned rounds;
    unsigned empty_rounds; /* everybody was refused */
    unsigned wrong_counts;
};

static void compete(struct contest *c, struct letter *mine)
{
    pthread_barrier_wait(&c->gate);
    if (vg_mailbox_post(&c->box, &mine->mail) == 0)
        atomic_fetch_add(&c->accepted, 1);
    pthread_barrier_wait(&c->gate);
}

static void referee(struct contest *c, struct letter *mine, struct letter *filler)
{
    unsigned before = vg_mailbox_post(&c->box, &filler->mail) == 0;
    atomic_store(&c->accepted, 0);
    pthread_barrier_wait(&c->gate);
    size_t in_box = length(vg_mailbox_take_all(&c->box));
    if (vg_mailbox_post(&c->box, &mine->mail) == 0)
        atomic_fetch_add(&c->accepted, 1);
    pthread_barrier_wait(&c->gate);
    in_box += length(vg_mailbox_take_all(&c->box));
    c->empty_rounds += atomic_load(&c->accepted) == 0;
    c->wrong_counts += in_box != before + atomic_load(&c->accepted);
}

static void play(unsigned index, void *arg)
{
    struct contest *c = arg;
    struct letter mine = {0}, filler = {0};
    for (unsigned i = 0; i < c->rounds; i++) {
        if (index)
            compete(c, &mine);
        else
            referee(c, &mine, &filler);
    }
}

static void refused_senders_keep_nobody_out_of_a_box_with_room(void **state)
{
    (void)state;
    struct contest c = {.rounds = vg_test_is_long() ? 400000 : 10000};
    vg_mailbox_init(&c.box, 1, NULL, NULL);
    pthread_barrier_init(&c.gate, NULL, 4);
    vg_test_threads(4, play, &c);
    pthread_barrier_destroy(&c.gate);
    assert_int_equal(c.empty_rounds, 0);
    assert_int_equal(c.wrong_counts, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_box_gives_nothing),
        cmocka_unit_test(mails_are_taken_in_the_order_of_posting),
        cmocka_unit_test(only_the_mail_that_finds_the_box_empty_wakes),
        cmocka_unit_test(a_full_box_answers_busy_and_leaves_the_mail_with_its_sender),
        cmocka_unit_test(a_box_has_room_again_after_it_was_emptied),
        cmocka_unit_test(many_senders_lose_no_mail_and_no_wake_and_keep_their_order),
        cmocka_unit_test(a_bounded_box_never_holds_more_than_its_bound),
        cmocka_unit_test(refused_senders_keep_nobody_out_of_a_box_with_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
