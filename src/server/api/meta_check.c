/* meta_check.c - is this metadata allowed? In the words and the order of kube-apiserver. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/map.h"
#include "meta.h"
#include "object/quote.h"
#include "object/validate_name.h"
#include "server/kinds/rules/rules.h"
#include "status_int.h"
#include "json/equal.h"
#include "json/write.h"

/* 256 KiB, keys and values together. */
#define ANNOTATIONS_MAX ((size_t)256 << 10)
/* Of owners beyond the first that say they control; each error shows all owners. */
#define CONTROLLERS_TOLD_MAX 8u
/* 4 KiB of uids that are there twice: warnings are cut there. */
#define UIDS_TOLD_MAX ((size_t)4 << 10)
#define FINALIZER_ORPHAN "orphan"
#define FINALIZER_FOREGROUND "foregroundDeletion"

struct vg_slice vg_api_quote(struct vg_arena *a, struct vg_slice s)
{
    VG_AUTO(buf) b = {0};
    char *p = vg_quote_append(&b, s) < 0 ? NULL : vg_arena_copy(a, b.p, b.n);
    return p ? vg_slice(p, b.n) : VG_SLICE_LIT("\"...\"");
}

struct vg_slice vg_api_json(struct vg_arena *a, const struct vg_json *v)
{
    VG_AUTO(buf) b = {0};
    char *p = vg_json_write(&b, v, VG_JSON_ESCAPE_HTML) < 0 ? NULL : vg_arena_copy(a, b.p, b.n);
    return p ? vg_slice(p, b.n) : VG_SLICE_LIT("...");
}

static struct vg_slice number(struct vg_arena *a, int64_t i)
{
    struct vg_slice text;
    return vg_arena_printf(a, &text, "%" PRId64, i) < 0 ? VG_SLICE_LIT("...") : text;
}

static void invalid_text(struct vg_field_errors *e, const char *field, struct vg_slice value,
                         const char *why)
{
    if (!vg_field_errors_is_full(e))
        vg_field_invalid(e, field, vg_api_quote(e->arena, value), "%s", why);
}

static void all_reasons(struct vg_field_errors *e, const char *field, struct vg_slice value,
                        const struct vg_name_reasons *why)
{
    for (uint32_t i = 0; i < why->n; i++)
        invalid_text(e, field, value, why->v[i]);
}

struct name_rule {
    enum vg_kind_name_rule rule;
    enum vg_name_unit unit;
    const struct vg_kind *kind;
};

static bool is_name(struct vg_slice s, const struct name_rule *r, struct vg_name_reasons *why)
{
    switch (r->rule) {
    case VG_NAME_LABEL:
        return vg_validate_dns1123_label(s, r->unit, why);
    case VG_NAME_LABEL_1035:
        return vg_validate_dns1035_label(s, why);
    case VG_NAME_PATH_SEGMENT:
        return vg_validate_path_segment(s, why);
    case VG_NAME_ANY:
        return true;
    case VG_NAME_SUBDOMAIN:
        break;
    }
    return vg_validate_dns1123_subdomain(s, r->unit, why);
}

/* What the kind itself has against a name. */
static void refuse_name(struct vg_field_errors *e, const char *field, struct vg_slice name,
                        const struct vg_kind *kind, const struct vg_json *obj)
{
    const struct vg_rules *rules = obj ? vg_rules_of(kind) : NULL;
    const char *why = rules && rules->refuse_name ? rules->refuse_name(e, obj, name) : NULL;
    if (why)
        invalid_text(e, field, name, why);
}

/* A prefix may end with a dash, which the suffix then covers. */
static void check_generate_name(struct vg_field_errors *e, struct vg_slice s,
                                const struct name_rule *rule, const struct vg_json *obj)
{
    struct vg_name_reasons why = {0};
    struct vg_slice masked = s;
    if (rule->rule != VG_NAME_PATH_SEGMENT && s.n > 1 && s.p[s.n - 1] == '-') {
        char *p = vg_arena_copy(e->arena, s.p, s.n - 1);
        if (!p) {
            e->failed = true;
            return;
        }
        p[s.n - 2] = 'a';
        masked = vg_slice(p, s.n - 1);
    }
    if (!is_name(masked, rule, &why))
        all_reasons(e, "metadata.generateName", s, &why);
    refuse_name(e, "metadata.generateName", s, rule->kind, obj);
}

static void check_labels(struct vg_field_errors *e, const struct vg_json *labels)
{
    if (!labels)
        return;
    VG_JSON_FOREACH_MEMBER (m, labels) {
        struct vg_name_reasons why = {0};
        if (vg_field_errors_is_full(e))
            return;
        if (!vg_validate_label_key(vg_json_key(m), &why))
            all_reasons(e, "metadata.labels", vg_json_key(m), &why);
        why = (struct vg_name_reasons){0};
        if (!vg_validate_label_value(vg_json_text(&m->value), &why))
            all_reasons(e, "metadata.labels", vg_json_text(&m->value), &why);
    }
}

