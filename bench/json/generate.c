/* generate.c - objects like those a cluster holds: pods of about 4 KB with managedFields,
 * deployments, nodes, configmaps, leases. Compact, keys in the order kube-apiserver writes them.
 * Deterministic: the same bytes on every machine, from a fixed seed. Written for this benchmark,
 * not taken from a cluster. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "bench_json.h"

struct gen {
    struct vg_buf out;
    uint64_t seed;
    bool failed;
};

static uint32_t rnd(struct gen *g, uint32_t below)
{
    g->seed ^= g->seed << 13;
    g->seed ^= g->seed >> 7;
    g->seed ^= g->seed << 17;
    return (uint32_t)(g->seed >> 11) % below;
}

static void VG_PRINTF(2, 3) add(struct gen *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (vg_buf_vprintf(&g->out, fmt, ap) < 0)
        g->failed = true;
    va_end(ap);
}

static const char *pick(struct gen *g, const char *const *words, size_t n)
{
    return words[rnd(g, (uint32_t)n)];
}

static const char *app_name(struct gen *g)
{
    static const char *const names[] = {"checkout",       "payments-api",  "inventory",
                                        "frontend",       "session-cache", "mail-relay",
                                        "search-indexer", "ledger"};
    return pick(g, names, VG_ARRAY_LEN(names));
}

static void add_uid(struct gen *g)
{
    add(g, "%08" PRIx32 "-%04" PRIx32 "-4%03" PRIx32 "-a%03" PRIx32 "-%06" PRIx32 "%06" PRIx32,
        rnd(g, UINT32_MAX), rnd(g, 0xffff), rnd(g, 0xfff), rnd(g, 0xfff), rnd(g, 0xffffff),
        rnd(g, 0xffffff));
}

static void add_time(struct gen *g)
{
    add(g, "\"2026-%02u-%02uT%02u:%02u:%02uZ\"", 1 + rnd(g, 12), 1 + rnd(g, 28), rnd(g, 24),
        rnd(g, 60), rnd(g, 60));
}

/* From the start of the object to the labels, which are left open. */
static void add_head(struct gen *g, const char *kind, const char *api, const char *app)
{
    add(g, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"name\":\"%s-%05" PRIx32 "\",",
        kind, api, app, rnd(g, 0xfffff));
    add(g, "\"namespace\":\"team-%u\",\"uid\":\"", rnd(g, 40));
    add_uid(g);
    add(g, "\",\"resourceVersion\":\"%u\",\"generation\":%u,\"creationTimestamp\":",
        100000 + rnd(g, 90000000), 1 + rnd(g, 30));
    add_time(g);
    add(g,
        ",\"labels\":{\"app.kubernetes.io/name\":\"%s\",\"app.kubernetes.io/instance\":\"%s-prod\","
        "\"app.kubernetes.io/managed-by\":\"Helm\",\"tier\":\"backend\"",
        app, app);
}

static void begin_managed(struct gen *g, const char *manager, const char *operation,
                          const char *api)
{
    add(g, "{\"manager\":\"%s\",\"operation\":\"%s\",\"apiVersion\":\"%s\",\"time\":", manager,
        operation, api);
    add_time(g);
    add(g, ",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{");
}

static void add_pod_managed_fields(struct gen *g, const char *app)
{
    add(g, ",\"managedFields\":[");
    begin_managed(g, "kube-controller-manager", "Update", "v1");
    add(g, "\"f:metadata\":{\"f:generateName\":{},\"f:labels\":{\".\":{},"
           "\"f:app.kubernetes.io/name\":{},\"f:app.kubernetes.io/instance\":{},"
           "\"f:pod-template-hash\":{}},\"f:ownerReferences\":{\".\":{},\"k:{\\\"uid\\\":\\\"");
    add_uid(g);
    add(g,
        "\\\"}\":{}}},\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"%s\\\"}\":{\".\":{},"
        "\"f:env\":{\".\":{},\"k:{\\\"name\\\":\\\"LOG_LEVEL\\\"}\":{\".\":{},\"f:name\":{},"
        "\"f:value\":{}}},\"f:image\":{},\"f:imagePullPolicy\":{},\"f:livenessProbe\":{\".\":{},"
        "\"f:failureThreshold\":{},\"f:httpGet\":{\".\":{},\"f:path\":{},\"f:port\":{},"
        "\"f:scheme\":{}},\"f:periodSeconds\":{}},\"f:name\":{},\"f:ports\":{\".\":{},"
        "\"k:{\\\"containerPort\\\":8080,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},"
        "\"f:containerPort\":{},\"f:protocol\":{}}},\"f:resources\":{\".\":{},\"f:limits\":{\".\":{"
        "},"
        "\"f:memory\":{}}}}},\"f:dnsPolicy\":{},\"f:restartPolicy\":{},\"f:schedulerName\":{}}}},",
        app);
    begin_managed(g, "kubelet", "Update", "v1");
    add(g, "\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":\\\"ContainersReady\\\"}\":{\".\":{},"
           "\"f:lastProbeTime\":{},\"f:lastTransitionTime\":{},\"f:status\":{},\"f:type\":{}},"
           "\"k:{\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:lastProbeTime\":{},\"f:status\":{},"
           "\"f:type\":{}}},\"f:containerStatuses\":{},\"f:hostIP\":{},\"f:phase\":{},"
           "\"f:podIP\":{},\"f:startTime\":{}}},\"subresource\":\"status\"}]");
}

