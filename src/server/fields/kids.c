/* kids.c - see kids.h. */
#include "kids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int vg_kids_add(struct vg_arena *a, struct vg_kids *k, struct vg_slice element,
                struct vg_json value)
{
    if (k->n == k->room) {
        uint32_t room = k->room ? k->room * 2 : 4;
        struct vg_json_member *v = vg_arena_array(a, struct vg_json_member, (size_t)room + 1);
        if (!v)
            return -ENOMEM;
        if (k->n)
            memcpy(v + 1, k->v, k->n * sizeof *v);
        k->v = v + 1;
        k->room = room;
    }
    k->v[k->n++] =
        (struct vg_json_member){.key = element.p, .key_n = (uint32_t)element.n, .value = value};
    return 0;
}

/* Of so many the place of each is found by looking at those before it: structs have few fields. */
#define INSERTED_MAX 24u

static int by_order(const void *a, const void *b)
{
    return vg_fields_order(vg_json_key((const struct vg_json_member *)a),
                           vg_json_key((const struct vg_json_member *)b));
}

static void insert(struct vg_json_member *v, uint32_t at)
{
    struct vg_json_member one = v[at];
    while (at > 0 && by_order(&v[at - 1], &one) > 0) {
        v[at] = v[at - 1];
        at--;
    }
    v[at] = one;
}

int vg_kids_entry(struct vg_arena *a, bool is_member, struct vg_kids *k, struct vg_json *ret)
{
    for (uint32_t i = 1; i < k->n; i++) {
        if (by_order(&k->v[i - 1], &k->v[i]) <= 0)
            continue;
        if (k->n > INSERTED_MAX) {
            qsort(k->v, k->n, sizeof *k->v, by_order);
            break;
        }
        insert(k->v, i);
    }
    return vg_fields_entry(a, is_member, (struct vg_fields_span){k->v, k->n}, true, ret);
}
