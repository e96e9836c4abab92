/* header.c - reading headers; see header.h for the layout and O1 to O3.
 * Everything is checked in vg_obj_header_open; the accessors rely on it and check only what their
 * caller may get wrong, an index. */
#include "header.h"

#include "header_int.h"

static uint32_t u32_at(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint8_t u8_at(const char *p)
{
    return (uint8_t)*p;
}

static size_t labels_at(const char *bytes)
{
    return VG_HEADER_AT_FIELDS + (size_t)VG_HEADER_REF_SIZE * u8_at(bytes + VG_HEADER_AT_FIELDS_N);
}

/* Where the tail begins: at most 12 * 2^32 and a little, which a size_t holds. */
static size_t tail_at(const char *bytes)
{
    size_t labels_n = u32_at(bytes + VG_HEADER_AT_LABELS_N);
    return labels_at(bytes) + labels_n * sizeof(struct vg_label_ref);
}

/* The fixed part and the length of both arrays are known to be there. */
static void fill(const char *bytes, const char *value, struct vg_obj_header *h)
{
    h->bytes = bytes;
    h->value = value;
    h->tail = bytes + tail_at(bytes);
    h->value_n = u32_at(bytes + VG_HEADER_AT_VALUE_N);
    h->item_at = u32_at(bytes + VG_HEADER_AT_ITEM);
    h->rev_at = u32_at(bytes + VG_HEADER_AT_REV);
    h->n_fields = u8_at(bytes + VG_HEADER_AT_FIELDS_N);
    h->trigger = u8_at(bytes + VG_HEADER_AT_TRIGGER);
    h->flags = u8_at(bytes + VG_HEADER_AT_FLAGS);
    h->labels.base = h->flags & VG_OBJ_LABELS_IN_TAIL ? h->tail : value;
    h->labels.v = (const struct vg_label_ref *)(const void *)(bytes + labels_at(bytes));
    h->labels.n = u32_at(bytes + VG_HEADER_AT_LABELS_N);
}

static struct vg_slice text_at(const struct vg_obj_header *h, size_t offset)
{
    uint32_t at = u32_at(h->bytes + offset), n = u32_at(h->bytes + offset + 4);
    return vg_slice(at < h->value_n ? h->value + at : h->tail + (at - h->value_n), n);
}

static bool has_arrays(struct vg_slice header)
{
    return header.n >= VG_HEADER_AT_FIELDS && tail_at(header.p) <= header.n;
}

static bool is_known(const struct vg_obj_header *h)
{
    return u8_at(h->bytes + VG_HEADER_AT_VERSION) == VG_OBJ_HEADER_VERSION &&
           (h->flags & ~VG_HEADER_FLAGS) == 0 && h->n_fields <= VG_OBJ_FIELDS_MAX &&
           (h->trigger < h->n_fields || h->trigger == VG_OBJ_NO_TRIGGER);
}

static bool has_places(const struct vg_obj_header *h)
{
    return h->item_at >= 1 && h->item_at <= h->rev_at && h->rev_at < h->value_n;
}

static bool is_ref_inside(const struct vg_obj_header *h, size_t offset, size_t tail_n)
{
    uint32_t at = u32_at(h->bytes + offset), n = u32_at(h->bytes + offset + 4);
    if (at < h->value_n)
        return n <= h->value_n - at;
    return at - h->value_n <= tail_n && n <= tail_n - (at - h->value_n);
}

static bool are_refs_inside(const struct vg_obj_header *h, size_t tail_n)
{
    size_t end = labels_at(h->bytes);
    for (size_t at = VG_HEADER_AT_NAME; at < end; at += VG_HEADER_REF_SIZE)
        if (!is_ref_inside(h, at, tail_n))
            return false;
    return true;
}

int vg_obj_header_open(struct vg_slice header, struct vg_slice value, struct vg_obj_header *ret)
{
    struct vg_obj_header h;
    if (!has_arrays(header))
        return VIGIL_E_STORE_DAMAGED;
    fill(header.p, value.p, &h);
    size_t tail_n = header.n - tail_at(header.p);
    if (h.value_n != value.n || !is_known(&h) || !has_places(&h) || !are_refs_inside(&h, tail_n))
        return VIGIL_E_STORE_DAMAGED;
    size_t base_n = h.flags & VG_OBJ_LABELS_IN_TAIL ? tail_n : value.n;
    if (vg_obj_name(&h).n == 0 || !vg_labels_is_sound(&h.labels, base_n))
        return VIGIL_E_STORE_DAMAGED;
    *ret = h;
    return 0;
}

void vg_obj_header_read(struct vg_slice header, struct vg_slice value, struct vg_obj_header *ret)
{
#ifdef VG_DEBUG_CHECKS
    struct vg_obj_header checked;
    int err = vg_obj_header_open(header, value, &checked);
    assert(err == 0);
    (void)err;
#endif
    fill(header.p, value.p, ret);
}

struct vg_slice vg_obj_name(const struct vg_obj_header *h)
{
    return text_at(h, VG_HEADER_AT_NAME);
}

struct vg_slice vg_obj_namespace(const struct vg_obj_header *h)
{
    return text_at(h, VG_HEADER_AT_NAMESPACE);
}

struct vg_slice vg_obj_uid(const struct vg_obj_header *h)
{
    return text_at(h, VG_HEADER_AT_UID);
}

struct vg_slice vg_obj_field(const struct vg_obj_header *h, uint32_t i)
{
    if (i >= h->n_fields)
        return vg_slice("", 0);
    return text_at(h, VG_HEADER_AT_FIELDS + (size_t)VG_HEADER_REF_SIZE * i);
}

struct vg_slice vg_obj_trigger(const struct vg_obj_header *h)
{
    return vg_obj_field(h, h->trigger);
}
