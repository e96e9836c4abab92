/* managers.c - managedFields; see managers.h. */
#include "managers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- a list of managers ---- */

bool vg_manager_is(const struct vg_manager *x, const struct vg_manager *y)
{
    return x->applies == y->applies && vg_slice_eq(x->name, y->name) &&
           vg_slice_eq(x->subresource, y->subresource) &&
           (x->applies || vg_slice_eq(x->api_version, y->api_version));
}

struct vg_manager *vg_managers_find(const struct vg_managers *m, const struct vg_manager *like)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (vg_manager_is(&m->v[i], like))
            return &m->v[i];
    return NULL;
}

static int reserve(struct vg_arena *a, struct vg_managers *m, size_t n)
{
    if (n <= m->room)
        return 0;
    struct vg_manager *v = vg_arena_array(a, struct vg_manager, n);
    if (!v)
        return -ENOMEM;
    if (m->n)
        memcpy(v, m->v, m->n * sizeof *v);
    m->v = v;
    m->room = (uint32_t)n;
    return 0;
}

int vg_managers_add(struct vg_arena *a, struct vg_managers *m, const struct vg_manager *one)
{
    int err = m->n == m->room ? reserve(a, m, m->n + 4) : 0;
    if (err == 0)
        m->v[m->n++] = *one;
    return err;
}

void vg_managers_remove(struct vg_managers *m, uint32_t i)
{
    m->n--;
    memmove(&m->v[i], &m->v[i + 1], (m->n - i) * sizeof *m->v);
}

void vg_manager_set(struct vg_manager *m, const struct vg_json *fields)
{
    bool is_same = m->fields.n == fields->n && m->fields.members == fields->members;
    m->fields = *fields;
    if (!is_same)
        m->stored = NULL;
}

/* ---- reading ---- */

static int read_entry(struct vg_arena *a, const struct vg_json *e, uint32_t i, bool is_trusted,
                      struct vg_manager *ret, struct vg_status *status)
{
    struct vg_slice op = vg_json_text(vg_json_get_str(e, "operation"));
    struct vg_slice type = vg_json_text(vg_json_get_str(e, "fieldsType"));
    const struct vg_json *fields = vg_json_get_str(e, "fieldsV1");
    bool updates = vg_slice_eq(op, VG_SLICE_LIT("Update"));
    *ret = (struct vg_manager){
        .name = vg_json_text(vg_json_get_str(e, "manager")),
        .api_version = vg_json_text(vg_json_get_str(e, "apiVersion")),
        .subresource = vg_json_text(vg_json_get_str(e, "subresource")),
        .time = vg_json_text(vg_json_get_str(e, "time")),
        .applies = vg_slice_eq(op, VG_SLICE_LIT("Apply")),
    };
    if (!updates && !ret->applies)
        return vg_fail(status, VIGIL_E_INVALID, "operation must be `Apply` or `Update`");
    if (ret->api_version.n == 0)
        return vg_fail(status, VIGIL_E_INVALID, "apiVersion must not be empty");
    if (type.n == 0)
        return vg_fail(status, VIGIL_E_INVALID, "missing fieldsType in managed fields entry %u", i);
    if (!vg_slice_eq(type, VG_SLICE_LIT("FieldsV1")))
        return vg_fail(status, VIGIL_E_INVALID,
                       "invalid fieldsType \"%.*s\" in managed fields entry %u", VG_SLICE_ARG(type),
                       i);
    bool is_closed = fields && vg_fields_is_closed(fields);
    if (!is_trusted || !(is_closed || vg_json_is(fields, VG_JSON_OBJECT)))
        return vg_fields_read(a, fields, &ret->fields, status);
    ret->fields = *fields;
    ret->stored = e;
    return 0;
}

static int by_identity(const struct vg_manager *x, const struct vg_manager *y)
{
    int c = (int)x->applies - (int)y->applies;
    if (c == 0)
        c = vg_slice_cmp(x->name, y->name);
    if (c == 0)
        c = vg_slice_cmp(x->subresource, y->subresource);
    return c || x->applies ? c : vg_slice_cmp(x->api_version, y->api_version);
}

