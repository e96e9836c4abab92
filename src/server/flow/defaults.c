/* defaults.c - the FlowSchema and PriorityLevelConfiguration objects that every cluster has, as
 * kube-apiserver 1.36 creates them. The mandatory ones come first in each table. */
#include "defaults.h"

const struct vg_flow_default vg_flow_default_levels[] = {
    {"catch-all", true,
     "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":5,"
     "\"limitResponse\":{\"type\":\"Reject\"},\"lendablePercent\":0}}"},
    {"exempt", true,
     "{\"type\":\"Exempt\",\"exempt\":{\"nominalConcurrencyShares\":0,"
     "\"lendablePercent\":0}}"},
    {"global-default", false,
     "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":20,"
     "\"limitResponse\":{\"type\":\"Queue\",\"queuing\":{\"queues\":128,\"handSize\":6,"
     "\"queueLengthLimit\":50}},\"lendablePercent\":50}}"},
    {"leader-election", false,
     "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":10,"
     "\"limitResponse\":{\"type\":\"Queue\",\"queuing\":{\"queues\":16,\"handSize\":4,"
     "\"queueLengthLimit\":50}},\"lendablePercent\":0}}"},
    {"node-high", false,
     "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":40,"
     "\"limitResponse\":{\"type\":\"Queue\",\"queuing\":{\"queues\":64,\"handSize\":6,"
     "\"queueLengthLimit\":50}},\"lendablePercent\":25}}"},
    {"system", false,
     "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":30,"
     "\"limitResponse\":{\"type\":\"Queue\",\"queuing\":{\"queues\":64,\"handSize\":6,"
     "\"queueLengthLimit\":50}},\"lendablePercent\":33}}"},
    {"workload-high", false,
     "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":40,"
     "\"limitResponse\":{\"type\":\"Queue\",\"queuing\":{\"queues\":128,\"handSize\":6,"
     "\"queueLengthLimit\":50}},\"lendablePercent\":50}}"},
    {"workload-low", false,
     "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":100,"
     "\"limitResponse\":{\"type\":\"Queue\",\"queuing\":{\"queues\":128,\"handSize\":6,"
     "\"queueLengthLimit\":50}},\"lendablePercent\":90}}"},
    {0},
};

