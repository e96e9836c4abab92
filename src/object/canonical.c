/* canonical.c - the order in which objects are stored; see canonical.h.
 * Members that have a place of their own are written first, from a table; the rest follows as it
 * was given. The name is always there and always before the revision, so the revision always
 * follows a comma and there is one way to splice it. */
#include "canonical.h"

#include "header.h"
#include "json/compact.h"
#include "json/write.h"

/* As kube-apiserver prints them. */
#define NAME(text)                                                                                 \
    {                                                                                              \
        text, sizeof text - 1                                                                      \
    }
static const struct vg_slice type_first[] = {NAME("kind"), NAME("apiVersion"), {NULL, 0}};
static const struct vg_slice top_first[] = {
    NAME("kind"), NAME("apiVersion"), NAME("metadata"), {NULL, 0}};
static const struct vg_slice meta_first[] = {NAME("name"),      NAME("generateName"),
                                             NAME("namespace"), NAME("selfLink"),
                                             NAME("uid"),       {NULL, 0}};

static bool is_among(struct vg_slice key, const struct vg_slice *names)
{
    for (; names->n; names++)
        if (key.n == names->n && memcmp(key.p, names->p, key.n) == 0)
            return true;
    return false;
}

/* The key of the next member, with the comma before it if one is needed. */
static int put_key(struct vg_buf *out, struct vg_slice key)
{
    int err = 0;
    if (out->p[out->n - 1] != '{')
        err = vg_buf_append_byte(out, ',');
    if (err == 0)
        err = vg_json_write_string(out, key, VG_JSON_ESCAPE_HTML);
    return err < 0 ? err : vg_buf_append_byte(out, ':');
}

static int put_member(struct vg_buf *out, struct vg_slice key, const struct vg_json *value)
{
    int err = put_key(out, key);
    return err < 0 ? err : vg_json_write(out, value, VG_JSON_ESCAPE_HTML);
}

/* The members of obj that have a place, in that order; those that are not there are passed over. */
static int put_first(struct vg_buf *out, const struct vg_json *obj, const struct vg_slice *names)
{
    int err = 0;
    for (; names->n && err == 0; names++) {
        const struct vg_json *value = vg_json_get(obj, *names);
        if (value)
            err = put_member(out, *names, value);
    }
    return err;
}

/* Debug builds write it all the same: offsets that lie would store another value. */
static void check_source(const struct vg_json *value, struct vg_slice text)
{
#ifdef VG_DEBUG_CHECKS
    VG_AUTO(buf) written = {0};
    if (vg_json_write(&written, value, VG_JSON_ESCAPE_HTML) == 0)
        assert(vg_slice_eq(vg_buf_slice(&written), text));
#else
    (void)value, (void)text;
#endif
}

/* A member as its source has it, if that is how we write it. 1: it was appended; 0: it is not. */
static int put_source(struct vg_buf *out, struct vg_slice key, const struct vg_json *value,
                      struct vg_slice source)
{
    if (value->begin >= value->end || value->end > source.n)
        return 0;
    struct vg_slice text = vg_slice(source.p + value->begin, value->end - value->begin);
    if (!vg_json_is_compact(text))
        return 0;
    check_source(value, text);
    int err = put_key(out, key);
    if (err == 0)
        err = vg_buf_append_slice(out, text);
    return err < 0 ? err : 1;
}

/* All but those, and but the one named `without`; empty: none. */
static int put_rest(struct vg_buf *out, const struct vg_json *obj, const struct vg_slice *names,
                    struct vg_slice without, struct vg_slice source)
{
    int err = 0;
    VG_JSON_FOREACH_MEMBER (m, obj) {
        struct vg_slice key = vg_json_key(m);
        if (is_among(key, names) || (without.n && vg_slice_eq(key, without)))
            continue;
        err = put_source(out, key, &m->value, source);
        if (err == 0)
            err = put_member(out, key, &m->value);
        if (err < 0)
            break;
    }
    return err < 0 ? err : 0;
}

static int put_metadata(struct vg_buf *out, const struct vg_json *meta, size_t *ret_rev_at)
{
    int err = put_key(out, VG_SLICE_LIT("metadata"));
    if (err == 0)
        err = vg_buf_append_byte(out, '{');
    if (err == 0)
        err = put_first(out, meta, meta_first);
    *ret_rev_at = out->n;
    if (err == 0)
        err =
            put_rest(out, meta, meta_first, VG_SLICE_LIT("resourceVersion"), (struct vg_slice){0});
    return err < 0 ? err : vg_buf_append_byte(out, '}');
}

static int put_type(struct vg_buf *out, const struct vg_json *object)
{
    int err = vg_buf_append_byte(out, '{');
    return err < 0 ? err : put_first(out, object, type_first);
}

static int put_object(struct vg_buf *out, const struct vg_json *object, struct vg_slice source,
                      size_t *ret_item_at, size_t *ret_rev_at)
{
    int err = put_type(out, object);
    if (err < 0)
        return err;
    *ret_item_at = out->n + (out->p[out->n - 1] != '{'); /* past the comma to come */
    err = put_metadata(out, vg_json_get_str(object, "metadata"), ret_rev_at);
    if (err == 0)
        err = put_rest(out, object, top_first, (struct vg_slice){0}, source);
    return err < 0 ? err : vg_buf_append_byte(out, '}');
}

static int check_text(const struct vg_json *object, const char *key, struct vg_status *status)
{
    const struct vg_json *v = vg_json_get_str(object, key);
    if (!v || v->type == VG_JSON_STRING)
        return 0;
    return vg_fail(status, VIGIL_E_INVALID, "%s is not a string", key);
}

/* What must be there before anything is written. */
static int check_frame(const struct vg_json *object, struct vg_status *status)
{
    if (!vg_json_is(object, VG_JSON_OBJECT))
        return vg_fail(status, VIGIL_E_INVALID, "not a JSON object");
    const struct vg_json *meta = vg_json_get_str(object, "metadata");
    if (!vg_json_is(meta, VG_JSON_OBJECT))
        return vg_fail(status, VIGIL_E_INVALID, "metadata is missing or not an object");
    const struct vg_json *name = vg_json_get_str(meta, "name");
    if (!vg_json_is(name, VG_JSON_STRING) || name->n == 0)
        return vg_fail(status, VIGIL_E_INVALID, "metadata.name is missing or not a string");
    int err = check_text(object, "kind", status);
    return err < 0 ? err : check_text(object, "apiVersion", status);
}

int vg_obj_write_canonical(struct vg_buf *out, const struct vg_json *object, struct vg_slice source,
                           struct vg_obj_layout *ret_layout, struct vg_status *reterr_status)
{
    size_t start = out->n, item_at = 0, rev_at = 0;
    int err = check_frame(object, reterr_status);
    if (err < 0)
        return err;
    err = put_object(out, object, source, &item_at, &rev_at);
    if (err == 0 && out->n - start > VG_OBJ_VALUE_MAX)
        err = VIGIL_E_TOO_LARGE;
    if (err < 0)
        return vg_fail(reterr_status, err, "the object cannot be written: %s", vg_err_text(err));
    ret_layout->item_at = (uint32_t)(item_at - start);
    ret_layout->rev_at = (uint32_t)(rev_at - start);
    return 0;
}
