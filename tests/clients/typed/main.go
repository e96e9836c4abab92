// typed <kubeconfig> <seed> - the typed clients of client-go, which speak protobuf unless told
// otherwise: every verb of five kinds, then informers whose stores must equal what a list says after
// random writes. Whatever is sent or received in anything but protobuf is a failure.
package main

import (
	"context"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	namespace = "default"
	protobuf  = "application/vnd.kubernetes.protobuf"
)

func fail(format string, args ...any) {
	fmt.Printf("FAILED: "+format+"\n", args...)
	os.Exit(1)
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// onlyProtobuf looks at each request and answer. Patches have types of their own.
type onlyProtobuf struct{ next http.RoundTripper }

func (o onlyProtobuf) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := r.Header.Get("Content-Type")
	if !strings.HasPrefix(r.Header.Get("Accept"), protobuf) {
		fail("%s %s accepts %s", r.Method, r.URL, r.Header.Get("Accept"))
	}
	if r.Body != nil && r.Method != "PATCH" && sent != protobuf {
		fail("%s %s is sent as %s", r.Method, r.URL, sent)
	}
	answer, err := o.next.RoundTrip(r)
	if err == nil && !strings.HasPrefix(answer.Header.Get("Content-Type"), protobuf) {
		fail("%s %s is answered %d as %s", r.Method, r.URL, answer.StatusCode,
			answer.Header.Get("Content-Type"))
	}
	return answer, err
}

// object is a pointer to an API type.
type object interface {
	runtime.Object
	metav1.Object
}

