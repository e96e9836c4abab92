/* read.c - the readers' side of a store: single objects, snapshots, indexes, listers.
 * Whoever walks takes the trees' tops under the lock, which is a count each, and walks without it:
 * callbacks may call the store. */
#include <errno.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "object/label_selector.h"
#include "store_int.h"

struct vg_ctree vg_store_state(struct vigil_store *s)
{
    vg_mutex_lock(&s->mu);
    struct vg_ctree t = vg_ctree_ref(&s->by_key);
    vg_mutex_unlock(&s->mu);
    return t;
}

const struct vigil_object *vigil_store_get(struct vigil_store *s, struct vigil_text key)
{
    struct vg_ctree_key k = {.key = vg_slice_of(key)};
    vg_mutex_lock(&s->mu);
    const struct vg_ctree_entry *e = vg_ctree_find(&s->by_key, &k);
    const struct vigil_object *o = e ? vigil_object_ref(e->o) : NULL;
    vg_mutex_unlock(&s->mu);
    return o;
}

size_t vigil_store_count(struct vigil_store *s)
{
    vg_mutex_lock(&s->mu);
    size_t n = s->by_key.count;
    vg_mutex_unlock(&s->mu);
    return n;
}

size_t vigil_store_resource_version(struct vigil_store *s, char *buf, size_t size)
{
    vg_mutex_lock(&s->mu);
    size_t n = s->version_n;
    if (size) {
        size_t kept = VG_MIN(n, size - 1);
        memcpy(buf, s->version, kept);
        buf[kept] = '\0';
    }
    vg_mutex_unlock(&s->mu);
    return n;
}

/* ---- snapshots ---- */

struct vigil_snapshot {
    _Atomic uint32_t refs;
    struct vg_ctree tree;
};

static struct vigil_snapshot *counted(const struct vigil_snapshot *s)
{
    return (struct vigil_snapshot *)(uintptr_t)s;
}

const struct vigil_snapshot *vigil_store_snapshot(struct vigil_store *s)
{
    struct vigil_snapshot *snap = vg_malloc(sizeof(*snap));
    if (!snap)
        return NULL;
    atomic_init(&snap->refs, 1);
    snap->tree = vg_store_state(s);
    return snap;
}

const struct vigil_snapshot *vigil_snapshot_ref(const struct vigil_snapshot *s)
{
    if (s)
        atomic_fetch_add_explicit(&counted(s)->refs, 1, memory_order_relaxed);
    return s;
}

void vigil_snapshot_unref(const struct vigil_snapshot *s)
{
    if (!s || atomic_fetch_sub_explicit(&counted(s)->refs, 1, memory_order_release) != 1)
        return;
    (void)atomic_load_explicit(&counted(s)->refs, memory_order_acquire);
    vg_ctree_done(&counted(s)->tree);
    vg_free(counted(s));
}

size_t vigil_snapshot_count(const struct vigil_snapshot *s)
{
    return s->tree.count;
}

const struct vigil_object *vigil_snapshot_get(const struct vigil_snapshot *s, struct vigil_text key)
{
    struct vg_ctree_key k = {.key = vg_slice_of(key)};
    const struct vg_ctree_entry *e = vg_ctree_find(&s->tree, &k);
    return e ? e->o : NULL;
}

const struct vigil_object *vigil_snapshot_next(const struct vigil_snapshot *s,
                                               struct vigil_iter *at)
{
    const struct vg_ctree_entry *e = vg_ctree_at(&s->tree, at->at);
    if (!e)
        return NULL;
    at->at++;
    return e->o;
}

/* ---- a namespace: a range of the state itself ----
 * Keys begin with "ns/", and no other namespace's do, so the objects of one lie side by side. */

typedef bool each_fn(void *arg, const struct vigil_object *o);

struct walk {
    const struct vg_label_selector *selector; /* NULL: everything */
    each_fn *each;
    void *arg;
};

static bool tell(const struct walk *w, const struct vigil_object *o)
{
    struct vg_labels labels = vg_object_labels(o);
    if (w->selector && !vg_label_selector_matches(w->selector, &labels))
        return true;
    return w->each(w->arg, o);
}

/* May objects of the namespace follow this key? Those of "ns-2" and "ns.x" come before them. */
static bool is_before_end(struct vg_slice key, struct vg_slice ns)
{
    return vg_slice_has_prefix(key, ns) && (key.n == ns.n || (unsigned char)key.p[ns.n] <= '/');
}

/* Objects of one namespace; "" are those without one, which may lie anywhere. */
static void walk_namespace(const struct vg_ctree *t, struct vg_slice ns, const struct walk *w)
{
    struct vg_ctree_cursor c;
    const struct vg_ctree_entry *e;
    char start[256]; /* "ns/"; a namespace that is longer, which none is, is looked for from "ns" */
    struct vg_ctree_key key = {.key = ns};
    bool go_on = true;
    if (ns.n && ns.n < sizeof(start)) {
        memcpy(start, ns.p, ns.n);
        start[ns.n] = '/';
        key.key = vg_slice(start, ns.n + 1);
    }
    vg_ctree_seek(&c, t, ns.n ? &key : NULL);
    while (go_on && (e = vg_ctree_next(&c))) {
        if (vg_slice_eq(vg_object_namespace(e->o), ns))
            go_on = tell(w, e->o);
        else if (ns.n)
            go_on = is_before_end(vg_object_key(e->o), ns);
    }
}

