/* api_protobuf_test.c - protobuf on the wire: what is asked for so is what JSON says, in envelopes,
 * lists and frames; bodies in protobuf do what bodies in JSON do. */
#include <stdio.h>

#include "engine_world.h"
#include "proto_client.h"
#include "server/api/protobuf.h"
#include "json/write.h"

#define PROTOBUF "application/vnd.kubernetes.protobuf"
#define ACCEPT "Accept: " PROTOBUF "\r\n"
#define SENT "Content-Type: " PROTOBUF "\r\n"
#define PARTIAL ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1\r\n"
#define PARTIALS ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1\r\n"
#define CONFIGS "/api/v1/namespaces/default/configmaps"

static struct vg_buf json; /* the last answer, as JSON */

static int setup(void **state)
{
    open_server(state);
    vg_adrv_put(&d, "", "namespaces", "", "default",
                "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"default\"},"
                "\"spec\":{},\"status\":{\"phase\":\"Active\"}}");
    return 0;
}

static int teardown(void **state)
{
    vg_buf_done(&json);
    return close_server(state);
}

/* ---- asking ---- */

static void ask(const char *method, const char *target, const char *headers, struct vg_slice body)
{
    assert_true(vg_adrv_try_bytes(&d, method, target, headers, body, &reply));
}

static const struct vg_slice none;

/* GET in protobuf; `json` is what came. */
static void get(const char *target, const char *headers)
{
    ask("GET", target, headers, none);
    assert_string_equal(vg_reply_field(&reply, "Content-Type"), PROTOBUF);
    vg_proto_client_json(vg_buf_slice(&reply.body), &json);
}

static void expect_status(int status)
{
    if (reply.status != status)
        print_error("%d: %s\n", reply.status, json.p ? json.p : reply.body.p);
    assert_int_equal(reply.status, status);
}

/* The same in both looks. */
static void expect_same(const char *target)
{
    struct vg_reply plain = {0};
    get(target, ACCEPT);
    vg_adrv_get(&d, target, &plain);
    assert_int_equal(reply.status, plain.status);
    plain.body.p[plain.body.n - 1] = '\0'; /* the line's end */
    assert_string_equal(json.p, plain.body.p);
    vg_reply_done(&plain);
}

static void make_configs(unsigned n, unsigned bytes)
{
    VG_AUTO(buf) text = {0};
    for (unsigned i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "c-%05u", i);
        vg_buf_clear(&text);
        assert_int_equal(
            vg_buf_printf(&text,
                          "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"
                          "\"name\":\"%s\",\"namespace\":\"default\"},\"data\":{\"k\":"
                          "\"%0*u\"}}%c",
                          name, (int)bytes, i, '\0'),
            0);
        vg_adrv_put(&d, "", "configmaps", "default", name, text.p);
    }
}

/* ---- answers ---- */

static void objects_and_refusals_are_what_json_says(void **state)
{
    (void)state;
    make_configs(3, 10);
    expect_same(CONFIGS "/c-00001");
    expect_status(200);
    expect_same(CONFIGS "/nobody");
    expect_status(404);
    expect_same("/api/v1/namespaces/default");
    get(CONFIGS "/c-00001", "Accept: " PROTOBUF PARTIAL);
    assert_non_null(strstr(json.p, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"
                                   "\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"c-00001\""));
    ask("GET", CONFIGS "/c-00001", ACCEPT "User-Agent: curl/8\r\n", none);
    assert_string_equal(vg_reply_field(&reply, "Content-Type"), PROTOBUF);
    /* The first that works; none that works. */
    ask("GET", CONFIGS "/c-00001", "Accept: " PROTOBUF ",application/json\r\n", none);
    assert_string_equal(vg_reply_field(&reply, "Content-Type"), PROTOBUF);
    ask("GET", CONFIGS "/c-00001", "Accept: application/json," PROTOBUF "\r\n", none);
    assert_string_equal(vg_reply_field(&reply, "Content-Type"), "application/json");
    ask("GET", CONFIGS "/c-00001", "Accept: " PROTOBUF ";as=Table;g=meta.k8s.io;v=v1\r\n", none);
    expect_status(406);
}

static void discovery_is_what_json_says(void **state)
{
    (void)state;
    expect_same("/api");
    expect_same("/apis");
    expect_same("/api/v1");
    expect_same("/apis/apps");
    expect_same("/apis/apps/v1");
    struct vg_reply plain = {0};
#define AGGREGATED ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    vg_adrv_request(&d, "GET", "/apis", "Accept: application/json" AGGREGATED "\r\n", NULL, &plain);
    ask("GET", "/apis", "Accept: " PROTOBUF AGGREGATED "\r\n", none);
    assert_string_equal(vg_reply_field(&reply, "Content-Type"), PROTOBUF AGGREGATED);
    vg_proto_client_json(vg_buf_slice(&reply.body), &json);
    plain.body.p[plain.body.n - 1] = '\0';
    assert_string_equal(json.p, plain.body.p);
    vg_reply_done(&plain);
}