static void add_container(struct gen *g, const char *app)
{
    static const char *const levels[] = {"info", "debug", "warning"};
    add(g,
        "{\"name\":\"%s\",\"image\":\"registry.example.com/shop/%s:v1.%u.%u\","
        "\"args\":[\"--config=/etc/%s/config.yaml\",\"--listen=:8080\"],"
        "\"ports\":[{\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"}],"
        "\"env\":[{\"name\":\"LOG_LEVEL\",\"value\":\"%s\"},{\"name\":\"POD_IP\",\"valueFrom\":"
        "{\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"status.podIP\"}}}],",
        app, app, rnd(g, 40), rnd(g, 10), app, pick(g, levels, VG_ARRAY_LEN(levels)));
    add(g,
        "\"resources\":{\"limits\":{\"memory\":\"%uMi\"},\"requests\":{\"cpu\":\"%um\","
        "\"memory\":\"%uMi\"}},\"volumeMounts\":[{\"name\":\"config\",\"mountPath\":\"/etc/%s\"},"
        "{\"name\":\"kube-api-access-%05" PRIx32 "\",\"readOnly\":true,"
        "\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}],",
        256 + rnd(g, 8) * 64, 50 + rnd(g, 20) * 10, 128 + rnd(g, 4) * 64, app, rnd(g, 0xfffff));
    add(g,
        "\"livenessProbe\":{\"httpGet\":{\"path\":\"/healthz\",\"port\":8080,\"scheme\":\"HTTP\"},"
        "\"initialDelaySeconds\":10,\"timeoutSeconds\":1,\"periodSeconds\":10,"
        "\"successThreshold\":1,\"failureThreshold\":3},"
        "\"terminationMessagePath\":\"/dev/termination-log\","
        "\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}");
}

static void add_pod_status(struct gen *g, const char *app)
{
    static const char *const types[] = {"Initialized", "Ready", "ContainersReady", "PodScheduled"};
    add(g, "\"status\":{\"phase\":\"Running\",\"conditions\":[");
    for (size_t i = 0; i < VG_ARRAY_LEN(types); i++) {
        add(g, "%s{\"type\":\"%s\",\"status\":\"True\",\"lastProbeTime\":null,", i ? "," : "",
            types[i]);
        add(g, "\"lastTransitionTime\":");
        add_time(g);
        add(g, "}");
    }
    add(g, "],\"hostIP\":\"10.0.%u.%u\",\"podIP\":\"10.244.%u.%u\",\"startTime\":", rnd(g, 255),
        rnd(g, 255), rnd(g, 255), rnd(g, 255));
    add_time(g);
    add(g, ",\"containerStatuses\":[{\"name\":\"%s\",\"state\":{\"running\":{\"startedAt\":", app);
    add_time(g);
    add(g,
        "}},\"lastState\":{},\"ready\":true,\"restartCount\":%u,"
        "\"image\":\"registry.example.com/shop/%s:v1\",\"imageID\":\"registry.example.com/shop/%s@"
        "sha256:%08" PRIx32 "%08" PRIx32 "%08" PRIx32 "%08" PRIx32 "\",\"containerID\":"
        "\"containerd://%08" PRIx32 "%08" PRIx32 "%08" PRIx32 "\",\"started\":true}],"
        "\"qosClass\":\"Burstable\"}",
        rnd(g, 5), app, app, rnd(g, UINT32_MAX), rnd(g, UINT32_MAX), rnd(g, UINT32_MAX),
        rnd(g, UINT32_MAX), rnd(g, UINT32_MAX), rnd(g, UINT32_MAX), rnd(g, UINT32_MAX));
}

