/* client_object_testing.h - objects for tests and measurements. What cannot be made ends the
 * process. */
#ifndef VG_CLIENT_OBJECT_TESTING_H
#define VG_CLIENT_OBJECT_TESTING_H

#include <stdio.h>
#include <stdlib.h>

#include "object_int.h"

/* An object with a namespace (NULL: none), a name and a resourceVersion (NULL: none). */
static inline const struct vigil_object *vg_test_object(const char *ns, const char *name,
                                                        const char *version)
{
    char json[512];
    snprintf(json, sizeof(json),
             "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\"%s%s%s%s%s%s}}",
             name, ns ? ",\"namespace\":\"" : "", ns ? ns : "", ns ? "\"" : "",
             version ? ",\"resourceVersion\":\"" : "", version ? version : "", version ? "\"" : "");
    const struct vigil_object *o = vigil_object_parse(vigil_text(json), NULL);
    if (!o)
        abort();
    return o;
}

/* The bytes of a pod of about 4 KB, as a list or (with type) a watch sends it; how many. */
static inline size_t vg_test_pod_json(char *buf, size_t size, unsigned id, unsigned version,
                                      bool with_type)
{
    int n = snprintf(
        buf, size,
        "{%s\"metadata\":{\"name\":\"web-%06u\",\"generateName\":\"web-\",\"namespace\":\"ns-%"
        "02u\","
        "\"uid\":\"9f1d2c3b-0000-4000-8000-%012u\",\"resourceVersion\":\"%u\","
        "\"creationTimestamp\":"
        "\"2026-01-01T00:00:00Z\",\"labels\":{\"app\":\"web\",\"pod-template-hash\":\"5d6f\","
        "\"tier\":\"front\"},\"annotations\":{\"kubernetes.io/psp\":\"none\"},\"managedFields\":[",
        with_type ? "\"kind\":\"Pod\",\"apiVersion\":\"v1\"," : "", id, id % 20, id, version);
    for (int i = 0; i < 4; i++)
        n += snprintf(
            buf + n, size - (size_t)n,
            "%s{\"manager\":\"kubelet-%d\",\"operation\":\"Update\",\"apiVersion\":\"v1\","
            "\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{\".\":"
            "{},\"f:app\":{},\"f:tier\":{}}},\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":"
            "\\\"c%d\\\"}\":{\".\":{},\"f:image\":{},\"f:name\":{}}}}}}",
            i ? "," : "", i, i);
    n += snprintf(buf + n, size - (size_t)n,
                  "]},\"spec\":{\"nodeName\":\"node-%u\",\"containers\":[", id % 100);
    for (int i = 0; i < 8; i++)
        n += snprintf(
            buf + n, size - (size_t)n,
            "%s{\"name\":\"c%d\",\"image\":\"registry.example/app:v%u\",\"env\":[{\"name\":"
            "\"A\",\"value\":\"%d\"},{\"name\":\"B\",\"value\":\"b\"}],\"resources\":{"
            "\"limits\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"},\"requests\":{\"cpu\":"
            "\"10m\",\"memory\":\"32Mi\"}},\"volumeMounts\":[{\"name\":\"data\","
            "\"mountPath\":\"/data\",\"readOnly\":true}]}",
            i ? "," : "", i, id % 7, i);
    n += snprintf(buf + n, size - (size_t)n,
                  "]},\"status\":{\"phase\":\"Running\",\"conditions\":[");
    for (int i = 0; i < 8; i++)
        n += snprintf(buf + n, size - (size_t)n,
                      "%s{\"type\":\"Condition%d\",\"status\":\"True\",\"lastProbeTime\":null,"
                      "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}",
                      i ? "," : "", i);
    n += snprintf(buf + n, size - (size_t)n, "],\"podIP\":\"10.0.0.1\"}}");
    if (n < 0 || (size_t)n >= size)
        abort();
    return (size_t)n;
}

static inline const struct vigil_object *vg_test_pod(unsigned id, unsigned version)
{
    char json[8192];
    size_t n = vg_test_pod_json(json, sizeof(json), id, version, true);
    const struct vigil_object *o = vigil_object_parse((struct vigil_text){json, n}, NULL);
    if (!o)
        abort();
    return o;
}

#endif
