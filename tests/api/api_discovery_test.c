/* api_discovery_test.c - discovery, OpenAPI and /version over real sockets; and every recorded
 * request to them again, as far as it is about what is served here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_world.h"
#include "json/json.h"

#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define PROTO_V2 "application/com.github.proto-openapi.spec.v2"
#define PROTO_V3 "application/com.github.proto-openapi.spec.v3"

static void get(const char *target)
{
    vg_adrv_get(&d, target, &reply);
}

static void get_as(const char *target, const char *accept)
{
    char line[512];
    snprintf(line, sizeof line, "Accept: %s\r\n", accept);
    vg_adrv_request(&d, "GET", target, line, NULL, &reply);
}

static void expect(int status, const char *content_type)
{
    assert_int_equal(reply.status, status);
    const char *type = vg_reply_field(&reply, "Content-Type");
    if (content_type)
        assert_string_equal(type ? type : "", content_type);
    else
        assert_null(type);
}

static void expect_start(const char *text)
{
    if (strncmp(reply.body.p, text, strlen(text)) != 0)
        assert_string_equal(reply.body.p, text);
}

static void expect_end(const char *text)
{
    size_t n = strlen(text);
    assert_true(reply.body.n >= n);
    assert_string_equal(reply.body.p + reply.body.n - n, text);
}

/* ---- discovery ---- */

