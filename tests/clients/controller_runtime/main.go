// controller_runtime <kubeconfig> - a small operator on controller-runtime: for each Deployment it keeps
// a config map with its replicas, writes the Deployment's status, and cleans up by a finalizer. A
// manager with leader election and cached reads runs it; the program then makes, scales and deletes
// Deployments and waits until all is as it should be.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	namespace   = "default"
	finalizer   = "example.com/clean-up"
	deployments = 20
)

func must(err error) {
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}

// counter tells in what the API server answers.
type counter struct {
	next            http.RoundTripper
	protobuf, other *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err == nil && strings.Contains(answer.Header.Get("Content-Type"), "protobuf") {
		c.protobuf.Add(1)
	} else {
		c.other.Add(1)
	}
	return answer, err
}

// ---- the operator ----

type reconciler struct{ client.Client }

func infoOf(d *appsv1.Deployment) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-info"}}
}

func (r *reconciler) cleanUp(ctx context.Context, d *appsv1.Deployment) error {
	if err := client.IgnoreNotFound(r.Delete(ctx, infoOf(d))); err != nil {
		return err
	}
	before := d.DeepCopy()
	controllerutil.RemoveFinalizer(d, finalizer)
	return client.IgnoreNotFound(r.Patch(ctx, d, client.MergeFrom(before)))
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	d := &appsv1.Deployment{}
	if err := r.Get(ctx, req.NamespacedName, d); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !d.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.cleanUp(ctx, d)
	}
	if controllerutil.AddFinalizer(d, finalizer) {
		return ctrl.Result{}, r.Update(ctx, d)
	}
	info := infoOf(d)
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, info, func() error {
		info.Data = map[string]string{"replicas": strconv.Itoa(int(*d.Spec.Replicas))}
		return controllerutil.SetControllerReference(d, info, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == *d.Spec.Replicas {
		return ctrl.Result{}, nil
	}
	d.Status.ObservedGeneration, d.Status.Replicas = d.Generation, *d.Spec.Replicas
	return ctrl.Result{}, r.Status().Update(ctx, d)
}

// ---- what is asked of it ----

func deployment(i int) *appsv1.Deployment {
	replicas, labels := int32(1), map[string]string{"app": "r"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("d-%d", i)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c:1"}}},
			},
		},
	}
}

// await: until all Deployments have this many replicas, in their status and in their config maps.
func await(ctx context.Context, c client.Client, n, replicas int) {
	deadline := time.Now().Add(30 * time.Second)
	for {
		ds, infos := &appsv1.DeploymentList{}, &corev1.ConfigMapList{}
		must(c.List(ctx, ds, client.InNamespace(namespace)))
		must(c.List(ctx, infos, client.InNamespace(namespace)))
		done := 0
		for _, d := range ds.Items {
			if int(d.Status.Replicas) == replicas && d.Status.ObservedGeneration == d.Generation {
				done++
			}
		}
		copies := 0
		for _, i := range infos.Items {
			if strings.HasSuffix(i.Name, "-info") && i.Data["replicas"] == strconv.Itoa(replicas) &&
				len(i.OwnerReferences) == 1 {
				copies++
			}
		}
		if len(ds.Items) == n && done == n && copies == n {
			fmt.Println(n, "deployments of", replicas)
			return
		}
		if time.Now().After(deadline) {
			must(fmt.Errorf("%d deployments, %d reconciled to %d, %d config maps", len(ds.Items), done,
				replicas, copies))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func drive(ctx context.Context, c client.Client) {
	for i := 0; i < deployments; i++ {
		must(c.Create(ctx, deployment(i)))
	}
	await(ctx, c, deployments, 1)
	for i := 0; i < deployments; i++ {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
		must(c.SubResource("scale").Update(ctx, deployment(i), client.WithSubResourceBody(scale)))
	}
	await(ctx, c, deployments, 3)
	// Somebody deletes what it made.
	must(client.IgnoreNotFound(c.Delete(ctx, infoOf(deployment(0)))))
	await(ctx, c, deployments, 3)
	for i := 0; i < deployments; i++ {
		must(c.Delete(ctx, deployment(i)))
	}
	await(ctx, c, 0, 0)
	if err := c.Get(ctx, client.ObjectKeyFromObject(deployment(0)), &appsv1.Deployment{}); !errors.IsNotFound(err) {
		must(fmt.Errorf("it is still there: %v", err))
	}
}

func main() {
	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	count := counter{protobuf: &atomic.Int64{}, other: &atomic.Int64{}}
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counter{next, count.protobuf, count.other}
	})
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:        server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "operator", LeaderElectionNamespace: namespace,
	})
	must(err)
	r := &reconciler{manager.GetClient()}
	must(ctrl.NewControllerManagedBy(manager).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).Complete(r))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()
	// Reads of its own: not from the operator's cache.
	direct, err := client.New(config, client.Options{Scheme: manager.GetScheme()})
	must(err)
	drive(ctx, direct)
	cancel()
	must(<-ended)
	if count.protobuf.Load() < 10*count.other.Load() {
		must(fmt.Errorf("%d answers in protobuf, %d in others", count.protobuf.Load(), count.other.Load()))
	}
	fmt.Println("ok,", count.protobuf.Load(), "answers in protobuf,", count.other.Load(), "in others")
}
