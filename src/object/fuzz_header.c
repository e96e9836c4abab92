/* fuzz_header.c - opening any bytes is safe, and what opens stays inside them.
 * The first two bytes say how long the header is, the rest is header and value; each in a block of
 * its exact size. A fuzzer seldom guesses the value's length, so each input is tried as it is and
 * once more with that length made right. */
#include "fuzz.h"
#include "header_int.h"
#include "object_testing.h"
#include "splice.h"

/* Reads every byte, so that ASan sees those outside. */
static void touch(struct vg_slice s)
{
    static volatile unsigned char sink;
    for (size_t i = 0; i < s.n; i++)
        sink = (unsigned char)s.p[i];
    (void)sink;
}

static void touch_texts(const struct vg_obj_header *h)
{
    VG_MUST(vg_obj_name(h).n > 0);
    touch(vg_obj_name(h));
    touch(vg_obj_namespace(h));
    touch(vg_obj_uid(h));
    touch(vg_obj_trigger(h));
    for (uint32_t i = 0; i <= h->n_fields; i++)
        touch(vg_obj_field(h, i));
    VG_MUST(vg_obj_field(h, h->n_fields).n == 0);
}

static void touch_labels(const struct vg_labels *l)
{
    struct vg_slice value;
    for (uint32_t i = 0; i < l->n; i++) {
        VG_MUST(vg_labels_find(l, vg_labels_key(l, i), &value));
        touch(vg_labels_key(l, i));
        touch(value);
    }
}

static void touch_splices(const struct vg_obj_header *h)
{
    struct vg_obj_splice s;
    vg_obj_splice_frame(&s, VG_OBJ_ADDED, h, UINT64_MAX);
    for (uint32_t i = 0; i < s.n; i++)
        touch(s.v[i]);
    vg_obj_splice_item(&s, h, 0);
    for (uint32_t i = 0; i < s.n; i++)
        touch(s.v[i]);
}

static void try_open(struct vg_slice header, struct vg_slice value)
{
    struct vg_obj_header h, again;
    if (vg_obj_header_open(header, value, &h) < 0)
        return;
    touch_texts(&h);
    touch_labels(&h.labels);
    touch_splices(&h);
    vg_obj_header_read(header, value, &again);
    VG_MUST(again.tail == h.tail && again.labels.base == h.labels.base && again.rev_at == h.rev_at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *p = (const char *)data + 2;
    size_t n = VG_MIN((size_t)(data[0] | data[1] << 8), size - 2);
    struct vg_slice header = vg_test_exact(vg_slice(p, n));
    struct vg_slice value = vg_test_exact(vg_slice(p + n, size - 2 - n));
    try_open(header, value);
    if (header.n >= VG_HEADER_AT_FIELDS) {
        uint32_t value_n = (uint32_t)value.n;
        memcpy((char *)header.p + VG_HEADER_AT_VALUE_N, &value_n, sizeof value_n);
        ((char *)header.p)[VG_HEADER_AT_VERSION] = VG_OBJ_HEADER_VERSION;
        try_open(header, value);
    }
    vg_free((char *)header.p);
    vg_free((char *)value.p);
    return 0;
}
