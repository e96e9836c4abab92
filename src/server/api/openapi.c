/* openapi.c - the OpenAPI documents as they are kept; see openapi.h.
 * A document is made under a lock by the first who asks; who comes meanwhile waits. Its JSON comes
 * first: the hash is of it, and protobuf is made of it. Bodies are counted: what is dropped here
 * lives on until it is sent. */
#include "openapi.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "discovery_doc.h"
#include "gzip.h"
#include "openapi_proto.h"
#include "openapi_write.h"
#include "json/write.h"

/* "apis/<group>/<version>" */
#define PATH_MAX_CHARS 512u

struct vg_openapi_body {
    _Atomic uint32_t refs;
    struct vg_buf bytes;
};

struct entry {
    const struct vg_group *group; /* NULL: 2.0, all groups */
    const char *version;
    _Atomic bool has_etag; /* set last; it stays */
    char etag[1 + VG_DOC_HASH_CHARS + 1 + 1];
    int64_t used_ms;                                   /* under mu, as what follows */
    struct vg_openapi_body *kept[VG_OPENAPI_FORMS][2]; /* plain, compressed; NULL: none */
};

struct vg_openapi {
    struct vg_mutex mu; /* rank DOCUMENTS: held while one is made */
    char *version;      /* info.version */
    size_t n;           /* the first is 2.0's; then 3.0's, sorted by path */
    struct entry v[];
};

/* ---- bodies ---- */

static struct vg_openapi_body *body_new(void)
{
    struct vg_openapi_body *b = vg_new(struct vg_openapi_body);
    if (b)
        atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void vg_openapi_ref(const void *body)
{
    struct vg_openapi_body *b = (struct vg_openapi_body *)(uintptr_t)body;
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

void vg_openapi_unref(const void *body)
{
    struct vg_openapi_body *b = (struct vg_openapi_body *)(uintptr_t)body;
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) > 1)
        return;
    vg_buf_done(&b->bytes);
    vg_free(b);
}

struct vg_slice vg_openapi_bytes(const struct vg_openapi_body *b)
{
    return vg_buf_slice(&b->bytes);
}

/* ---- making: with the lock held ---- */

static int make_json(const struct vg_openapi *o, const struct entry *e, struct vg_buf *out)
{
    return e->group ? vg_openapi_write_v3(out, o->version, e->group, e->version)
                    : vg_openapi_write_v2(out, o->version);
}

static int make_proto(const struct entry *e, struct vg_slice json, struct vg_buf *out)
{
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 0);
    struct vg_json *root;
    int err = vg_json_parse(&arena, json, NULL, &root, NULL);
    if (err < 0)
        return err;
    return e->group ? vg_openapi_proto_v3(out, root) : vg_openapi_proto_v2(out, root);
}

static int set_etag(struct entry *e, struct vg_slice json)
{
    char hash[VG_DOC_HASH_CHARS + 1];
    if (atomic_load_explicit(&e->has_etag, memory_order_relaxed))
        return 0;
    int err = vg_doc_hash(json, hash);
    if (err < 0)
        return err;
    snprintf(e->etag, sizeof e->etag, "\"%s\"", hash);
    atomic_store_explicit(&e->has_etag, true, memory_order_release);
    return 0;
}

static int make_plain(const struct vg_openapi *o, struct entry *e,
                      const struct vg_openapi_body *json, struct vg_buf *out)
{
    if (json)
        return make_proto(e, vg_openapi_bytes(json), out);
    int err = make_json(o, e, out);
    return err < 0 ? err : set_etag(e, vg_buf_slice(out));
}

/* NULL: memory is short. */
static struct vg_openapi_body *plain(const struct vg_openapi *o, struct entry *e,
                                     enum vg_openapi_form form)
{
    struct vg_openapi_body *b = e->kept[form][0];
    const struct vg_openapi_body *json = NULL;
    if (b)
        return b;
    if (form != VG_OPENAPI_JSON && !(json = plain(o, e, VG_OPENAPI_JSON)))
        return NULL;
    b = body_new();
    if (b && make_plain(o, e, json, &b->bytes) < 0) {
        vg_openapi_unref(b);
        b = NULL;
    }
    e->kept[form][0] = b;
    return b;
}

/* Of the plain one; NULL: it does not pay, or memory is short. */
static struct vg_openapi_body *compressed(struct entry *e, enum vg_openapi_form form)
{
    struct vg_openapi_body **slot = &e->kept[form][1];
    struct vg_slice bytes = vg_openapi_bytes(e->kept[form][0]);
    if (*slot || bytes.n <= VG_GZIP_MIN)
        return *slot;
    struct vg_openapi_body *b = body_new();
    if (b && vg_gzip_whole(&b->bytes, bytes) == 0)
        return *slot = b;
    vg_openapi_unref(b);
    return NULL;
}

static void drop(struct entry *e)
{
    for (size_t i = 0; i < VG_OPENAPI_FORMS; i++)
        for (size_t k = 0; k < 2; k++)
            vg_openapi_unref(vg_steal(e->kept[i][k]));
}

/* ---- the set ---- */

static size_t count_versions(const struct vg_group *group)
{
    size_t n = 0;
    while (group->versions[n])
        n++;
    return n;
}

static void add_group(struct vg_openapi *o, const struct vg_group *group)
{
    for (const char *const *v = group->versions; *v; v++) {
        o->v[o->n].group = group;
        o->v[o->n++].version = *v;
    }
}

