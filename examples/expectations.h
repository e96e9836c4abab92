/* expectations.h - the changes of pods that a controller has made and not seen yet: until its
 * informer shows them, what is in the store is not what is. */
#ifndef EXAMPLES_EXPECTATIONS_H
#define EXAMPLES_EXPECTATIONS_H

#include "common.h"

/* What was not seen by then is never going to be: somebody undid it while the watch was broken. */
#define SEEN_WITHIN_S 20

struct expectation {
    struct expectation *next;
    char owner[KEY_SIZE], pod[KEY_SIZE];
    bool is_delete;
    time_t until;
};
struct expectations {
    pthread_mutex_t mu;
    struct expectation *first;
};

static inline time_t expectations_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* Before the request is sent: the informer may be faster than the answer. */
static inline void expect(struct expectations *x, const char *owner, const char *pod,
                          bool is_delete)
{
    struct expectation *e = calloc(1, sizeof(*e));
    if (!e)
        die("expect", NULL);
    snprintf(e->owner, sizeof(e->owner), "%s", owner);
    snprintf(e->pod, sizeof(e->pod), "%s", pod);
    e->is_delete = is_delete;
    e->until = expectations_now() + SEEN_WITHIN_S;
    pthread_mutex_lock(&x->mu);
    e->next = x->first;
    x->first = e;
    pthread_mutex_unlock(&x->mu);
}

/* It has been seen, or will never be. */
static inline void observe(struct expectations *x, struct vigil_text pod, bool is_delete)
{
    pthread_mutex_lock(&x->mu);
    for (struct expectation **at = &x->first, *e; (e = *at);) {
        bool is_it = e->is_delete == is_delete && vigil_text_is(pod, e->pod);
        if (is_it || e->until < expectations_now()) {
            *at = e->next;
            free(e);
        } else {
            at = &e->next;
        }
    }
    pthread_mutex_unlock(&x->mu);
}

static inline bool is_expecting(struct expectations *x, const char *owner)
{
    bool found = false;
    pthread_mutex_lock(&x->mu);
    for (const struct expectation *e = x->first; e && !found; e = e->next)
        found = e->until >= expectations_now() && strcmp(e->owner, owner) == 0;
    pthread_mutex_unlock(&x->mu);
    return found;
}

static inline void forget_expectations(struct expectations *x)
{
    for (struct expectation *e = x->first, *next; e; e = next) {
        next = e->next;
        free(e);
    }
    x->first = NULL;
}

#endif
