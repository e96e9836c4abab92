/* api_review_test.c - what is asked and not stored: reviews and component statuses, in JSON, YAML
 * and protobuf. Whoever asks is the administrator of the driver. */
#include <stdio.h>
#include <string.h>

#include "engine_world.h"
#include "proto_client.h"

#define PROTOBUF "application/vnd.kubernetes.protobuf"
#define AUTHN "/apis/authentication.k8s.io/v1/"
#define AUTHZ "/apis/authorization.k8s.io/v1/"
#define TABLE "application/json;as=Table;g=meta.k8s.io;v=v1"

static struct vg_buf json; /* the last answer in protobuf, as JSON */

static int teardown(void **state)
{
    vg_buf_done(&json);
    return close_server(state);
}

static void post(const char *target, const char *headers, const char *body, int status)
{
    vg_adrv_request(&d, "POST", target, headers, body, &reply);
    if (reply.status != status)
        fail_msg("%s: %d: %s", target, reply.status, reply.body.p);
}

static void expect(const char *text)
{
    if (!strstr(reply.body.p, text))
        fail_msg("no %s in %s", text, reply.body.p);
}

static void reviews_answer_in_json(void **state)
{
    (void)state;
    post(AUTHN "selfsubjectreviews", NULL, "{}", 201);
    expect("{\"kind\":\"SelfSubjectReview\",\"apiVersion\":\"authentication.k8s.io/v1\","
           "\"metadata\":{\"creationTimestamp\":\"");
    expect("\"status\":{\"userInfo\":{\"username\":\"admin\",\"uid\":\"admin\","
           "\"groups\":[\"system:masters\",\"system:authenticated\"]}}}\n");
    post(AUTHN "tokenreviews", NULL, "{\"spec\":{\"token\":\"secrettoken\"}}", 201);
    expect("\"status\":{\"authenticated\":true,\"user\":{\"username\":\"admin\"");
    post(AUTHN "tokenreviews", NULL,
         "{\"spec\":{\"token\":\"secrettoken\",\"audiences\":[\"other\"]}}", 201);
    expect("\"status\":{\"user\":{},\"error\":\"invalid bearer token\"}}");
    post(AUTHZ "selfsubjectaccessreviews?dryRun=All", NULL,
         "{\"spec\":{\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}}}", 201);
    expect("\"status\":{\"allowed\":true}}");
    post(AUTHZ "subjectaccessreviews", NULL,
         "{\"spec\":{\"user\":\"alice\",\"nonResourceAttributes\":{\"path\":\"/version\","
         "\"verb\":\"get\"}}}",
         201);
    expect("\"status\":{\"allowed\":true}}");
    post(AUTHZ "namespaces/nowhere/localsubjectaccessreviews", NULL,
         "{\"spec\":{\"user\":\"alice\",\"resourceAttributes\":{\"namespace\":\"nowhere\","
         "\"verb\":\"get\",\"resource\":\"pods\"}}}",
         201);
    expect("\"metadata\":{\"namespace\":\"nowhere\",\"managedFields\":[{");
    expect("\"status\":{\"allowed\":false}}");
    post(AUTHZ "selfsubjectrulesreviews", NULL, "{\"spec\":{\"namespace\":\"x\"}}", 201);
    expect("\"spec\":{},\"status\":{\"resourceRules\":[{\"verbs\":[\"create\"]");
}

static void selectors_that_cannot_be_read_are_told_of(void **state)
{
    (void)state;
    static const struct {
        const char *selectors, *error;
    } cases[] = {
        {"\"labelSelector\":{\"rawSelector\":\"a=b\"}", NULL},
        {"\"labelSelector\":{\"rawSelector\":\"a b\"}", "labelSelector ignored"},
        {"\"fieldSelector\":{\"rawSelector\":\"a\"}", "fieldSelector ignored"},
        {"\"fieldSelector\":{\"requirements\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}",
         "fieldSelector ignored"},
        {"\"labelSelector\":{\"requirements\":[{\"key\":\"a\",\"operator\":\"Exists\"},"
         "{\"key\":\"b\",\"operator\":\"Near\"}]}",
         "labelSelector partially ignored"},
    };
    for (size_t i = 0; i < VG_ARRAY_LEN(cases); i++) {
        char body[512], want[256];
        snprintf(body, sizeof body,
                 "{\"spec\":{\"resourceAttributes\":{\"verb\":\"list\",\"resource\":\"pods\",%s}}}",
                 cases[i].selectors);
        post(AUTHZ "selfsubjectaccessreviews", NULL, body, 201);
        if (cases[i].error)
            snprintf(want, sizeof want,
                     "\"evaluationError\":\"spec.resourceAttributes.%s due to parse error\"",
                     cases[i].error);
        else
            snprintf(want, sizeof want, "\"status\":{\"allowed\":true}}");
        expect(want);
    }
}

