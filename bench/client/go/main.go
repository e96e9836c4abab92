// main.go <kubeconfig> <informers> - the client-go side of bench_client: shared informers of pods, of
// all of them or one per node, that count what their handlers are told. It speaks as follower.c does.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var updates, target atomic.Int64
var reached = make(chan struct{}, 1)

func onUpdate(_, _ interface{}) {
	if updates.Add(1) == target.Load() {
		reached <- struct{}{}
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// start runs n informers and returns, when their handlers have been told all, how many objects they have.
func start(client kubernetes.Interface, n int) int {
	var stores []cache.Store
	var synced []cache.InformerSynced
	for i := 0; i < n; i++ {
		node := fmt.Sprintf("spec.nodeName=bench-node-%d", i)
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				if n > 1 {
					o.FieldSelector = node
				}
			}))
		informer := factory.Core().V1().Pods().Informer()
		handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: onUpdate})
		must(err)
		stores = append(stores, informer.GetStore())
		synced = append(synced, handle.HasSynced)
		factory.Start(context.Background().Done())
	}
	cache.WaitForCacheSync(context.Background().Done(), synced...)
	objects := 0
	for _, s := range stores {
		objects += len(s.ListKeys())
	}
	return objects
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err)
	n, err := strconv.Atoi(os.Args[2])
	must(err)
	config.ContentType = "application/json"
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	must(err)
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		word, arg, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "start":
			fmt.Println("synced", start(client, n))
		case "until":
			more, err := strconv.ParseInt(arg, 10, 64)
			must(err)
			target.Store(updates.Load() + more)
			fmt.Println("waiting")
			<-reached
			fmt.Println("seen")
		case "rest":
			debug.FreeOSMemory()
			fmt.Println("rested")
		}
	}
}
