/* fifo_world.h - what tests of the queue share: objects by a short name, and what was popped as
 * text. "foo10" is the object foo at resourceVersion 10. */
#ifndef VG_TEST_FIFO_WORLD_H
#define VG_TEST_FIFO_WORLD_H

#include "test_support.h"

#include "client/fifo/consume.h"
#include "client/object/client_object_testing.h"

/* Letters, then digits. A reference. */
static inline const struct vigil_object *vg_test_named(const char *text)
{
    char name[32];
    size_t n = strcspn(text, "0123456789");
    snprintf(name, sizeof(name), "%.*s", (int)n, text);
    return vg_test_object(NULL, name, text + n);
}

static inline void vg_test_event(struct vg_fifo *f, enum vg_delta_type type, const char *text)
{
    const struct vigil_object *o = vg_test_named(text);
    assert_int_equal(vg_fifo_put(f, type, o), 0);
    vigil_object_unref(o);
}
#define vg_test_added(f, text) vg_test_event((f), VG_DELTA_ADDED, (text))
#define vg_test_updated(f, text) vg_test_event((f), VG_DELTA_UPDATED, (text))
#define vg_test_deleted(f, text) vg_test_event((f), VG_DELTA_DELETED, (text))

/* Objects named by words of a text: "foo1 bar2". References; how many. */
static inline size_t vg_test_words(const char *text, const struct vigil_object **v, size_t max)
{
    size_t n = 0;
    for (; *text; n++) {
        char word[32];
        size_t len = strcspn(text, " ");
        assert_true(n < max && len < sizeof(word));
        snprintf(word, sizeof(word), "%.*s", (int)len, text);
        v[n] = vg_test_named(word);
        text += len + (text[len] == ' ');
    }
    return n;
}

static inline int vg_test_try_list(struct vg_fifo *f, const char *text, const char *version)
{
    const struct vigil_object *v[64] = {NULL};
    size_t n = vg_test_words(text, v, VG_ARRAY_LEN(v));
    int r = vg_fifo_replace(f, v, n, vg_slice_str(version));
    while (n)
        vigil_object_unref(v[--n]);
    return r;
}
static inline void vg_test_list(struct vg_fifo *f, const char *text, const char *version)
{
    assert_int_equal(vg_test_try_list(f, text, version), 0);
}

static inline void vg_test_fill(struct vigil_store *s, const char *text)
{
    const struct vigil_object *v[64] = {NULL};
    size_t n = vg_test_words(text, v, VG_ARRAY_LEN(v));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(vigil_store_put(s, v[i]), 0);
        vigil_object_unref(v[i]);
    }
}

/* What was popped: batches in braces, '!' before one of the first list.
 * A added, U updated, D deleted, T tombstone, R replaced, S sync, L a list, Y sync of all, B. */
struct vg_test_log {
    char text[2048];
    size_t n;
};

static inline void vg_test_say(struct vg_test_log *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline void vg_test_say(struct vg_test_log *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    l->n += (size_t)vsnprintf(l->text + l->n, sizeof(l->text) - l->n, fmt, ap);
    va_end(ap);
    assert_true(l->n < sizeof(l->text));
}

static inline void vg_test_say_object(struct vg_test_log *l, char what,
                                      const struct vigil_object *o)
{
    vg_test_say(l, what == ' ' ? "%c%.*s%.*s" : "%c:%.*s%.*s", what,
                VIGIL_TEXT_ARG(vigil_object_key(o)),
                VIGIL_TEXT_ARG(vigil_object_resource_version(o)));
}

static inline void vg_test_say_delta(struct vg_test_log *l, const struct vg_delta *d)
{
    static const char letters[] = "AUDRSLYB";
    if (d->type == VG_DELTA_SYNC_ALL) {
        vg_test_say(l, "Y");
    } else if (d->type < VG_DELTA_REPLACED_ALL) {
        vg_test_say_object(l, d->is_tombstone ? 'T' : letters[d->type], d->o);
    } else {
        vg_test_say(l, "%c@%.*s", letters[d->type], (int)d->all->version_n, d->all->version);
        for (size_t i = 0; i < d->all->n; i++)
            vg_test_say_object(l, ' ', d->all->objects[i]);
    }
}

static inline int vg_test_note(void *arg, const struct vg_batch *b)
{
    struct vg_test_log *l = arg;
    vg_test_say(l, "%s%s{", l->n ? " " : "", b->is_initial ? "!" : "");
    for (size_t i = 0; i < b->n; i++) {
        vg_test_say(l, "%s", i ? " " : "");
        vg_test_say_delta(l, &b->v[i]);
    }
    vg_test_say(l, "}");
    return 0;
}

/* Pop once, or all there is. */
static inline void vg_test_pop(struct vg_fifo *f, const char *want)
{
    struct vg_test_log l = {.n = 0};
    assert_int_equal(vg_fifo_pop(f, false, vg_test_note, &l), 1);
    assert_string_equal(l.text, want);
}
static inline void vg_test_pop_all(struct vg_fifo *f, const char *want)
{
    struct vg_test_log l = {.n = 0};
    int r;
    while ((r = vg_fifo_pop(f, false, vg_test_note, &l)) > 0)
        continue;
    assert_int_equal(r, 0);
    assert_string_equal(l.text, want);
}

/* A queue with a store that its consumer is said to have. */
struct vg_test_queue {
    struct vigil_store *known;
    struct vg_fifo *f;
};

static inline struct vg_test_queue vg_test_queue(enum vg_fifo_mode mode, size_t batch_max,
                                                 const char *known)
{
    struct vg_test_queue q;
    assert_int_equal(vigil_store_new(NULL, 0, &q.known, NULL), 0);
    vg_test_fill(q.known, known);
    struct vg_fifo_opts opts = {
        .mode = mode, .known = mode == VG_FIFO_ATOMIC ? NULL : q.known, .batch_max = batch_max};
    assert_int_equal(vg_fifo_new(&opts, &q.f), 0);
    return q;
}
static inline void vg_test_queue_done(struct vg_test_queue *q)
{
    vg_fifo_free(q->f);
    vigil_store_free(q->known);
}

#endif