static void questions_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    post(AUTHN "tokenreviews", NULL, "{\"spec\":{}}", 400);
    expect("token is required for TokenReview in authentication");
    post(AUTHZ "selfsubjectrulesreviews", NULL, "{\"spec\":{}}", 400);
    expect("no namespace on request");
    post(AUTHZ "subjectaccessreviews", NULL, "{\"metadata\":{\"name\":\"x\"},\"spec\":{}}", 422);
    expect("\"message\":\".authorization.k8s.io \\\"\\\" is invalid: [spec.resourceAttributes: "
           "Invalid value: null: exactly one of");
    expect("metadata: Invalid value: {\\\"name\\\":\\\"x\\\"}: must be empty");
    post(AUTHZ "namespaces/a/localsubjectaccessreviews", NULL,
         "{\"metadata\":{\"namespace\":\"b\"}}", 400);
    post(AUTHZ "subjectaccessreviews?fieldValidation=Strict", NULL, "{\"spc\":{}}", 400);
    expect("unknown field \\\"spc\\\"");
    vg_adrv_get(&d, AUTHZ "subjectaccessreviews", &reply);
    assert_int_equal(reply.status, 405);
    vg_adrv_get(&d, AUTHZ "subjectaccessreviews/x", &reply);
    assert_int_equal(reply.status, 404);
    post(AUTHZ "selfsubjectaccessreviews", "Accept: " TABLE "\r\n",
         "{\"spec\":{\"nonResourceAttributes\":{\"path\":\"/\",\"verb\":\"get\"}}}", 406);
}

static void reviews_speak_protobuf_and_yaml(void **state)
{
    (void)state;
    VG_AUTO(buf) body = {0};
    vg_proto_client_body(
        VG_SLICE_LIT("{\"kind\":\"SelfSubjectAccessReview\",\"apiVersion\":"
                     "\"authorization.k8s.io/v1\",\"spec\":{\"resourceAttributes\":{\"verb\":"
                     "\"get\",\"resource\":\"pods\"}}}"),
        &body);
    assert_true(vg_adrv_try_bytes(&d, "POST", AUTHZ "selfsubjectaccessreviews",
                                  "Accept: " PROTOBUF "\r\nContent-Type: " PROTOBUF "\r\n",
                                  vg_buf_slice(&body), &reply));
    assert_int_equal(reply.status, 201);
    assert_string_equal(vg_reply_field(&reply, "Content-Type"), PROTOBUF);
    vg_proto_client_json(vg_buf_slice(&reply.body), &json);
    assert_non_null(strstr(json.p, "\"status\":{\"allowed\":true}"));
    post(AUTHN "selfsubjectreviews",
         "Accept: application/yaml\r\nContent-Type: application/yaml\r\n",
         "kind: SelfSubjectReview\napiVersion: authentication.k8s.io/v1\n", 201);
    expect("    username: admin\n");
}

static void the_store_is_a_component(void **state)
{
    (void)state;
    vg_adrv_get(&d, "/api/v1/componentstatuses/etcd-0", &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body.p,
                        "{\"kind\":\"ComponentStatus\",\"apiVersion\":\"v1\",\"metadata\":{"
                        "\"name\":\"etcd-0\"},\"conditions\":[{\"type\":\"Healthy\",\"status\":"
                        "\"True\",\"message\":\"ok\"}]}\n");
    assert_string_equal(vg_reply_field(&reply, "Warning"),
                        "299 - \"v1 ComponentStatus is deprecated in v1.19+\"");
    vg_adrv_get(&d, "/api/v1/componentstatuses?fieldSelector=metadata.name%3Dother", &reply);
    expect("\"metadata\":{},\"items\":[]}");
    vg_adrv_get(&d, "/api/v1/componentstatuses?labelSelector=a", &reply);
    expect("\"items\":[]}");
    vg_adrv_get(&d, "/api/v1/componentstatuses?watch=1", &reply);
    assert_int_equal(reply.status, 405);
    vg_adrv_get(&d, "/api/v1/componentstatuses/scheduler", &reply);
    assert_int_equal(reply.status, 404);
    expect("\"message\":\"componentstatus \\\"scheduler\\\" not found\"");
    vg_adrv_request(&d, "GET", "/api/v1/componentstatuses", "Accept: " PROTOBUF "\r\n", NULL,
                    &reply);
    assert_int_equal(reply.status, 200);
    vg_proto_client_json(vg_buf_slice(&reply.body), &json);
    assert_non_null(strstr(json.p, "\"name\":\"etcd-0\""));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_server, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reviews_answer_in_json),
        TEST(selectors_that_cannot_be_read_are_told_of),
        TEST(questions_that_make_no_sense_are_refused),
        TEST(reviews_speak_protobuf_and_yaml),
        TEST(the_store_is_a_component),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
