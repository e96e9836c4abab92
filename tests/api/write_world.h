/* write_world.h - what the tests of the writing verbs share: a server with the namespace "ns",
 * requests to it, and looks at the last answer by path; what watchers saw is compared as a list of
 * events. Thread: the test's. */
#ifndef VG_TESTS_API_WRITE_WORLD_H
#define VG_TESTS_API_WRITE_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_world.h"
#include "json/json.h"
#include "json/pointer.h"

static struct vg_arena arena; /* of the last answer's tree */
static struct vg_json *root;

#define JSON "Content-Type: application/json\r\n"
#define MERGE "Content-Type: application/merge-patch+json\r\n"
#define CONFIGS "/api/v1/namespaces/ns/configmaps"
#define PODS "/api/v1/namespaces/ns/pods"
#define CONTAINERS "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]"
#define DEPLOYMENTS "/apis/apps/v1/namespaces/ns/deployments"
/* What a deployment must have. */
#define PODS_OF_IT                                                                                 \
    "\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":"  \
    "\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"

static inline void ask(const char *method, const char *target, const char *headers,
                       const char *body)
{
    vg_adrv_request(&d, method, target, headers, body, &reply);
    vg_arena_reset(&arena);
    root = NULL;
    if (reply.body.n)
        assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&reply.body), NULL, &root, NULL), 0);
}

static inline void expect_status(int status)
{
    if (reply.status != status)
        print_message("%s\n", reply.body.p);
    assert_int_equal(reply.status, status);
}

static inline void put(const char *target, const char *body, int status)
{
    ask("PUT", target, JSON, body);
    expect_status(status);
}

static inline void post(const char *target, const char *body, int status)
{
    ask("POST", target, JSON, body);
    expect_status(status);
}

static inline void patch(const char *target, const char *body, int status)
{
    ask("PATCH", target, MERGE, body);
    expect_status(status);
}

static inline void erase(const char *target, const char *body, int status)
{
    ask("DELETE", target, body ? JSON : NULL, body);
    expect_status(status);
}

static inline void get(const char *target, int status)
{
    ask("GET", target, NULL, NULL);
    expect_status(status);
}

/* The text of a string or number of the answer; "" when it is not there. */
static inline const char *at(const char *pointer)
{
    static char text[8][1024];
    static unsigned turn;
    struct vg_json_pointer p;
    struct vg_json *v = NULL;
    struct vg_status why;
    assert_int_equal(vg_json_pointer_parse(&arena, vg_slice_str(pointer), &p, &why), 0);
    int err = vg_json_pointer_get(&p, root, 0, &v, &why);
    char *out = text[turn++ % 8];
    snprintf(out, sizeof text[0], "%.*s",
             VG_SLICE_ARG(err < 0 ? VG_SLICE_LIT("") : vg_json_text(v)));
    return out;
}

static inline unsigned long long rev(void)
{
    return strtoull(at("/metadata/resourceVersion"), NULL, 10);
}

static inline void expect(const char *pointer, const char *value)
{
    assert_string_equal(at(pointer), value);
}

static inline int setup(void **state)
{
    (void)state;
    vg_arena_init(&arena, 0, 0);
    open_driver((struct vg_adrv_opts){.n_loops = 2});
    post("/api/v1/namespaces", "{\"metadata\":{\"name\":\"ns\"}}", 201);
    return 0;
}

static inline int teardown(void **state)
{
    vg_arena_done(&arena);
    return close_server(state);
}

#define IN_NAMESPACE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* "ADDED a 5, MODIFIED a 7, ...": what a watch from a revision on sees until `last` of them. */
static inline void expect_events(const char *collection, unsigned long long from,
                                 const char *wanted)
{
    char target[256], seen[4096] = "";
    struct vg_stream s;
    snprintf(target, sizeof target, "%s?watch=1&timeoutSeconds=30&resourceVersion=%llu", collection,
             from);
    vg_stream_open(&d, target, NULL, &s);
    assert_int_equal(s.status, 200);
    while (strlen(seen) < strlen(wanted)) {
        const char *line = vg_stream_line(&s);
        assert_non_null(line);
        VG_AUTO(arena) a;
        struct vg_json *event;
        vg_arena_init(&a, 0, 0);
        assert_int_equal(vg_json_parse(&a, vg_slice_str(line), NULL, &event, NULL), 0);
        struct vg_json *meta = vg_json_get_str(vg_json_get_str(event, "object"), "metadata");
        struct vg_json *finalizers = vg_json_get_str(meta, "finalizers");
        size_t n = strlen(seen);
        snprintf(seen + n, sizeof seen - n, "%s%.*s %.*s%s", n ? ", " : "",
                 VG_SLICE_ARG(vg_json_text(vg_json_get_str(event, "type"))),
                 VG_SLICE_ARG(vg_json_text(vg_json_get_str(meta, "name"))),
                 finalizers ? " held" : "");
    }
    vg_stream_close(&s);
    assert_string_equal(seen, wanted);
}

#endif
