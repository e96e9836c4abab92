/* fuzz_watch_frames.c - a watch in pieces must read as the same watch whole: the same calls of the
 * sink, the same version, the same end. The first byte: bits 0 to 6 seed the cuts, bit 7 begins
 * with a state that streams in. */
#include <stdlib.h>
#include <string.h>

#include "reflector_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    uint64_t sum;       /* of all calls and what they gave */
    size_t calls, left; /* bytes of a frame that is not complete */
    int result;
    bool is_streaming, has_frame_error;
    char version[VG_OBJECT_VERSION_MAX + 1];
};

static void note(struct outcome *s, char what, struct vg_slice text)
{
    s->calls++;
    s->sum = s->sum * 1099511628211u + (unsigned char)what;
    for (size_t i = 0; i < text.n; i++)
        s->sum = (s->sum ^ (unsigned char)text.p[i]) * 1099511628211u;
}

static int on_put(void *arg, const struct vigil_object *o)
{
    note(arg, '+', vg_slice_of(vigil_object_json(o)));
    return 0;
}

static int on_remove(void *arg, const struct vigil_object *o)
{
    note(arg, '-', vg_slice_of(vigil_object_json(o)));
    return 0;
}

static int on_replace(void *arg, const struct vigil_object *const *objects, size_t n,
                      struct vigil_text version)
{
    note(arg, '=', vg_slice_of(version));
    for (size_t i = 0; i < n; i++)
        note(arg, '.', vg_slice_of(vigil_object_json(objects[i])));
    return 0;
}

static void on_bookmark(void *arg, struct vigil_text version)
{
    note(arg, '#', vg_slice_of(version));
}

/* The reflector asks its loop for the time. One serves all runs. */
static struct vg_loop *the_loop(void)
{
    static struct vg_loop *loop;
    if (!loop && vg_loop_new(vg_clock_system(), &loop) < 0)
        abort();
    return loop;
}

static void run(struct vg_slice text, struct vg_rng *rng, bool streams, struct outcome *ret)
{
    struct vigil_reflector r = {
        .loop = the_loop(),
        .opts = {.size = sizeof(r.opts), .resource = &vigil_pods},
        .sink = {on_put, on_remove, on_replace, on_bookmark, NULL, ret},
        .state = streams ? VG_REFLECTOR_STREAMING : VG_REFLECTOR_WATCHING,
        .frame.max = VG_FRAME_MAX,
    };
    *ret = (struct outcome){0};
    while (ret->result >= 0 && text.n) {
        size_t n = rng ? 1 + vg_rng_below(rng, text.n) : text.n;
        ret->result = vg_watcher_bytes(&r, vg_slice(text.p, n));
        text = vg_slice(text.p + n, text.n - n);
    }
    ret->is_streaming = r.state == VG_REFLECTOR_STREAMING;
    ret->has_frame_error = r.has_frame_error;
    ret->left = ret->result < 0 ? 0 : r.frame.n;
    memcpy(ret->version, r.version, sizeof(r.version));
    vg_initial_done(&r.initial);
    vg_buf_done(&r.frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct vg_slice text = vg_slice(data + 1, size - 1);
    struct vg_rng rng;
    struct outcome whole, cut;
    vg_rng_seed(&rng, data[0] & 0x7f);
    run(text, NULL, data[0] & 0x80, &whole);
    run(text, &rng, data[0] & 0x80, &cut);
    if (whole.sum != cut.sum || whole.calls != cut.calls || whole.left != cut.left ||
        whole.result != cut.result || whole.is_streaming != cut.is_streaming ||
        whole.has_frame_error != cut.has_frame_error || strcmp(whole.version, cut.version) != 0)
        abort();
    return 0;
}
