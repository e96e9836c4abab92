/* api_read_test.c - GET over real sockets, on the engine named by the first argument. */
#include "read_world.h"

static void an_object_is_found(void **state)
{
    (void)state;
    vg_rev rev = vg_adrv_config(&d, "a", "x", "v");
    char wanted[256];
    snprintf(wanted, sizeof wanted,
             "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\","
             "\"namespace\":\"a\",\"uid\":\"u-x\",\"resourceVersion\":\"%llu\"},\"data\":{\"k\":"
             "\"v\"}}\n",
             (unsigned long long)rev);
    get(MAPS "/x");
    expect_body(200, wanted);
    assert_string_equal(vg_reply_field(&reply, "Content-Type"), "application/json");
    assert_string_equal(vg_reply_field(&reply, "Cache-Control"), "no-cache, private");
    assert_string_equal(vg_reply_field(&reply, "Audit-Id"), "00000000-0000-0000-0000-000000000000");
    assert_non_null(vg_reply_field(&reply, "Content-Length"));
    get(vg_adrv_path(MAPS "/x?resourceVersion=%llu", (unsigned long long)rev));
    expect_body(200, wanted);
    get(MAPS "/x?resourceVersion=0");
    expect_body(200, wanted);
}

static void absent_objects_are_404(void **state)
{
    (void)state;
    get(MAPS "/none");
    expect_message(404, "configmaps \\\"none\\\" not found");
    get(MAPS "/Bad_Name%00x");
    assert_int_equal(reply.status, 404);
    get("/api/v1/namespaces/a/things");
    expect_message(404, "the server could not find the requested resource");
    vg_adrv_request(&d, "PUT", MAPS, NULL, "{}", &reply);
    expect_message(405, "the server does not allow this method on the requested resource");
    get("/apis/bogus.example.com/v1/things");
    expect_body(404, "404 page not found\n");
}

static void bad_get_options_are_refused(void **state)
{
    (void)state;
    vg_adrv_config(&d, "a", "x", "v");
    get(MAPS "/x?resourceVersion=abc");
    expect_message(500, "resourceVersion: Invalid value: \\\"abc\\\": strconv.ParseUint: parsing "
                        "\\\"abc\\\": invalid syntax");
    get(MAPS "/x?resourceVersion=999999");
    assert_int_equal(reply.status, 504);
    assert_string_equal(vg_reply_field(&reply, "Retry-After"), "1");
    assert_non_null(strstr(reply.body.p, "Timeout: Too large resource version: 999999, current: "));
    get(MAPS "/x?export=1");
    expect_message(400, "the export parameter, deprecated since v1.14, is no longer supported");
    get(MAPS "/x?timeout=5x");
    expect_message(400, "invalid timeout specified in the request URL - time: unknown unit "
                        "\\\"x\\\" in duration \\\"5x\\\"");
}

static void an_object_has_other_looks(void **state)
{
    (void)state;
    vg_rev rev = vg_adrv_config(&d, "a", "x", "v");
    char wanted[512];
    get(MAPS "/x?pretty=1");
    snprintf(wanted, sizeof wanted,
             "{\n  \"kind\": \"ConfigMap\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {\n    "
             "\"name\": \"x\",\n    \"namespace\": \"a\",\n    \"uid\": \"u-x\",\n    "
             "\"resourceVersion\": \"%llu\"\n  },\n  \"data\": {\n    \"k\": \"v\"\n  }\n}",
             (unsigned long long)rev);
    expect_body(200, wanted);
    vg_adrv_request(&d, "GET", MAPS "/x", "User-Agent: curl/8\r\n", NULL, &reply);
    expect_body(200, wanted);
    vg_adrv_request(&d, "GET", MAPS "/x",
                    "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n",
                    NULL, &reply);
    snprintf(wanted, sizeof wanted,
             "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
             "\"name\":\"x\",\"namespace\":\"a\",\"uid\":\"u-x\",\"resourceVersion\":\"%llu\"}}\n",
             (unsigned long long)rev);
    expect_body(200, wanted);
    vg_adrv_request(&d, "GET", MAPS "/x", "Accept: application/yaml\r\n", NULL, &reply);
    snprintf(wanted, sizeof wanted,
             "apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: "
             "a\n  resourceVersion: \"%llu\"\n  uid: u-x\n",
             (unsigned long long)rev);
    expect_body(200, wanted);
    assert_string_equal(vg_reply_field(&reply, "Content-Type"), "application/yaml");
}

static void what_cannot_be_written_is_406(void **state)
{
    (void)state;
    vg_adrv_request(&d, "GET", MAPS "/x", "Accept: text/plain\r\n", NULL, &reply);
    assert_int_equal(reply.status, 406);
    assert_non_null(strstr(reply.body.p, "\n  \"message\": \"406: Not Acceptable\\n\\nAvailable "
                                         "representations: application/json, application/yaml, "
                                         "application/vnd.kubernetes.protobuf\""));
    vg_adrv_request(&d, "GET", MAPS, "Accept: application/*\r\n", NULL, &reply);
    assert_int_equal(reply.status, 406);
    vg_adrv_request(&d, "GET", MAPS,
                    "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n",
                    NULL, &reply);
    expect_message(406, "you requested PartialObjectMetadata, but the requested object is a list "
                        "(*core.ConfigMapList)");
    vg_adrv_request(&d, "GET", MAPS,
                    "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n",
                    NULL, &reply);
    assert_int_equal(reply.status, 200);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_SERVER(an_object_is_found),
        ON_SERVER(absent_objects_are_404),
        ON_HASTY_SERVER(bad_get_options_are_refused),
        ON_SERVER(an_object_has_other_looks),
        ON_SERVER(what_cannot_be_written_is_406),
    };
    return RUN_ON_ENGINE(argc, argv, tests);
}
