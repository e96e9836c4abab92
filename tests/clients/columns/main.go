// main.go <seed> <rounds> - objects of many kinds at random, and the row that Kubernetes' own printers make of each. A
// line: x and the group, version, resource, in base64 the object in JSON and the row's cells and conditions, and when.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	"sigs.k8s.io/randfill"

	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// What conditions, phases, types and the like may say, and what they may not.
var words = []string{
	"", "", "a", "b", "c", "Ready", "True", "False", "Unknown", "Initialized", "PodScheduled",
	"SchedulingGated", "Completed", "Error", "PodInitializing", "Running", "Succeeded", "Failed", "Pending",
	"NodeLost", "Always", "Complete", "Suspended", "FailureTarget", "SuccessCriteriaMet", "Resource", "Pods",
	"Object", "External", "ContainerResource", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName",
	"InternalIP", "ExternalIP", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod", "User",
	"Group", "ServiceAccount", "Approved", "Denied", "In", "NotIn", "Exists", "DoesNotExist", "Dangling",
	"node-role.kubernetes.io/x", "kubernetes.io/role", "storage", "limits.cpu", "cpu",
	"storageclass.kubernetes.io/is-default-class", "true", "volume.beta.kubernetes.io/storage-class",
	"ingressclass.kubernetes.io/is-default-class", "::1", "10.0.0.1", "<x>",
}

var resources = map[schema.GroupVersionKind]string{}

func gvk(g, v, k, r string) { resources[schema.GroupVersionKind{Group: g, Version: v, Kind: k}] = r }