static struct vg_slice lower(struct vg_arena *a, struct vg_slice s)
{
    char *p = vg_arena_copy(a, s.p, s.n);
    for (size_t i = 0; p && i < s.n; i++)
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] = (char)(p[i] - 'A' + 'a');
    return p ? vg_slice(p, s.n) : s;
}

static bool has_upper(struct vg_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= 'A' && s.p[i] <= 'Z')
            return true;
    return false;
}

static void check_annotations(struct vg_field_errors *e, const struct vg_json *annotations)
{
    size_t total = 0;
    if (!annotations)
        return;
    VG_JSON_FOREACH_MEMBER (m, annotations) {
        struct vg_name_reasons why = {0};
        struct vg_slice key = vg_json_key(m);
        total += key.n + m->value.n;
        if (!vg_validate_label_key(has_upper(key) ? lower(e->arena, key) : key, &why))
            all_reasons(e, "metadata.annotations", key, &why);
    }
    if (total > ANNOTATIONS_MAX)
        vg_field_too_long(e, "metadata.annotations", "bytes", ANNOTATIONS_MAX);
}

/* The version of "group/version"; empty when there is none, or too many slashes. */
static struct vg_slice version_of(struct vg_slice api_version)
{
    const char *slash = api_version.n ? memchr(api_version.p, '/', api_version.n) : NULL;
    if (!slash)
        return api_version;
    size_t at = (size_t)(slash - api_version.p) + 1;
    struct vg_slice rest = vg_slice(slash + 1, api_version.n - at);
    return memchr(rest.p, '/', rest.n) ? VG_SLICE_LIT("") : rest;
}

static void check_owner(struct vg_field_errors *e, const struct vg_json *owner)
{
    static const char *const must[] = {"kind", "name", "uid"};
    static const char *const fields[] = {"metadata.ownerReferences.kind",
                                         "metadata.ownerReferences.name",
                                         "metadata.ownerReferences.uid"};
    struct vg_slice api_version = vg_json_text(vg_json_get_str(owner, "apiVersion"));
    if (version_of(api_version).n == 0)
        invalid_text(e, "metadata.ownerReferences.apiVersion", api_version,
                     "version must not be empty");
    for (size_t i = 0; i < VG_ARRAY_LEN(must); i++)
        if (vg_json_text(vg_json_get_str(owner, must[i])).n == 0)
            invalid_text(e, fields[i], VG_SLICE_LIT(""), "must not be empty");
    struct vg_slice kind = vg_json_text(vg_json_get_str(owner, "kind"));
    if (vg_slice_eq(api_version, VG_SLICE_LIT("v1")) && vg_slice_eq(kind, VG_SLICE_LIT("Event")) &&
        !vg_field_errors_is_full(e))
        vg_field_invalid(e, "metadata.ownerReferences", vg_api_json(e->arena, owner),
                         "/v1, Kind=Event is disallowed from being an owner");
}

static void check_owners(struct vg_field_errors *e, const struct vg_json *owners)
{
    const struct vg_json *first = NULL;
    unsigned told = 0;
    if (!owners)
        return;
    VG_JSON_FOREACH_ITEM (owner, owners) {
        if (vg_field_errors_is_full(e))
            return;
        check_owner(e, owner);
        if (!vg_json_is_true(vg_json_get_str(owner, "controller")))
            continue;
        if (!first) {
            first = owner;
            continue;
        }
        if (told++ == CONTROLLERS_TOLD_MAX || vg_field_errors_is_full(e))
            return;
        vg_field_invalid(e, "metadata.ownerReferences", vg_api_json(e->arena, owners),
                         "Only one reference can have Controller set to true. Found \"true\" in "
                         "references for %.*s/%.*s and %.*s/%.*s",
                         VG_SLICE_ARG(vg_json_text(vg_json_get_str(first, "kind"))),
                         VG_SLICE_ARG(vg_json_text(vg_json_get_str(first, "name"))),
                         VG_SLICE_ARG(vg_json_text(vg_json_get_str(owner, "kind"))),
                         VG_SLICE_ARG(vg_json_text(vg_json_get_str(owner, "name"))));
    }
}

bool vg_meta_has_finalizer(const struct vg_meta *m, const char *name)
{
    if (!m->finalizers)
        return false;
    VG_JSON_FOREACH_ITEM (it, m->finalizers)
        if (vg_slice_eq(vg_json_text(it), vg_slice_str(name)))
            return true;
    return false;
}

