/* object_testing.h - pods for tests, fuzzers and measurements: what is selectable of them, and
 * label-rich examples. What cannot be made ends the process. */
#ifndef VG_OBJECT_OBJECT_TESTING_H
#define VG_OBJECT_OBJECT_TESTING_H

#include <stdlib.h>

#include "base/alloc.h"
#include "seal.h"

/* As kube-apiserver has them. */
static const struct vg_obj_field_def vg_test_pod_defs[] = {
    {.label = "spec.nodeName", .path = {"spec", "nodeName"}},
    {.label = "spec.restartPolicy", .path = {"spec", "restartPolicy"}},
    {.label = "spec.schedulerName", .path = {"spec", "schedulerName"}},
    {.label = "spec.serviceAccountName", .path = {"spec", "serviceAccountName"}},
    {.label = "spec.hostNetwork", .path = {"spec", "hostNetwork"}, .missing = "false"},
    {.label = "status.phase", .path = {"status", "phase"}},
    {.label = "status.podIP", .path = {"status", "podIP"}},
    {.label = "status.podIPs"},
    {.label = "status.nominatedNodeName", .path = {"status", "nominatedNodeName"}},
};
static const struct vg_obj_fields vg_test_pods = {
    .v = vg_test_pod_defs, .n = VG_ARRAY_LEN(vg_test_pod_defs), .trigger = 0};
static const struct vg_obj_fields vg_test_no_fields = {.trigger = VG_OBJ_NO_TRIGGER};

static inline void vg_test_must(int r)
{
    if (r < 0)
        abort();
}

/* Bytes of their exact size on the heap, so that ASan sees one byte too far. */
static inline struct vg_slice vg_test_exact(struct vg_slice s)
{
    char *p = vg_malloc(s.n);
    vg_test_must(p ? 0 : -1);
    if (s.n)
        memcpy(p, s.p, s.n);
    return vg_slice(p, s.n);
}

/* A sealed object whose bytes lie as said above. */
struct vg_test_obj {
    struct vg_slice header, value;
    struct vg_obj_header h;
};
static inline void vg_test_obj_cleanup(struct vg_test_obj *o)
{
    vg_free((char *)o->header.p);
    vg_free((char *)o->value.p);
}

static inline struct vg_test_obj vg_test_seal(const struct vg_obj_fields *fields,
                                              struct vg_slice text)
{
    VG_AUTO(obj_sealed) s;
    VG_AUTO(arena) arena;
    vg_obj_sealed_init(&s);
    vg_arena_init(&arena, 0, 0);
    vg_test_must(vg_obj_seal_text(fields, text, &arena, &s, NULL));
    struct vg_test_obj o = {.header = vg_test_exact(vg_buf_slice(&s.header)),
                            .value = vg_test_exact(vg_buf_slice(&s.value))};
    vg_test_must(vg_obj_header_open(o.header, o.value, &o.h));
    return o;
}

/* The text has ' for ", so that it can be read. */
static inline struct vg_test_obj vg_test_obj(const struct vg_obj_fields *fields, const char *text)
{
    struct vg_slice copy = vg_test_exact(vg_slice_str(text));
    for (size_t i = 0; i < copy.n; i++)
        if (copy.p[i] == '\'')
            ((char *)copy.p)[i] = '"';
    struct vg_test_obj o = vg_test_seal(fields, copy);
    vg_free((char *)copy.p);
    return o;
}

/* ---- a pod of about 4 KB, as a controller and a kubelet leave it ---- */

static inline void vg_test_pod_labels(struct vg_buf *b, unsigned i, unsigned labels)
{
    vg_test_must(vg_buf_printf(b, "\"labels\":{\"app.kubernetes.io/name\":\"web-%u\"", i % 50));
    for (unsigned k = 1; k < labels; k++)
        vg_test_must(
            vg_buf_printf(b, ",\"example.com/label-%02u\":\"value-%u-of-%u\"", k, i % 7, k));
    vg_test_must(vg_buf_printf(b, "},\"annotations\":{\"example.com/checksum\":\"%08x%08x\"},",
                               i * 2654435761u, i));
}

static inline void vg_test_pod_containers(struct vg_buf *b, unsigned i)
{
    for (unsigned k = 0; k < 5; k++)
        vg_test_must(vg_buf_printf(
            b,
            "%s{\"name\":\"c%u\",\"image\":\"registry.example.com/team/app-%u:v1.%u\",\"ports\":[{"
            "\"containerPort\":80%u0,\"protocol\":\"TCP\"}],\"env\":[{\"name\":\"LEVEL\",\"value\":"
            "\"info\"},{\"name\":\"POD\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\","
            "\"fieldPath\":\"metadata.name\"}}}],\"resources\":{\"limits\":{\"cpu\":\"500m\","
            "\"memory\":\"256Mi\"},\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"}},"
            "\"volumeMounts\":[{\"name\":\"token\",\"readOnly\":true,\"mountPath\":\"/var/run/"
            "secrets/kubernetes.io/serviceaccount\"}],\"terminationMessagePath\":\"/dev/"
            "termination-log\",\"imagePullPolicy\":\"IfNotPresent\"}",
            k ? "," : "", k, k, i % 100, k));
}

/* Appends the pod number i with so many labels, as a client would send it. */
static inline void vg_test_pod(struct vg_buf *b, unsigned i, unsigned labels)
{
    vg_test_must(vg_buf_printf(
        b,
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-%u-7f9c6d5b4-x%04x\","
        "\"generateName\":\"web-%u-7f9c6d5b4-\",\"namespace\":\"team-%u\",\"uid\":\"3f2504e0-4f89-"
        "41d3-9a0c-%012x\",\"resourceVersion\":\"%u\",\"creationTimestamp\":"
        "\"2026-01-01T00:00:00Z\",",
        i % 50, i, i % 50, i % 20, i, i + 2));
    vg_test_pod_labels(b, i, labels);
    vg_test_must(vg_buf_printf(b, "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
                                  "\"ReplicaSet\",\"name\":\"web-7f9c6d5b4\",\"uid\":\"9b1deb4d\","
                                  "\"controller\":true}]},\"spec\":{\"containers\":["));
    vg_test_pod_containers(b, i);
    vg_test_must(vg_buf_printf(
        b,
        "],\"restartPolicy\":\"Always\",\"serviceAccountName\":\"default\",\"nodeName\":\"node-%"
        "u\","
        "\"schedulerName\":\"default-scheduler\",\"priority\":0},\"status\":{\"phase\":\"Running\","
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"2026-01-"
        "01T00:00:09Z\"},{\"type\":\"PodScheduled\",\"status\":\"True\",\"lastTransitionTime\":"
        "\"2026-01-01T00:00:01Z\"}],\"hostIP\":\"10.0.0.%u\",\"podIP\":\"10.1.%u.%u\","
        "\"startTime\":"
        "\"2026-01-01T00:00:02Z\"}}",
        i % 500, i % 250, i / 250 % 250, i % 250));
}

#endif
