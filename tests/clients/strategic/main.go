// main.go - strategic merge patches as Kubernetes applies them: a line {Kind, Object, Patch} in, a line out,
// the object, or {"err": why}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type request struct {
	Kind          string
	Object, Patch json.RawMessage
}

func apply(r request) (out []byte, err error) {
	defer func() {
		if e := recover(); e != nil { // it has cases that end it
			err = fmt.Errorf("panic: %v", e)
		}
	}()
	var of interface{} = &corev1.Pod{}
	if r.Kind == "Deployment" {
		of = &appsv1.Deployment{}
	}
	return strategicpatch.StrategicMergePatch(r.Object, r.Patch, of)
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			panic(err)
		}
		text, err := apply(r)
		if err != nil {
			text, _ = json.Marshal(map[string]string{"err": err.Error()})
		}
		fmt.Fprintf(out, "%s\n", text)
	}
}
