// controller.go <kubeconfig> - what controllers do with client-go: a shared informer that streams its
// initial list, a metadata informer, a typed client and leader election. It prints what its handlers
// are told and takes commands, one per line, from its input. It counts the lists it had to make.
package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const namespace = "default"

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// counter sees every request: a list is a GET of a collection that is no watch.
type counter struct {
	next    http.RoundTripper
	lists   atomic.Int64
	streams atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	if r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/configmaps") {
		if q.Get("watch") == "" {
			c.lists.Add(1)
		} else if q.Get("sendInitialEvents") == "true" {
			c.streams.Add(1)
		}
	}
	return c.next.RoundTrip(r)
}

func must(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// handlers prints each call with the object's name and value.
func handlers(prefix string) cache.ResourceEventHandlerFuncs {
	say := func(what string, o interface{}) {
		if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = d.Obj
		}
		name, value := "", ""
		switch v := o.(type) {
		case *unstructured.Unstructured:
			name = v.GetName()
			value, _, _ = unstructured.NestedString(v.Object, "data", "v")
		case *metav1.PartialObjectMetadata:
			name, value = v.Name, v.Labels["v"]
		}
		fmt.Println(strings.TrimSpace(fmt.Sprintf("%s%s %s %s", prefix, what, name, value)))
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o interface{}) { say("add", o) },
		UpdateFunc: func(_, o interface{}) { say("update", o) },
		DeleteFunc: func(o interface{}) { say("delete", o) },
	}
}

// lead takes part in an election and says when it leads.
func lead(ctx context.Context, client kubernetes.Interface) {
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: "controller", Namespace: namespace},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "only-one"},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: 3 * time.Second,
		RenewDeadline: 2 * time.Second,
		RetryPeriod:   200 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { fmt.Println("leads") },
			OnStoppedLeading: func() {},
		},
	})
}

// obey runs one command.
func obey(ctx context.Context, client kubernetes.Interface, count *counter, line string) error {
	maps := client.CoreV1().ConfigMaps(namespace)
	word := append(strings.Fields(line), "", "")
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: word[1], Labels: map[string]string{"v": word[2]}},
		Data:       map[string]string{"v": word[2]},
	}
	var err error
	switch word[0] {
	case "create":
		_, err = maps.Create(ctx, object, metav1.CreateOptions{})
	case "update":
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	case "delete":
		err = maps.Delete(ctx, word[1], metav1.DeleteOptions{})
	case "lead":
		go lead(ctx, client)
	case "count":
		fmt.Println("lists", count.lists.Load(), "streamed", count.streams.Load())
	}
	return err
}

func main() {
	ctx := context.Background()
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	// Bodies in JSON: protobuf is not served yet.
	config.ContentType = "application/json"
	config.AcceptContentTypes = "application/json"
	client, err := kubernetes.NewForConfig(config)
	must(err)

	count := &counter{}
	informed := rest.CopyConfig(config)
	informed.Wrap(func(next http.RoundTripper) http.RoundTripper {
		count.next = next
		return count
	})
	objects, err := dynamic.NewForConfig(informed)
	must(err)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
	informer := factory.ForResource(configMaps).Informer()
	_, err = informer.AddEventHandler(handlers(""))
	must(err)
	factory.Start(ctx.Done())

	// The metadata client asks for protobuf first and must be given JSON.
	plain := rest.CopyConfig(config)
	plain.ContentType, plain.AcceptContentTypes = "", ""
	heads, err := metadata.NewForConfig(plain)
	must(err)
	headFactory := metadatainformer.NewSharedInformerFactory(heads, 0)
	head := headFactory.ForResource(configMaps).Informer()
	_, err = head.AddEventHandler(handlers("meta-"))
	must(err)
	headFactory.Start(ctx.Done())

	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced, head.HasSynced) {
		must(fmt.Errorf("no sync"))
	}
	fmt.Println("synced", len(informer.GetStore().ListKeys()))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := obey(ctx, client, count, lines.Text()); err != nil {
			fmt.Fprintln(os.Stderr, lines.Text(), err)
		}
	}
}
