/* vectors_world.h - recorded requests of a real kube-apiserver, asked of ours. Texts and trees live
 * until `arena` is reset. */
#ifndef VG_TESTS_API_VECTORS_WORLD_H
#define VG_TESTS_API_VECTORS_WORLD_H

#include <string.h>

#include "driver.h"
#include "json/json.h"
#include "json/write.h"

static struct vg_adrv d;
static struct vg_arena arena;

static inline int setup(void **state)
{
    (void)state;
    vg_arena_init(&arena, 0, 0);
    vg_adrv_open(&d, NULL);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    vg_adrv_close(&d);
    vg_arena_done(&arena);
    return 0;
}

/* ---- JSON ---- */

static inline const char *text_of(const struct vg_json *v)
{
    struct vg_slice s = vg_json_text(v);
    char *p = vg_arena_alloc(&arena, s.n + 1, 1);
    assert_non_null(p);
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}

static inline const struct vg_json *get(const struct vg_json *v, const char *key)
{
    return vg_json_get_str(v, key);
}

static inline const char *get_text(const struct vg_json *v, const char *key)
{
    return text_of(get(v, key));
}

static inline struct vg_json *parse(struct vg_slice text)
{
    struct vg_json *root;
    char *kept = vg_arena_copy(&arena, text.p, text.n);
    assert_non_null(kept);
    assert_int_equal(vg_json_parse(&arena, vg_slice(kept, text.n), NULL, &root, NULL), 0);
    return root;
}

static inline const char *written(const struct vg_json *v)
{
    VG_AUTO(buf) b = {0};
    if (!v)
        return "-";
    assert_int_equal(vg_json_write(&b, v, 0), 0);
    assert_int_equal(vg_buf_append_byte(&b, '\0'), 0);
    return vg_arena_copy(&arena, b.p, b.n);
}

static inline int64_t status_of(const struct vg_json *record)
{
    int64_t n = 0;
    assert_int_equal(vg_json_to_int64(get(record, "status"), &n), 0);
    return n;
}

/* ---- requests ---- */

static inline const char *headers_of(const struct vg_json *record)
{
    VG_AUTO(buf) b = {0};
    const struct vg_json *h = get(record, "headers");
    if (h)
        VG_JSON_FOREACH_MEMBER (m, h)
            assert_int_equal(
                vg_buf_printf(&b, "%.*s: %s\r\n", (int)m->key_n, m->key, text_of(&m->value)), 0);
    assert_int_equal(vg_buf_append_byte(&b, '\0'), 0);
    return vg_arena_copy(&arena, b.p, b.n);
}

static inline void send_record(const struct vg_json *record, struct vg_reply *reply)
{
    const struct vg_json *body = get(record, "body");
    const char *text = !body || body->type == VG_JSON_NULL ? NULL
                       : body->type == VG_JSON_STRING      ? text_of(body)
                                                           : written(body);
    vg_adrv_request(&d, get_text(record, "method"), get_text(record, "path"), headers_of(record),
                    text, reply);
}

static inline bool is_served(const char *path)
{
    static char decoded[8192];
    static struct vg_target t;
    return strlen(path) < sizeof decoded &&
           vg_target_parse(VG_HTTP_GET, vg_slice_str(path), decoded, &t, NULL) == 0 &&
           t.type != VG_TARGET_OTHER && (t.type != VG_TARGET_NO_RESOURCE || strstr(path, "bogus"));
}

static inline void make_namespace(const char *name)
{
    VG_AUTO(buf) b = {0};
    struct vg_reply r = {0};
    assert_int_equal(vg_buf_printf(&b,
                                   "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                                   "\"name\":\"%s\"}}%c",
                                   name, '\0'),
                     0);
    vg_adrv_request(&d, "POST", "/api/v1/namespaces", "Content-Type: application/json\r\n", b.p,
                    &r);
    assert_true(r.status == 201 || r.status == 409);
    vg_reply_done(&r);
}

#endif