/* ---- lists ---- */

static void lists_are_what_json_says(void **state)
{
    (void)state;
    expect_same(CONFIGS);
    assert_non_null(strstr(json.p, "\"items\":[]"));
    make_configs(700, 600);
    expect_same(CONFIGS); /* in pieces: 420 KB */
    size_t kept = vg_protobuf_kept_bytes();
    assert_true(kept > 700 * 600);
    expect_same(CONFIGS); /* slices of what is kept */
    assert_int_equal(vg_protobuf_kept_bytes(), kept);
    expect_same(CONFIGS "?limit=10");
    assert_non_null(strstr(json.p, "\"remainingItemCount\":690"));
    expect_same("/api/v1/configmaps?fieldSelector=metadata.name%3Dc-00007");
    expect_same("/api/v1/configmaps?limit=5&labelSelector=a");
    expect_same("/api/v1/configmaps?continue=x");
    expect_status(400);
    get(CONFIGS, "Accept: " PROTOBUF PARTIALS);
    assert_non_null(strstr(json.p, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":"
                                   "\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":"));
    assert_non_null(strstr(json.p, "\"name\":\"c-00699\""));
    /* What is kept goes with its record. */
    vg_adrv_delete(&d, "", "configmaps", "default", "c-00000");
    expect_same(CONFIGS);
}

/* Above the cap what is kept and what is not stand in one list. */
static void lists_go_on_where_nothing_more_is_kept(void **state)
{
    (void)state;
    enum { BYTES = 900000 };
    unsigned n = VG_PROTOBUF_KEPT_MAX / BYTES + 4;
    make_configs(n, BYTES);
    for (int i = 0; i < 2; i++) {
        get(CONFIGS, ACCEPT);
        assert_true(vg_protobuf_kept_bytes() <= VG_PROTOBUF_KEPT_MAX);
        assert_true(vg_protobuf_kept_bytes() > VG_PROTOBUF_KEPT_MAX - 2 * BYTES);
        unsigned seen = 0;
        for (const char *at = json.p; (at = strstr(at, "\"name\":\"c-")); at++)
            seen++;
        assert_int_equal(seen, n);
    }
    for (unsigned i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "c-%05u", i);
        vg_adrv_delete(&d, "", "configmaps", "default", name);
    }
    expect_same(CONFIGS);
}

/* Kinds without a cache are read from storage, page by page, and twice. */
static void lists_of_storage_are_what_json_says(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1300; i++) {
        char name[16], text[512];
        snprintf(name, sizeof name, "e-%05u", i);
        snprintf(
            text, sizeof text,
            "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
            "\"namespace\":\"default\"},\"involvedObject\":{},\"reason\":\"Tried\",\"source\":{"
            "},\"firstTimestamp\":null,\"lastTimestamp\":null,\"eventTime\":null,"
            "\"reportingComponent\":\"\",\"reportingInstance\":\"\"}",
            name);
        vg_adrv_put(&d, "", "events", "default", name, text);
    }
    expect_same("/api/v1/events");
    assert_non_null(strstr(json.p, "\"name\":\"e-01299\""));
    expect_same("/api/v1/namespaces/default/events?limit=7");
    expect_same("/api/v1/events?fieldSelector=reason%3DElse");
}

/* ---- watches ---- */

static struct vg_slice next(struct vg_stream *s, const char *type)
{
    struct vg_slice frame, got, body;
    assert_true(vg_stream_frame(s, &frame));
    vg_proto_client_event(frame, &got, &body);
    assert_true(vg_slice_eq(got, vg_slice_str(type)));
    vg_proto_client_json(body, &json);
    return body;
}

