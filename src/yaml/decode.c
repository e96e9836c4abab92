/* decode.c - YAML nodes as a JSON tree.
 * Aliases are expanded within go-yaml's rule: of many decoded values only so large a share may come
 * from aliases, so that a small text cannot stand for a huge tree. Values of merge keys (<<) are
 * put where they stand: later keys win. Recursion is as deep as containers are nested, merged ones
 * included, and never deeper than VG_YAML_DEPTH_MAX. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/map.h"
#include "decode_int.h"
#include "json/write.h"

/* Objects up to this size are searched one member after the other. */
#define SMALL_OBJECT 16u

/* go-yaml's figures: below LOW decoded values 99% may come from aliases, from HIGH on 10%. */
#define ALIAS_RANGE_LOW 400000.0
#define ALIAS_RANGE_HIGH 4000000.0
#define ALIAS_COUNT_FREE 100u
#define DECODE_COUNT_FREE 1000u

struct decoder {
    struct vg_arena *arena;
    const struct vg_yaml_opts *opts;
    struct vg_status *status;
    uint64_t decoded, aliased;
    uint32_t alias_depth, depth;
    struct vg_json_dups dups;
};

/* An object being filled, with an index of its keys once it is large. */
struct filling {
    struct vg_json *obj;
    struct vg_map index; /* key -> member's number + 1 */
};

static int decode(struct decoder *d, struct vg_yaml_node *node, struct vg_json *ret);
static int fill(struct decoder *d, const struct vg_yaml_node *node, struct filling *f);

/* ---- limits ---- */

static double allowed_alias_share(double decoded)
{
    if (decoded <= ALIAS_RANGE_LOW)
        return 0.99;
    if (decoded >= ALIAS_RANGE_HIGH)
        return 0.10;
    return 0.99 - 0.89 * ((decoded - ALIAS_RANGE_LOW) / (ALIAS_RANGE_HIGH - ALIAS_RANGE_LOW));
}

static int count_one(struct decoder *d)
{
    d->decoded++;
    if (d->alias_depth)
        d->aliased++;
    double share = (double)d->aliased / (double)d->decoded;
    if (d->aliased > ALIAS_COUNT_FREE && d->decoded > DECODE_COUNT_FREE &&
        share > allowed_alias_share((double)d->decoded))
        return vg_fail(d->status, VIGIL_E_TOO_LARGE, "yaml: document contains excessive aliasing");
    if (d->decoded > d->opts->max_nodes)
        return vg_fail(d->status, VIGIL_E_TOO_LARGE, "yaml: document has more than %zu nodes",
                       d->opts->max_nodes);
    return 0;
}

static int enter_container(struct decoder *d)
{
    if (d->depth == d->opts->max_depth)
        return vg_fail(d->status, VIGIL_E_JSON_DEPTH, "yaml: exceeded max depth of %u",
                       d->opts->max_depth);
    d->depth++;
    return 0;
}

/* ---- scalars ---- */

/* What a scalar is, given its tag. */
static int classify(struct decoder *d, const struct vg_yaml_node *node, struct vg_yaml_value *ret)
{
    *ret = (struct vg_yaml_value){.type = VG_YAML_STR};
    if (node->tag.n == 0 && !node->is_implicit)
        return 0;
    enum vg_yaml_type want = node->tag.n ? vg_yaml_type_of_tag(node->tag) : VG_YAML_OTHER;
    if (node->tag.n && (want == VG_YAML_OTHER || want == VG_YAML_BINARY || want == VG_YAML_STR)) {
        ret->type = want;
        return 0;
    }
    int r = vg_yaml_resolve(node->text, node->tag.n == 0 || want == VG_YAML_TIMESTAMP, ret);
    if (r < 0 || node->tag.n == 0 || ret->type == want)
        return r;
    if (want == VG_YAML_FLOAT && ret->type == VG_YAML_INT) {
        double m = (double)ret->magnitude;
        *ret = (struct vg_yaml_value){.type = VG_YAML_FLOAT, .number = ret->is_negative ? -m : m};
        return 0;
    }
    return vg_fail(d->status, VIGIL_E_JSON_SYNTAX, "yaml: cannot decode %s `%.*s` as a %s",
                   vg_yaml_type_name(ret->type), VG_SLICE_ARG(node->text), vg_yaml_type_name(want));
}