static int by_identity_and_place(const void *a, const void *b)
{
    const struct vg_manager *x = *(const struct vg_manager *const *)a,
                            *y = *(const struct vg_manager *const *)b;
    int c = by_identity(x, y);
    return c ? c : (x > y) - (x < y);
}

/* Of entries with one identity the last counts. */
static int drop_repeated(struct vg_arena *a, struct vg_managers *m)
{
    const struct vg_manager **sorted = vg_arena_array(a, const struct vg_manager *, m->n + 1u);
    struct vg_managers kept = {0};
    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n; i++)
        sorted[i] = &m->v[i];
    qsort(sorted, m->n, sizeof *sorted, by_identity_and_place);
    bool repeats = false;
    for (uint32_t i = 1; i < m->n; i++)
        repeats = repeats || by_identity(sorted[i - 1], sorted[i]) == 0;
    if (!repeats)
        return 0;
    int err = reserve(a, &kept, m->n);
    for (uint32_t i = 0; i < m->n && err == 0; i++)
        if (i + 1 == m->n || by_identity(sorted[i], sorted[i + 1]) != 0)
            err = vg_managers_add(a, &kept, sorted[i]);
    *m = kept;
    return err;
}

int vg_managers_read(struct vg_arena *a, const struct vg_json *list, bool is_trusted,
                     struct vg_managers *ret, struct vg_status *reterr_status)
{
    struct vg_managers m = {0};
    uint32_t n = vg_json_is(list, VG_JSON_ARRAY) ? list->n : 0;
    int err = n ? reserve(a, &m, n + 1) : 0;
    for (uint32_t i = 0; i < n && err == 0; i++)
        err = read_entry(a, &list->items[i], i, is_trusted, &m.v[m.n++], reterr_status);
    if (err == 0 && n > 1)
        err = drop_repeated(a, &m);
    if (err == 0)
        *ret = m;
    return err;
}

/* ---- writing ---- */

static int in_order(const void *a, const void *b)
{
    const struct vg_manager *x = a, *y = b;
    int c = (int)y->applies - (int)x->applies; /* Apply before Update */
    if (c == 0)
        c = vg_slice_cmp(x->time, y->time);
    if (c == 0)
        c = vg_slice_cmp(x->name, y->name);
    if (c == 0)
        c = vg_slice_cmp(x->api_version, y->api_version);
    return c ? c : vg_slice_cmp(x->subresource, y->subresource);
}

static void add_text(struct vg_json *out, const char *name, struct vg_slice text)
{
    if (text.n)
        out->members[out->n++] = (struct vg_json_member){
            .key = name, .key_n = (uint32_t)strlen(name), .value = vg_json_string_ref(text)};
}

/* Of most objects the set is shorter; so it is one piece of memory, of a size that is at hand. */
#define SET_BYTES ((size_t)1000)

static int write_set(struct vg_arena *a, const struct vg_json *set, struct vg_slice source,
                     struct vg_json *ret)
{
    struct vg_slice text =
        vg_fields_is_closed(set) ? vg_json_text(set) : vg_fields_source(set, source);
    VG_AUTO(buf) out = {0};
    int err = 0;
    if (text.n == 0) {
        err = vg_buf_reserve(&out, SET_BYTES);
        if (err == 0)
            err = vg_fields_print(&out, set, source);
        if (err == 0)
            err = vg_arena_keep(a, vg_buf_slice(&out), &text);
    }
    if (err == 0)
        *ret = vg_fields_text(text);
    return err;
}

