/* example_kind_test.c - a kind that was added by writing example.schema is served like any other.
 */
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "json/json.h"

#define API "/apis/example.vigil.test/v1"
#define GADGETS API "/namespaces/ns/gadgets"

static struct vg_adrv d;
static struct vg_reply reply;

static int setup(void **state)
{
    (void)state;
    vg_adrv_open(&d, NULL);
    vg_adrv_request(&d, "POST", "/api/v1/namespaces", "Content-Type: application/json\r\n",
                    "{\"metadata\":{\"name\":\"ns\"}}", &reply);
    assert_int_equal(reply.status, 201);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    vg_reply_done(&reply);
    vg_adrv_close(&d);
    return 0;
}

static void call(const char *method, const char *target, const char *type, const char *body)
{
    vg_adrv_send(&d, method, target, type, body, &reply);
}

static void expect(int status, const char *text)
{
    vg_reply_expect(&reply, status, text);
}

static void it_is_discovered_and_declared(void **state)
{
    (void)state;
    call("GET", API, "json", NULL);
    expect(200, "{\"name\":\"gadgets\",\"singularName\":\"gadget\",\"namespaced\":true,"
                "\"kind\":\"Gadget\",\"verbs\":[\"create\",\"delete\",\"deletecollection\",\"get\","
                "\"list\",\"patch\",\"update\",\"watch\"],\"shortNames\":[\"gd\"],"
                "\"categories\":[\"all\"],\"storageVersionHash\":\"Z2FkZ2V0cw==\"}");
    expect(200, "\"name\":\"gadgets/status\"");
    call("GET", "/openapi/v3" API, "json", NULL);
    expect(200, "\"enum\":[\"blue\",\"green\",\"red\"]");
    expect(200, "\"x-kubernetes-patch-merge-key\":\"name\"");
}

static void it_is_written_defaulted_and_printed_in_order(void **state)
{
    (void)state;
    call("POST", GADGETS, "json",
         "{\"status\":{\"seen\":7},\"spec\":{\"parts\":[{\"weight\":\"0.5\",\"name\":\"a\"}],"
         "\"size\":3},\"metadata\":{\"name\":\"g\"}}");
    expect(201, "{\"kind\":\"Gadget\",\"apiVersion\":\"example.vigil.test/v1\",\"metadata\":{");
    expect(201, "\"generation\":1,");
    expect(201, "\"spec\":{\"color\":\"green\",\"size\":3,\"parts\":[{\"name\":\"a\","
                "\"weight\":\"500m\"}]},\"status\":{\"seen\":0}}");
    call("PATCH", GADGETS "/g", "strategic-merge-patch+json",
         "{\"spec\":{\"color\":\"red\",\"parts\":[{\"name\":\"b\"}]}}");
    expect(200, "\"parts\":[{\"name\":\"b\"},{\"name\":\"a\",");
    expect(200, "\"generation\":2,");
    call("PATCH", GADGETS "/g/status", "merge-patch+json", "{\"status\":{\"seen\":8}}");
    expect(200, "\"status\":{\"seen\":8}");
    call("PUT", GADGETS "/new", "json", "{\"metadata\":{\"name\":\"new\"},\"spec\":{\"size\":1}}");
    expect(201, "\"name\":\"new\"");
}

static void it_is_refused_where_it_is_wrong(void **state)
{
    (void)state;
    call("POST", GADGETS, "json", "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"size\":\"big\"}}");
    expect(400, "json: cannot unmarshal string into Go struct field GadgetSpec.spec.size");
    call("POST", GADGETS "?fieldValidation=Strict", "json",
         "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"size\":1,\"shape\":2}}");
    expect(400, "unknown field \\\"spec.shape\\\"");
    call("POST", GADGETS, "json", "{\"metadata\":{\"name\":\"a.b\"},\"spec\":{\"size\":1}}");
    expect(422, "Gadget.example.vigil.test \\\"a.b\\\" is invalid: metadata.name");
}

static void it_is_listed_by_its_fields(void **state)
{
    (void)state;
    call("GET", GADGETS "?fieldSelector=spec.color=red", "json", NULL);
    expect(200, "\"name\":\"g\"");
    assert_null(strstr(reply.body.p, "\"name\":\"new\""));
    call("GET", GADGETS "?fieldSelector=spec.size=1", "json", NULL);
    expect(400, "field label \\\"spec.size\\\" not supported for Gadget");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_discovered_and_declared),
        cmocka_unit_test(it_is_written_defaulted_and_printed_in_order),
        cmocka_unit_test(it_is_refused_where_it_is_wrong),
        cmocka_unit_test(it_is_listed_by_its_fields),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