// client is what the generated clients have in common.
type client[T object, L runtime.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

var ctx = context.Background()

// without is the object as it is compared: events of a watch say their type, answers do not.
func without(o runtime.Object) runtime.Object {
	c := o.DeepCopyObject()
	c.GetObjectKind().SetGroupVersionKind(c.GetObjectKind().GroupVersionKind().GroupVersion().WithKind(""))
	if a, err := meta.TypeAccessor(c); err == nil {
		a.SetAPIVersion("")
		a.SetKind("")
	}
	return c
}

func same(what string, a, b runtime.Object) {
	if !equality.Semantic.DeepEqual(without(a), without(b)) {
		fail("%s:\n%+v\n%+v", what, a, b)
	}
}

func next(w watch.Interface, t watch.EventType, o runtime.Object) {
	select {
	case e := <-w.ResultChan():
		if e.Type != t {
			fail("%s instead of %s: %+v", e.Type, t, e.Object)
		}
		if o != nil {
			same(string(t), e.Object, o)
		}
	case <-time.After(20 * time.Second):
		fail("no %s", t)
	}
}

// deleted waits for the end; a pod may be marked before.
func deleted(w watch.Interface) {
	for e := range w.ResultChan() {
		if e.Type == watch.Deleted {
			return
		}
		if o, ok := e.Object.(metav1.Object); !ok || o.GetDeletionTimestamp() == nil {
			fail("%s while it is being deleted: %+v", e.Type, e.Object)
		}
	}
	fail("the watch has ended")
}

// tour uses each verb once, and sees by a watch what it did.
func tour[T object, L runtime.Object](what string, c client[T, L], o T, change func(T)) {
	name := o.GetName()
	w, err := c.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	must(err)
	defer w.Stop()
	made, err := c.Create(ctx, o, metav1.CreateOptions{})
	must(err)
	next(w, watch.Added, made)
	if _, err = c.Create(ctx, o, metav1.CreateOptions{}); !errors.IsAlreadyExists(err) {
		fail("%s: made twice: %v", what, err)
	}
	got, err := c.Get(ctx, name, metav1.GetOptions{})
	must(err)
	same("get", got, made)
	change(got)
	put, err := c.Update(ctx, got, metav1.UpdateOptions{})
	must(err)
	next(w, watch.Modified, put)
	if _, err = c.Update(ctx, made, metav1.UpdateOptions{}); !errors.IsConflict(err) {
		fail("%s: an old one is taken: %v", what, err)
	}
	patched, err := c.Patch(ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"patched":"yes"}}}`), metav1.PatchOptions{})
	must(err)
	next(w, watch.Modified, patched)
	patched, err = c.Patch(ctx, name, types.StrategicMergePatchType,
		[]byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
	must(err)
	next(w, watch.Modified, patched)
	list, err := c.List(ctx, metav1.ListOptions{LabelSelector: "patched"})
	must(err)
	items, err := meta.ExtractList(list)
	must(err)
	if len(items) != 1 {
		fail("%s: %d are listed", what, len(items))
	}
	same("list", items[0], patched)
	now := int64(0)
	must(c.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	deleted(w)
	if _, err = c.Get(ctx, name, metav1.GetOptions{}); !errors.IsNotFound(err) {
		fail("%s: it is still there: %v", what, err)
	}
	fmt.Println("tour of", what)
}

// ---- objects ----

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": "t"}}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "main:1",
		Env:   []corev1.EnvVar{{Name: "A", Value: "1"}},
		Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
	}}}
}

func tours(cs kubernetes.Interface) {
	tour("pods", cs.CoreV1().Pods(namespace), &corev1.Pod{ObjectMeta: named("p"), Spec: podSpec()},
		func(p *corev1.Pod) { p.Spec.Containers[0].Image = "main:2" })
	replicas := int32(2)
	labels := map[string]string{"app": "t"}
	tour("deployments", cs.AppsV1().Deployments(namespace), &appsv1.Deployment{
		ObjectMeta: named("d"),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		}}, func(d *appsv1.Deployment) { *d.Spec.Replicas = 3 })
	tour("configmaps", cs.CoreV1().ConfigMaps(namespace), &corev1.ConfigMap{
		ObjectMeta: named("c"), Data: map[string]string{"k": "1", "text": "é<&>"},
		BinaryData: map[string][]byte{"b": {0, 1, 255}},
	}, func(c *corev1.ConfigMap) { c.Data["k"] = "2" })
	holder, seconds := "me", int32(15)
	micro := metav1.NowMicro()
	tour("leases", cs.CoordinationV1().Leases(namespace), &coordinationv1.Lease{
		ObjectMeta: named("l"),
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds,
			AcquireTime: &micro, RenewTime: &micro},
	}, func(l *coordinationv1.Lease) { *l.Spec.HolderIdentity = "you" })
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	tour("events", cs.CoreV1().Events(namespace), &corev1.Event{
		ObjectMeta:     named("e"),
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: namespace},
		Reason:         "Tried", Message: "it was tried", Type: corev1.EventTypeNormal,
		Source:         corev1.EventSource{Component: "test"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, func(e *corev1.Event) { e.Count = 2 })
}

// ---- informers ----

// writer makes random writes of its own objects; names are shared with nobody.
func writer(cs kubernetes.Interface, id int, seed int64, writes int) {
	r := rand.New(rand.NewSource(seed + int64(id)))
	maps, pods := cs.CoreV1().ConfigMaps(namespace), cs.CoreV1().Pods(namespace)
	now := int64(0)
	for i := 0; i < writes; i++ {
		name := fmt.Sprintf("w%d-%d", id, r.Intn(12))
		var err error
		switch r.Intn(5) {
		case 0:
			_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named(name)}, metav1.CreateOptions{})
		case 1:
			_, err = maps.Update(ctx, &corev1.ConfigMap{ObjectMeta: named(name),
				Data: map[string]string{"k": strings.Repeat("x", r.Intn(16000))}}, metav1.UpdateOptions{})
		case 2:
			err = maps.Delete(ctx, name, metav1.DeleteOptions{})
		case 3:
			_, err = pods.Create(ctx, &corev1.Pod{ObjectMeta: named(name), Spec: podSpec()},
				metav1.CreateOptions{})
		case 4:
			err = pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		}
		if err != nil && !errors.IsAlreadyExists(err) && !errors.IsNotFound(err) {
			fail("write %d of %d: %v", i, id, err)
		}
	}
}

// equal: has the store what the list has?
func equal(store cache.Store, list runtime.Object, err error) string {
	must(err)
	items, err := meta.ExtractList(list)
	must(err)
	if len(store.ListKeys()) != len(items) {
		return fmt.Sprintf("%d in the store, %d listed", len(store.ListKeys()), len(items))
	}
	for _, item := range items {
		o, ok, _ := store.Get(item)
		if !ok || !equality.Semantic.DeepEqual(without(o.(runtime.Object)), without(item)) {
			return fmt.Sprintf("%+v\nis in the store\n%+v", item, o)
		}
	}
	return ""
}

func follow(cs kubernetes.Interface, seed int64) {
	factory := informers.NewSharedInformerFactory(cs, 0)
	maps, pods := factory.Core().V1().ConfigMaps().Informer(), factory.Core().V1().Pods().Informer()
	writer(cs, 99, seed, 60) // what they find
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	var all sync.WaitGroup
	for id := 0; id < 4; id++ {
		all.Add(1)
		go func() {
			defer all.Done()
			writer(cs, id, seed, 250)
		}()
	}
	all.Wait()
	deadline := time.Now().Add(20 * time.Second)
	for {
		m, merr := cs.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
		p, perr := cs.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		why := equal(maps.GetStore(), m, merr) + equal(pods.GetStore(), p, perr)
		if why == "" {
			fmt.Println("informers equal", len(m.Items), "config maps and", len(p.Items), "pods")
			return
		}
		if time.Now().After(deadline) {
			fail("the informers differ (seed %d): %s", seed, why)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// pages lists in pieces.
func pages(cs kubernetes.Interface) {
	seen, opts := 0, metav1.ListOptions{Limit: 7}
	all, err := cs.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	must(err)
	for {
		page, err := cs.CoreV1().ConfigMaps("").List(ctx, opts)
		must(err)
		seen += len(page.Items)
		left := page.RemainingItemCount
		if page.Continue == "" {
			break
		}
		if left == nil || int(*left)+seen != len(all.Items) {
			fail("%v remain after %d of %d", left, seen, len(all.Items))
		}
		opts.Continue = page.Continue
	}
	if seen != len(all.Items) {
		fail("%d in pages, %d in all", seen, len(all.Items))
	}
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	seed, err := strconv.ParseInt(os.Args[2], 10, 64)
	must(err)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return onlyProtobuf{next} })
	cs, err := kubernetes.NewForConfig(config)
	must(err)
	tours(cs)
	follow(cs, seed)
	pages(cs)
	fmt.Println("ok")
}
