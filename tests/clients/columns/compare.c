/* compare.c - rows of Kubernetes' printers (main.go) against ours. A few objects in a thousand are
 * such as cannot be stored, with empty texts where there must be some, and may differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "server/kinds/kinds.h"
#include "server/schema/decode.h"

#define WORDS 6u
/* Of a thousand. */
#define MAY_DIFFER 10u

static bool cut(char *line, char *ret[WORDS])
{
    char *rest = NULL;
    for (size_t i = 0; i < WORDS; i++)
        if (!(ret[i] = strtok_r(i ? NULL : line, " \n", &rest)))
            return false;
    return true;
}

static struct vg_slice bytes(struct vg_arena *a, const char *text)
{
    size_t n = 0;
    char *room = vg_arena_alloc(a, strlen(text) + 1, 1);
    if (!room || !vg_base64_decode(vg_slice_str(text), room, &n))
        exit(2);
    return vg_slice(room, n);
}

/* Our row of it. */
static int make(struct vg_arena *a, char *words[WORDS], struct vg_buf *out)
{
    const struct vg_kind *kind =
        vg_kind_find(vg_slice_str(words[0] + 1), vg_slice_str(words[1]), vg_slice_str(words[2]));
    struct vg_json *root, arranged;
    struct vg_json unknown = vg_json_array();
    struct vg_status why = {0};
    if (!kind)
        return VIGIL_E_NOT_FOUND;
    int r = vg_json_parse(a, bytes(a, words[3]), NULL, &root, NULL);
    if (r == 0)
        r = vg_schema_decode(a, kind->type, root, &unknown, &why);
    if (r == 0)
        r = vg_schema_arrange(a, kind->type, root, &arranged);
    return r < 0 ? r
                 : vg_columns_row(&kind->columns, &arranged, strtoll(words[5], NULL, 10), a, out);
}

int main(void)
{
    char *line = NULL, *words[WORDS];
    size_t room = 0, n = 0, differ = 0;
    while (getline(&line, &room, stdin) > 0) {
        VG_AUTO(arena) a = {0};
        VG_AUTO(buf) out = {0};
        if (!cut(line, words) || make(&a, words, &out) < 0)
            return 2;
        struct vg_slice want = bytes(&a, words[4]);
        n++;
        if (vg_slice_eq(want, vg_buf_slice(&out)))
            continue;
        if (differ++ < 20)
            printf("%s\n  want %.*s\n  got  %.*s\n", words[2], VG_SLICE_ARG(want), (int)out.n,
                   out.p);
    }
    free(line);
    printf("%zu rows, %zu differ\n", n, differ);
    return n == 0 || differ * 1000 > n * MAY_DIFFER;
}
