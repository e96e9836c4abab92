/* pods.c - the pods that are measured. */
#include "object/object_testing.h"

#include "bench_schema.h"
#include "server/kinds/types.h"
#include "json/write.h"

/* The text goes through both codecs once, which makes it canonical. */
static void add(struct pods *p, unsigned i, struct vg_buf *text)
{
    VG_AUTO(arena) arena;
    VG_AUTO(proto_encoder) e = {0};
    VG_AUTO(buf) first = {0};
    vg_arena_init(&arena, 0, 0);
    struct vg_json v;
    must(vg_proto_encode(&e, p->type, vg_buf_slice(text), VG_SLICE_LIT(""), &first));
    struct vg_proto_envelope x = {.raw = vg_buf_slice(&first)};
    must(vg_proto_decode(&arena, p->type, &x, &v, NULL));
    vg_json_object_remove(vg_json_get_str(&v, "metadata"), VG_SLICE_LIT("resourceVersion"));
    vg_buf_init(&p->json[i], 0);
    vg_buf_init(&p->bytes[i], 0);
    must(vg_json_write(&p->json[i], &v, VG_JSON_ESCAPE_HTML));
    must(vg_proto_encode(&e, p->type, vg_buf_slice(&p->json[i]), REVISION, &p->bytes[i]));
    p->json_n += p->json[i].n;
    p->bytes_n += p->bytes[i].n;
}

static void start(struct pods *p, const char *name)
{
    *p = (struct pods){.name = name};
    p->type = vg_schema_find(VG_SLICE_LIT(""), VG_SLICE_LIT("v1"), VG_SLICE_LIT("Pod"));
    must(p->type ? 0 : -1);
}

void pods_make_labelled(struct pods *p)
{
    start(p, "labels and containers");
    for (unsigned i = 0; i < PODS; i++) {
        VG_AUTO(buf) text = {0};
        vg_test_pod(&text, i, 20);
        add(p, i, &text);
    }
}

static void put_metadata(struct vg_buf *b, unsigned i)
{
    must(vg_buf_printf(
        b,
        "{\"metadata\":{\"name\":\"api-%u-6c54bd5869-%05x\",\"generateName\":\"api-%u-6c54bd5869-"
        "\","
        "\"namespace\":\"shop\",\"uid\":\"0b7d9f3e-1f0a-4a43-8c6d-%012x\",\"generation\":1,"
        "\"creationTimestamp\":\"2026-03-04T05:06:07Z\",\"labels\":{\"app\":\"api-%u\","
        "\"pod-template-hash\":\"6c54bd5869\",\"tier\":\"backend\"},\"ownerReferences\":[{"
        "\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"api-%u-6c54bd5869\",\"uid\":"
        "\"7c9e6679-7425-40de-944b-e07fc1f90ae7\",\"controller\":true,\"blockOwnerDeletion\":true}]"
        ","
        "\"managedFields\":[{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\","
        "\"apiVersion\":\"v1\",\"time\":\"2026-03-04T05:06:07Z\",\"fieldsType\":\"FieldsV1\","
        "\"fieldsV1\":{\"f:metadata\":{\"f:generateName\":{},\"f:labels\":{\".\":{},\"f:app\":{},"
        "\"f:pod-template-hash\":{},\"f:tier\":{}}},\"f:spec\":{\"f:containers\":{\"k:{"
        "\\\"name\\\":"
        "\\\"api\\\"}\":{\".\":{},\"f:image\":{},\"f:livenessProbe\":{\".\":{},\"f:httpGet\":{},"
        "\"f:periodSeconds\":{}},\"f:ports\":{\".\":{}},\"f:resources\":{\".\":{},\"f:limits\":{}}}"
        "},"
        "\"f:restartPolicy\":{},\"f:volumes\":{\".\":{}}}}},{\"manager\":\"kubelet\",\"operation\":"
        "\"Update\",\"apiVersion\":\"v1\",\"time\":\"2026-03-04T05:06:17Z\",\"fieldsType\":"
        "\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":"
        "\\\"Ready\\\"}"
        "\":{\".\":{},\"f:status\":{}}},\"f:containerStatuses\":{},\"f:phase\":{}}},"
        "\"subresource\":"
        "\"status\"}]},",
        i % 40, i, i % 40, i, i % 40, i % 40));
}

