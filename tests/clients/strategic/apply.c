/* apply.c - strategic merge patches as we apply them: a line {Kind, Object, Patch} in, a line out,
 * the object, or {"err": why}. */
#include <stdio.h>
#include <stdlib.h>

#include "server/kinds/merge.h"
#include "json/strategic.h"
#include "json/write.h"

static int apply(struct vg_slice line, struct vg_buf *out)
{
    VG_AUTO(arena) a = {0};
    struct vg_status why = {0};
    struct vg_json *root, result;
    if (vg_json_parse(&a, line, NULL, &root, NULL) < 0)
        return VIGIL_E_INVALID;
    struct vg_slice name = vg_json_text(vg_json_get_str(root, "Kind"));
    bool is_apps = vg_slice_eq(name, VG_SLICE_LIT("Deployment"));
    const struct vg_kind *kind = vg_kind_find_kind(
        is_apps ? VG_SLICE_LIT("apps") : VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), name);
    if (!kind)
        return VIGIL_E_NOT_FOUND;
    int r =
        vg_json_strategic_apply(&a, vg_json_get_str(root, "Object"), vg_json_get_str(root, "Patch"),
                                vg_kind_merge_schema(kind), &result, &why);
    if (r == 0)
        return vg_json_write(out, &result, 0);
    r = vg_buf_printf(out, "{\"err\":");
    if (r == 0)
        r = vg_json_write_string(out, vg_slice_str(why.message), 0);
    return r < 0 ? r : vg_buf_append_byte(out, '}');
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    while ((n = getline(&line, &room, stdin)) > 0) {
        VG_AUTO(buf) out = {0};
        if (apply(vg_slice(line, (size_t)n), &out) < 0)
            return 1;
        printf("%.*s\n", (int)out.n, out.p);
    }
    free(line);
    return 0;
}
