/* openapi.c - the OpenAPI documents as they are kept; see openapi.h.
 * Nobody needs them until kubectl comes, and they are larger than the rest of a small server's
 * heap: so each is made by the first who asks, under a lock that later callers take only to find
 * that it is done. A document does not change once it is made. */
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

struct entry {
    const struct vg_group *group; /* NULL: 2.0, all groups */
    const char *version;
    _Atomic bool is_ready; /* set last */
    struct vg_openapi_doc doc;
};

struct vg_openapi {
    struct vg_mutex mu; /* rank DOCUMENTS: held while one is made */
    char *version;      /* info.version */
    size_t n;           /* the first is 2.0's; then 3.0's, sorted by path */
    struct entry v[];
};

/* ---- making ---- */

static int make_json(const struct vg_openapi *o, struct entry *e)
{
    struct vg_buf *out = &e->doc.body[VG_OPENAPI_JSON];
    return e->group ? vg_openapi_write_v3(out, o->version, e->group, e->version)
                    : vg_openapi_write_v2(out, o->version);
}

static int make_proto(struct entry *e)
{
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 0);
    struct vg_json *root;
    struct vg_buf *out = &e->doc.body[VG_OPENAPI_PROTO];
    int err = vg_json_parse(&arena, vg_buf_slice(&e->doc.body[VG_OPENAPI_JSON]), NULL, &root, NULL);
    if (err < 0)
        return err;
    return e->group ? vg_openapi_proto_v3(out, root) : vg_openapi_proto_v2(out, root);
}

static int make_gzip(struct entry *e)
{
    int err = 0;
    for (size_t i = 0; i < VG_OPENAPI_FORMS && err == 0; i++)
        if (e->doc.body[i].n > VG_GZIP_MIN)
            err = vg_gzip_whole(&e->doc.gzip[i], vg_buf_slice(&e->doc.body[i]));
    return err;
}

static void doc_done(struct vg_openapi_doc *d)
{
    for (size_t i = 0; i < VG_OPENAPI_FORMS; i++) {
        vg_buf_done(&d->body[i]);
        vg_buf_done(&d->gzip[i]);
    }
}

static int make(const struct vg_openapi *o, struct entry *e)
{
    char hash[VG_DOC_HASH_CHARS + 1];
    int err = make_json(o, e);
    if (err == 0)
        err = make_proto(e);
    if (err == 0)
        err = make_gzip(e);
    if (err == 0)
        err = vg_doc_hash(vg_buf_slice(&e->doc.body[VG_OPENAPI_JSON]), hash);
    if (err == 0)
        snprintf(e->doc.etag, sizeof e->doc.etag, "\"%s\"", hash);
    else
        doc_done(&e->doc);
    return err;
}

static int ensure(struct vg_openapi *o, struct entry *e)
{
    if (atomic_load_explicit(&e->is_ready, memory_order_acquire))
        return 0;
    vg_mutex_lock(&o->mu);
    int err = 0;
    if (!atomic_load_explicit(&e->is_ready, memory_order_relaxed)) {
        err = make(o, e);
        if (err == 0)
            atomic_store_explicit(&e->is_ready, true, memory_order_release);
    }
    vg_mutex_unlock(&o->mu);
    return err;
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
        doc_done(&o->v[i].doc);
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

const struct vg_openapi_doc *vg_openapi_v2(struct vg_openapi *o)
{
    return ensure(o, &o->v[0]) < 0 ? NULL : &o->v[0].doc;
}

int vg_openapi_v3(struct vg_openapi *o, struct vg_slice path, const struct vg_openapi_doc **ret_doc)
{
    for (size_t i = 1; i < o->n; i++) {
        char own[PATH_MAX_CHARS];
        entry_path(&o->v[i], own);
        if (!vg_slice_eq(path, vg_slice_str(own)))
            continue;
        int err = ensure(o, &o->v[i]);
        if (err == 0)
            *ret_doc = &o->v[i].doc;
        return err;
    }
    return VIGIL_E_NOT_FOUND;
}

int vg_openapi_index(struct vg_openapi *o, struct vg_buf *out)
{
    struct vg_json_writer w;
    int err = 0;
    vg_json_writer_init(&w, out, 0);
    vg_json_put_begin_object(&w);
    vg_json_put_key(&w, VG_SLICE_LIT("paths"));
    vg_json_put_begin_object(&w);
    for (size_t i = 1; i < o->n && err == 0; i++) {
        char path[PATH_MAX_CHARS], url[PATH_MAX_CHARS + 256];
        err = ensure(o, &o->v[i]);
        entry_path(&o->v[i], path);
        snprintf(url, sizeof url, "/openapi/v3/%s?hash=%.*s", path, (int)VG_DOC_HASH_CHARS,
                 o->v[i].doc.etag + 1);
        vg_json_put_key(&w, vg_slice_str(path));
        vg_json_put_begin_object(&w);
        vg_json_put_member(&w, "serverRelativeURL", vg_slice_str(url));
        vg_json_put_end_object(&w);
    }
    vg_json_put_end_object(&w);
    vg_json_put_end_object(&w);
    return err < 0 ? err : vg_json_writer_end(&w);
}