static void put_spec(struct vg_buf *b, unsigned i)
{
    must(vg_buf_printf(
        b,
        "\"spec\":{\"volumes\":[{\"name\":\"config\",\"configMap\":{\"name\":\"api-%u\","
        "\"defaultMode\":420}},{\"name\":\"tmp\",\"emptyDir\":{}}],\"initContainers\":[{\"name\":"
        "\"migrate\",\"image\":\"registry.example.com/shop/migrate:v2\",\"command\":[\"/migrate\"],"
        "\"args\":[\"--to\",\"latest\"],\"resources\":{},\"terminationMessagePath\":"
        "\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":"
        "\"IfNotPresent\"}],\"containers\":[{\"name\":\"api\",\"image\":"
        "\"registry.example.com/shop/api:v1.%u\",\"ports\":[{\"name\":\"http\",\"containerPort\":"
        "8080,\"protocol\":\"TCP\"}],\"env\":[{\"name\":\"LEVEL\",\"value\":\"info\"},{\"name\":"
        "\"IP\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"status.podIP\"}}"
        "}"
        "],\"resources\":{\"limits\":{\"cpu\":\"500m\",\"memory\":\"256Mi\"},\"requests\":{\"cpu\":"
        "\"100m\",\"memory\":\"128Mi\"}},\"volumeMounts\":[{\"name\":\"config\",\"readOnly\":true,"
        "\"mountPath\":\"/etc/api\"},{\"name\":\"tmp\",\"mountPath\":\"/tmp\"}],\"livenessProbe\":{"
        "\"httpGet\":{\"path\":\"/"
        "livez\",\"port\":\"http\",\"scheme\":\"HTTP\"},\"timeoutSeconds\":"
        "1,\"periodSeconds\":10,\"successThreshold\":1,\"failureThreshold\":3},\"readinessProbe\":{"
        "\"httpGet\":{\"path\":\"/readyz\",\"port\":8080,\"scheme\":\"HTTP\"},\"timeoutSeconds\":1,"
        "\"periodSeconds\":10,\"successThreshold\":1,\"failureThreshold\":3},"
        "\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\","
        "\"imagePullPolicy\":\"IfNotPresent\",\"securityContext\":{\"runAsUser\":1000,"
        "\"runAsNonRoot\":true,\"allowPrivilegeEscalation\":false}}],\"restartPolicy\":\"Always\","
        "\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":\"ClusterFirst\",\"nodeSelector\":{"
        "\"kubernetes.io/os\":\"linux\"},\"serviceAccountName\":\"api\",\"serviceAccount\":\"api\","
        "\"nodeName\":\"node-%u\",\"securityContext\":{\"fsGroup\":2000},\"schedulerName\":"
        "\"default-scheduler\",\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\","
        "\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300},{\"key\":"
        "\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
        "\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":true,"
        "\"preemptionPolicy\":\"PreemptLowerPriority\"},",
        i % 40, i % 10, i % 300));
}

static void put_status(struct vg_buf *b, unsigned i)
{
    must(vg_buf_printf(
        b,
        "\"status\":{\"observedGeneration\":1,\"phase\":\"Running\",\"conditions\":[{\"type\":"
        "\"Ready\",\"observedGeneration\":1,\"status\":\"True\",\"lastProbeTime\":null,"
        "\"lastTransitionTime\":\"2026-03-04T05:06:17Z\"},{\"type\":\"PodScheduled\","
        "\"observedGeneration\":1,\"status\":\"True\",\"lastProbeTime\":null,"
        "\"lastTransitionTime\":\"2026-03-04T05:06:07Z\"}],\"hostIP\":\"10.0.0.%u\",\"hostIPs\":[{"
        "\"ip\":\"10.0.0.%u\"}],\"podIP\":\"10.1.%u.%u\",\"podIPs\":[{\"ip\":\"10.1.%u.%u\"}],"
        "\"startTime\":\"2026-03-04T05:06:07Z\",\"containerStatuses\":[{\"name\":\"api\",\"state\":"
        "{"
        "\"running\":{\"startedAt\":\"2026-03-04T05:06:12Z\"}},\"lastState\":{},\"ready\":true,"
        "\"restartCount\":0,\"image\":\"registry.example.com/shop/api:v1\",\"imageID\":"
        "\"registry.example.com/shop/api@sha256:"
        "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\",\"containerID\":"
        "\"containerd://fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9\","
        "\"started\":true}],\"qosClass\":\"Burstable\"}}",
        i % 250, i % 250, i / 250, i % 250, i / 250, i % 250));
}

void pods_make_managed(struct pods *p)
{
    start(p, "with managers and kubelet");
    for (unsigned i = 0; i < PODS; i++) {
        VG_AUTO(buf) text = {0};
        put_metadata(&text, i);
        put_spec(&text, i);
        put_status(&text, i);
        add(p, i, &text);
    }
}