static void add_pod(struct gen *g)
{
    const char *app = app_name(g);
    add_head(g, "Pod", "v1", app);
    add(g,
        ",\"pod-template-hash\":\"%09" PRIx32
        "\"},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\","
        "\"kind\":\"ReplicaSet\",\"name\":\"%s\",\"uid\":\"",
        rnd(g, UINT32_MAX), app);
    add_uid(g);
    add(g, "\",\"controller\":true,\"blockOwnerDeletion\":true}]");
    add_pod_managed_fields(g, app);
    add(g,
        "},\"spec\":{\"volumes\":[{\"name\":\"config\",\"configMap\":{\"name\":\"%s\","
        "\"defaultMode\":420}}],\"containers\":[",
        app);
    add_container(g, app);
    add(g,
        "],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,"
        "\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"default\","
        "\"nodeName\":\"node-%03u.example.com\",\"securityContext\":{},"
        "\"schedulerName\":\"default-scheduler\",\"tolerations\":[{\"key\":"
        "\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
        "\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":true},",
        rnd(g, 500));
    add_pod_status(g, app);
    add(g, "}");
}

static void add_deployment(struct gen *g)
{
    const char *app = app_name(g);
    add_head(g, "Deployment", "apps/v1", app);
    add(g, "},\"annotations\":{\"deployment.kubernetes.io/revision\":\"%u\"}", 1 + rnd(g, 90));
    add(g, ",\"managedFields\":[");
    begin_managed(g, "helm", "Update", "apps/v1");
    add(g, "\"f:spec\":{\"f:replicas\":{},\"f:selector\":{},\"f:template\":{\"f:spec\":{"
           "\"f:containers\":{\"k:{\\\"name\\\":\\\"app\\\"}\":{\".\":{},\"f:image\":{}}}}}}}}]},");
    add(g,
        "\"spec\":{\"replicas\":%u,\"selector\":{\"matchLabels\":{\"app.kubernetes.io/"
        "name\":\"%s\"}},"
        "\"template\":{\"metadata\":{\"creationTimestamp\":null,\"labels\":{"
        "\"app.kubernetes.io/name\":\"%s\"}},\"spec\":{\"containers\":[",
        1 + rnd(g, 20), app, app);
    add_container(g, app);
    add(g,
        "]}},\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxUnavailable\":\"25%%"
        "\","
        "\"maxSurge\":\"25%%\"}},\"revisionHistoryLimit\":10,\"progressDeadlineSeconds\":600},"
        "\"status\":{\"observedGeneration\":%u,\"replicas\":3,\"updatedReplicas\":3,"
        "\"readyReplicas\":3,\"availableReplicas\":3,\"conditions\":[{\"type\":\"Available\","
        "\"status\":\"True\",\"reason\":\"MinimumReplicasAvailable\",\"message\":"
        "\"Deployment has minimum availability.\"}]}}",
        rnd(g, 30));
}

