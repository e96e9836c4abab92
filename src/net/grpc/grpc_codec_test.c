/* grpc_codec_test.c - frames, statuses, timeouts: without a session. */
#include "test_support.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>

#include "base/rng.h"
#include "codec.h"
#include "msg.h"

static void messages_carry_their_prefix(void **state)
{
    uint8_t *bytes;
    (void)state;
    struct vg_grpc_msg *m = vg_grpc_msg_new(0x010203, &bytes);
    assert_non_null(m);
    memset(bytes, 'x', 0x010203);
    struct vg_slice frame = vg_grpc_msg_frame(m);
    assert_int_equal(frame.n, 5 + 0x010203);
    vg_assert_slice_equal(vg_slice(frame.p, 5), VG_SLICE_LIT("\0\0\1\2\3"));
    assert_ptr_equal(vg_grpc_msg_bytes(m).p, bytes);
    assert_ptr_equal(vg_grpc_msg_ref(m), m);
    vg_grpc_msg_unref(m);
    assert_null(vg_grpc_msg_unref(m));
    assert_null(vg_grpc_msg_unref(NULL));
    assert_null(vg_grpc_msg_new((size_t)UINT32_MAX + 1, &bytes));
}

/* Random messages, in random pieces: the same ones come out, in order. */
static void any_pieces_give_the_same_messages(void **state)
{
    struct vg_rng rng;
    (void)state;
    vg_rng_seed(&rng, vg_test_seed());
    for (int round = 0; round < 200; round++) {
        VG_AUTO(buf) in = {0};
        VG_AUTO(buf) out = {0};
        VG_AUTO(buf) want = {0};
        size_t n = vg_rng_below(&rng, 20);
        for (size_t i = 0; i < n; i++) {
            uint8_t *bytes;
            size_t size =
                vg_rng_below(&rng, 4) ? vg_rng_below(&rng, 40) : vg_rng_below(&rng, 90000);
            struct vg_grpc_msg *m = vg_grpc_msg_new(size, &bytes);
            vg_rng_bytes(&rng, bytes, size);
            assert_int_equal(vg_buf_append_slice(&in, vg_grpc_msg_frame(m)), 0);
            assert_int_equal(vg_buf_append_slice(&want, vg_grpc_msg_bytes(m)), 0);
            vg_grpc_msg_unref(m);
        }
        struct vg_grpc_frames f = {.max = 100000};
        size_t got = 0;
        for (size_t at = 0; at < in.n;) {
            size_t most = 1 + vg_rng_below(&rng, round % 2 ? 7 : 50000);
            size_t piece = VG_MIN(most, in.n - at);
            struct vg_slice p = vg_slice(in.p + at, piece), message;
            int r;
            at += piece;
            while ((r = vg_grpc_frames_step(&f, &p, &message)) > 0) {
                got++;
                assert_int_equal(vg_buf_append_slice(&out, message), 0);
                if (p.n == 0)
                    break;
            }
            assert_true(r >= 0);
        }
        assert_int_equal(got, n);
        assert_false(vg_grpc_frames_is_inside(&f));
        vg_assert_slice_equal(vg_buf_slice(&out), vg_buf_slice(&want));
        vg_grpc_frames_done(&f);
    }
}

static void a_message_can_be_kept(void **state)
{
    (void)state;
    for (size_t first = 0; first <= 8; first++) {
        struct vg_grpc_frames f = {.max = 10};
        static const char frame[] = "\0\0\0\0\3abc";
        struct vg_slice a = {frame, first}, b = {&frame[first], 8 - first}, m;
        VG_AUTO(buf) kept = {0};
        int r = vg_grpc_frames_step(&f, &a, &m);
        if (first < 8) {
            assert_int_equal(r, 0);
            r = vg_grpc_frames_step(&f, &b, &m);
        }
        assert_int_equal(r, 1);
        assert_int_equal(vg_grpc_frames_keep(&f, m, &kept), 0);
        vg_grpc_frames_done(&f);
        vg_assert_slice_equal(vg_buf_slice(&kept), VG_SLICE_LIT("abc"));
    }
}