static void check_finalizer_names(struct vg_field_errors *e, const struct vg_meta *m)
{
    if (!m->finalizers)
        return;
    VG_JSON_FOREACH_ITEM (it, m->finalizers) {
        struct vg_name_reasons why = {0};
        if (vg_field_errors_is_full(e))
            return;
        if (!vg_validate_label_key(vg_json_text(it), &why))
            all_reasons(e, "metadata.finalizers", vg_json_text(it), &why);
    }
    if (vg_meta_has_finalizer(m, FINALIZER_ORPHAN) &&
        vg_meta_has_finalizer(m, FINALIZER_FOREGROUND))
        vg_field_invalid(e, "metadata.finalizers", vg_api_json(e->arena, m->finalizers),
                         "finalizer " FINALIZER_ORPHAN " and " FINALIZER_FOREGROUND
                         " cannot be both set");
}

static bool is_standard_or_qualified(struct vg_slice name)
{
    static const char *const standard[] = {"kubernetes", FINALIZER_ORPHAN, FINALIZER_FOREGROUND};
    bool is_fine = name.n && memchr(name.p, '/', name.n);
    for (size_t k = 0; k < VG_ARRAY_LEN(standard); k++)
        is_fine = is_fine || vg_slice_eq(name, vg_slice_str(standard[k]));
    return is_fine;
}

static void check_standard(struct vg_field_errors *e, const char *field, struct vg_slice name)
{
    if (!is_standard_or_qualified(name))
        invalid_text(e, field, name,
                     "name is neither a standard finalizer name nor is it fully qualified");
}

void vg_meta_check_finalizers(struct vg_field_errors *e, const struct vg_meta *m,
                              const struct vg_kind *kind)
{
    const struct vg_rules *rules = m->finalizers ? vg_rules_of(kind) : NULL;
    if (rules && rules->takes_plain_finalizers)
        return;
    for (uint32_t i = 0; m->finalizers && i < m->finalizers->n; i++) {
        struct vg_slice name = vg_json_text(&m->finalizers->items[i]);
        char field[48];
        if (is_standard_or_qualified(name) || vg_field_errors_is_full(e))
            continue;
        (void)snprintf(field, sizeof field, "metadata.finalizers[%" PRIu32 "]", i);
        check_standard(e, field, name);
    }
}

void vg_meta_check_spec_finalizers(struct vg_field_errors *e, const struct vg_json *finalizers)
{
    uint32_t i = 0;
    if (!vg_json_is(finalizers, VG_JSON_ARRAY))
        return;
    VG_JSON_FOREACH_ITEM (it, finalizers) {
        char field[48];
        struct vg_name_reasons why = {0};
        (void)snprintf(field, sizeof field, "spec.finalizers[%" PRIu32 "]", i++);
        if (!vg_validate_label_key(vg_json_text(it), &why))
            all_reasons(e, field, vg_json_text(it), &why);
        check_standard(e, field, vg_json_text(it));
    }
}

static void check_namespace(struct vg_field_errors *e, struct vg_slice ns, bool is_namespaced)
{
    struct vg_name_reasons why = {0};
    if (!is_namespaced && ns.n)
        vg_field_forbidden(e, "metadata.namespace", "not allowed on this type");
    else if (is_namespaced && ns.n == 0)
        vg_field_required(e, "metadata.namespace", "%s", "");
    else if (is_namespaced && !vg_validate_dns1123_label(ns, VG_NAME_CHARACTERS, &why))
        all_reasons(e, "metadata.namespace", ns, &why);
}

void vg_meta_check(struct vg_field_errors *e, const struct vg_meta *m, const struct vg_kind *kind,
                   const struct vg_json *obj, bool by_path)
{
    struct vg_name_reasons why = {0};
    struct name_rule rule = {
        .rule = by_path ? VG_NAME_PATH_SEGMENT : kind->name_rule,
        .unit = vg_kind_is(kind, VG_KIND_NAME_IN_BYTES) ? VG_NAME_BYTES : VG_NAME_CHARACTERS,
        .kind = kind,
    };
    if (m->generate_name.n)
        check_generate_name(e, m->generate_name, &rule, obj);
    if (m->name.n == 0)
        vg_field_required(e, "metadata.name", "name or generateName is required");
    else if (!is_name(m->name, &rule, &why))
        all_reasons(e, "metadata.name", m->name, &why);
    if (m->name.n)
        refuse_name(e, "metadata.name", m->name, kind, obj);
    check_namespace(e, m->ns, vg_kind_is(kind, VG_KIND_NAMESPACED));
    if (m->generation < 0)
        vg_field_invalid(e, "metadata.generation", number(e->arena, m->generation),
                         "must be greater than or equal to 0");
    check_labels(e, m->labels);
    check_annotations(e, m->annotations);
    check_owners(e, m->owners);
    check_finalizer_names(e, m);
}

