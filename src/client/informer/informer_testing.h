/* informer_testing.h - for tests: an informer fed by a script, and a handler that writes down what
 * it is told. The informer's client talks to nobody. */
#ifndef VG_CLIENT_INFORMER_TESTING_H
#define VG_CLIENT_INFORMER_TESTING_H

#include "test_support.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "client/object/client_object_testing.h"
#include "informer_int.h"

struct rig {
    struct vg_fake_clock clock;
    struct vigil_client *c;
    struct vigil_informer *i;
    struct vigil_sink sink;
};

static inline void rig_up(struct rig *g, enum vigil_loop_mode mode, bool is_clock_fake,
                          const struct vigil_informer_opts *opts)
{
    struct vigil_informer_opts none = VIGIL_INIT(struct vigil_informer_opts);
    struct vigil_config_opts co = VIGIL_INIT(struct vigil_config_opts);
    struct vigil_client_opts cl = VIGIL_INIT(struct vigil_client_opts);
    struct vigil_config *config;
    co.server = "http://127.0.0.1:1";
    cl.mode = mode;
    vg_fake_clock_init(&g->clock);
    assert_int_equal(vigil_config_new(&co, &config, NULL), 0);
    assert_int_equal(vg_client_new(config, &cl, is_clock_fake ? &g->clock.clock : vg_clock_system(),
                                   &g->c, NULL),
                     0);
    vigil_config_free(config);
    assert_int_equal(vg_informer_new(g->c, opts ? opts : &none, true, &g->i, NULL), 0);
    g->sink = vg_informer_sink(g->i);
}

static inline void rig_down(struct rig *g)
{
    vigil_informer_free(g->i);
    vigil_client_free(g->c);
    vg_fake_clock_done(&g->clock);
}

/* OWN_LOOP: everything that can be done now. */
static inline void rig_settle(struct rig *g)
{
    for (int i = 0; i < 20; i++)
        vigil_client_step(g->c);
}

/* "a@1": an object; "-a@2": it was deleted. */
static inline int rig_event(struct rig *g, const char *text)
{
    char name[64];
    bool deletes = text[0] == '-';
    snprintf(name, sizeof(name), "%s", text + deletes);
    char *at = strchr(name, '@');
    *at = 0;
    const struct vigil_object *o = vg_test_object("ns", name, at + 1);
    int r = deletes ? g->sink.remove(g->sink.arg, o) : g->sink.put(g->sink.arg, o);
    vigil_object_unref(o);
    return r;
}

/* "a@1 b@2": a list. */
static inline int rig_list(struct rig *g, const char *text, const char *version)
{
    const struct vigil_object *v[64];
    size_t n = 0;
    char copy[1024], *save = NULL;
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
        char *at = strchr(s, '@');
        *at = 0;
        v[n++] = vg_test_object("ns", s, at + 1);
    }
    int r = g->sink.replace(g->sink.arg, v, n, vigil_text(version));
    for (size_t i = 0; i < n; i++)
        vigil_object_unref(v[i]);
    return r;
}

/* What a handler was told: "+a@1! ~a@1>2 -a@3t synced"; ! is initial, t a tombstone. */
struct notebook {
    struct vg_mutex mu;
    struct vg_buf text;
    struct vigil_store *store; /* not NULL: each callback must find its object there */
    size_t count;
};

static inline void notebook_write(struct notebook *b, const char *sign,
                                  const struct vigil_object *before, const struct vigil_object *o,
                                  const char *tail)
{
    struct vigil_text name = vigil_object_name(o), version = vigil_object_resource_version(o);
    struct vigil_text old = {"", 0};
    if (before)
        old = vigil_object_resource_version(before);
    vg_mutex_lock(&b->mu);
    assert_true(vg_buf_printf(&b->text, "%s%s%.*s@%.*s%s%.*s%s", b->text.n ? " " : "", sign,
                              VIGIL_TEXT_ARG(name), VIGIL_TEXT_ARG(old), before ? ">" : "",
                              VIGIL_TEXT_ARG(version), tail) >= 0);
    b->count++;
    vg_mutex_unlock(&b->mu);
}

static inline void notebook_look(struct notebook *b, const struct vigil_object *o, bool is_there)
{
    if (!b->store)
        return;
    const struct vigil_object *found = vigil_store_get(b->store, vigil_object_key(o));
    assert_int_equal(found != NULL, is_there);
    if (found)
        vg_assert_slice_equal(vg_object_version(found), vg_object_version(o));
    vigil_object_unref(found);
}

static inline void notebook_add(void *arg, const struct vigil_object *o, bool is_initial)
{
    notebook_look(arg, o, true);
    notebook_write(arg, "+", NULL, o, is_initial ? "!" : "");
}
static inline void notebook_update(void *arg, const struct vigil_object *before,
                                   const struct vigil_object *o)
{
    notebook_look(arg, o, true);
    notebook_write(arg, "~", before, o, "");
}
static inline void notebook_delete(void *arg, const struct vigil_object *o, bool is_tombstone)
{
    notebook_look(arg, o, false);
    notebook_write(arg, "-", NULL, o, is_tombstone ? "t" : "");
}
static inline void notebook_synced(void *arg)
{
    struct notebook *b = arg;
    vg_mutex_lock(&b->mu);
    assert_true(vg_buf_printf(&b->text, "%ssynced", b->text.n ? " " : "") >= 0);
    vg_mutex_unlock(&b->mu);
}

static inline struct vigil_handler notebook_handler(struct notebook *b)
{
    *b = (struct notebook){0};
    vg_mutex_init(&b->mu, VG_RANK_CLIENT_WORK);
    return (struct vigil_handler){.size = sizeof(struct vigil_handler),
                                  .on_add = notebook_add,
                                  .on_update = notebook_update,
                                  .on_delete = notebook_delete,
                                  .on_synced = notebook_synced,
                                  .arg = b};
}

static inline struct vigil_registration *rig_handle(struct rig *g, const struct vigil_handler *h)
{
    struct vigil_registration *r = NULL;
    assert_int_equal(vigil_informer_add_handler(g->i, h, &r, NULL), 0);
    return r;
}

/* Compares and begins a new page. */
static inline void notebook_expect(struct notebook *b, const char *want)
{
    vg_mutex_lock(&b->mu);
    vg_assert_slice_equal(vg_slice(b->text.p, b->text.n), vg_slice_str(want));
    vg_buf_clear(&b->text);
    vg_mutex_unlock(&b->mu);
}

static inline void notebook_done(struct notebook *b)
{
    vg_buf_done(&b->text);
    vg_mutex_done(&b->mu);
}

#endif
