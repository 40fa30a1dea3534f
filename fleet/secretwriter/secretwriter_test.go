// SPDX-License-Identifier: Apache-2.0

package secretwriter_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet/secretwriter"
)

// TestWriter sends all of a Secret, and takes over its metadata. Nothing else is a Secret.
func TestWriter(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") || !strings.Contains(string(body), "all of it") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		asked = append(asked, r.Method+" "+r.URL.Path+"?"+r.URL.RawQuery)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"a","name":"b","uid":"1","resourceVersion":"7"}}`)
	}))
	t.Cleanup(server.Close)
	writer, err := secretwriter.New(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}, Data: map[string][]byte{"text": []byte("all of it")}}
	if err := writer.Create(t.Context(), secret, client.FieldOwner("one")); err != nil {
		t.Fatal(err)
	}
	if err := writer.Update(t.Context(), secret, client.FieldOwner("two"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if secret.UID != "1" || secret.ResourceVersion != "7" || string(secret.Data["text"]) != "all of it" {
		t.Errorf("it is %+v", secret)
	}
	want := "POST /api/v1/namespaces/a/secrets?fieldManager=one, PUT /api/v1/namespaces/a/secrets/b?dryRun=All&fieldManager=two"
	if got := strings.Join(asked, ", "); got != want {
		t.Errorf("asked for %s", got)
	}
	if err := writer.Create(t.Context(), &corev1.ConfigMap{}); err == nil {
		t.Error("a ConfigMap was written")
	}
}
