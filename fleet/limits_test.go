// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/fleet/limits"
)

// large answers lists, objects and watches with objects of 100 KiB.
func large(w io.Writer, r *http.Request) {
	object := `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("x", 100<<10) + `"}}}`
	switch {
	case r.URL.Query().Get("watch") != "":
		_, _ = io.WriteString(w, strings.Repeat(`{"type":"ADDED","object":`+object+`}`, 3))
	case strings.HasSuffix(r.URL.Path, "/configmaps"):
		_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[`+object+`]}`)
	default:
		_, _ = io.WriteString(w, object)
	}
}

// TestLimitsAreOptions lowers each limit alone, below what the server answers, and lifts all for a member.
func TestLimitsAreOptions(t *testing.T) {
	get := func(c *Connection) error {
		_, err := c.Dynamic().Resource(configMaps).Namespace("a").Get(t.Context(), "a", metav1.GetOptions{})
		return err
	}
	list := func(c *Connection) error {
		_, err := c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
		return err
	}
	events := func(c *Connection) error { return watchFailure(t, c) }
	for name, tc := range map[string]struct {
		limits    limits.Limits
		unlimited bool
		fails     map[string]string // what is asked for, to what the error says
	}{
		"defaults": {},
		"objects": {limits: limits.Limits{Object: 50 << 10}, fails: map[string]string{
			"get": "was answered with more than 50 KiB", "watch": "an event of more than 50 KiB",
		}},
		"lists":             {limits: limits.Limits{List: 60 << 10}, fails: map[string]string{"list": "was answered with more than 60 KiB", "watch": "events of more than 64 KiB per second"}},
		"watches":           {limits: limits.Limits{WatchRate: 1 << 10, List: 200 << 10}, fails: map[string]string{"watch": "events of more than 1 KiB per second"}},
		"none":              {limits: limits.None},
		"none for a member": {limits: limits.Limits{Object: 1, List: 1, WatchRate: 1}, unlimited: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := quick()
			o.Limits = tc.limits
			f, s := startFleet(t, o), newServer(t)
			s.instead = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				large(w, r)
				return true
			}
			f.Set("a/b", Member{ID: "1", Kubeconfig: s.kubeconfig(), Origin: "test", Unlimited: tc.unlimited})
			conn := f.connected(t, "a/b")
			for what, ask := range map[string]func(*Connection) error{"get": get, "list": list, "watch": events} {
				err := ask(conn)
				if says := tc.fails[what]; (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %v; want %q", what, err, says)
				}
				if _, exceeded := errors.AsType[*LimitError](err); err != nil && what != "watch" && !exceeded {
					t.Errorf("%s: %v is no LimitError", what, err)
				}
			}
		})
	}
}
