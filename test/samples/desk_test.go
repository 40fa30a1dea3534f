// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// current is the namespace of commands that name none, and of objects.
const current = "team-a"

// desk is where the reader of a page sits: in a folder with a kubeconfig, before the objects of a file.
type desk struct {
	t       *testing.T
	dir     string
	samples []string // names
}

// newDesk makes the objects of a file. They go with the test. Each AddonStack is in a file of its name, too.
func newDesk(t *testing.T, file string) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	config, err := clientcmd.Load(server.Kubeconfig())
	must.Succeed(t, err)
	config.Contexts[config.CurrentContext].Namespace = current
	must.Succeed(t, clientcmd.WriteToFile(*config, filepath.Join(d.dir, "kubeconfig")))
	data, err := os.ReadFile(file)
	must.Succeed(t, err)
	text := string(data)
	for strings.HasPrefix(text, "# ") {
		line, rest, _ := strings.Cut(text, "\n")
		d.samples, text = append(d.samples, line[2:]), rest
	}
	text = strings.ReplaceAll(text, "NOW", time.Now().UTC().Format(metav1.RFC3339Micro))
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		must.Succeed(t, yaml.UnmarshalStrict([]byte(document), &o.Object))
		if o.GetNamespace() == "" {
			o.SetNamespace(current)
		}
		switch o.GetKind() {
		case "AddonPlan":
			d.answerPlans(o.Object["status"])
			continue
		case "AddonStack":
			must.Succeed(t, os.WriteFile(filepath.Join(d.dir, o.GetName()+".yaml"), []byte(document), 0o600))
		case "Secret":
			complete(t, o)
		}
		d.create(o)
	}
	return d
}

// create makes an object with its status, and its namespace.
func (d *desk) create(o client.Object) {
	d.t.Helper()
	if name := o.GetNamespace(); name != "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		must.Succeed(d.t, client.IgnoreAlreadyExists(server.Create(d.t.Context(), namespace)))
	}
	is, _ := o.(*unstructured.Unstructured)
	var status any
	if is != nil {
		status = is.Object["status"]
	}
	must.Succeed(d.t, server.Create(d.t.Context(), o))
	d.t.Cleanup(func() { must.Succeed(d.t, server.Delete(context.Background(), o)) })
	if status != nil {
		is.Object["status"] = status
		must.Succeed(d.t, server.Status().Update(d.t.Context(), is))
	}
}

// answerPlans gives all plans a status, as a provider instance does.
func (d *desk) answerPlans(status any) {
	d.t.Helper()
	changes, err := server.Watch(d.t.Context(), &addonsv1.AddonPlanList{})
	must.Succeed(d.t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for change := range changes.ResultChan() {
			if plan, ok := change.Object.(*addonsv1.AddonPlan); ok && plan.Status.Phase == "" {
				is := &unstructured.Unstructured{Object: map[string]any{"status": status}}
				is.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonPlan"))
				is.SetNamespace(plan.Namespace)
				is.SetName(plan.Name)
				is.SetResourceVersion(plan.ResourceVersion)
				if err := server.Status().Update(d.t.Context(), is); client.IgnoreNotFound(err) != nil {
					d.t.Error(err)
				}
			}
		}
	}()
	d.t.Cleanup(func() { changes.Stop(); <-done })
}

// complete adds to a Secret what can't be in a file: the kubeconfig of the API server, which is its own workload cluster, and Helm's
// encoding of a release.
func complete(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	content := map[string][]byte{}
	if strings.HasSuffix(o.GetName(), "-kubeconfig") {
		content["value"] = server.Kubeconfig()
	}
	if release, found := o.Object["release"]; found {
		text, err := yaml.Marshal(release)
		must.Succeed(t, err)
		text, err = yaml.YAMLToJSON(text)
		must.Succeed(t, err)
		packed := &bytes.Buffer{}
		w := gzip.NewWriter(packed)
		_, err = w.Write(text)
		must.Succeed(t, err)
		must.Succeed(t, w.Close())
		content["release"] = []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
		delete(o.Object, "release")
	}
	encoded := map[string]any{}
	for key, value := range content {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	o.Object["data"] = encoded
}