func main() {
	seed, _ := strconv.ParseInt(os.Args[1], 10, 64)
	rounds, _ := strconv.Atoi(os.Args[2])
	for _, x := range [][4]string{
		{"", "v1", "Pod", "pods"},
		{"", "v1", "Node", "nodes"},
		{"", "v1", "Service", "services"},
		{"", "v1", "Endpoints", "endpoints"},
		{"", "v1", "Event", "events"},
		{"", "v1", "PersistentVolume", "persistentvolumes"},
		{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"},
		{"", "v1", "ResourceQuota", "resourcequotas"},
		{"", "v1", "ReplicationController", "replicationcontrollers"},
		{"", "v1", "Namespace", "namespaces"},
		{"", "v1", "ConfigMap", "configmaps"},
		{"", "v1", "Secret", "secrets"},
		{"", "v1", "PodTemplate", "podtemplates"},
		{"", "v1", "ServiceAccount", "serviceaccounts"},
		{"apps", "v1", "Deployment", "deployments"},
		{"apps", "v1", "StatefulSet", "statefulsets"},
		{"apps", "v1", "DaemonSet", "daemonsets"},
		{"apps", "v1", "ReplicaSet", "replicasets"},
		{"apps", "v1", "ControllerRevision", "controllerrevisions"},
		{"batch", "v1", "Job", "jobs"},
		{"batch", "v1", "CronJob", "cronjobs"},
		{"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"},
		{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"},
		{"networking.k8s.io", "v1", "Ingress", "ingresses"},
		{"networking.k8s.io", "v1", "IngressClass", "ingressclasses"},
		{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"},
		{"networking.k8s.io", "v1", "IPAddress", "ipaddresses"},
		{"networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs"},
		{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"},
		{"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"},
		{"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"},
		{"certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests"},
		{"coordination.k8s.io", "v1", "Lease", "leases"},
		{"storage.k8s.io", "v1", "StorageClass", "storageclasses"},
		{"storage.k8s.io", "v1", "CSIDriver", "csidrivers"},
		{"storage.k8s.io", "v1", "CSINode", "csinodes"},
		{"storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments"},
		{"storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses"},
		{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses"},
		{"node.k8s.io", "v1", "RuntimeClass", "runtimeclasses"},
		{"flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas"},
		{"flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations"},
		{"admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"},
		{"admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"},
		{"resource.k8s.io", "v1", "ResourceClaim", "resourceclaims"},
		{"resource.k8s.io", "v1", "ResourceSlice", "resourceslices"},
	} {
		gvk(x[0], x[1], x[2], x[3])
	}
	rnd := rand.New(rand.NewSource(seed))
	word := func() string { return words[rnd.Intn(len(words))] }
	when := func() time.Time {
		return time.Now().Add(-time.Duration(rnd.Int63n(int64(10+rnd.Intn(3)) * int64(time.Hour) * 24 * 365 / int64(1+rnd.Intn(100000))))).Truncate(time.Second).Add(-400 * time.Millisecond)
	}
	f := randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 4).MaxDepth(14).Funcs(
		func(s *string, c randfill.Continue) { *s = word() },
		func(i *int32, c randfill.Continue) { *i = int32(rnd.Intn(5)) },
		func(i *int64, c randfill.Continue) { *i = int64(rnd.Intn(5)) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"0", "1", "100m", "1Gi", "5e3"}[rnd.Intn(5)])
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.NewTime(when().Truncate(time.Second)) },
		func(t *metav1.MicroTime, c randfill.Continue) { *t = metav1.NewMicroTime(when()) },
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = intstr.FromInt32(int32(rnd.Intn(9)))
			if rnd.Intn(2) == 0 {
				*v = intstr.FromString(word())
			}
		},
		func(v *runtime.RawExtension, c randfill.Continue) { v.Raw = []byte(`{"a":1}`) },
		func(v *metav1.FieldsV1, c randfill.Continue) { *v = *metav1.NewFieldsV1(`{"f:a":{}}`) },
		func(v *metav1.TypeMeta, c randfill.Continue) {},
		func(v *metav1.LabelSelector, c randfill.Continue) {
			keys := []string{"a", "a-b", "a.b", "b", "x.y/z", "tier"}
			v.MatchLabels = map[string]string{}
			for i := rnd.Intn(3); i >= 0; i-- {
				v.MatchLabels[keys[rnd.Intn(len(keys))]] = keys[rnd.Intn(4)]
			}
			perm := rnd.Perm(len(keys))
			for i := rnd.Intn(3); i > 0; i-- {
				e := metav1.LabelSelectorRequirement{Key: keys[perm[i]], Operator: metav1.LabelSelectorOperator([]string{"In", "NotIn", "Exists", "DoesNotExist"}[rnd.Intn(4)])}
				if _, ok := v.MatchLabels[e.Key]; ok {
					continue
				}
				if e.Operator == "In" || e.Operator == "NotIn" {
					for j := rnd.Intn(3); j >= 0; j-- {
						e.Values = append(e.Values, keys[rnd.Intn(4)])
					}
				}
				v.MatchExpressions = append(v.MatchExpressions, e)
			}
		},
	)
	gen := printers.NewTableGenerator().With(printersinternal.AddHandlers)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for round := 0; round < rounds; round++ {
		for k, r := range resources {
			one(f, gen, out, k, r)
		}
	}
}

func one(f *randfill.Filler, gen *printers.HumanReadableGenerator, out *bufio.Writer, k schema.GroupVersionKind, r string) {
	defer func() {
		if e := recover(); e != nil {
			fmt.Fprintln(os.Stderr, "panic", k, e)
		}
	}()
	obj, err := legacyscheme.Scheme.New(k)
	if err != nil {
		panic(err)
	}
	f.Fill(obj)
	switch o := obj.(type) {
	case *corev1.Pod: // which conversion would bring together
		o.Status.PodIP = ""
		if len(o.Status.PodIPs) > 0 {
			o.Status.PodIP = o.Status.PodIPs[0].IP
		}
	case *corev1.Secret:
		o.StringData = nil
	}
	// As the server has it: through JSON once.
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	again := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	if err := json.Unmarshal(data, again); err != nil {
		panic(err)
	}
	internal, err := legacyscheme.Scheme.ConvertToVersion(again, schema.GroupVersion{Group: k.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		panic(err)
	}
	table, err := gen.GenerateTable(internal, printers.GenerateOptions{Wide: true})
	if err != nil {
		return
	}
	row := table.Rows[0]
	cells, err := json.Marshal(row.Cells)
	if err != nil {
		panic(err)
	}
	text := `"cells":` + string(cells)
	if len(row.Conditions) > 0 {
		conditions, _ := json.Marshal(row.Conditions)
		text += `,"conditions":` + string(conditions)
	}
	fmt.Fprintf(out, "x%s %s %s %s %s %d\n", k.Group, k.Version, r, base64.StdEncoding.EncodeToString(data),
		base64.StdEncoding.EncodeToString([]byte(text)), time.Now().UnixMilli())
}