static void watches_have_frames_of_what_get_says(void **state)
{
    (void)state;
    struct vg_stream s;
    make_configs(2, 10);
    vg_stream_open(&d,
                   CONFIGS "?watch=1&allowWatchBookmarks=1&sendInitialEvents=1"
                           "&resourceVersionMatch=NotOlderThan",
                   "Accept: " PROTOBUF ";stream=watch\r\n", &s);
    assert_int_equal(s.status, 200);
    assert_non_null(strstr(s.head.p, "Content-Type: " PROTOBUF ";stream=watch\r\n"));
    for (int i = 0; i < 2; i++) {
        char target[64];
        snprintf(target, sizeof target, CONFIGS "/c-%05d", i);
        struct vg_slice body = next(&s, "ADDED");
        ask("GET", target, ACCEPT, none);
        assert_true(vg_slice_eq(body, vg_buf_slice(&reply.body)));
    }
    (void)next(&s, "BOOKMARK");
    assert_non_null(strstr(json.p, "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"));
    vg_rev rev = vg_adrv_config(&d, "default", "c-00001", "new");
    (void)next(&s, "MODIFIED");
    assert_non_null(strstr(json.p, "new"));
    char text[64];
    snprintf(text, sizeof text, "\"resourceVersion\":\"%llu\"", (unsigned long long)rev);
    assert_non_null(strstr(json.p, text));
    rev = vg_adrv_delete(&d, "", "configmaps", "default", "c-00001");
    (void)next(&s, "DELETED");
    snprintf(text, sizeof text, "\"resourceVersion\":\"%llu\"", (unsigned long long)rev);
    assert_non_null(strstr(json.p, text));
    vg_stream_close(&s);
}

/* One event in a message of bytes, without the length. */
static void a_web_socket_has_events_without_their_length(void **state)
{
    (void)state;
    struct vg_stream s;
    make_configs(1, 200);
    vg_stream_open(&d, CONFIGS "?watch=1",
                   ACCEPT "Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: http://x\r\n"
                          "Sec-WebSocket-Version: 13\r\n"
                          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
                   &s);
    assert_int_equal(s.status, 101);
    while (s.in.n < 4 ||
           s.in.n < 4 + ((size_t)(unsigned char)s.in.p[2] << 8 | (unsigned char)s.in.p[3]))
        assert_true(vg_stream_receive(&s));
    assert_int_equal((unsigned char)s.in.p[0], 0x82); /* a whole message of bytes */
    assert_int_equal((unsigned char)s.in.p[1], 126);  /* with a length of two bytes */
    struct vg_slice type, body, frame = {s.in.p + 4, s.in.n - 4};
    vg_proto_client_event(frame, &type, &body);
    assert_true(vg_slice_eq(type, VG_SLICE_LIT("ADDED")));
    ask("GET", CONFIGS "/c-00000", ACCEPT, none);
    assert_true(vg_slice_eq(body, vg_buf_slice(&reply.body)));
    vg_stream_close(&s);
}

static void errors_of_watches_are_frames(void **state)
{
    (void)state;
    struct vg_stream s;
    make_configs(5, 10);
    vg_adrv_compact(&d, vg_storage_revision(d.storage));
    vg_stream_open(&d, CONFIGS "?watch=1&resourceVersion=2", ACCEPT, &s);
    assert_int_equal(s.status, 200);
    (void)next(&s, "ERROR");
    assert_non_null(strstr(json.p, "\"code\":410"));
    vg_stream_close(&s);
}

/* A store that an older server wrote, or someone else, may hold what no table describes. It is told
 * as an error that says so, to whoever asks for protobuf; JSON shows it as it is. */
static void what_cannot_be_encoded_is_an_error(void **state)
{
    (void)state;
    struct vg_stream s;
    make_configs(2, 10);
    vg_adrv_put(&d, "", "configmaps", "default", "odd",
                "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"odd\","
                "\"namespace\":\"default\"},\"data\":[1]}");
    get(CONFIGS "/odd", ACCEPT);
    expect_status(500);
    assert_non_null(strstr(json.p, "\"reason\":\"InternalError\""));
    get(CONFIGS, ACCEPT);
    expect_status(500);
    assert_non_null(strstr(json.p, "cannot be encoded"));
    get(CONFIGS "?limit=1", ACCEPT); /* not on this page */
    expect_status(200);
    ask("GET", CONFIGS "/odd", "", none);
    expect_status(200);
    vg_stream_open(&d, CONFIGS "?watch=1", ACCEPT, &s);
    assert_int_equal(s.status, 200);
    (void)next(&s, "ADDED");
    (void)next(&s, "ADDED");
    (void)next(&s, "ERROR");
    assert_non_null(strstr(json.p, "\"code\":500"));
    vg_stream_close(&s);
}

/* ---- bodies ---- */

static void tell(const char *method, const char *target, const char *text)
{
    VG_AUTO(buf) body = {0};
    vg_proto_client_body(vg_slice_str(text), &body);
    ask(method, target, ACCEPT SENT, vg_buf_slice(&body));
    vg_proto_client_json(vg_buf_slice(&reply.body), &json);
}

