/* read.c - libyaml's events as a tree of nodes.
 * Only the first document is looked at, as Kubernetes does. No recursion: the open containers are a
 * stack. Messages and their line numbers are go-yaml's, which come from the same scanner. */
#include <errno.h>
#include <yaml.h>

#include "base/map.h"
#include "yaml_int.h"

/* 100: documents for Kubernetes have none; those of other makers a handful. */
#define DIRECTIVES_MAX 100u

struct reader {
    struct vg_arena *nodes, *texts;
    struct vg_map anchors; /* name -> node */
    struct vg_yaml_node **open;
    uint32_t depth, max_depth;
    size_t count, max_nodes;
    struct vg_yaml_node *root;
    struct vg_status *status;
    int err; /* why the last add_node failed */
};

/* go-yaml counts lines from 0 and adds one for the scanner alone; line 0 is not mentioned. */
static int fail_parser(const yaml_parser_t *p, struct vg_status *status)
{
    const char *problem = p->problem ? p->problem : "unknown problem parsing YAML content";
    size_t line = p->problem_mark.line ? p->problem_mark.line : p->context_mark.line;
    if (p->error == YAML_MEMORY_ERROR)
        return -ENOMEM;
    if (p->error == YAML_READER_ERROR && strstr(problem, "UTF-8"))
        return vg_fail(status, VIGIL_E_JSON_UTF8, "yaml: %s", problem);
    if (p->error == YAML_SCANNER_ERROR && p->problem_mark.line)
        line++;
    if (line == 0 || p->error == YAML_READER_ERROR)
        return vg_fail(status, VIGIL_E_JSON_SYNTAX, "yaml: %s", problem);
    return vg_fail(status, VIGIL_E_JSON_SYNTAX, "yaml: line %zu: %s", line, problem);
}

static int copy_text(struct vg_arena *a, const void *p, size_t n, struct vg_slice *ret)
{
    *ret = VG_SLICE_LIT("");
    if (!p || n == 0)
        return 0;
    const char *copy = vg_arena_copy(a, p, n);
    if (!copy)
        return -ENOMEM;
    *ret = vg_slice(copy, n);
    return 0;
}

static int copy_str(struct vg_arena *a, const yaml_char_t *s, struct vg_slice *ret)
{
    return copy_text(a, s, s ? strlen((const char *)s) : 0, ret);
}

/* A new node, hung into the innermost open container. NULL: rd->err says why not. */
static struct vg_yaml_node *add_node(struct reader *rd, enum vg_yaml_kind kind,
                                     const yaml_event_t *ev)
{
    struct vg_yaml_node *node = NULL;
    if (++rd->count > rd->max_nodes)
        rd->err = vg_fail(rd->status, VIGIL_E_TOO_LARGE, "yaml: document has more than %zu nodes",
                          rd->max_nodes);
    else if (!(node = vg_arena_new(rd->nodes, struct vg_yaml_node)))
        rd->err = -ENOMEM;
    if (!node)
        return NULL;
    *node = (struct vg_yaml_node){.kind = (uint8_t)kind, .line = (uint32_t)ev->start_mark.line};
    struct vg_yaml_node *parent = rd->depth ? rd->open[rd->depth - 1] : NULL;
    if (!parent)
        rd->root = node;
    else if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    if (parent) {
        parent->last = node;
        parent->n++;
    }
    return node;
}

static int set_anchor(struct reader *rd, const yaml_char_t *anchor, struct vg_yaml_node *node)
{
    struct vg_slice name;
    if (!anchor)
        return 0;
    int r = copy_str(rd->nodes, anchor, &name);
    if (r == 0)
        r = vg_map_put(&rd->anchors, name, node, NULL);
    return VG_MIN(r, 0);
}

static int on_scalar(struct reader *rd, const yaml_event_t *ev)
{
    struct vg_yaml_node *node = add_node(rd, VG_YAML_SCALAR, ev);
    if (!node)
        return rd->err;
    int r = copy_text(rd->texts, ev->data.scalar.value, ev->data.scalar.length, &node->text);
    if (r == 0)
        r = copy_str(rd->nodes, ev->data.scalar.tag, &node->tag);
    if (r < 0)
        return r;
    node->is_implicit = ev->data.scalar.plain_implicit;
    return set_anchor(rd, ev->data.scalar.anchor, node);
}

static int on_alias(struct reader *rd, const yaml_event_t *ev)
{
    struct vg_yaml_node *node = add_node(rd, VG_YAML_ALIAS, ev);
    if (!node)
        return rd->err;
    int r = copy_str(rd->nodes, ev->data.alias.anchor, &node->text);
    if (r < 0)
        return r;
    node->first = vg_map_get(&rd->anchors, node->text);
    if (!node->first)
        return vg_fail(rd->status, VIGIL_E_JSON_SYNTAX, "yaml: unknown anchor '%.*s' referenced",
                       VG_SLICE_ARG(node->text));
    return 0;
}

