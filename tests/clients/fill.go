// fill.go <seed> <rounds> - objects of every kind that client-go knows, filled at random, one per line:
// group, version, kind, and in base64 the object in protobuf, in JSON, and in JSON after it went
// through protobuf.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/randfill"
)

// What random bytes would seldom get right.
func values(serializer.CodecFactory) []interface{} {
	amounts := []string{"0", "1", "100m", "1Gi", "1536Mi", "5e3", "12345678901"}
	return []interface{}{
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(amounts[c.Intn(len(amounts))])
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = intstr.FromInt32(c.Int31())
			if c.Bool() {
				*v = intstr.FromString(c.String(0))
			}
		},
		func(v *runtime.RawExtension, c randfill.Continue) {
			v.Raw = []byte(`{"apiVersion":"a/b","kind":"C","x":[1,2.5,null]}`)
		},
		func(v *metav1.FieldsV1, c randfill.Continue) { *v = *metav1.NewFieldsV1(`{"f:a":{}}`) },
		func(v *apiextensions.JSON, c randfill.Continue) { v.Raw = []byte(`{"k":1}`) },
		func(v *apiextensions.JSONSchemaPropsOrBool, c randfill.Continue) { v.Allows = c.Bool() },
		func(v *apiextensions.JSONSchemaPropsOrArray, c randfill.Continue) {
			if c.Bool() {
				v.Schema = &apiextensions.JSONSchemaProps{Type: "one"}
			} else {
				v.JSONSchemas = []apiextensions.JSONSchemaProps{{Type: "of"}, {Type: "many"}}
			}
		},
		func(v *apiextensions.JSONSchemaPropsOrStringArray, c randfill.Continue) {
			if c.Bool() {
				v.Schema = &apiextensions.JSONSchemaProps{Type: "one"}
			} else {
				v.Property = []string{"a", "b"}
			}
		},
		func(v *apiextensions.JSONSchemaProps, c randfill.Continue) {
			if c.Intn(4) == 0 { // they would not end
				c.FillNoCustom(v)
			}
		},
	}
}

func kinds(s *runtime.Scheme) []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for k := range s.AllKnownTypes() {
		if k.Version != runtime.APIVersionInternal && k.Kind != "WatchEvent" &&
			!strings.HasSuffix(k.Kind, "Options") && !strings.HasSuffix(k.Kind, "List") {
			all = append(all, k)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].String() < all[j].String() })
	return all
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type codec interface {
	runtime.Encoder
	runtime.Decoder
}

func encode(c codec, o runtime.Object) []byte {
	var b bytes.Buffer
	must(c.Encode(o, &b))
	return b.Bytes()
}

func through(c codec, o runtime.Object, k schema.GroupVersionKind) runtime.Object {
	again, _, err := c.Decode(encode(c, o), &k, nil)
	must(err)
	again.GetObjectKind().SetGroupVersionKind(k)
	return again
}

func main() {
	seed, err := strconv.ParseInt(os.Args[1], 10, 64)
	must(err)
	rounds, err := strconv.Atoi(os.Args[2])
	must(err)
	s := scheme.Scheme
	must(apiextensions.AddToScheme(s))
	must(apiregistration.AddToScheme(s))
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, values), rand.NewSource(seed),
		serializer.NewCodecFactory(s))
	text := json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{})
	binary := protobuf.NewSerializer(s, s)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	b64 := base64.StdEncoding.EncodeToString
	for i := 0; i < rounds; i++ {
		for _, k := range kinds(s) {
			o, err := s.New(k)
			must(err)
			filler.Fill(o)
			o.GetObjectKind().SetGroupVersionKind(k)
			o = through(text, o, k) // nil and empty differ no more
			fmt.Fprintf(out, "%s,%s,%s,%s,%s,%s\n", k.Group, k.Version, k.Kind, b64(encode(binary, o)),
				b64(bytes.TrimSpace(encode(text, o))),
				b64(bytes.TrimSpace(encode(text, through(binary, o, k)))))
		}
	}
}
