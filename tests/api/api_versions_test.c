/* api_versions_test.c - kinds that are stored once and served in two versions: whatever is written
 * in one is read, listed and watched in the other. */
#include <stdio.h>
#include <string.h>

#include "engine_world.h"

#define V1 "/apis/autoscaling/v1/namespaces/ns/horizontalpodautoscalers"
#define V2 "/apis/autoscaling/v2/namespaces/ns/horizontalpodautoscalers"
#define CORE "/api/v1/namespaces/ns/events"
#define EVENTS "/apis/events.k8s.io/v1/namespaces/ns/events"
#define WATCH                                                                                      \
    "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"           \
    "&allowWatchBookmarks=true"

static void call(const char *method, const char *target, const char *type, const char *body)
{
    vg_adrv_send(&d, method, target, type, body, &reply);
}

static void expect(int status, const char *text)
{
    vg_reply_expect(&reply, status, text);
}

static int setup(void **state)
{
    open_server(state);
    call("POST", "/api/v1/namespaces", "json", "{\"metadata\":{\"name\":\"ns\"}}");
    return 0;
}

#define TARGET                                                                                     \
    "\"scaleTargetRef\":{\"kind\":\"Deployment\",\"name\":\"d\",\"apiVersion\":\"apps/v1\"}"

static void an_autoscaler_of_v1_is_one_of_v2(void **state)
{
    (void)state;
    call("POST", V1, "json",
         "{\"metadata\":{\"name\":\"a\"},\"spec\":{" TARGET ",\"maxReplicas\":3,"
         "\"targetCPUUtilizationPercentage\":70}}");
    expect(201, "{\"kind\":\"HorizontalPodAutoscaler\",\"apiVersion\":\"autoscaling/v1\",");
    expect(201, "\"spec\":{" TARGET ",\"minReplicas\":1,\"maxReplicas\":3,"
                "\"targetCPUUtilizationPercentage\":70},\"status\":{\"currentReplicas\":0,"
                "\"desiredReplicas\":0}}");
    call("GET", V2 "/a", "json", NULL);
    expect(200, "\"apiVersion\":\"autoscaling/v2\",");
    expect(200, "\"metrics\":[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":{"
                "\"type\":\"Utilization\",\"averageUtilization\":70}}}]}");
}

static void a_patch_is_of_what_the_client_sees(void **state)
{
    (void)state;
    call("PATCH", V1 "/a", "merge-patch+json",
         "{\"spec\":{\"targetCPUUtilizationPercentage\":71}}");
    expect(200, "\"targetCPUUtilizationPercentage\":71}");
    call("PATCH", V2 "/a", "merge-patch+json",
         "{\"spec\":{\"behavior\":{\"scaleDown\":{\"selectPolicy\":\"Disabled\"}}}}");
    expect(200, "\"averageUtilization\":71");
    call("PATCH", V1 "/a", "strategic-merge-patch+json", "{\"spec\":{\"maxReplicas\":5}}");
    expect(200, "\"autoscaling.alpha.kubernetes.io/behavior\":\"{\\\"ScaleUp\\\":");
    call("GET", V2 "/a", "json", NULL);
    expect(200, "\"maxReplicas\":5,");
    expect(200, "\"selectPolicy\":\"Disabled\"");
    assert_null(strstr(reply.body.p, "autoscaling.alpha"));
}

static void lists_and_watches_have_the_version_of_their_path(void **state)
{
    (void)state;
    call("GET", V1, "json", NULL);
    expect(200, "{\"kind\":\"HorizontalPodAutoscalerList\",\"apiVersion\":\"autoscaling/v1\",");
    expect(200, "\"targetCPUUtilizationPercentage\":71}");
    call("GET", V1 WATCH, "json", NULL);
    expect(200, "{\"type\":\"ADDED\",\"object\":{\"kind\":\"HorizontalPodAutoscaler\","
                "\"apiVersion\":\"autoscaling/v1\",");
    expect(200, "\"targetCPUUtilizationPercentage\":71}");
    expect(200, "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"HorizontalPodAutoscaler\","
                "\"apiVersion\":\"autoscaling/v1\",\"metadata\":{\"resourceVersion\":");
    expect(200, "\"k8s.io/initial-events-end\":\"true\"}},\"spec\":{\"scaleTargetRef\":{\"kind\":"
                "\"\",\"name\":\"\"},\"maxReplicas\":0},\"status\":{\"currentReplicas\":0,"
                "\"desiredReplicas\":0}}}\n");
}

static void an_update_that_changes_nothing_writes_nothing(void **state)
{
    (void)state;
    call("GET", V1 "/a", "json", NULL);
    char before[8192];
    snprintf(before, sizeof before, "%s", reply.body.p);
    call("PUT", V1 "/a", "json", before);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body.p, before);
}

static void events_have_two_groups(void **state)
{
    (void)state;
    call("POST", EVENTS, "json",
         "{\"metadata\":{\"name\":\"e\"},\"eventTime\":\"2026-01-02T03:04:05.000006Z\","
         "\"reportingController\":\"c\",\"reportingInstance\":\"i\",\"action\":\"A\","
         "\"reason\":\"R\",\"type\":\"Normal\",\"regarding\":{\"kind\":\"Pod\",\"namespace\":"
         "\"ns\",\"name\":\"p\"},\"note\":\"n\"}");
    expect(201, "\"apiVersion\":\"events.k8s.io/v1\",");
    call("GET", CORE "?fieldSelector=involvedObject.name=p", "json", NULL);
    expect(200, "\"message\":\"n\"");
    call("GET", EVENTS "?fieldSelector=regarding.name=p,reportingController=c", "json", NULL);
    expect(200, "\"note\":\"n\"");
    call("GET", EVENTS "?fieldSelector=involvedObject.name=p", "json", NULL);
    expect(400, "field label not supported: involvedObject.name");
    call("GET", EVENTS WATCH, "json", NULL);
    expect(200, "\"note\":\"n\"");
    call("GET", EVENTS "/nothing", "json", NULL);
    expect(404, "events.events.k8s.io \\\"nothing\\\" not found");
    call("DELETE", EVENTS "/e", "json", NULL);
    assert_int_equal(reply.status, 200);
    call("GET", CORE "/e", "json", NULL);
    assert_int_equal(reply.status, 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_autoscaler_of_v1_is_one_of_v2),
        cmocka_unit_test(a_patch_is_of_what_the_client_sees),
        cmocka_unit_test(lists_and_watches_have_the_version_of_their_path),
        cmocka_unit_test(an_update_that_changes_nothing_writes_nothing),
        cmocka_unit_test(events_have_two_groups),
    };
    return cmocka_run_group_tests(tests, setup, close_server);
}
