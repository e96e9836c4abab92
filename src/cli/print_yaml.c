/* print_yaml.c - objects as YAML. */
#include "base/arena.h"
#include "base/err.h"
#include "print.h"
#include "yaml/yaml.h"

/* Trees take some times the bytes of their text; objects have a few MiB at most. */
#define TREE_BYTES_MAX ((size_t)512 << 20)

static int indent(struct vg_buf *out, struct vg_slice text)
{
    int r = 0;
    for (const char *mark = "\n- "; text.n && r == 0; mark = "\n  ") {
        const char *stop = memchr(text.p, '\n', text.n);
        size_t n = stop ? (size_t)(stop - text.p) : text.n;
        r = vg_buf_append(out, mark, n ? 3 : 1); /* nothing but the break on empty lines */
        if (r == 0)
            r = vg_buf_append(out, text.p, n);
        n += stop != NULL;
        text = vg_slice(text.p + n, text.n - n);
    }
    return r;
}

int vg_print_yaml(struct vg_buf *out, struct vigil_text json, bool is_item)
{
    VG_AUTO(buf) text = {0};
    struct vg_arena arena;
    struct vg_status status;
    struct vg_json *root;
    vg_arena_init(&arena, 0, TREE_BYTES_MAX);
    int r = vg_json_parse(&arena, vg_slice(json.p, json.n), NULL, &root, &status);
    if (r >= 0)
        r = vg_yaml_write(&text, root);
    vg_arena_done(&arena);
    if (r < 0)
        return r;
    struct vg_slice s = vg_buf_slice(&text);
    while (s.n && s.p[s.n - 1] == '\n')
        s.n--;
    return is_item ? indent(out, s) : vg_buf_append_slice(out, s);
}