static int make_int(struct decoder *d, const struct vg_yaml_value *v, struct vg_json *ret)
{
    if (v->is_negative)
        return vg_json_make_int(d->arena, (int64_t)(0 - v->magnitude), ret);
    return vg_json_make_uint(d->arena, v->magnitude, ret);
}

static int make_double(struct decoder *d, double number, struct vg_json *ret)
{
    if (!isfinite(number))
        return vg_fail(d->status, VIGIL_E_JSON_SYNTAX, "json: unsupported value: %s",
                       isnan(number) ? "NaN"
                       : number > 0  ? "+Inf"
                                     : "-Inf");
    return vg_json_make_double(d->arena, number, ret);
}

static int decode_scalar(struct decoder *d, const struct vg_yaml_node *node, struct vg_json *ret)
{
    struct vg_yaml_value v;
    int r = classify(d, node, &v);
    if (r < 0)
        return r;
    switch (v.type) {
    case VG_YAML_NULL:
        *ret = vg_json_null();
        return 0;
    case VG_YAML_BOOL:
        *ret = vg_json_bool(v.is_true);
        return 0;
    case VG_YAML_INT:
        return make_int(d, &v, ret);
    case VG_YAML_FLOAT:
        return make_double(d, v.number, ret);
    case VG_YAML_BINARY:
        return vg_yaml_decode_binary(d->arena, node->text, ret, d->status);
    default:
        *ret = vg_json_string_ref(node->text);
        return 0;
    }
}

/* ---- aliases ---- */

static int open_alias(struct decoder *d, struct vg_yaml_node *alias)
{
    if (alias->is_open)
        return vg_fail(d->status, VIGIL_E_JSON_SYNTAX, "yaml: anchor '%.*s' value contains itself",
                       VG_SLICE_ARG(alias->text));
    alias->is_open = true;
    d->alias_depth++;
    return 0;
}

static void close_alias(struct decoder *d, struct vg_yaml_node *alias)
{
    alias->is_open = false;
    d->alias_depth--;
}

/* ---- keys ---- */

struct key {
    struct vg_slice text;
    bool was_text; /* it needed no conversion: messages show it in quotes */
};

/* A key that is no string becomes one, as sigs.k8s.io/yaml prints it. */
static int key_of_scalar(struct decoder *d, const struct vg_yaml_node *node, struct key *ret)
{
    struct vg_yaml_value v;
    char text[VG_YAML_NUMBER_MAX];
    int n = 0, r = classify(d, node, &v);
    if (r < 0)
        return r;
    if (v.type == VG_YAML_NULL)
        return vg_fail(d->status, VIGIL_E_JSON_SYNTAX,
                       "unsupported map key of type: %%!s(<nil>), key: <nil>");
    if (v.type == VG_YAML_BOOL)
        n = snprintf(text, sizeof text, "%s", v.is_true ? "true" : "false");
    else if (v.type == VG_YAML_INT)
        n = snprintf(text, sizeof text, "%s%" PRIu64, v.is_negative ? "-" : "", v.magnitude);
    else if (v.type == VG_YAML_FLOAT)
        n = (int)vg_yaml_format_float(v.number, text);
    else if (v.type == VG_YAML_BINARY) {
        struct vg_json s;
        r = vg_yaml_decode_binary(d->arena, node->text, &s, d->status);
        if (r == 0)
            *ret = (struct key){vg_json_text(&s), true};
        return r;
    } else {
        *ret = (struct key){node->text, true};
        return 0;
    }
    const char *copy = vg_arena_copy(d->arena, text, (size_t)n);
    *ret = (struct key){vg_slice(copy, (size_t)n), false};
    return copy ? 0 : -ENOMEM;
}

static int fail_key(struct decoder *d, struct vg_yaml_node *node)
{
    struct vg_json v;
    VG_AUTO(buf) shown = {0};
    int r = decode(d, node, &v);
    if (r == 0)
        r = vg_yaml_show(&shown, &v);
    if (r < 0)
        return r;
    return vg_fail(d->status, VIGIL_E_JSON_SYNTAX, "yaml: invalid map key: %.*s",
                   VG_SLICE_ARG(vg_buf_slice(&shown)));
}