static int write_entry(struct vg_arena *a, const struct vg_manager *m, struct vg_slice source,
                       struct vg_json *ret)
{
    struct vg_slice text = m->stored ? vg_fields_source(m->stored, source) : vg_slice(NULL, 0);
    struct vg_json set;
    if (text.n) {
        *ret = vg_fields_text(text);
        return 0;
    }
    int err = write_set(a, &m->fields, source, &set);
    if (err < 0)
        return err;
    *ret = vg_json_object();
    ret->members = vg_arena_array(a, struct vg_json_member, 7);
    if (!ret->members)
        return -ENOMEM;
    add_text(ret, "manager", m->name);
    add_text(ret, "operation", m->applies ? VG_SLICE_LIT("Apply") : VG_SLICE_LIT("Update"));
    add_text(ret, "apiVersion", m->api_version);
    add_text(ret, "time", m->time);
    add_text(ret, "fieldsType", VG_SLICE_LIT("FieldsV1"));
    ret->members[ret->n++] = (struct vg_json_member){.key = "fieldsV1", .key_n = 8, .value = set};
    add_text(ret, "subresource", m->subresource);
    return 0;
}

int vg_managers_write(struct vg_arena *a, const struct vg_managers *m, struct vg_slice source,
                      struct vg_json **ret)
{
    *ret = NULL;
    if (m->n == 0)
        return 0;
    struct vg_json *list = vg_arena_new(a, struct vg_json);
    struct vg_json *items = vg_arena_array(a, struct vg_json, m->n);
    if (!list || !items)
        return -ENOMEM;
    int err = 0;
    if (m->n > 1)
        qsort(m->v, m->n, sizeof *m->v, in_order);
    for (uint32_t i = 0; i < m->n && err == 0; i++)
        err = write_entry(a, &m->v[i], source, &items[i]);
    *list = (struct vg_json){.type = VG_JSON_ARRAY, .n = m->n, .items = items};
    *ret = list;
    return err;
}

static bool is_same_text(const struct vg_json *text, const struct vg_json *was,
                         struct vg_slice source)
{
    return was && vg_slice_eq(vg_json_text(text), vg_fields_source(was, source));
}

static bool is_same_but_time(const struct vg_json *entry, const struct vg_json *was,
                             struct vg_slice source)
{
    static const char *const names[] = {"manager", "operation", "apiVersion", "subresource"};
    if (entry->type == VG_JSON_NUMBER)
        return is_same_text(entry, was, source);
    for (size_t i = 0; i < VG_ARRAY_LEN(names); i++)
        if (!vg_slice_eq(vg_json_text(vg_json_get_str(entry, names[i])),
                         vg_json_text(vg_json_get_str(was, names[i]))))
            return false;
    return is_same_text(vg_json_get_str(entry, "fieldsV1"), vg_json_get_str(was, "fieldsV1"),
                        source);
}

bool vg_managers_differ_in_time(const struct vg_json *written, const struct vg_json *was,
                                struct vg_slice source)
{
    if (!written || !was || written->n != was->n)
        return false;
    for (uint32_t i = 0; i < was->n; i++)
        if (!is_same_but_time(&written->items[i], &was->items[i], source))
            return false;
    return true;
}

/* ---- changing ---- */

int vg_managers_lose(struct vg_arena *a, struct vg_managers *m, const struct vg_manager *except,
                     vg_managers_delta_fn *delta, void *arg)
{
    for (uint32_t i = 0; i < m->n;) {
        struct vg_manager *one = &m->v[i];
        const struct vg_fields_delta *d;
        struct vg_json left;
        if (except && vg_manager_is(one, except)) {
            i++;
            continue;
        }
        int err = delta(arg, one->api_version, &d);
        if (err < 0)
            return err;
        if (err == 0) {
            vg_managers_remove(m, i);
            continue;
        }
        err = vg_fields_combine(a, VG_FIELDS_DIFFERENCE, &one->fields, &d->changed, &left);
        if (err == 0)
            err = vg_fields_combine(a, VG_FIELDS_DIFFERENCE, &left, &d->removed, &left);
        if (err < 0)
            return err;
        vg_manager_set(one, &left);
        if (vg_fields_is_empty(&left))
            vg_managers_remove(m, i);
        else
            i++;
    }
    return 0;
}

