/* kinds.c - discovery: /api/v1 first, then the groups one by one until the kind is found. */
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "cli.h"

void vg_kinds_init(struct vg_kinds *k)
{
    *k = (struct vg_kinds){0};
    vg_arena_init(&k->arena, 0, VG_KINDS_BYTES_MAX);
    k->last = &k->first;
}

void vg_kinds_done(struct vg_kinds *k)
{
    vg_arena_done(&k->arena);
}

/* ---- reading answers ---- */

static struct vigil_value document(struct vigil_text json)
{
    return vigil_value_get((struct vigil_value){VIGIL_OBJECT, json}, "");
}

static char *copy_text(struct vg_kinds *k, const char *p, size_t n)
{
    char *s = vg_arena_alloc(&k->arena, n + 1, 1);
    if (!s)
        return NULL;
    if (n)
        memcpy(s, p, n);
    s[n] = 0;
    return s;
}

static char *copy_member(struct vg_kinds *k, struct vigil_value v, const char *name)
{
    struct vigil_text t = vigil_value_string(vigil_value_get(v, name));
    return copy_text(k, t.p, t.p ? t.n : 0);
}

static bool has_text(struct vigil_value array, const char *text)
{
    struct vigil_iter at = {0};
    struct vigil_value v;
    while (vigil_value_next(array, &at, NULL, &v))
        if (vigil_text_is(vigil_value_string(v), text))
            return true;
    return false;
}

/* ["a","b"] as a,b: room for the JSON is room for the text. */
static char *copy_joined(struct vg_kinds *k, struct vigil_value array)
{
    struct vigil_iter at = {0};
    struct vigil_value v;
    size_t n = 0;
    char *s = vg_arena_alloc(&k->arena, array.raw.n + 1, 1);
    while (s && vigil_value_next(array, &at, NULL, &v)) {
        struct vigil_text t = vigil_value_string(v);
        if (!t.n)
            continue;
        if (n)
            s[n++] = ',';
        memcpy(s + n, t.p, t.n);
        n += t.n;
    }
    if (s)
        s[n] = 0;
    return s;
}

static int add_kind(struct vg_kinds *k, struct vigil_value v, const char *group,
                    const char *version)
{
    struct vg_kind *kind = vg_arena_new(&k->arena, struct vg_kind);
    struct vigil_value verbs = vigil_value_get(v, "verbs");
    if (!kind)
        return -ENOMEM;
    *kind = (struct vg_kind){.r = {.group = group,
                                   .version = version,
                                   .plural = copy_member(k, v, "name"),
                                   .kind = copy_member(k, v, "kind")},
                             .singular = copy_member(k, v, "singularName"),
                             .shorts = copy_joined(k, vigil_value_get(v, "shortNames"))};
    kind->r.namespaced = vigil_value_bool(vigil_value_get(v, "namespaced"), false);
    kind->can_list = has_text(verbs, "list");
    kind->can_watch = has_text(verbs, "watch");
    if (!kind->r.plural || !kind->r.kind || !kind->singular || !kind->shorts)
        return -ENOMEM;
    if (!*kind->r.plural || strchr(kind->r.plural, '/')) /* a subresource */
        return 0;
    *k->last = kind;
    k->last = &kind->next;
    return 0;
}