static int decode_key(struct decoder *d, struct vg_yaml_node *node, struct key *ret)
{
    struct vg_yaml_node *target = node->kind == VG_YAML_ALIAS ? node->first : node;
    if (target->kind != VG_YAML_SCALAR)
        return fail_key(d, node);
    int r = count_one(d);
    if (r == 0 && target != node) {
        d->alias_depth++;
        r = count_one(d);
        d->alias_depth--;
    }
    return r < 0 ? r : key_of_scalar(d, target, ret);
}

/* ---- objects ---- */

static bool is_merge(const struct vg_yaml_node *key)
{
    return key->kind == VG_YAML_SCALAR && vg_slice_eq(key->text, VG_SLICE_LIT("<<")) &&
           (key->is_implicit || vg_slice_eq(key->tag, VG_SLICE_LIT("tag:yaml.org,2002:merge")));
}

/* The line that strict decoding has for a key given twice, in the arena. */
static int report_dup(struct decoder *d, struct key key, uint32_t line)
{
    VG_AUTO(buf) text = {0};
    if (d->opts->on_dup == VG_JSON_DUP_LAST_WINS || d->dups.n == VG_JSON_DUPS_MAX)
        return 0;
    if (!d->dups.v)
        d->dups.v = vg_arena_array(d->arena, struct vg_json_dup, (size_t)VG_JSON_DUPS_MAX);
    if (!d->dups.v)
        return -ENOMEM;
    key.text.n = VG_MIN(key.text.n, VG_JSON_DUP_PATH_MAX);
    int r = vg_buf_printf(&text, "line %u: key ", line);
    if (r == 0)
        r = key.was_text ? vg_json_write_string(&text, key.text, 0)
                         : vg_buf_append_slice(&text, key.text);
    if (r == 0)
        r = vg_buf_printf(&text, " already set in map");
    if (r < 0)
        return r;
    const char *copy = vg_arena_copy(d->arena, text.p, text.n);
    if (!copy)
        return -ENOMEM;
    d->dups.v[d->dups.n++] = (struct vg_json_dup){.path = vg_slice(copy, text.n), .offset = line};
    return 0;
}

static struct vg_json_member *find_member(const struct filling *f, struct vg_slice key)
{
    if (f->obj->n <= SMALL_OBJECT)
        return vg_json_member(f->obj, key);
    uintptr_t i = (uintptr_t)vg_map_get(&f->index, key);
    return i ? &f->obj->members[i - 1] : NULL;
}

/* The index holds members from the moment there are too many to scan. */
static int index_members(struct filling *f)
{
    if (f->obj->n <= SMALL_OBJECT)
        return 0;
    for (uint32_t i = (uint32_t)vg_map_count(&f->index); i < f->obj->n; i++) {
        void *number = (void *)(uintptr_t)(i + 1);
        int r = vg_map_put(&f->index, vg_json_key(&f->obj->members[i]), number, NULL);
        if (r < 0)
            return r;
    }
    return 0;
}

static int set_member(struct decoder *d, struct filling *f, struct key key, struct vg_json v,
                      uint32_t line)
{
    struct vg_json_member *m = find_member(f, key.text);
    if (m) {
        m->value = v;
        return report_dup(d, key, line);
    }
    int r = vg_json_object_add(d->arena, f->obj, key.text, v);
    return r < 0 ? r : index_members(f);
}

static int fail_want_map(struct decoder *d)
{
    return vg_fail(d->status, VIGIL_E_JSON_SYNTAX,
                   "yaml: map merge requires map or sequence of maps as the value");
}

static int merge_one(struct decoder *d, struct vg_yaml_node *node, struct filling *f)
{
    struct vg_yaml_node *target = node->kind == VG_YAML_ALIAS ? node->first : node;
    if (target->kind != VG_YAML_MAPPING)
        return fail_want_map(d);
    int r = count_one(d);
    if (r < 0 || target == node)
        return r < 0 ? r : fill(d, target, f);
    r = open_alias(d, node);
    if (r < 0)
        return r;
    r = count_one(d);
    if (r == 0)
        r = fill(d, target, f);
    close_alias(d, node);
    return r;
}