static void bad_prefixes_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        int err;
    } rows[] = {{"\1\0\0\0\1", VIGIL_E_UNSUPPORTED},
                {"\7\0\0\0\1", VIGIL_E_INVALID},
                {"\0\0\0\0\x0b", VIGIL_E_TOO_LARGE},
                {"\0\xff\xff\xff\xff", VIGIL_E_TOO_LARGE}};
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        struct vg_grpc_frames f = {.max = 10};
        struct vg_slice in = {rows[i].bytes, 5}, m;
        assert_int_equal(vg_grpc_frames_step(&f, &in, &m), rows[i].err);
        vg_grpc_frames_done(&f);
    }
}

/* A length alone costs next to nothing. */
static void room_is_made_as_bytes_come(void **state)
{
    struct vg_grpc_frames f = {.max = (size_t)1 << 31};
    struct vg_slice in = {"\0\x7f\0\0\0x", 6}, m;
    (void)state;
    assert_int_equal(vg_grpc_frames_step(&f, &in, &m), 0);
    assert_true(f.part.cap <= 2 * VG_GRPC_ROOM_AHEAD);
    vg_grpc_frames_done(&f);
}

static void timeouts_have_eight_digits_at_most(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {{1, "1n"},
                {99999999, "99999999n"},
                {100000000, "100000u"},
                {UINT64_C(5000000000), "5000000u"},
                {UINT64_C(3600) * VG_NS_PER_S, "3600000m"},
                {UINT64_C(100000000) * VG_NS_PER_S, "1666666M"},
                {UINT64_MAX, "5124095H"}};
    (void)state;
    for (size_t i = 0; i < VG_ARRAY_LEN(rows); i++) {
        char text[VG_GRPC_TIMEOUT_SIZE];
        struct vg_slice s = vg_grpc_write_timeout(rows[i].ns, text);
        if (i != 5) /* S or M: whichever fits first */
            vg_assert_slice_equal(s, vg_slice_str(rows[i].text));
        assert_true(s.n <= 9);
    }
}

static void content_types_are_told_apart(void **state)
{
    (void)state;
    assert_true(vg_grpc_is_content_type(VG_SLICE_LIT("application/grpc")));
    assert_true(vg_grpc_is_content_type(VG_SLICE_LIT("application/grpc+proto")));
    assert_true(vg_grpc_is_content_type(VG_SLICE_LIT("application/grpc;charset=utf-8")));
    assert_false(vg_grpc_is_content_type(VG_SLICE_LIT("application/grpc-web")));
    assert_false(vg_grpc_is_content_type(VG_SLICE_LIT("application/json")));
    assert_false(vg_grpc_is_content_type(VG_SLICE_LIT("")));
}

static void messages_are_decoded_and_cut(void **state)
{
    char out[8];
    (void)state;
    vg_grpc_read_message(VG_SLICE_LIT("%41%zz%4"), out, sizeof out);
    assert_string_equal(out, "A%zz%4");
    vg_grpc_read_message(VG_SLICE_LIT("0123456789"), out, sizeof out);
    assert_string_equal(out, "0123456");
    vg_grpc_read_message(VG_SLICE_LIT("%e4\x01"), out, sizeof out);
    assert_string_equal(out, "\xe4?");
    assert_int_equal(vg_grpc_read_status(VG_SLICE_LIT("16")), VG_GRPC_UNAUTHENTICATED);
    assert_int_equal(vg_grpc_read_status(VG_SLICE_LIT("17")), VG_GRPC_UNKNOWN);
    assert_int_equal(vg_grpc_read_status(VG_SLICE_LIT("")), VG_GRPC_UNKNOWN);
    assert_int_equal(vg_grpc_read_status(VG_SLICE_LIT("-1")), VG_GRPC_UNKNOWN);
    assert_string_equal(vg_grpc_code_name((enum vg_grpc_code)77), "UNKNOWN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_carry_their_prefix),
        cmocka_unit_test(any_pieces_give_the_same_messages),
        cmocka_unit_test(a_message_can_be_kept),
        cmocka_unit_test(bad_prefixes_are_refused),
        cmocka_unit_test(room_is_made_as_bytes_come),
        cmocka_unit_test(timeouts_have_eight_digits_at_most),
        cmocka_unit_test(content_types_are_told_apart),
        cmocka_unit_test(messages_are_decoded_and_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