static void bodies_are_read(void **state)
{
    (void)state;
    tell("POST", CONFIGS,
         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"labels\":{"
         "\"x\":\"y\"}},\"data\":{\"k\":\"1\"},\"binaryData\":{\"b\":\"AAEC\"}}");
    expect_status(201);
    expect_same(CONFIGS "/a");
    assert_non_null(strstr(json.p, "\"binaryData\":{\"b\":\"AAEC\"}"));
    tell("PUT", CONFIGS "/a",
         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"data\":{"
         "\"k\":\"2\"}}");
    expect_status(200);
    expect_same(CONFIGS "/a");
    assert_non_null(strstr(json.p, "\"k\":\"2\""));
    assert_null(strstr(json.p, "binaryData"));
    tell("POST", CONFIGS, "{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{}}");
    expect_status(400);
    assert_non_null(strstr(json.p, "Secret in version"));
    tell(
        "DELETE", CONFIGS "/a",
        "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{\"uid\":\"other\"}}");
    expect_status(409);
    tell("DELETE", CONFIGS "/a",
         "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Background\"}");
    expect_status(200);
    assert_non_null(strstr(json.p, "\"status\":\"Success\""));
}

static void a_pod_is_bound_evicted_and_shown(void **state)
{
    (void)state;
#define PODS "/api/v1/namespaces/default/pods"
    tell("POST", PODS,
         "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\"},\"spec\":{"
         "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":"
         "\"100m\"}}}]}}");
    expect_status(201);
    expect_same(PODS "/p");
    tell("POST", PODS "/p/binding",
         "{\"kind\":\"Binding\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\"},\"target\":{"
         "\"kind\":\"Node\",\"name\":\"n1\"}}");
    expect_status(201);
    expect_same(PODS "/p");
    assert_non_null(strstr(json.p, "\"nodeName\":\"n1\""));
    tell("POST", PODS "/p/eviction",
         "{\"kind\":\"Eviction\",\"apiVersion\":\"policy/v1\",\"metadata\":{\"name\":\"p\"}}");
    expect_status(201);
    expect_same(PODS);
}

static void a_scale_is_shown_and_put(void **state)
{
    (void)state;
#define DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
    tell("POST", DEPLOYMENTS,
         "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"name\":\"w\"},"
         "\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{"
         "\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
         "\"image\":\"i\"}]}}}}");
    expect_status(201);
    expect_same(DEPLOYMENTS "/w/scale");
    tell("PUT", DEPLOYMENTS "/w/scale",
         "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{\"name\":\"w\","
         "\"namespace\":\"default\"},\"spec\":{\"replicas\":5}}");
    expect_status(200);
    expect_same(DEPLOYMENTS "/w");
    assert_non_null(strstr(json.p, "\"replicas\":5"));
}

/* Two bytes make a container of many: the tree has a cap. */
static void a_body_that_grows_too_large_is_refused(void **state)
{
    (void)state;
    VG_AUTO(buf) raw = {0};
    VG_AUTO(buf) body = {0};
    size_t n = (size_t)1 << 20;
    assert_int_equal(vg_buf_append(&raw, "\x0a\x00\x12", 3), 0);
    for (size_t left = 2 * n; left || raw.n == 3; left >>= 7)
        assert_int_equal(vg_buf_append_byte(&raw, (char)((left & 127) | (left > 127 ? 128 : 0))),
                         0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(vg_buf_append(&raw, "\x12\x00", 2), 0);
    assert_int_equal(vg_proto_put_head(&body, VG_SLICE_LIT("v1"), VG_SLICE_LIT("Pod"), raw.n), 0);
    assert_int_equal(vg_buf_append_slice(&body, vg_buf_slice(&raw)), 0);
    ask("POST", PODS, SENT, vg_buf_slice(&body));
    assert_true(reply.status >= 400);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(objects_and_refusals_are_what_json_says),
        TEST(discovery_is_what_json_says),
        TEST(lists_are_what_json_says),
        TEST(lists_of_storage_are_what_json_says),
        TEST(lists_go_on_where_nothing_more_is_kept),
        TEST(watches_have_frames_of_what_get_says),
        TEST(a_web_socket_has_events_without_their_length),
        TEST(errors_of_watches_are_frames),
        TEST(what_cannot_be_encoded_is_an_error),
        TEST(bodies_are_read),
        TEST(a_pod_is_bound_evicted_and_shown),
        TEST(a_scale_is_shown_and_put),
        TEST(a_body_that_grows_too_large_is_refused),
    };
    return RUN_ON_ENGINE(argc, argv, tests);
}