static void plain_documents_are_compact(void **state)
{
    (void)state;
    char text[256];
    get("/api");
    expect(200, "application/json");
    snprintf(text, sizeof text,
             "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":[{"
             "\"clientCIDR\":\"0.0.0.0/0\",\"serverAddress\":\"127.0.0.1:%u\"}]}\n",
             d.port);
    assert_string_equal(reply.body.p, text);
    get("/apis");
    expect_start("{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[{\"name\":"
                 "\"apiregistration.k8s.io\",");
    get("/apis/apps");
    expect_start("{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"apps\",");
    get("/api/v1");
    expect_start("{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":[{");
    expect_end("}]}\n");
    assert_null(vg_reply_field(&reply, "ETag"));
    get("/apis/coordination.k8s.io/v1/");
    expect_start("{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":"
                 "\"coordination.k8s.io/v1\",\"resources\":[{\"name\":\"leases\",");
}

static void documents_have_other_looks(void **state)
{
    (void)state;
    get("/apis/apps?pretty=true");
    expect(200, "application/json");
    expect_start("{\n  \"kind\": \"APIGroup\",\n");
    expect_end("\n}");
    get_as("/apis/apps", "application/yaml");
    expect(200, "application/yaml");
    expect_start("apiVersion: v1\nkind: APIGroup\nname: apps\n");
    vg_adrv_request(&d, "GET", "/api/v1", "User-Agent: curl/8\r\n", NULL, &reply);
    expect_start("{\n  \"kind\": \"APIResourceList\",\n");
}

static void aggregated_documents_are_cached_by_etag(void **state)
{
    (void)state;
    static const char *const paths[] = {"/api", "/apis"};
    for (size_t i = 0; i < VG_ARRAY_LEN(paths); i++) {
        char headers[512], etag[200];
        get_as(paths[i], AGGREGATED ",application/json");
        expect(200, AGGREGATED);
        expect_start(
            "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\"");
        assert_string_equal(vg_reply_field(&reply, "Vary"), "Accept");
        snprintf(etag, sizeof etag, "%s", vg_reply_field(&reply, "ETag"));
        assert_true(strlen(etag) == 130 && etag[0] == '"' && etag[129] == '"');
        snprintf(headers, sizeof headers, "Accept: " AGGREGATED "\r\nIf-None-Match: %s\r\n", etag);
        vg_adrv_request(&d, "GET", paths[i], headers, NULL, &reply);
        expect(304, NULL);
        assert_int_equal(reply.body.n, 0);
        assert_string_equal(vg_reply_field(&reply, "ETag"), etag);
    }
}

static void what_is_not_there_is_404(void **state)
{
    (void)state;
    static const char *const as_status[] = {"/api/v9", "/apis/apps/v9", "/apis/apps/v1/nosuch"};
    for (size_t i = 0; i < VG_ARRAY_LEN(as_status); i++) {
        get(as_status[i]);
        expect(404, "application/json");
        expect_start("{\"kind\":\"Status\",");
    }
    static const char *const as_text[] = {"/apis/nosuch.example.com", "/openapi/v4",
                                          "/openapi/v3/apis/apps/v9", "/openapi/v3/nosuch"};
    for (size_t i = 0; i < VG_ARRAY_LEN(as_text); i++) {
        get(as_text[i]);
        expect(404, "text/plain; charset=utf-8");
        assert_string_equal(vg_reply_field(&reply, "X-Content-Type-Options"), "nosniff");
        assert_string_equal(reply.body.p, "404 page not found\n");
    }
}

static void only_reading_is_allowed(void **state)
{
    (void)state;
    static const char *const paths[] = {"/api",     "/apis",       "/apis/apps", "/apis/apps/v1",
                                        "/version", "/openapi/v2", "/openapi/v3"};
    for (size_t i = 0; i < VG_ARRAY_LEN(paths); i++) {
        vg_adrv_request(&d, "POST", paths[i], NULL, "{}", &reply);
        expect(405, "application/json");
    }
}

static void the_version_is_told(void **state)
{
    (void)state;
    get("/version");
    expect(200, "application/json");
    expect_start("{\n  \"major\": \"1\",\n  \"minor\": \"36\",\n");
    assert_non_null(strstr(reply.body.p, "\"gitVersion\": \"v1.36.4+vigil\""));
    expect_end("\n}");
}

/* ---- OpenAPI ---- */

static void openapi_2_comes_in_two_forms(void **state)
{
    (void)state;
    char etag[200];
    get("/openapi/v2");
    expect(200, "application/json");
    expect_start("{\"swagger\":\"2.0\",");
    snprintf(etag, sizeof etag, "%s", vg_reply_field(&reply, "ETag"));
    size_t whole = reply.body.n;
    get_as("/openapi/v2", PROTO_V2 "@v1.0+protobuf");
    expect(200, PROTO_V2 ".v1.0+protobuf");
    expect_start("\x0a\x03"
                 "2.0");
    assert_string_equal(vg_reply_field(&reply, "ETag"), etag);
    get_as("/openapi/v2", "text/html, application/*");
    expect(200, "application/json");
    get_as("/openapi/v2", "text/html");
    expect(406, NULL);
    vg_adrv_request(&d, "GET", "/openapi/v2", "Accept-Encoding: gzip\r\n", NULL, &reply);
    expect(200, "application/json");
    assert_string_equal(vg_reply_field(&reply, "Content-Encoding"), "gzip");
    assert_true(reply.body.n < whole / 4);
    char headers[256];
    snprintf(headers, sizeof headers, "If-None-Match: %s\r\n", etag);
    vg_adrv_request(&d, "GET", "/openapi/v2", headers, NULL, &reply);
    expect(304, NULL);
}

/* The URL that the index has for a path. */
static void find_url(const char *path, char *ret, size_t size)
{
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 0);
    struct vg_json *root;
    get("/openapi/v3");
    expect(200, "text/plain; charset=utf-8");
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&reply.body), NULL, &root, NULL), 0);
    const struct vg_json *entry = vg_json_get_str(vg_json_get_str(root, "paths"), path);
    struct vg_slice url = vg_json_text(vg_json_get_str(entry, "serverRelativeURL"));
    assert_true(url.n > 0);
    snprintf(ret, size, "%.*s", VG_SLICE_ARG(url));
}

static void openapi_3_is_found_by_its_index(void **state)
{
    (void)state;
    char url[512];
    find_url("apis/apps/v1", url, sizeof url);
    get(url);
    expect(200, "application/json");
    expect_start("{\"openapi\":\"3.0.0\",");
    assert_string_equal(vg_reply_field(&reply, "Cache-Control"), "public, immutable");
    get("/openapi/v3/apis/apps/v1");
    expect(200, "application/json");
    assert_string_equal(vg_reply_field(&reply, "Cache-Control"), "no-cache, private");
    get("/openapi/v3/apis/apps/v1?hash=00");
    expect(301, "application/json");
    assert_string_equal(vg_reply_field(&reply, "Location"), url);
    assert_int_equal(reply.body.n, 0);
    get_as("/openapi/v3/apis/apps/v1", PROTO_V3 "@v1.0+protobuf");
    expect(200, PROTO_V3 ".v1.0+protobuf");
}

/* ---- the recorded requests again ---- */

static const char *text_of(const struct vg_json *v, const char *key, char *ret, size_t size)
{
    snprintf(ret, size, "%.*s", VG_SLICE_ARG(vg_json_text(vg_json_get_str(v, key))));
    return ret;
}

/* What there is not: groups that are not served, protobuf of discovery, /openapi/v3 documents that
 * are not about kinds; and paths of server/http. */
static bool is_ours(const struct vg_json *entry)
{
    static const char *const exact[] = {"/version",
                                        "/api",
                                        "/apis",
                                        "/apis/",
                                        "/api/v1",
                                        "/api/v1/",
                                        "/openapi/v2",
                                        "/openapi/v3",
                                        "/api/v9",
                                        "/apis/nosuch.example.com",
                                        "/apis/apps/v1/nosuch",
                                        "/apis/apps/v9"};
    size_t n_groups;
    const struct vg_group *groups = vg_groups(&n_groups);
    char path[1024], own[256], accept[512];
    text_of(entry, "path", path, sizeof path);
    path[strcspn(path, "?")] = '\0';
    text_of(vg_json_get_str(entry, "request_headers"), "Accept", accept, sizeof accept);
    if (strncmp(accept, "application/vnd.kubernetes.protobuf", 35) == 0)
        return false;
    for (size_t i = 0; i < VG_ARRAY_LEN(exact); i++)
        if (strcmp(path, exact[i]) == 0)
            return true;
    for (size_t i = 0; i < n_groups; i++) {
        snprintf(own, sizeof own, "/apis/%s", groups[i].name);
        if (strcmp(path, own) == 0)
            return true;
        for (const char *const *v = groups[i].versions; *v; v++) {
            snprintf(own, sizeof own, "/openapi/v3/apis/%s/%s", groups[i].name, *v);
            if (strcmp(path, own) == 0 || strcmp(path, own + strlen("/openapi/v3")) == 0)
                return true;
        }
    }
    return strcmp(path, "/openapi/v3/api/v1") == 0;
}

/* A hash and an ETag are ours, not the recorded ones: with a right one the answer is the same. */
static void make_request(const struct vg_json *entry, char *path, size_t path_n, char *headers,
                         size_t headers_n)
{
    const struct vg_json *fields = vg_json_get_str(entry, "request_headers");
    char accept[512];
    text_of(entry, "path", path, path_n);
    text_of(fields, "Accept", accept, sizeof accept);
    snprintf(headers, headers_n, "%s%s%s", *accept ? "Accept: " : "", accept,
             *accept ? "\r\n" : "");
    char *hash = strstr(path, "?hash=");
    if (hash && strlen(hash) > 100) {
        *hash = '\0';
        char name[1024];
        snprintf(name, sizeof name, "%s", path + strlen("/openapi/v3/"));
        find_url(name, path, path_n);
    }
    if (!vg_json_get_str(fields, "If-None-Match"))
        return;
    vg_adrv_request(&d, "GET", path, headers, NULL, &reply);
    size_t n = strlen(headers);
    snprintf(headers + n, headers_n - n, "If-None-Match: %s\r\n", vg_reply_field(&reply, "ETag"));
}

static void compare_field(const struct vg_json *recorded, const char *key, const char *path)
{
    char want[512];
    const struct vg_json *v = vg_json_get_str(recorded, key);
    const char *got = vg_reply_field(&reply, key);
    if (vg_json_is(v, VG_JSON_ARRAY)) /* the last of them: the others depend on the encoding */
        v = vg_json_at(v, v->n - 1);
    snprintf(want, sizeof want, "%.*s", VG_SLICE_ARG(vg_json_text(v)));
    if (strcmp(got ? got : "", want) != 0)
        fail_msg("%s: %s is %s and not %s", path, key, got ? got : "absent", want);
}

/* Texts and Status whole; of documents the keys, as their lists have kinds that we have not. */
static void compare_body(const struct vg_json *entry, const char *path)
{
    char name[256], file[300];
    VG_AUTO(buf) recorded = {0};
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 0);
    text_of(entry, "file", name, sizeof name);
    size_t n = strlen(name);
    bool is_json = n > 5 && strcmp(name + n - 5, ".json") == 0;
    if (!is_json)
        return;
    snprintf(file, sizeof file, "discovery/%s", name);
    vg_test_vector(file, &recorded);
    if (reply.status >= 400) {
        vg_assert_slice_equal(vg_buf_slice(&reply.body), vg_buf_slice(&recorded));
        return;
    }
    struct vg_json *want, *got;
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&recorded), NULL, &want, NULL), 0);
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&reply.body), NULL, &got, NULL), 0);
    if (want->n != got->n)
        fail_msg("%s: %u members and not %u", path, got->n, want->n);
    for (uint32_t i = 0; i < want->n; i++)
        vg_assert_slice_equal(vg_json_key(&got->members[i]), vg_json_key(&want->members[i]));
}