/* Of a sequence the first has the last word. */
static int merge(struct decoder *d, struct vg_yaml_node *node, struct filling *f)
{
    if (node->kind != VG_YAML_SEQUENCE)
        return merge_one(d, node, f);
    VG_AUTO(arena) scratch = {0};
    struct vg_yaml_node **order =
        vg_arena_array(&scratch, struct vg_yaml_node *, (size_t)node->n + 1);
    if (!order)
        return -ENOMEM;
    uint32_t n = 0;
    int r = 0;
    for (struct vg_yaml_node *c = node->first; c; c = c->next)
        order[n++] = c;
    while (r == 0 && n > 0)
        r = merge_one(d, order[--n], f);
    return r;
}

static int fill_pair(struct decoder *d, struct vg_yaml_node *key, struct filling *f)
{
    struct key name = {0};
    struct vg_json v;
    if (is_merge(key))
        return merge(d, key->next, f);
    int r = decode_key(d, key, &name);
    if (r == 0)
        r = decode(d, key->next, &v);
    return r < 0 ? r : set_member(d, f, name, v, key->next->line + 1);
}

static int fill(struct decoder *d, const struct vg_yaml_node *node, struct filling *f)
{
    int r = enter_container(d);
    if (r < 0)
        return r;
    for (struct vg_yaml_node *key = node->first; key && r == 0; key = key->next->next)
        r = fill_pair(d, key, f);
    d->depth--;
    return r;
}

static int decode_mapping(struct decoder *d, const struct vg_yaml_node *node, struct vg_json *ret)
{
    struct vg_json obj = vg_json_object();
    struct filling f = {.obj = &obj};
    vg_map_init(&f.index, VG_MAP_BORROWS_KEYS);
    int r = fill(d, node, &f);
    vg_map_done(&f.index);
    if (r == 0)
        *ret = obj;
    return r;
}

/* ---- the rest ---- */

static int decode_sequence(struct decoder *d, const struct vg_yaml_node *node, struct vg_json *ret)
{
    struct vg_json arr = vg_json_array();
    size_t n = node->n;
    int r = enter_container(d);
    if (r < 0)
        return r;
    if (n && !(arr.items = vg_arena_array(d->arena, struct vg_json, n)))
        return -ENOMEM;
    struct vg_yaml_node *c = node->first;
    for (; arr.n < n && r == 0; c = c->next)
        r = decode(d, c, &arr.items[arr.n++]);
    d->depth--;
    if (r == 0)
        *ret = arr;
    return r;
}

static int decode_alias(struct decoder *d, struct vg_yaml_node *node, struct vg_json *ret)
{
    int r = open_alias(d, node);
    if (r < 0)
        return r;
    r = decode(d, node->first, ret);
    close_alias(d, node);
    return r;
}

static int decode(struct decoder *d, struct vg_yaml_node *node, struct vg_json *ret)
{
    int r = count_one(d);
    if (r < 0)
        return r;
    switch ((enum vg_yaml_kind)node->kind) {
    case VG_YAML_SCALAR:
        return decode_scalar(d, node, ret);
    case VG_YAML_SEQUENCE:
        return decode_sequence(d, node, ret);
    case VG_YAML_MAPPING:
        return decode_mapping(d, node, ret);
    case VG_YAML_ALIAS:
        return decode_alias(d, node, ret);
    }
    return VIGIL_E_INTERNAL;
}

static int fail_dups(struct decoder *d)
{
    VG_AUTO(buf) text = {0};
    int r = 0;
    for (uint32_t i = 0; i < d->dups.n && r == 0; i++)
        r = vg_buf_printf(&text, "\n  %.*s", VG_SLICE_ARG(d->dups.v[i].path));
    if (r < 0)
        return r;
    return vg_fail(d->status, VIGIL_E_JSON_DUPLICATE, "yaml: unmarshal errors:%.*s",
                   VG_SLICE_ARG(vg_buf_slice(&text)));
}

int vg_yaml_decode(struct vg_arena *arena, struct vg_yaml_node *root,
                   const struct vg_yaml_opts *opts, struct vg_json *ret,
                   struct vg_status *reterr_status)
{
    struct decoder d = {.arena = arena, .opts = opts, .status = reterr_status};
    struct vg_json v;
    int r = decode(&d, root, &v);
    if (r == 0 && opts->on_dup == VG_JSON_DUP_FAIL && d.dups.n)
        r = fail_dups(&d);
    if (r < 0)
        return r;
    if (opts->on_dup == VG_JSON_DUP_REPORT && opts->ret_dups)
        *opts->ret_dups = d.dups;
    *ret = v;
    return 0;
}
