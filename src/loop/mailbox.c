/* mailbox.c - a stack that the receiver empties whole and turns round.
 * Taking everything with one exchange is what keeps this simple: a node is never popped singly, so
 * there is no ABA and nothing to reclaim. */
#include "mailbox.h"

/* Stands in `newest` of a closed box; its address alone counts. */
static struct vg_mail closed_mark;

void vg_mailbox_init(struct vg_mailbox *box, size_t cap, void (*wake)(void *arg), void *wake_arg)
{
    atomic_init(&box->newest, NULL);
    atomic_init(&box->count, 0);
    box->cap = cap;
    box->wake = wake;
    box->wake_arg = wake_arg;
}

/* Counting first and stepping back when full would let two refused senders keep each other, or a
 * third, out of a box with room (M4). */
static bool reserve(struct vg_mailbox *box)
{
    size_t n = atomic_load_explicit(&box->count, memory_order_relaxed);
    do {
        if (box->cap && n >= box->cap)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&box->count, &n, n + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

/* As vg_mailbox_put; *ret_was_empty: nobody was told of mail here. */
static int put(struct vg_mailbox *box, struct vg_mail *mail, bool *ret_was_empty)
{
    if (!reserve(box))
        return VIGIL_E_BUSY;
    struct vg_mail *head = atomic_load_explicit(&box->newest, memory_order_relaxed);
    do {
        if (head == &closed_mark) {
            atomic_fetch_sub_explicit(&box->count, 1, memory_order_relaxed);
            return VIGIL_E_CLOSED;
        }
        mail->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&box->newest, &head, mail, memory_order_release,
                                                    memory_order_relaxed));
    *ret_was_empty = !head; /* the mail is the receiver's by now and may be gone */
    return 0;
}

int vg_mailbox_put(struct vg_mailbox *box, struct vg_mail *mail)
{
    bool was_empty;
    return put(box, mail, &was_empty);
}

int vg_mailbox_post(struct vg_mailbox *box, struct vg_mail *mail)
{
    bool was_empty = false;
    int r = put(box, mail, &was_empty);
    /* Only the mail that found the box empty wakes (M2): the receiver takes all or none. */
    if (was_empty && box->wake)
        box->wake(box->wake_arg);
    return r;
}

static struct vg_mail *take_and_leave(struct vg_mailbox *box, struct vg_mail *leave)
{
    struct vg_mail *m = atomic_exchange_explicit(&box->newest, leave, memory_order_acquire);
    if (m == &closed_mark)
        m = NULL;
    struct vg_mail *oldest = NULL;
    size_t n = 0;
    while (m) {
        struct vg_mail *next = m->next;
        m->next = oldest;
        oldest = m;
        m = next;
        n++;
    }
    atomic_fetch_sub_explicit(&box->count, n, memory_order_relaxed);
    return oldest;
}

struct vg_mail *vg_mailbox_take_all(struct vg_mailbox *box)
{
    return take_and_leave(box, NULL);
}

struct vg_mail *vg_mailbox_close(struct vg_mailbox *box)
{
    return take_and_leave(box, &closed_mark);
}