static void replay(const struct vg_json *entry)
{
    char path[1024], headers[1024];
    int64_t status;
    make_request(entry, path, sizeof path, headers, sizeof headers);
    vg_adrv_request(&d, "GET", path, headers, NULL, &reply);
    assert_int_equal(vg_json_to_int64(vg_json_get_str(entry, "status"), &status), 0);
    if (reply.status != status)
        fail_msg("%s: %d and not %d", path, reply.status, (int)status);
    const struct vg_json *recorded = vg_json_get_str(entry, "response_headers");
    compare_field(recorded, "content-type", path);
    compare_field(recorded, "cache-control", path);
    compare_field(recorded, "vary", path);
    assert_int_equal(vg_reply_field(&reply, "etag") != NULL,
                     vg_json_get_str(recorded, "etag") != NULL);
    compare_body(entry, path);
}

static void recorded_requests_are_answered_alike(void **state)
{
    (void)state;
    VG_AUTO(buf) text = {0};
    VG_AUTO(arena) arena;
    vg_arena_init(&arena, 0, 0);
    vg_test_vector("discovery/index.json", &text);
    struct vg_json *root;
    assert_int_equal(vg_json_parse(&arena, vg_buf_slice(&text), NULL, &root, NULL), 0);
    size_t n = 0;
    VG_JSON_FOREACH_ITEM (entry, root) {
        if (!is_ours(entry))
            continue;
        replay(entry);
        n++;
    }
    printf("%zu of %u recorded requests\n", n, root->n);
    assert_true(n >= 30);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_SERVER(plain_documents_are_compact),
        ON_SERVER(documents_have_other_looks),
        ON_SERVER(aggregated_documents_are_cached_by_etag),
        ON_SERVER(what_is_not_there_is_404),
        ON_SERVER(only_reading_is_allowed),
        ON_SERVER(the_version_is_told),
        ON_SERVER(openapi_2_comes_in_two_forms),
        ON_SERVER(openapi_3_is_found_by_its_index),
        ON_SERVER(recorded_requests_are_answered_alike),
    };
    return RUN_ON_ENGINE(argc, argv, tests);
}
