/* cacher_model.c - see cacher_model.h. */
#include "cacher_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/cacher/cacher_int.h"
#include "test_support.h"

static const char *const namespaces[MODEL_NAMESPACES] = {"a", "b", "c", "d"};
static const char *const names[MODEL_NAMES] = {"p0", "p1", "p2", "p3", "p4",
                                               "p5", "p6", "p7", "p8", "p9"};
static const char *const nodes[] = {NULL, "n1", "n2", "n3", "n4"};
static const char *const labels[] = {NULL, "\"app\":\"x\"", "\"app\":\"y\"", "\"app\":\"z\""};

void model_init(struct model *m)
{
    memset(m, 0, sizeof *m);
    memset(m->newest, 0xff, sizeof m->newest);
}

void model_done(struct model *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->log[i].now_text);
        free(m->log[i].before_text);
    }
    free(m->log);
}

/* Stretches of larger objects: the history then has short segments among full ones. */
static int pad_of(int n)
{
    return n / 300 % 4 == 1 ? 1500 : 0;
}

static struct vg_pod pod_of(int key, const struct model_content *c)
{
    return (struct vg_pod){.ns = namespaces[key / MODEL_NAMES],
                           .name = names[key % MODEL_NAMES],
                           .node = nodes[c->node],
                           .labels = labels[c->label],
                           .n = c->n,
                           .pad = pad_of(c->n)};
}

struct vg_op model_put_op(struct model *m, size_t kind, int key, struct model_content *content)
{
    content->exists = true;
    content->n = ++m->counter;
    struct vg_pod pod = pod_of(key, content);
    return vg_cdrv_put_op(kind, &pod);
}

struct vg_op model_delete_op(size_t kind, int key)
{
    return vg_cdrv_delete_op(kind, namespaces[key / MODEL_NAMES], names[key % MODEL_NAMES]);
}

static char *text_of(size_t kind, int key, const struct model_content *c, vg_rev rev)
{
    if (!c->exists)
        return NULL;
    struct vg_pod pod = pod_of(key, c);
    return vg_cdrv_frame("ADDED", kind, &pod, rev);
}

void model_add(struct model *m, size_t kind, int key, struct model_content now, vg_rev rev)
{
    if (m->n == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 256;
        m->log = realloc(m->log, m->cap * sizeof *m->log);
        assert_non_null(m->log);
    }
    struct model_event *e = &m->log[m->n];
    *e = (struct model_event){
        .rev = rev, .kind = kind, .key = key, .now = now, .prev = m->newest[kind][key]};
    if (e->prev >= 0)
        e->before = m->log[e->prev].now;
    e->now_text = text_of(kind, key, &e->now, rev);
    e->before_text = text_of(kind, key, &e->before, rev);
    m->newest[kind][key] = (int)m->n++;
}

bool model_has(const struct model *m, size_t kind, int key)
{
    int at = m->newest[kind][key];
    return at >= 0 && m->log[at].now.exists;
}

size_t model_after(const struct model *m, vg_rev rev)
{
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (m->log[mid].rev <= rev)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool model_is_tie(const struct model *m, vg_rev rev)
{
    return rev && model_after(m, rev) - model_after(m, rev - 1) > 1;
}

const struct model_event *model_at(const struct model *m, size_t kind, int key, vg_rev rev)
{
    int at = m->newest[kind][key];
    while (at >= 0 && m->log[at].rev > rev)
        at = m->log[at].prev;
    return at >= 0 && m->log[at].now.exists ? &m->log[at] : NULL;
}

/* ---- predicates ---- */

struct model_predicate model_random_predicate(struct vg_rng *rng)
{
    return (struct model_predicate){
        .ns = vg_rng_below(rng, 2) ? (int)vg_rng_below(rng, MODEL_NAMESPACES) : -1,
        .name = vg_rng_below(rng, 6) ? -1 : (int)vg_rng_below(rng, MODEL_NAMES),
        .label = (int)vg_rng_below(rng, 5),
        .node = vg_rng_below(rng, 2) ? (int)vg_rng_below(rng, 5) : -1,
    };
}

struct vg_obj_predicate *model_predicate(size_t kind, const struct model_predicate *p)
{
    static const char *const label_texts[] = {NULL, "app=x", "app in (x,y)", "!app", "app!=z"};
    char field[64] = "spec.nodeName=";
    if (p->node > 0)
        snprintf(field, sizeof field, "spec.nodeName=%s", nodes[p->node]);
    return vg_cdrv_predicate(kind, p->ns < 0 ? NULL : namespaces[p->ns],
                             p->name < 0 ? NULL : names[p->name], label_texts[p->label],
                             p->node < 0 ? NULL : field);
}

static bool label_matches(int selector, int label)
{
    switch (selector) {
    case 1:
        return label == 1;
    case 2:
        return label == 1 || label == 2;
    case 3:
        return label == 0;
    case 4:
        return label != 3;
    default:
        return true;
    }
}

bool model_matches(const struct model_predicate *p, int key, const struct model_content *c)
{
    return c->exists && (p->ns < 0 || p->ns == key / MODEL_NAMES) &&
           (p->name < 0 || p->name == key % MODEL_NAMES) && label_matches(p->label, c->label) &&
           (p->node < 0 || p->node == c->node);
}

const char *model_type(const struct model_predicate *p, const struct model_event *e)
{
    bool was = model_matches(p, e->key, &e->before), is = model_matches(p, e->key, &e->now);
    if (was)
        return is ? "MODIFIED" : "DELETED";
    return is ? "ADDED" : NULL;
}

const char *model_text(const struct model_predicate *p, const struct model_event *e)
{
    return model_matches(p, e->key, &e->now) ? e->now_text : e->before_text;
}

const struct model_event *model_next(const struct model *m, size_t kind,
                                     const struct model_predicate *p, size_t *at)
{
    for (; *at < m->n; (*at)++) {
        const struct model_event *e = &m->log[*at];
        if (e->kind == kind && model_type(p, e))
            return e;
    }
    return NULL;
}

int model_make_form(void *arg, uint32_t form, const struct vg_rec *rec, vg_rev rev,
                    struct vg_buf *out)
{
    struct vg_obj_header h;
    struct vg_obj_splice splice;
    (void)arg;
    (void)form;
    vg_obj_header_read(vg_rec_header(rec), vg_rec_value(rec), &h);
    vg_obj_splice_object(&splice, &h, rev);
    return vg_obj_splice_append(out, &splice);
}

void model_check_cache(struct vg_cdrv *d)
{
    for (size_t i = 0; i < KINDS; i++) {
        vg_history_check(&d->c->kinds[i].history);
        vg_tree_check(d->c->kinds[i].tree);
        if (d->c->kinds[i].by_trigger)
            vg_tree_check(d->c->kinds[i].by_trigger);
    }
}

vg_rev model_rev_of(const char *frame)
{
    const char *p = strstr(frame, "\"resourceVersion\":\"");
    return p ? strtoull(p + strlen("\"resourceVersion\":\""), NULL, 10) : 0;
}

bool model_frame_is(const char *frame, const char *type, const char *text)
{
    size_t n = strlen("{\"type\":\"");
    size_t type_n = strlen(type);
    return strncmp(frame + n, type, type_n) == 0 && frame[n + type_n] == '"' &&
           strcmp(frame + n + type_n, strchr(text + n, '"')) == 0;
}