static int on_container(struct reader *rd, const yaml_event_t *ev, enum vg_yaml_kind kind,
                        const yaml_char_t *anchor)
{
    if (rd->depth == rd->max_depth)
        return vg_fail(rd->status, VIGIL_E_JSON_DEPTH, "yaml: line %zu: exceeded max depth of %u",
                       ev->start_mark.line + 1, rd->max_depth);
    struct vg_yaml_node *node = add_node(rd, kind, ev);
    if (!node)
        return rd->err;
    int r = set_anchor(rd, anchor, node);
    if (r == 0)
        rd->open[rd->depth++] = node;
    return r;
}

/* go-yaml knows version 1.1 alone. */
static int on_document(struct reader *rd, const yaml_event_t *ev)
{
    const yaml_version_directive_t *v = ev->data.document_start.version_directive;
    if (v && (v->major != 1 || v->minor != 1))
        return vg_fail(rd->status, VIGIL_E_JSON_SYNTAX, "yaml: found incompatible YAML document");
    return 0;
}

/* 1: the document is complete, 0: go on. */
static int on_event(struct reader *rd, const yaml_event_t *ev)
{
    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        return on_document(rd, ev);
    case YAML_SCALAR_EVENT:
        return on_scalar(rd, ev);
    case YAML_ALIAS_EVENT:
        return on_alias(rd, ev);
    case YAML_SEQUENCE_START_EVENT:
        return on_container(rd, ev, VG_YAML_SEQUENCE, ev->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        return on_container(rd, ev, VG_YAML_MAPPING, ev->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        rd->depth--;
        return 0;
    case YAML_DOCUMENT_END_EVENT:
    case YAML_STREAM_END_EVENT:
        return 1;
    default:
        return 0;
    }
}

static int read_events(struct reader *rd, yaml_parser_t *p)
{
    int r = 0;
    while (r == 0) {
        yaml_event_t ev;
        if (!yaml_parser_parse(p, &ev))
            return fail_parser(p, rd->status);
        r = on_event(rd, &ev);
        yaml_event_delete(&ev);
    }
    return VG_MIN(r, 0);
}

/* Does a line begin at i? All of YAML's line breaks, and the byte order mark, end with one of these
 * bytes. */
static bool begins_line(struct vg_slice text, size_t i)
{
    return i == 0 || strchr("\n\r\x85\xA8\xA9\xBF", text.p[i - 1]);
}

/* libyaml compares each %TAG with all before it, and each tag with all of them. */
static int check_directives(struct vg_slice text, struct vg_status *status)
{
    static const struct vg_slice mark = {"%TAG", 4};
    const char *p = text.p, *end = text.p + text.n;
    size_t n = 0;
    while (p && p < end && (p = memmem(p, (size_t)(end - p), mark.p, mark.n))) {
        n += begins_line(text, (size_t)(p - text.p));
        p += mark.n;
    }
    if (n <= DIRECTIVES_MAX)
        return 0;
    return vg_fail(status, VIGIL_E_TOO_LARGE, "yaml: document has more than %u directives",
                   DIRECTIVES_MAX);
}

int vg_yaml_read(struct vg_arena *nodes, struct vg_arena *texts, struct vg_slice text,
                 uint32_t max_depth, size_t max_nodes, struct vg_yaml_node **ret_root,
                 struct vg_status *reterr_status)
{
    struct reader rd = {.nodes = nodes,
                        .texts = texts,
                        .max_depth = max_depth,
                        .max_nodes = max_nodes,
                        .status = reterr_status};
    yaml_parser_t p;
    size_t levels = max_depth;
    int r = check_directives(text, reterr_status);
    if (r < 0)
        return r;
    rd.open = vg_arena_array(nodes, struct vg_yaml_node *, levels);
    if (!rd.open || !yaml_parser_initialize(&p))
        return -ENOMEM;
    vg_map_init(&rd.anchors, VG_MAP_BORROWS_KEYS);
    /* libyaml takes an empty text through a NULL pointer badly: it gets a line break. */
    yaml_parser_set_input_string(&p, (const unsigned char *)(text.n ? text.p : "\n"),
                                 text.n ? text.n : 1);
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    r = read_events(&rd, &p);
    yaml_parser_delete(&p);
    vg_map_done(&rd.anchors);
    if (r == 0)
        *ret_root = rd.root;
    return r;
}