static void add_node(struct gen *g)
{
    static const char *const types[] = {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"};
    add_head(g, "Node", "v1", "node");
    add(g, ",\"kubernetes.io/arch\":\"amd64\",\"topology.kubernetes.io/zone\":\"eu-west-1%c\"},",
        (char)('a' + rnd(g, 3)));
    add(g,
        "\"annotations\":{\"node.alpha.kubernetes.io/ttl\":\"0\"}},\"spec\":{\"podCIDR\":"
        "\"10.244.%u.0/24\"},\"status\":{\"capacity\":{\"cpu\":\"16\",\"memory\":\"65843120Ki\","
        "\"pods\":\"110\"},\"conditions\":[",
        rnd(g, 255));
    for (size_t i = 0; i < VG_ARRAY_LEN(types); i++) {
        add(g, "%s{\"type\":\"%s\",\"status\":\"False\",\"lastHeartbeatTime\":", i ? "," : "",
            types[i]);
        add_time(g);
        add(g, ",\"reason\":\"KubeletHas%s\",\"message\":\"kubelet reports %s\"}", types[i],
            types[i]);
    }
    add(g, "],\"images\":[");
    for (uint32_t i = 0, n = 20 + rnd(g, 20); i < n; i++)
        add(g,
            "%s{\"names\":[\"registry.example.com/shop/%s@sha256:%08" PRIx32 "%08" PRIx32 "\"],"
            "\"sizeBytes\":%u}",
            i ? "," : "", app_name(g), rnd(g, UINT32_MAX), rnd(g, UINT32_MAX), rnd(g, 900000000));
    add(g,
        "],\"nodeInfo\":{\"machineID\":\"%08" PRIx32 "\",\"kernelVersion\":\"6.1.0-18-amd64\","
        "\"osImage\":\"Debian GNU/Linux 12 (bookworm)\",\"kubeletVersion\":\"v1.30.2\"}}}",
        rnd(g, UINT32_MAX));
}

static void add_configmap(struct gen *g)
{
    add_head(g, "ConfigMap", "v1", app_name(g));
    add(g, "}},\"data\":{");
    for (uint32_t f = 0, files = 1 + rnd(g, 4); f < files; f++) {
        add(g, "%s\"config-%u.yaml\":\"# gener\xc3\xa9 \xe2\x80\x94 do not edit\\n", f ? "," : "",
            f);
        for (uint32_t i = 0, n = 5 + rnd(g, 40); i < n; i++)
            add(g, "  option-%u: \\\"%s\\\"\\n", i, app_name(g));
        add(g, "\"");
    }
    add(g, "}}");
}

static void add_lease(struct gen *g)
{
    add_head(g, "Lease", "coordination.k8s.io/v1", "node");
    add(g,
        "}},\"spec\":{\"holderIdentity\":\"node-%03u.example.com\",\"leaseDurationSeconds\":40,"
        "\"renewTime\":\"2026-11-15T19:03:%02u.%06uZ\"}}",
        rnd(g, 500), rnd(g, 60), rnd(g, 1000000));
}

/* ---- sets ---- */

static const struct {
    const char *name;
    size_t n;
    void (*add)(struct gen *g);
} plan[] = {{"pods", 200, add_pod},
            {"deployments", 60, add_deployment},
            {"nodes", 40, add_node},
            {"configmaps", 60, add_configmap},
            {"leases", 200, add_lease}};

/* A copy with padding behind it. */
static bool keep_doc(struct docs *set, const struct vg_buf *b)
{
    char *p = calloc(1, b->n + PADDING);
    if (!p)
        return false;
    memcpy(p, b->p, b->n);
    set->v[set->n++] = (struct doc){p, b->n};
    set->bytes += b->n;
    return true;
}

static bool fill_set(struct gen *g, struct docs *set, size_t kind)
{
    set->name = plan[kind].name;
    set->v = calloc(plan[kind].n, sizeof *set->v);
    if (!set->v)
        return false;
    for (size_t i = 0; i < plan[kind].n; i++) {
        vg_buf_clear(&g->out);
        plan[kind].add(g);
        if (g->failed || !keep_doc(set, &g->out))
            return false;
    }
    return true;
}

/* The set of all documents borrows theirs. */
static bool join_sets(struct docs *sets, size_t n)
{
    struct docs *all = &sets[n];
    *all = (struct docs){.name = "all"};
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += sets[i].n;
    all->v = calloc(total ? total : 1, sizeof *all->v);
    for (size_t i = 0; all->v && i < n; i++) {
        memcpy(all->v + all->n, sets[i].v, sets[i].n * sizeof *all->v);
        all->n += sets[i].n;
        all->bytes += sets[i].bytes;
    }
    return all->v;
}

size_t generate(struct docs sets[SETS_MAX])
{
    struct gen g = {.seed = 0x5eed5eed5eed5eedu};
    size_t n = VG_ARRAY_LEN(plan);
    bool ok = true;
    memset(sets, 0, SETS_MAX * sizeof *sets);
    for (size_t i = 0; ok && i < n; i++)
        ok = fill_set(&g, &sets[i], i);
    vg_buf_done(&g.out);
    if (ok && join_sets(sets, n))
        return n + 1;
    generate_free(sets, n + 1);
    return 0;
}

void generate_free(struct docs *sets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; i + 1 < n && j < sets[i].n; j++)
            free((char *)(uintptr_t)sets[i].v[j].p);
        free(sets[i].v);
    }
}
