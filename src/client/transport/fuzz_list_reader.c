/* fuzz_list_reader.c - a list in pieces must read as the same list whole: the same items, the same
 * end. The first byte seeds the cuts. */
#include <stdlib.h>

#include "base/rng.h"
#include "list_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
    uint64_t n, bytes;
};

static int on_item(void *arg, const struct vigil_object *take_o)
{
    struct sum *s = arg;
    s->n++;
    s->bytes = s->bytes * 31 + vigil_object_json(take_o).n;
    vigil_object_unref(take_o);
    return 0;
}

static int read_all(struct vg_slice text, struct vg_rng *rng, struct sum *sum)
{
    struct vg_list_reader r;
    struct vg_slice version, next;
    vg_list_reader_init(&r, VG_SLICE_LIT("v1"), VG_SLICE_LIT("Pod"), on_item, sum);
    int e = 0;
    while (e >= 0 && text.n) {
        size_t n = rng ? 1 + vg_rng_below(rng, text.n) : text.n;
        e = vg_list_reader_feed(&r, vg_slice(text.p, n));
        text = vg_slice(text.p + n, text.n - n);
    }
    if (e >= 0)
        e = vg_list_reader_end(&r, &version, &next);
    vg_list_reader_done(&r);
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct vg_slice text = vg_slice(data + 1, size - 1);
    struct vg_rng rng;
    struct sum whole = {0}, cut = {0};
    vg_rng_seed(&rng, data[0]);
    int a = read_all(text, NULL, &whole);
    int b = read_all(text, &rng, &cut);
    if (a != b || whole.n != cut.n || whole.bytes != cut.bytes)
        abort();
    return 0;
}
