/* fuzz_ws.c - frames of a WebSocket client, in random pieces.
 * Checked: the same bytes in other pieces give the same answers and the same end; after the end
 * nothing is said any more; the output stays bounded. */
#include "base/alloc.h"
#include "base/rng.h"
#include "fuzz.h"
#include "ws.h"

struct run {
    struct vg_outq_pool pool;
    struct vg_outq out;
    struct vg_ws *ws;
    int end; /* what receive said last */
};

static void begin(struct run *r)
{
    static const struct vg_http_field fields[] = {
        {VG_SLICE_LIT("sec-websocket-key"), VG_SLICE_LIT("dGhlIHNhbXBsZSBub25jZQ==")}};
    struct vg_http_request request = {.fields = fields, .n_fields = 1};
    vg_outq_init(&r->out, &r->pool);
    VG_MUST(vg_ws_accept(&request, NULL, false, &r->out, &r->ws) == 0);
}

static void feed(struct run *r, const uint8_t *p, size_t n, struct vg_rng *rng, size_t max)
{
    while (n > 0 && r->end == 0) {
        size_t want = 1 + vg_rng_below(rng, max), piece = VG_MIN(n, want);
        r->end = vg_ws_receive(r->ws, (const char *)p, piece);
        VG_MUST(r->end == 0 || r->end == 1 || r->end == VIGIL_E_INVALID);
        p += piece;
        n -= piece;
    }
    size_t said = vg_outq_size(&r->out);
    VG_MUST(said < 70000);
    if (r->end) {
        struct vg_slice v = VG_SLICE_LIT("x");
        VG_MUST(vg_ws_receive(r->ws, "x", 1) == 1);
        VG_MUST(vg_ws_write(r->ws, &v, 1, NULL) == 0 && vg_ws_end(r->ws) == 0);
        VG_MUST(vg_outq_size(&r->out) == said);
    }
}

static void end(struct run *r)
{
    vg_ws_free(r->ws);
    vg_outq_done(&r->out);
    vg_outq_pool_done(&r->pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[2][80000];
    struct run one = {0}, two = {0};
    struct vg_rng rng;
    if (size == 0)
        return 0;
    vg_rng_seed(&rng, data[0]);
    begin(&one);
    begin(&two);
    feed(&one, data + 1, size - 1, &rng, 20);
    feed(&two, data + 1, size - 1, &rng, 1u << 20);
    VG_MUST(one.end == two.end);
    size_t n = vg_outq_peek(&one.out, text[0], sizeof(text[0]));
    VG_MUST(vg_outq_peek(&two.out, text[1], sizeof(text[1])) == n &&
            memcmp(text[0], text[1], n) == 0);
    end(&one);
    end(&two);
    return 0;
}
