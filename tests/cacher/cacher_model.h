/* cacher_model.h - a model of a store's history, to judge watch streams by.
 * The log holds every change with its contents before and after; what a watch with a predicate must
 * be told is read off it by plain loops. Keys are numbered in key order. */
#ifndef VG_TESTS_CACHER_MODEL_H
#define VG_TESTS_CACHER_MODEL_H

#include "base/rng.h"
#include "cacher_driver.h"

#define MODEL_NAMESPACES 4
#define MODEL_NAMES 10
#define MODEL_KEYS (MODEL_NAMESPACES * MODEL_NAMES) /* of one kind */

struct model_content {
    bool exists;
    int node;  /* 0: none */
    int label; /* 0: none; x, y, z */
    int n;
};

struct model_event {
    vg_rev rev;
    size_t kind;
    int key;
    struct model_content now, before;
    char *now_text, *before_text; /* the objects at this revision, as in a frame; NULL: none */
    int prev;                     /* the event before it of this key; -1 */
};

struct model {
    struct model_event *log;
    size_t n, cap;
    int newest[KINDS][MODEL_KEYS]; /* of each key; -1 */
    int counter;
};

void model_init(struct model *m);
void model_done(struct model *m);

struct vg_op model_put_op(struct model *m, size_t kind, int key, struct model_content *content);
struct vg_op model_delete_op(size_t kind, int key);
/* A change was acknowledged at `rev`; contents with exists == false are deletes. */
void model_add(struct model *m, size_t kind, int key, struct model_content now, vg_rev rev);
bool model_has(const struct model *m, size_t kind, int key);
/* The first event of the log above `rev`. */
size_t model_after(const struct model *m, vg_rev rev);
/* Has the revision several changes? Then one who was told of some of them needs the whole of it. */
bool model_is_tie(const struct model *m, vg_rev rev);
/* What a key held at `rev`: the event that put it, or NULL. */
const struct model_event *model_at(const struct model *m, size_t kind, int key, vg_rev rev);

/* What is asked for; -1 = any. */
struct model_predicate {
    int ns, name;
    int label; /* 0: any; 1 app=x; 2 app in (x,y); 3 !app; 4 app!=z */
    int node;  /* -1: any; 0: not scheduled */
};
struct model_predicate model_random_predicate(struct vg_rng *rng);
struct vg_obj_predicate *model_predicate(size_t kind, const struct model_predicate *p);
bool model_matches(const struct model_predicate *p, int key, const struct model_content *c);

/* The first event at or after log[*at] that a watch is told of; NULL: none. *at moves to it. */
const struct model_event *model_next(const struct model *m, size_t kind,
                                     const struct model_predicate *p, size_t *at);
/* The type of that event to this watch, and the object that it shows. */
const char *model_type(const struct model_predicate *p, const struct model_event *e);
const char *model_text(const struct model_predicate *p, const struct model_event *e);
/* A vg_cache_form_fn: the stored JSON, encoded anew. */
int model_make_form(void *arg, uint32_t form, const struct vg_rec *rec, vg_rev rev,
                    struct vg_buf *out);
/* The invariants of histories and trees. Thread: the feed's. */
void model_check_cache(struct vg_cdrv *d);
vg_rev model_rev_of(const char *frame);
/* Is the frame this type with this object? */
bool model_frame_is(const char *frame, const char *type, const char *text);

#endif
