/* pods.c - see pods.h. The labels and containers are those of the object tests. */
#include "pods.h"

#include <stdio.h>

#include "measure.h"
#include "object/object_testing.h"

const struct vg_cache_kind pods_kind = {
    .name = "pods",
    .prefix = "/registry/pods/",
    .fields = &vg_test_pods,
    .is_namespaced = true,
    .bookmark_head = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"",
    .bookmark_tail = ",\"spec\":{\"containers\":null},\"status\":{}",
};

void pods_init(struct pods *p)
{
    vg_buf_init(&p->text, 0);
    vg_arena_init(&p->arena, 0, 0);
    vg_obj_sealed_init(&p->sealed);
}

void pods_done(struct pods *p)
{
    vg_buf_done(&p->text);
    vg_arena_done(&p->arena);
    vg_obj_sealed_done(&p->sealed);
}

static void write_head(struct vg_buf *b, struct pod_id pod)
{
    vg_test_must(vg_buf_printf(
        b,
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-%u-7f9c6d5b4-x%06x\","
        "\"generateName\":\"web-%u-7f9c6d5b4-\",\"namespace\":\"team-%u\",\"uid\":\"3f2504e0-4f89-"
        "41d3-9a0c-%012x\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",",
        pod.id % 50, pod.id, pod.id % 50, pod.id % PODS_NAMESPACES, pod.id));
    vg_test_pod_labels(b, pod.id, PODS_LABELS);
    vg_test_must(vg_buf_printf(b, "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
                                  "\"ReplicaSet\",\"name\":\"web-7f9c6d5b4\",\"uid\":\"9b1deb4d\","
                                  "\"controller\":true}]},\"spec\":{\"containers\":["));
}

static void write_rest(struct vg_buf *b, struct pod_id pod)
{
    vg_test_must(vg_buf_printf(
        b,
        "],\"restartPolicy\":\"Always\",\"serviceAccountName\":\"default\",\"nodeName\":\"node-%u"
        "\",\"schedulerName\":\"default-scheduler\",\"priority\":0},\"status\":{\"phase\":"
        "\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"v%u\","
        "\"lastTransitionTime\":\"2026-01-01T00:00:09Z\"},{\"type\":\"PodScheduled\",\"status\":"
        "\"True\",\"lastTransitionTime\":\"2026-01-01T00:00:01Z\"}],\"hostIP\":\"10.0.0.%u\","
        "\"podIP\":\"10.1.%u.%u\",\"startTime\":\"2026-01-01T00:00:02Z\"}}",
        pod.node, pod.version, pod.node % 250, pod.id / 250 % 250, pod.id % 250));
}

struct vg_rec *pods_make(struct pods *p, struct pod_id pod)
{
    vg_buf_clear(&p->text);
    vg_arena_reset(&p->arena);
    write_head(&p->text, pod);
    vg_test_pod_containers(&p->text, pod.id);
    write_rest(&p->text, pod);
    vg_test_must(
        vg_obj_seal_text(&vg_test_pods, vg_buf_slice(&p->text), &p->arena, &p->sealed, NULL));
    char key[96];
    snprintf(key, sizeof key, "%steam-%u/web-%u-7f9c6d5b4-x%06x", pods_kind.prefix,
             pod.id % PODS_NAMESPACES, pod.id % 50, pod.id);
    struct vg_rec *rec = NULL;
    vg_test_must(vg_rec_new(VG_REC_PUT, vg_slice_str(key), vg_buf_slice(&p->sealed.header),
                            vg_buf_slice(&p->sealed.value), &rec));
    return rec;
}

const struct vg_obj_predicate *pods_predicate(const char *labels, const char *fields)
{
    struct vg_obj_predicate_opts opts = {.fields = &vg_test_pods};
    struct vg_obj_predicate *p = NULL;
    if (labels && *labels)
        vg_test_must(vg_label_selector_parse(vg_slice_str(labels), &opts.take_labels, NULL));
    if (fields && *fields)
        vg_test_must(vg_field_selector_parse(vg_slice_str(fields), &opts.take_fields, NULL));
    vg_test_must(vg_obj_predicate_new(&opts, &p, NULL));
    return p;
}

const struct vg_obj_predicate *pods_of_node(uint32_t node)
{
    char fields[48];
    snprintf(fields, sizeof fields, "spec.nodeName=node-%u", node);
    return pods_predicate(NULL, fields);
}
