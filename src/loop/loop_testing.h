/* loop_testing.h - what the tests of loops share: a loop as the state of a test, and letters that
 * note when they run. */
#ifndef VG_LOOP_LOOP_TESTING_H
#define VG_LOOP_LOOP_TESTING_H

#include "test_support.h"

#include "loop.h"

/* What ran, in order. */
struct trace {
    char text[64];
    size_t n;
};

static inline void note(struct trace *t, char c)
{
    t->text[t->n++] = c;
}

static inline void assert_trace(struct trace *t, const char *want)
{
    t->text[t->n] = '\0';
    assert_string_equal(t->text, want);
    t->n = 0;
}

struct letter {
    struct vg_mail mail;
    struct vg_loop *loop;
    struct trace *trace;
    struct letter *forward; /* posted when this one runs */
    char name;
    bool done;
};

static inline struct letter *letter_of(struct vg_mail *m)
{
    return VG_CONTAINER_OF(m, struct letter, mail);
}

static inline void run_letter(struct vg_mail *m)
{
    struct letter *l = letter_of(m);
    if (l->trace)
        note(l->trace, l->name);
    l->done = true;
    struct letter *forward = vg_steal(l->forward);
    if (forward)
        vg_loop_post(l->loop, &forward->mail);
}

static inline struct letter letter(struct vg_loop *loop, struct trace *trace, char name)
{
    return (struct letter){.mail = {.run = run_letter}, .loop = loop, .trace = trace, .name = name};
}

static inline int begin(void **state)
{
    struct vg_loop *loop = NULL;
    int r = vg_loop_new(vg_clock_system(), &loop);
    *state = loop;
    return r;
}

static inline int end(void **state)
{
    vg_loop_free(*state);
    return 0;
}

#define ON_LOOP(test) cmocka_unit_test_setup_teardown(test, begin, end)

#endif