static void walk_all(const struct vg_ctree *t, const struct walk *w)
{
    struct vg_ctree_cursor c;
    const struct vg_ctree_entry *e;
    vg_ctree_seek(&c, t, NULL);
    while ((e = vg_ctree_next(&c)) && tell(w, e->o))
        continue;
}

static void walk_namespaces(const struct vg_ctree *t, bool (*each)(void *arg, struct vigil_text v),
                            void *arg)
{
    struct vg_ctree_cursor c;
    const struct vg_ctree_entry *e;
    struct vg_slice last = VG_SLICE_LIT("");
    bool has_none = false, go_on = true;
    vg_ctree_seek(&c, t, NULL);
    while (go_on && (e = vg_ctree_next(&c))) {
        struct vg_slice ns = vg_object_namespace(e->o);
        if (ns.n ? vg_slice_eq(ns, last) : has_none)
            continue;
        if (ns.n)
            last = ns;
        else
            has_none = true;
        go_on = each(arg, vg_text_of(ns));
    }
}

/* ---- indexes ---- */

/* The tree of an index: a reference for the caller. false: there is no such index. */
static bool take_index(struct vigil_store *s, const char *name, struct vg_ctree *ret)
{
    bool found = false;
    vg_mutex_lock(&s->mu);
    for (size_t i = 0; i < s->n_indexes && !found; i++) {
        found = strcmp(s->indexes[i].name, name) == 0;
        if (found)
            *ret = vg_ctree_ref(&s->indexes[i].tree);
    }
    vg_mutex_unlock(&s->mu);
    return found;
}

int vigil_store_by_index(struct vigil_store *s, const char *index, struct vigil_text value,
                         bool (*each)(void *arg, const struct vigil_object *o), void *arg)
{
    struct vg_ctree t;
    if (strcmp(index, VIGIL_BY_NAMESPACE) == 0) {
        struct walk w = {.each = each, .arg = arg};
        t = vg_store_state(s);
        walk_namespace(&t, vg_slice_of(value), &w);
        vg_ctree_done(&t);
        return 0;
    }
    if (!take_index(s, index, &t))
        return VIGIL_E_NOT_FOUND;
    struct vg_ctree_cursor c;
    struct vg_ctree_key key = {.value = vg_slice_of(value)};
    const struct vg_ctree_entry *e;
    vg_ctree_seek(&c, &t, &key);
    while ((e = vg_ctree_next(&c)) && vg_slice_eq(vg_ctree_value_of(e), key.value) &&
           each(arg, e->o))
        continue;
    vg_ctree_done(&t);
    return 0;
}

int vigil_store_index_values(struct vigil_store *s, const char *index,
                             bool (*each)(void *arg, struct vigil_text value), void *arg)
{
    struct vg_ctree t;
    if (strcmp(index, VIGIL_BY_NAMESPACE) == 0) {
        t = vg_store_state(s);
        walk_namespaces(&t, each, arg);
        vg_ctree_done(&t);
        return 0;
    }
    if (!take_index(s, index, &t))
        return VIGIL_E_NOT_FOUND;
    struct vg_ctree_cursor c;
    struct vg_ctree_key past = {.is_past = true};
    const struct vg_ctree_entry *e;
    vg_ctree_seek(&c, &t, NULL);
    while ((e = vg_ctree_next(&c)) && each(arg, vg_text_of(vg_ctree_value_of(e)))) {
        past.value = vg_ctree_value_of(e);
        vg_ctree_seek(&c, &t, &past);
    }
    vg_ctree_done(&t);
    return 0;
}

/* ---- listers ---- */

int vigil_lister_list(const struct vigil_lister *l, const char *selector,
                      bool (*each)(void *arg, const struct vigil_object *o), void *arg,
                      struct vigil_error *err)
{
    const struct vg_label_selector *parsed = NULL;
    VG_AUTO(buf) message = {0};
    if (selector && *selector) {
        int r = vg_label_selector_parse(vg_slice_str(selector), &parsed, &message);
        if (r < 0)
            return message.n ? vg_error_set(err, r, "%.*s", VG_SLICE_ARG(vg_buf_slice(&message)))
                             : vg_error_set(err, r, "%s", vg_err_text(r));
    }
    struct walk w = {parsed, each, arg};
    struct vg_ctree t = vg_store_state(l->store);
    if (l->ns && *l->ns)
        walk_namespace(&t, vg_slice_str(l->ns), &w);
    else
        walk_all(&t, &w);
    vg_ctree_done(&t);
    vg_label_selector_free(parsed);
    return 0;
}

const struct vigil_object *vigil_lister_get(const struct vigil_lister *l, const char *name)
{
    VG_AUTO(buf) key = {0};
    if (!l->ns || !*l->ns)
        return vigil_store_get(l->store, vigil_text(name));
    if (vg_buf_printf(&key, "%s/%s", l->ns, name) < 0)
        return NULL;
    return vigil_store_get(l->store, (struct vigil_text){key.p, key.n});
}