int vg_openapi_new(const char *git_version, struct vg_openapi **ret_openapi)
{
    size_t n_groups, n = 1;
    const struct vg_group *groups = vg_groups(&n_groups), *core = vg_group_find(VG_SLICE_LIT(""));
    for (size_t i = 0; i < n_groups; i++)
        n += count_versions(&groups[i]);
    n += count_versions(core);
    struct vg_openapi *o = vg_calloc(1, sizeof *o + n * sizeof o->v[0]);
    size_t version_n = strlen(git_version) + 1;
    char *version = vg_malloc(version_n);
    if (!o || !version) {
        vg_free(o);
        vg_free(version);
        return -ENOMEM;
    }
    o->version = memcpy(version, git_version, version_n);
    vg_mutex_init(&o->mu, VG_RANK_DOCUMENTS);
    o->n = 1;
    add_group(o, core);
    for (size_t i = 0; i < n_groups; i++)
        add_group(o, &groups[i]);
    *ret_openapi = o;
    return 0;
}

void vg_openapi_free(struct vg_openapi *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n; i++)
        drop(&o->v[i]);
    vg_mutex_done(&o->mu);
    vg_free(o->version);
    vg_free(o);
}

/* ---- asking ---- */

static void entry_path(const struct entry *e, char ret[PATH_MAX_CHARS])
{
    const char *group = e->group->name;
    snprintf(ret, PATH_MAX_CHARS, "%s%s%s/%s", *group ? "apis" : "api", *group ? "/" : "", group,
             e->version);
}

int vg_openapi_find(const struct vg_openapi *o, struct vg_slice path, size_t *ret_doc)
{
    for (size_t i = 1; i < o->n; i++) {
        char own[PATH_MAX_CHARS];
        entry_path(&o->v[i], own);
        if (vg_slice_eq(path, vg_slice_str(own))) {
            *ret_doc = i;
            return 0;
        }
    }
    return VIGIL_E_NOT_FOUND;
}

const char *vg_openapi_etag(struct vg_openapi *o, size_t doc)
{
    struct entry *e = &o->v[doc];
    if (atomic_load_explicit(&e->has_etag, memory_order_acquire))
        return e->etag;
    /* Not kept: the index asks for all of them. */
    VG_AUTO(buf) json = {0};
    vg_mutex_lock(&o->mu);
    int err = make_json(o, e, &json);
    if (err == 0)
        err = set_etag(e, vg_buf_slice(&json));
    vg_mutex_unlock(&o->mu);
    return err == 0 ? e->etag : NULL;
}

const struct vg_openapi_body *vg_openapi_take(struct vg_openapi *o, size_t doc,
                                              enum vg_openapi_form form, bool wants_gzip,
                                              int64_t now_ms, bool *ret_is_gzip)
{
    struct entry *e = &o->v[doc];
    vg_mutex_lock(&o->mu);
    e->used_ms = now_ms;
    struct vg_openapi_body *b = plain(o, e, form), *gzip;
    *ret_is_gzip = b && wants_gzip && (gzip = compressed(e, form));
    if (*ret_is_gzip)
        b = gzip;
    if (b)
        vg_openapi_ref(b);
    vg_mutex_unlock(&o->mu);
    return b;
}

static size_t bytes_of(const struct entry *e)
{
    size_t n = 0;
    for (size_t i = 0; i < VG_OPENAPI_FORMS; i++)
        for (size_t k = 0; k < 2; k++)
            n += e->kept[i][k] ? e->kept[i][k]->bytes.cap : 0;
    return n;
}

size_t vg_openapi_kept_bytes(struct vg_openapi *o)
{
    size_t n = 0;
    vg_mutex_lock(&o->mu);
    for (size_t i = 0; i < o->n; i++)
        n += bytes_of(&o->v[i]);
    vg_mutex_unlock(&o->mu);
    return n;
}

bool vg_openapi_sweep(struct vg_openapi *o, int64_t now_ms)
{
    bool has_more = false;
    vg_mutex_lock(&o->mu);
    for (size_t i = 0; i < o->n; i++) {
        if (now_ms - o->v[i].used_ms >= VG_OPENAPI_IDLE_MS)
            drop(&o->v[i]);
        has_more |= bytes_of(&o->v[i]) > 0;
    }
    vg_mutex_unlock(&o->mu);
    return has_more;
}

int vg_openapi_index(struct vg_openapi *o, struct vg_buf *out)
{
    struct vg_json_writer w;
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("paths"));
    vg_json_put_begin_object(&w);
    for (size_t i = 1; i < o->n; i++) {
        char path[PATH_MAX_CHARS], url[PATH_MAX_CHARS + 256];
        const char *etag = vg_openapi_etag(o, i);
        if (!etag)
            return -ENOMEM;
        entry_path(&o->v[i], path);
        snprintf(url, sizeof url, "/openapi/v3/%s?hash=%.*s", path, (int)VG_DOC_HASH_CHARS,
                 etag + 1);
        vg_json_put_key(&w, vg_slice_str(path));
        vg_json_put_begin_object(&w);
        vg_json_put_member(&w, "serverRelativeURL", vg_slice_str(url));
        vg_json_put_end_object(&w);
    }
    vg_json_put_end_object(&w);
    vg_json_put_end_object(&w);
    return vg_json_writer_end(&w);
}
