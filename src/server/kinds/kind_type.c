/* kind_type.c - the type of each kind, found once. */
#include <pthread.h>

#include "kinds.h"
#include "types.h"

/* More than there are kinds; checked when they are found. */
#define KINDS_MAX 256u

static const struct vg_schema_type *found[KINDS_MAX];

static void find_all(void)
{
    size_t n;
    const struct vg_kind *kinds = vg_kinds(&n);
    for (size_t i = 0; i < n && i < KINDS_MAX; i++)
        found[i] = vg_schema_find(vg_slice_str(kinds[i].group), vg_slice_str(kinds[i].version),
                                  vg_slice_str(kinds[i].kind));
}

const struct vg_schema_type *vg_kind_type(const struct vg_kind *kind)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_all);
    return found[vg_kind_index(kind)];
}