const struct vg_flow_default vg_flow_default_schemas[] = {
    {"exempt", true,
     "{\"priorityLevelConfiguration\":{\"name\":\"exempt\"},\"matchingPrecedence\":1,"
     "\"rules\":[{\"subjects\":[{\"kind\":\"Group\","
     "\"group\":{\"name\":\"system:masters\"}}],\"resourceRules\":[{\"verbs\":[\"*\"],"
     "\"apiGroups\":[\"*\"],\"resources\":[\"*\"],\"clusterScope\":true,"
     "\"namespaces\":[\"*\"]}],\"nonResourceRules\":[{\"verbs\":[\"*\"],"
     "\"nonResourceURLs\":[\"*\"]}]}]}"},
    {"catch-all", true,
     "{\"priorityLevelConfiguration\":{\"name\":\"catch-all\"},"
     "\"matchingPrecedence\":10000,\"distinguisherMethod\":{\"type\":\"ByUser\"},"
     "\"rules\":[{\"subjects\":[{\"kind\":\"Group\","
     "\"group\":{\"name\":\"system:unauthenticated\"}},{\"kind\":\"Group\","
     "\"group\":{\"name\":\"system:authenticated\"}}],"
     "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"
     "\"clusterScope\":true,\"namespaces\":[\"*\"]}],"
     "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]}]}"},
    {"probes", false,
     "{\"priorityLevelConfiguration\":{\"name\":\"exempt\"},\"matchingPrecedence\":2,"
     "\"rules\":[{\"subjects\":[{\"kind\":\"Group\","
     "\"group\":{\"name\":\"system:unauthenticated\"}},{\"kind\":\"Group\","
     "\"group\":{\"name\":\"system:authenticated\"}}],"
     "\"nonResourceRules\":[{\"verbs\":[\"get\"],\"nonResourceURLs\":[\"/healthz\","
     "\"/readyz\",\"/livez\"]}]}]}"},
    {"system-leader-election", false,
     "{\"priorityLevelConfiguration\":{\"name\":\"leader-election\"},"
     "\"matchingPrecedence\":100,\"distinguisherMethod\":{\"type\":\"ByUser\"},"
     "\"rules\":[{\"subjects\":[{\"kind\":\"User\","
     "\"user\":{\"name\":\"system:kube-controller-manager\"}},{\"kind\":\"User\","
     "\"user\":{\"name\":\"system:kube-scheduler\"}},{\"kind\":\"ServiceAccount\","
     "\"serviceAccount\":{\"namespace\":\"kube-system\",\"name\":\"*\"}}],"
     "\"resourceRules\":[{\"verbs\":[\"get\",\"create\",\"update\"],"
     "\"apiGroups\":[\"coordination.k8s.io\"],\"resources\":[\"leases\"],"
     "\"namespaces\":[\"*\"]}]}]}"},
    {"system-node-high", false,
     "{\"priorityLevelConfiguration\":{\"name\":\"node-high\"},\"matchingPrecedence\":400,"
     "\"distinguisherMethod\":{\"type\":\"ByUser\"},"
     "\"rules\":[{\"subjects\":[{\"kind\":\"Group\","
     "\"group\":{\"name\":\"system:nodes\"}}],\"resourceRules\":[{\"verbs\":[\"*\"],"
     "\"apiGroups\":[\"\"],\"resources\":[\"nodes\",\"nodes/status\"],"
     "\"clusterScope\":true,\"namespaces\":[\"*\"]},{\"verbs\":[\"*\"],"
     "\"apiGroups\":[\"coordination.k8s.io\"],\"resources\":[\"leases\"],"
     "\"namespaces\":[\"*\"]}]}]}"},
    {"system-nodes", false,
     "{\"priorityLevelConfiguration\":{\"name\":\"system\"},\"matchingPrecedence\":500,"
     "\"distinguisherMethod\":{\"type\":\"ByUser\"},"
     "\"rules\":[{\"subjects\":[{\"kind\":\"Group\","
     "\"group\":{\"name\":\"system:nodes\"}}],\"resourceRules\":[{\"verbs\":[\"*\"],"
     "\"apiGroups\":[\"*\"],\"resources\":[\"*\"],\"clusterScope\":true,"
     "\"namespaces\":[\"*\"]}],\"nonResourceRules\":[{\"verbs\":[\"*\"],"
     "\"nonResourceURLs\":[\"*\"]}]}]}"},
    {"kube-controller-manager", false,
     "{\"priorityLevelConfiguration\":{\"name\":\"workload-high\"},"
     "\"matchingPrecedence\":800,\"distinguisherMethod\":{\"type\":\"ByNamespace\"},"
     "\"rules\":[{\"subjects\":[{\"kind\":\"User\","
     "\"user\":{\"name\":\"system:kube-controller-manager\"}}],"
     "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"
     "\"clusterScope\":true,\"namespaces\":[\"*\"]}],"
     "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]}]}"},
    {"kube-scheduler", false,
     "{\"priorityLevelConfiguration\":{\"name\":\"workload-high\"},"
     "\"matchingPrecedence\":800,\"distinguisherMethod\":{\"type\":\"ByNamespace\"},"
     "\"rules\":[{\"subjects\":[{\"kind\":\"User\","
     "\"user\":{\"name\":\"system:kube-scheduler\"}}],"
     "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"
     "\"clusterScope\":true,\"namespaces\":[\"*\"]}],"
     "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]}]}"},
    {"kube-system-service-accounts", false,
     "{\"priorityLevelConfiguration\":{\"name\":\"workload-high\"},"
     "\"matchingPrecedence\":900,\"distinguisherMethod\":{\"type\":\"ByNamespace\"},"
     "\"rules\":[{\"subjects\":[{\"kind\":\"ServiceAccount\","
     "\"serviceAccount\":{\"namespace\":\"kube-system\",\"name\":\"*\"}}],"
     "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"
     "\"clusterScope\":true,\"namespaces\":[\"*\"]}],"
     "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]}]}"},
    {"service-accounts", false,
     "{\"priorityLevelConfiguration\":{\"name\":\"workload-low\"},"
     "\"matchingPrecedence\":9000,\"distinguisherMethod\":{\"type\":\"ByUser\"},"
     "\"rules\":[{\"subjects\":[{\"kind\":\"Group\","
     "\"group\":{\"name\":\"system:serviceaccounts\"}}],"
     "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"
     "\"clusterScope\":true,\"namespaces\":[\"*\"]}],"
     "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]}]}"},
    {"global-default", false,
     "{\"priorityLevelConfiguration\":{\"name\":\"global-default\"},"
     "\"matchingPrecedence\":9900,\"distinguisherMethod\":{\"type\":\"ByUser\"},"
     "\"rules\":[{\"subjects\":[{\"kind\":\"Group\","
     "\"group\":{\"name\":\"system:unauthenticated\"}},{\"kind\":\"Group\","
     "\"group\":{\"name\":\"system:authenticated\"}}],"
     "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"
     "\"clusterScope\":true,\"namespaces\":[\"*\"]}],"
     "\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]}]}"},
    {0},
};

const struct vg_flow_default *vg_flow_default_find(const struct vg_flow_default *table,
                                                   struct vg_slice name)
{
    for (; table->name; table++)
        if (vg_slice_eq(name, vg_slice_str(table->name)))
            return table;
    return NULL;
}
