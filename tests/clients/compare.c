/* compare.c - codec_compare: reads the lines of fill.go and does the same with our codec: text to
 * bytes, bytes to text, and how many bytes it will be. Kinds that vigil has no type for are passed
 * over. Fails when anything differs, or when hardly anything was compared. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "server/kinds/types.h"
#include "server/schema/proto.h"
#include "json/write.h"

/* Fewer would mean that the lines are not what they were. */
#define COMPARED_MIN 60u
/* Said in full; the rest is counted. */
#define TOLD_MAX 10u

struct line {
    struct vg_slice group, version, kind;
    struct vg_slice bytes, json, json_again; /* decoded in place */
};

static unsigned compared, differing;

static void die(const char *why)
{
    fprintf(stderr, "codec_compare: %s\n", why);
    exit(2);
}

static void tell(const struct line *l, const char *what, struct vg_slice got, struct vg_slice want)
{
    size_t at = 0;
    while (at < got.n && at < want.n && got.p[at] == want.p[at])
        at++;
    if (differing++ >= TOLD_MAX)
        return;
    size_t from = at > 60 ? at - 60 : 0;
    printf("%.*s/%.*s %.*s: %s differs at %zu\n got  %.*s\n want %.*s\n", VG_SLICE_ARG(l->group),
           VG_SLICE_ARG(l->version), VG_SLICE_ARG(l->kind), what, at,
           VG_SLICE_ARG(vg_slice(got.p + from, VG_MIN(got.n - from, (size_t)120))),
           VG_SLICE_ARG(vg_slice(want.p + from, VG_MIN(want.n - from, (size_t)120))));
}

/* ---- reading ---- */

static struct vg_slice take(char **p, char end)
{
    char *from = *p, *to = strchr(from, end);
    if (!to)
        die("a line is not what fill.go writes");
    *p = to + 1;
    return vg_slice(from, (size_t)(to - from));
}

/* It becomes shorter: the bytes take the text's place. */
static struct vg_slice take_base64(char **p, char end)
{
    struct vg_slice text = take(p, end);
    char *out = (char *)(uintptr_t)text.p;
    size_t n;
    if (!vg_base64_decode(text, out, &n))
        die("a line has no base64");
    return vg_slice(out, n);
}

static void read_line(char *text, struct line *ret)
{
    char *p = text;
    ret->group = take(&p, ',');
    ret->version = take(&p, ',');
    ret->kind = take(&p, ',');
    ret->bytes = take_base64(&p, ',');
    ret->json = take_base64(&p, ',');
    ret->json_again = take_base64(&p, '\n');
}

/* ---- comparing ---- */

static void compare_encoded(const struct line *l, const struct vg_schema_type *t,
                            const struct vg_proto_envelope *x)
{
    VG_AUTO(proto_encoder) e = {0};
    VG_AUTO(buf) out = {0};
    uint64_t size = 0;
    int r = vg_proto_encode_object(&e, t, x->api_version, x->kind, l->json, VG_SLICE_LIT(""), &out);
    if (r < 0)
        tell(l, "encoding", vg_slice_str(vg_err_text(r)), l->bytes);
    else if (!vg_slice_eq(vg_buf_slice(&out), l->bytes))
        tell(l, "encoding", vg_buf_slice(&out), l->bytes);
    if (vg_proto_size(&e, t, l->json, VG_SLICE_LIT(""), &size) < 0 || size != x->raw.n)
        tell(l, "the size", VG_SLICE_LIT(""), l->bytes);
}

static void compare_decoded(const struct line *l, const struct vg_schema_type *t,
                            const struct vg_proto_envelope *x)
{
    VG_AUTO(arena) arena;
    VG_AUTO(buf) out = {0};
    struct vg_json v;
    struct vg_status status;
    vg_arena_init(&arena, 0, 0);
    int r = vg_proto_decode(&arena, t, x, &v, &status);
    if (r == 0)
        r = vg_json_write(&out, &v, VG_JSON_ESCAPE_HTML);
    if (r < 0)
        tell(l, "decoding", vg_slice_str(status.message), l->json_again);
    else if (!vg_slice_eq(vg_buf_slice(&out), l->json_again))
        tell(l, "decoding", vg_buf_slice(&out), l->json_again);
}

static void compare(const struct line *l)
{
    const struct vg_schema_type *t = vg_schema_find(l->group, l->version, l->kind);
    struct vg_proto_envelope x;
    if (!t)
        return;
    compared++;
    if (vg_proto_open(l->bytes, &x, NULL) < 0)
        die("a line has no protobuf");
    compare_encoded(l, t, &x);
    compare_decoded(l, t, &x);
}

int main(void)
{
    char *text = NULL;
    size_t room = 0;
    while (getline(&text, &room, stdin) > 0) {
        struct line l;
        read_line(text, &l);
        compare(&l);
    }
    free(text);
    printf("%u objects compared with Go, %u differences\n", compared, differing);
    return differing || compared < COMPARED_MIN;
}
