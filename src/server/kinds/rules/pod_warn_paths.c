/* pod_warn_paths.c - files of a volume that meet: one path twice, or one below another. */
#include "base/buf.h"
#include "pod_int.h"

/* Files of a volume beyond these are not held against each other. */
#define PATHS_COMPARED_MAX 256u

struct file {
    struct vg_slice path;
    const char *what; /* "ConfigMap"; NULL: what the whole volume is of */
    struct vg_slice name;
};
struct files {
    struct vg_check *c;
    struct vg_slice volume; /* its name, quoted */
    struct file of;         /* what the volume is of: "ConfigMap" and its name */
    struct file *v;
    size_t n;
};

static bool is_below(struct vg_slice s, struct vg_slice folder)
{
    return s.n > folder.n && s.p[folder.n] == '/' && vg_slice_has_prefix(s, folder);
}

/* ConfigMap "name" */
static int append_source(struct vg_buf *b, struct vg_check *c, const struct file *f)
{
    int err = vg_buf_printf(b, "%s", f->what);
    if (err == 0 && f->name.p)
        err = vg_buf_printf(b, " %.*s", VG_SLICE_ARG(vg_json_quoted(c, f->name)));
    return err;
}

static int append_file(struct vg_buf *b, struct vg_check *c, const struct file *f)
{
    int err = vg_buf_printf(b, "%.*s", VG_SLICE_ARG(vg_json_quoted(c, f->path)));
    if (err < 0 || !f->what)
        return err;
    err = vg_buf_printf(b, " (");
    if (err == 0)
        err = append_source(b, c, f);
    return err < 0 ? err : vg_buf_append_byte(b, ')');
}

static void warn(struct files *all, const struct file *a, const struct file *b)
{
    VG_AUTO(buf) text = {0};
    int err = vg_buf_printf(&text, "volume %.*s (", VG_SLICE_ARG(all->volume));
    if (err == 0)
        err = append_source(&text, all->c, &all->of);
    if (err == 0)
        err = vg_buf_printf(&text, "): overlapping paths: ");
    if (err == 0)
        err = append_file(&text, all->c, a);
    if (err == 0)
        err = vg_buf_printf(&text, " with ");
    if (err == 0)
        err = append_file(&text, all->c, b);
    if (err < 0)
        all->c->errors->failed = true;
    else
        vg_caution(all->c, "%.*s", VG_SLICE_ARG(vg_buf_slice(&text)));
}

static void add(struct files *all, struct file f)
{
    while (f.path.n && f.path.p[f.path.n - 1] == '/')
        f.path.n--;
    for (size_t i = 0; i < all->n && f.path.n; i++)
        if (vg_slice_eq(all->v[i].path, f.path) || is_below(all->v[i].path, f.path) ||
            is_below(f.path, all->v[i].path))
            warn(all, &f, &all->v[i]);
    if (all->n == PATHS_COMPARED_MAX)
        return;
    if (!all->v)
        all->v = vg_arena_array(all->c->arena, struct file, PATHS_COMPARED_MAX);
    if (all->v)
        all->v[all->n++] = f;
    else
        all->c->errors->failed = true;
}

static void add_items(struct files *all, const struct vg_json *source, struct file like)
{
    const struct vg_json *items = vg_json_get_str(source, "items");
    if (items)
        VG_JSON_FOREACH_ITEM (it, items) {
            like.path = vg_json_text(vg_json_get_str(it, "path"));
            add(all, like);
        }
}

static struct file source_of(const char *what, const struct vg_json *source, const char *name)
{
    const struct vg_json *v = vg_json_get_str(source, name);
    return (struct file){.what = what, .name = v ? vg_json_text(v) : VG_SLICE_LIT("")};
}

static void warn_one(struct vg_check *c, struct vg_slice volume, struct file of,
                     const struct vg_json *source)
{
    struct files all = {.c = c, .volume = volume, .of = of};
    const struct vg_json *items = vg_json_get_str(source, "items");
    if (items && items->n > 1)
        add_items(&all, source, (struct file){0});
}

static void warn_projected(struct vg_check *c, struct vg_slice volume,
                           const struct vg_json *sources)
{
    struct files all = {.c = c, .volume = volume, .of = {.what = "Projected"}};
    VG_JSON_FOREACH_ITEM (source, sources) {
        const struct vg_json *config = vg_json_get_str(source, "configMap");
        const struct vg_json *secret = vg_json_get_str(source, "secret");
        const struct vg_json *downward = vg_json_get_str(source, "downwardAPI");
        const struct vg_json *token = vg_json_get_str(source, "serviceAccountToken");
        struct file f = {.what = "ServiceAccountToken"};
        if (source->n == 0)
            vg_caution(c, "volume %.*s (Projected) has no sources provided", VG_SLICE_ARG(volume));
        else if (vg_json_get_str(config, "items"))
            add_items(&all, config, source_of("ConfigMap", config, "name"));
        else if (vg_json_get_str(secret, "items"))
            add_items(&all, secret, source_of("Secret", secret, "name"));
        else if (vg_json_get_str(downward, "items"))
            add_items(&all, downward, (struct file){.what = "DownwardAPI"});
        else if (token) {
            f.path = vg_json_text(vg_json_get_str(token, "path"));
            add(&all, f);
        }
    }
}

void vg_pod_warn_paths(struct vg_pod *p)
{
    struct vg_at volumes = vg_at(p->spec, "volumes");
    VG_CHECK_EACH (p->c, volume, &volumes) {
        const struct vg_json *config = vg_json_get_str(volume.v, "configMap");
        const struct vg_json *secret = vg_json_get_str(volume.v, "secret");
        const struct vg_json *downward = vg_json_get_str(volume.v, "downwardAPI");
        const struct vg_json *projected = vg_json_get_str(volume.v, "projected");
        const struct vg_json *sources = vg_json_get_str(projected, "sources");
        if (!config && !secret && !downward && !sources)
            continue;
        struct vg_slice name =
            vg_json_quoted(p->c, vg_json_text(vg_json_get_str(volume.v, "name")));
        warn_one(p->c, name, source_of("ConfigMap", config, "name"), config);
        warn_one(p->c, name, source_of("Secret", secret, "secretName"), secret);
        warn_one(p->c, name, (struct file){.what = "DownwardAPI"}, downward);
        if (sources)
            warn_projected(p->c, name, sources);
    }
}
