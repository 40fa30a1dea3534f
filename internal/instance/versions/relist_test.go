// SPDX-License-Identifier: Apache-2.0

package versions_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/must"
)

// TestListedAgain has objects changed while there is no watch.
func TestListedAgain(t *testing.T) {
	var lists atomic.Int32
	changed := make(chan struct{})
	forgetful := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !strings.HasSuffix(r.URL.Path, "/secrets"):
			http.NotFound(w, r)
		case r.URL.Query().Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case r.URL.Query().Get("watch") != "" && lists.Load() == 1:
			<-changed
			fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case lists.Add(1) == 1:
			fmt.Fprint(w, listOf("1", "deleted", "1", "changed", "1", "same", "1"))
		default:
			fmt.Fprint(w, listOf("5", "changed", "3", "same", "1", "new", "4"))
		}
	}))
	t.Cleanup(forgetful.Close)
	c := start(t, &rest.Config{Host: forgetful.URL})
	events := listen(t, c, "Secret")
	close(changed)
	expect(t, events, "update x/changed", "add x/new", "delete x/deleted")
	for name, want := range map[string]string{"changed": "3", "same": "1", "new": "4"} {
		is := metadataOf("Secret")
		must.Succeed(t, c.Get(t.Context(), client.ObjectKey{Namespace: "x", Name: name}, is))
		if is.ResourceVersion != want {
			t.Errorf("%s has version %s, not %s", name, is.ResourceVersion, want)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "x", Name: "deleted"}, metadataOf("Secret")); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret that was deleted: %v", err)
	}
}

// listOf returns a list of Secrets by name and version.
func listOf(version string, secrets ...string) string {
	var items []string
	for i := 0; i < len(secrets); i += 2 {
		items = append(items, fmt.Sprintf(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"x","name":%q,"uid":"u","resourceVersion":%q}}`, secrets[i], secrets[i+1]))
	}
	return fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":%q},"items":[%s]}`, version, strings.Join(items, ","))
}