int vg_kinds_add(struct vg_kinds *k, struct vigil_text json, const char *group_version)
{
    const char *slash = strchr(group_version, '/');
    const char *group = copy_text(k, group_version, slash ? (size_t)(slash - group_version) : 0);
    const char *version = slash ? slash + 1 : group_version;
    struct vigil_iter at = {0};
    struct vigil_value v, resources = vigil_value_get(document(json), "resources");
    version = copy_text(k, version, strlen(version));
    if (!group || !version)
        return -ENOMEM;
    while (resources.type == VIGIL_ARRAY && vigil_value_next(resources, &at, NULL, &v)) {
        int r = add_kind(k, v, group, version);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The preferred versions of an APIGroupList. */
static int add_groups(struct vg_kinds *k, struct vigil_text json)
{
    struct vigil_value v, groups = vigil_value_get(document(json), "groups");
    size_t n = 0;
    for (struct vigil_iter at = {0}; vigil_value_next(groups, &at, NULL, &v);)
        n++;
    k->groups = vg_arena_array(&k->arena, char *, n + 1);
    if (!k->groups)
        return -ENOMEM;
    size_t i = 0;
    for (struct vigil_iter at = {0}; i < n && vigil_value_next(groups, &at, NULL, &v); i++) {
        k->groups[i] = copy_member(k, v, "preferredVersion.groupVersion");
        if (!k->groups[i])
            return -ENOMEM;
    }
    k->groups[i] = NULL;
    k->has_groups = true;
    return 0;
}

/* ---- finding ---- */

static bool is_among(const char *list, const char *name, size_t n)
{
    while (*list) {
        size_t m = strcspn(list, ",");
        if (m == n && memcmp(list, name, n) == 0)
            return true;
        list += m + (list[m] == ',');
    }
    return false;
}

static bool is_text(const char *text, const char *name, size_t n)
{
    return strlen(text) == n && strncasecmp(text, name, n) == 0;
}

static bool is_named(const struct vg_kind *k, const char *name)
{
    const char *dot = strchr(name, '.');
    size_t n = dot ? (size_t)(dot - name) : strlen(name);
    if (dot && strcmp(dot + 1, k->r.group) != 0)
        return false;
    return is_text(k->r.plural, name, n) || is_text(k->singular, name, n) ||
           is_text(k->r.kind, name, n) || is_among(k->shorts, name, n);
}

const struct vg_kind *vg_kinds_match(const struct vg_kinds *k, const char *name)
{
    for (const struct vg_kind *kind = k->first; kind; kind = kind->next)
        if (is_named(kind, name))
            return kind;
    return NULL;
}

/* How many letters must be changed, put in or left out; names of kinds are short, longer ones are
 * far from everything. */
#define NEAR_LENGTH_MAX 63u
static unsigned distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned row[NEAR_LENGTH_MAX + 1];
    if (n > NEAR_LENGTH_MAX || m > NEAR_LENGTH_MAX)
        return NEAR_LENGTH_MAX;
    for (unsigned j = 0; j <= m; j++)
        row[j] = j;
    for (unsigned i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= m; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = VG_MIN(change, VG_MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[m];
}

const char *vg_kinds_near(const struct vg_kinds *k, const char *name)
{
    const char *best = NULL;
    unsigned least = 3; /* more than two slips are another word */
    for (const struct vg_kind *kind = k->first; kind; kind = kind->next) {
        unsigned d = VG_MIN(distance(name, kind->r.plural), distance(name, kind->singular));
        if (d < least) {
            least = d;
            best = kind->r.plural;
        }
    }
    return best;
}

/* ---- asking ---- */

static int no_memory(struct vigil_error *err)
{
    *err = (struct vigil_error){.code = VIGIL_E_MEMORY};
    snprintf(err->message, sizeof err->message, "out of memory");
    return VIGIL_E_MEMORY;
}

static int ask(struct vg_cli *cli, const char *path, const char *group_version,
               struct vigil_error *err)
{
    VG_AUTO(buf) body = {0};
    int r = vg_cli_fetch(cli, path, NULL, &body, err);
    if (r < 0)
        return r;
    struct vigil_text json = {body.p, body.n};
    r = group_version ? vg_kinds_add(&cli->kinds, json, group_version)
                      : add_groups(&cli->kinds, json);
    return r < 0 ? no_memory(err) : 0;
}

/* Learn of some more kinds. 1; 0: there are no more; what a request failed with. A group whose own
 * server is down is passed over. */
static int ask_more(struct vg_cli *cli, struct vigil_error *err)
{
    struct vg_kinds *k = &cli->kinds;
    char path[512];
    int r = 0;
    if (!k->has_core) {
        r = ask(cli, "/api/v1", "v1", err);
        k->has_core = true;
        return r < 0 ? r : 1;
    }
    if (!k->has_groups) {
        r = ask(cli, "/apis", NULL, err);
        return r < 0 ? r : 1;
    }
    const char *group = k->groups[k->next_group];
    if (!group)
        return 0;
    k->next_group++;
    if ((size_t)snprintf(path, sizeof path, "/apis/%s", group) >= sizeof path)
        return 1;
    r = ask(cli, path, group, err);
    if (r == VIGIL_E_MEMORY || r == VIGIL_E_CANCELED || r == VIGIL_E_NETWORK)
        return r;
    k->failed_groups += r < 0;
    return 1;
}

int vg_kinds_all(struct vg_cli *cli, struct vigil_error *err)
{
    int r;
    do
        r = ask_more(cli, err);
    while (r > 0);
    return r;
}

static int not_found(struct vg_cli *cli, const char *name, struct vigil_error *err)
{
    const char *near = vg_kinds_near(&cli->kinds, name);
    char more[128] = "";
    if (near)
        snprintf(more, sizeof more, "did you mean %s? ", near);
    *err = (struct vigil_error){.code = VIGIL_E_NOT_FOUND};
    if (strchr(name, ',')) {
        snprintf(err->message, sizeof err->message, "one kind at a time, not \"%.64s\"", name);
        return VIGIL_E_NOT_FOUND;
    }
    snprintf(err->message, sizeof err->message,
             "the server has no kind \"%.64s\"%s: %s`vigil kinds` lists what it has", name,
             cli->kinds.failed_groups ? ", or a group that does not answer has it" : "", more);
    return VIGIL_E_NOT_FOUND;
}

int vg_kinds_find(struct vg_cli *cli, const char *name, const struct vg_kind **ret,
                  struct vigil_error *err)
{
    const struct vg_kind *kind;
    int r = 1;
    while (!(kind = vg_kinds_match(&cli->kinds, name)) && r > 0)
        r = ask_more(cli, err);
    if (!kind)
        return r < 0 ? r : not_found(cli, name, err);
    *ret = kind;
    return 0;
}