/* ---- updates ---- */

/* Quoted and joined: the finalizers that were not there before. 0, -ENOMEM ... */
static int list_new_finalizers(const struct vg_meta *m, const struct vg_meta *old,
                               struct vg_buf *out)
{
    VG_AUTO(map) before;
    int err = 0;
    vg_map_init(&before, VG_MAP_BORROWS_KEYS);
    for (uint32_t i = 0; old->finalizers && i < old->finalizers->n && err >= 0; i++)
        err = vg_map_put(&before, vg_json_text(&old->finalizers->items[i]), &before, NULL);
    for (uint32_t i = 0; i < m->finalizers->n && err >= 0; i++) {
        struct vg_slice name = vg_json_text(&m->finalizers->items[i]);
        if (vg_map_get(&before, name))
            continue;
        err = out->n ? vg_buf_append(out, ", ", 2) : 0;
        if (err == 0)
            err = vg_quote_append(out, name);
    }
    return err;
}

static void check_no_new_finalizers(struct vg_field_errors *e, const struct vg_meta *m,
                                    const struct vg_meta *old)
{
    VG_AUTO(buf) list = {0};
    if (!m->finalizers)
        return;
    if (list_new_finalizers(m, old, &list) < 0)
        e->failed = true;
    else if (list.n)
        vg_field_forbidden(e, "metadata.finalizers",
                           "no new finalizers can be added if the object is being deleted, found "
                           "new finalizers []string{%.*s}",
                           VG_SLICE_ARG(vg_buf_slice(&list)));
}

static void must_stay(struct vg_field_errors *e, const char *field, struct vg_slice now,
                      struct vg_slice before)
{
    if (!vg_slice_eq(now, before))
        invalid_text(e, field, now, "field is immutable");
}

static void check_grace_stays(struct vg_field_errors *e, const struct vg_meta *m,
                              const struct vg_meta *old)
{
    if (m->has_grace == old->has_grace && (!m->has_grace || m->grace_s == old->grace_s))
        return;
    struct vg_slice shown = VG_SLICE_LIT("null");
    if (m->has_grace)
        shown = number(e->arena, m->grace_s);
    vg_field_invalid(e, "metadata.deletionGracePeriodSeconds", shown, "field is immutable");
}

void vg_meta_check_update(struct vg_field_errors *e, const struct vg_meta *m,
                          const struct vg_meta *old)
{
    if (old->deleted.n)
        check_no_new_finalizers(e, m, old);
    if (m->generation < old->generation)
        vg_field_invalid(e, "metadata.generation", number(e->arena, m->generation),
                         "must not be decremented");
    must_stay(e, "metadata.name", m->name, old->name);
    must_stay(e, "metadata.namespace", m->ns, old->ns);
    must_stay(e, "metadata.uid", m->uid, old->uid);
    must_stay(e, "metadata.creationTimestamp", m->created, old->created);
    must_stay(e, "metadata.deletionTimestamp", m->deleted, old->deleted);
    check_grace_stays(e, m, old);
    check_labels(e, m->labels);
    check_annotations(e, m->annotations);
    check_owners(e, m->owners);
}

/* ---- owners ---- */

/* By uid, as the original counts them: an owner is dropped when the last one of that uid is equal.
 */
static int drop_repeated(struct vg_map *seen, struct vg_json *owners, struct vg_buf *uids)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < owners->n; i++) {
        struct vg_json *owner = &owners->items[i];
        struct vg_slice uid = vg_json_text(vg_json_get_str(owner, "uid"));
        const struct vg_json *before = vg_map_get(seen, uid);
        if (before && vg_json_equal(before, owner) == 1) {
            int err = uids->n > UIDS_TOLD_MAX ? 0 : vg_buf_append(uids, ", ", uids->n ? 2 : 0);
            if (err == 0 && uids->n <= UIDS_TOLD_MAX)
                err = vg_buf_append_slice(uids, uid);
            if (err < 0)
                return err;
            continue;
        }
        owners->items[n] = *owner;
        int err = vg_map_put(seen, uid, &owners->items[n++], NULL);
        if (err < 0)
            return err;
    }
    owners->n = n;
    return 0;
}

int vg_meta_dedup_owners(struct vg_arena *a, struct vg_meta *m, struct vg_slice *ret_uids)
{
    VG_AUTO(buf) uids = {0};
    VG_AUTO(map) seen;
    vg_map_init(&seen, VG_MAP_BORROWS_KEYS);
    *ret_uids = VG_SLICE_LIT("");
    if (!m->owners || m->owners->n < 2)
        return 0;
    int err = drop_repeated(&seen, m->owners, &uids);
    return err < 0 ? err : vg_arena_keep(a, vg_buf_slice(&uids), ret_uids);
}
