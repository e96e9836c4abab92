// roundtrip <kubeconfig> <examples> - objects of every kind, one JSON per line, there and back: each is
// decoded into client-go's type, created in protobuf, and read again in protobuf, JSON and YAML. All
// three must be the same object, and each must be byte for byte what client-go writes for it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const kindsMin = 60 // fewer would mean that the examples are not what they were

var (
	proto      = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	plain      = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
	yaml       = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true})
	mediaTypes = map[string]runtime.Serializer{
		"application/vnd.kubernetes.protobuf": proto, "application/json": plain, "application/yaml": yaml}
)

func must(err error, what string) {
	if err != nil {
		fmt.Printf("FAILED: %s: %v\n", what, err)
		os.Exit(1)
	}
}

type resource struct {
	plural     string
	namespaced bool
	stored     bool
}

func resources(config *rest.Config) map[schema.GroupVersionKind]resource {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	must(err, "discovery")
	_, lists, err := client.ServerGroupsAndResources()
	must(err, "discovery")
	found := map[schema.GroupVersionKind]resource{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(err, "discovery")
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				verbs := strings.Join(r.Verbs, ",")
				found[gv.WithKind(r.Kind)] = resource{r.Name, r.Namespaced, strings.Contains(verbs, "get")}
			}
		}
	}
	return found
}

func clientFor(config *rest.Config, gv schema.GroupVersion) *rest.RESTClient {
	own := rest.CopyConfig(config)
	own.GroupVersion = &gv
	own.APIPath = "/apis"
	if gv.Group == "" {
		own.APIPath = "/api"
	}
	own.ContentType = "application/vnd.kubernetes.protobuf"
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme.Scheme).WithoutConversion()
	client, err := rest.RESTClientFor(own)
	must(err, gv.String())
	return client
}

// Decoded by what was sent; its kind stands in it.
func decode(s runtime.Serializer, data []byte, what string) runtime.Object {
	obj, _, err := s.Decode(data, nil, nil)
	must(err, what)
	return obj
}

func encode(s runtime.Serializer, obj runtime.Object, want []byte, what string) {
	var got bytes.Buffer
	must(s.Encode(obj, &got), what)
	if !bytes.Equal(want, got.Bytes()) {
		must(fmt.Errorf("the server says\n%.4000q\nclient-go\n%.4000q", want, got.Bytes()), what)
	}
}

// compare reads an object in one form and says it again with client-go, in that form and in protobuf.
// (Structs may differ: kinds of objects inside of others are not in protobuf.)
func compare(raw []byte, s runtime.Serializer, inProto []byte, what string) runtime.Object {
	obj := decode(s, raw, what)
	encode(s, obj, raw, what)
	encode(proto, obj, inProto, what+", in protobuf")
	return obj
}

func roundTrip(config *rest.Config, r resource, gvk schema.GroupVersionKind, obj runtime.Object) {
	ctx, client := context.Background(), clientFor(config, gvk.GroupVersion())
	what := gvk.String()
	namespace := ""
	if r.namespaced {
		namespace = "default"
	}
	var body bytes.Buffer
	must(proto.Encode(obj, &body), what)
	made, err := client.Post().NamespaceIfScoped(namespace, r.namespaced).Resource(r.plural).
		SetHeader("Content-Type", "application/vnd.kubernetes.protobuf").Body(body.Bytes()).Do(ctx).Raw()
	if err != nil {
		must(fmt.Errorf("%v: %q", err, made), "create "+what)
	}
	first := compare(made, proto, made, "the answer to creating "+what)
	if !r.stored {
		return
	}
	accessor, err := meta.Accessor(first)
	must(err, what)
	for mediaType, s := range mediaTypes {
		raw, err := client.Get().NamespaceIfScoped(namespace, r.namespaced).Resource(r.plural).
			Name(accessor.GetName()).SetHeader("Accept", mediaType).Do(ctx).Raw()
		must(err, what+" as "+mediaType)
		compare(raw, s, made, what+" as "+mediaType)
	}
	must(client.Delete().NamespaceIfScoped(namespace, r.namespaced).Resource(r.plural).
		Name(accessor.GetName()).Body(&metav1.DeleteOptions{}).Do(ctx).Error(), "delete "+what)
}

func main() {
	must(apiextensions.AddToScheme(scheme.Scheme), "scheme")
	must(apiregistration.AddToScheme(scheme.Scheme), "scheme")
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err, "kubeconfig")
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	served := resources(config)
	file, err := os.Open(os.Args[2])
	must(err, "examples")
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	kinds, n := map[schema.GroupVersionKind]bool{}, 0
	for lines.Scan() {
		obj := decode(plain, lines.Bytes(), lines.Text())
		gvk := obj.GetObjectKind().GroupVersionKind()
		r, ok := served[gvk]
		if !ok {
			must(fmt.Errorf("not served"), gvk.String())
		}
		roundTrip(config, r, gvk, obj)
		kinds[gvk] = true
		n++
	}
	must(lines.Err(), "examples")
	if len(kinds) < kindsMin {
		must(fmt.Errorf("only %d", len(kinds)), "kinds")
	}
	fmt.Printf("%d objects of %d kinds go there and back\n", n, len(kinds))
}