static int by_age(const void *a, const void *b)
{
    const struct vg_manager *x = *(struct vg_manager *const *)a,
                            *y = *(struct vg_manager *const *)b;
    int c = vg_slice_cmp(x->time, y->time);
    if (c == 0) /* as the texts of their identities stand: name, version, subresource */
        c = vg_slice_cmp(x->name, y->name);
    if (c == 0)
        c = vg_slice_cmp(x->api_version, y->api_version);
    if (c == 0)
        c = (x->subresource.n == 0) - (y->subresource.n == 0);
    return c ? c : vg_slice_cmp(x->subresource, y->subresource);
}

/* What holds the old ones of a version: from before, or the first that is too old. */
static struct vg_manager *bucket_of(const struct vg_managers *all, struct vg_manager **old,
                                    uint32_t n, const struct vg_manager *m)
{
    const struct vg_manager like = {.name = VG_SLICE_LIT("ancient-changes"),
                                    .api_version = m->api_version,
                                    .subresource = VG_SLICE_LIT("")};
    struct vg_manager *bucket = vg_managers_find(all, &like);
    if (bucket)
        return bucket == m ? NULL : bucket;
    for (uint32_t i = 0; i < n; i++)
        if (old[i] && vg_slice_eq(old[i]->api_version, m->api_version))
            return old[i];
    return NULL;
}

/* The oldest of those who update become one for each version, until they are few enough. */
static int cap(struct vg_arena *a, struct vg_managers *m)
{
    struct vg_manager **old = NULL;
    uint32_t n = 0;
    if (m->n <= VG_MANAGERS_UPDATE_MAX)
        return 0;
    old = vg_arena_array(a, struct vg_manager *, m->n);
    if (!old)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n; i++)
        if (!m->v[i].applies)
            old[n++] = &m->v[i];
    qsort(old, n, sizeof *old, by_age);
    int err = 0;
    for (uint32_t i = 0, left = n; i < n && left > VG_MANAGERS_UPDATE_MAX && err == 0; i++) {
        struct vg_manager *one = old[i], *bucket = bucket_of(m, old, i, one);
        if (!bucket)
            continue;
        struct vg_json both;
        err = vg_fields_combine(a, VG_FIELDS_UNION, &one->fields, &bucket->fields, &both);
        bucket->name = VG_SLICE_LIT("ancient-changes");
        bucket->subresource = VG_SLICE_LIT("");
        bucket->time = one->time;
        bucket->fields = both;
        bucket->stored = NULL;
        one->fields = vg_json_object();
        old[i] = NULL;
        left--;
    }
    for (uint32_t i = 0; i < m->n;)
        if (vg_fields_is_empty(&m->v[i].fields))
            vg_managers_remove(m, i);
        else
            i++;
    return err;
}

int vg_managers_update(struct vg_arena *a, struct vg_managers *m, const struct vg_manager *who,
                       vg_managers_delta_fn *delta, void *arg)
{
    const struct vg_fields_delta *d;
    struct vg_json fields;
    int err = delta(arg, who->api_version, &d);
    if (err <= 0)
        return err < 0 ? err : VIGIL_E_INTERNAL;
    err = vg_managers_lose(a, m, who, delta, arg);
    struct vg_manager *own = vg_managers_find(m, who);
    if (err == 0 && own) {
        err = vg_fields_combine(a, VG_FIELDS_DIFFERENCE, &own->fields, &d->removed, &fields);
        if (err == 0)
            err = vg_fields_combine(a, VG_FIELDS_UNION, &fields, &d->changed, &fields);
        if (err < 0)
            return err;
        vg_manager_set(own, &fields);
    } else if (err == 0 && !vg_fields_is_empty(&d->changed)) {
        struct vg_manager one = *who;
        one.fields = d->changed;
        err = vg_managers_add(a, m, &one);
        own = err == 0 ? &m->v[m->n - 1] : NULL;
    }
    if (err < 0 || !own)
        return err;
    if (!vg_fields_is_empty(&d->changed) && !vg_slice_eq(own->time, who->time)) {
        own->time = who->time;
        own->stored = NULL;
    }
    if (vg_fields_is_empty(&own->fields))
        vg_managers_remove(m, (uint32_t)(own - m->v));
    return cap(a, m);
}
