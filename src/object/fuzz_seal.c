/* fuzz_seal.c - any text is refused, or sealed so that its invariants hold.
 * What is sealed opens; spliced, it parses to the object that went in, with the revision; sealing
 * it again changes no byte. Making a header of text that nobody checked is safe too. */
#include "fuzz.h"
#include "object_testing.h"
#include "splice.h"
#include "json/equal.h"

/* What the object must look like on the wire. */
static void set_revision(struct vg_arena *arena, struct vg_json *object)
{
    struct vg_json *meta = vg_json_get_str(object, "metadata");
    vg_json_object_remove(meta, VG_SLICE_LIT("resourceVersion"));
    VG_MUST(vg_json_object_add(arena, meta, VG_SLICE_LIT("resourceVersion"),
                               vg_json_string_ref(VG_SLICE_LIT("42"))) == 0);
}

static void check_wire(struct vg_arena *arena, struct vg_slice text, const struct vg_test_obj *o)
{
    VG_AUTO(buf) wire;
    struct vg_obj_splice s;
    struct vg_json *want, *got;
    vg_buf_init(&wire, 0);
    vg_obj_splice_object(&s, &o->h, 42);
    VG_MUST(vg_obj_splice_append(&wire, &s) == 0);
    VG_MUST(vg_json_parse(arena, text, NULL, &want, NULL) == 0);
    struct vg_json_opts strict = {.on_dup = VG_JSON_DUP_FAIL};
    VG_MUST(vg_json_parse(arena, vg_buf_slice(&wire), &strict, &got, NULL) == 0);
    set_revision(arena, want);
    VG_MUST(vg_json_equal(want, got) == 1);
}

static void check_item(struct vg_arena *arena, const struct vg_test_obj *o)
{
    VG_AUTO(buf) wire;
    struct vg_obj_splice s;
    struct vg_json *item;
    vg_buf_init(&wire, 0);
    vg_obj_splice_item(&s, &o->h, 42);
    VG_MUST(vg_obj_splice_append(&wire, &s) == 0);
    VG_MUST(vg_json_parse(arena, vg_buf_slice(&wire), NULL, &item, NULL) == 0);
    VG_MUST(!vg_json_get_str(item, "kind") && !vg_json_get_str(item, "apiVersion"));
    VG_MUST(vg_json_get_str(vg_json_get_str(item, "metadata"), "resourceVersion") != NULL);
}

static void check_again(const struct vg_test_obj *o)
{
    VG_AUTO(test_obj) again = vg_test_seal(&vg_test_pods, o->value);
    VG_MUST(vg_slice_eq(again.value, o->value) && vg_slice_eq(again.header, o->header));
}

/* Bytes that are no canonical value: the header may be refused or wrong, but never unsafe. */
static void make_header_of_anything(struct vg_slice text)
{
    VG_AUTO(buf) header;
    struct vg_obj_header h;
    struct vg_obj_layout layout = {1, 1};
    vg_buf_init(&header, 0);
    if (vg_obj_make_header(&vg_test_pods, text, layout, &header, NULL) == 0 && text.n > 1)
        VG_MUST(vg_obj_header_open(vg_buf_slice(&header), text, &h) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_slice text = vg_test_exact(vg_slice(data, size));
    VG_AUTO(arena) arena;
    VG_AUTO(obj_sealed) s;
    vg_arena_init(&arena, 0, 0);
    vg_obj_sealed_init(&s);
    make_header_of_anything(text);
    if (vg_obj_seal_text(&vg_test_pods, text, &arena, &s, NULL) == 0) {
        VG_AUTO(test_obj) o = vg_test_seal(&vg_test_pods, text);
        check_wire(&arena, text, &o);
        check_item(&arena, &o);
        check_again(&o);
    } else {
        VG_MUST(s.value.n == 0 && s.header.n == 0);
    }
    vg_free((char *)text.p);
    return 0;
}
