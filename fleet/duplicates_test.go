// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// identified has a server say which cluster it is.
func identified(s *server, uid string) {
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/namespaces/kube-system" {
			return false
		}
		_, _ = fmt.Fprintf(w, `{"metadata":{"uid":%q}}`, uid)
		return true
	}
}

// oneAtATime is a component that takes its time to leave a cluster, and counts how many it is in.
func oneAtATime(t *testing.T, engaged *atomic.Int32) awareFunc {
	return func(ctx context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
		if n := engaged.Add(1); n > 1 {
			t.Errorf("%s is engaged while another name of its cluster is", name)
		}
		<-ctx.Done()
		time.Sleep(20 * time.Millisecond)
		engaged.Add(-1)
		return nil
	}
}

// connectedAs waits until a provider has a connection by one name, and says that the other is a duplicate.
func connectedAs(t *testing.T, p *Provider, name, other multicluster.ClusterName) {
	t.Helper()
	eventually(t, func() string {
		if s := p.State(name); s.Phase != PhaseConnected {
			return fmt.Sprintf("%s: %+v", name, s)
		}
		if s := p.State(other); other != "" && (s.Phase != PhaseRefused || s.Reason != ReasonDuplicateCluster || !strings.Contains(s.Message, name.String()) || !strings.Contains(s.Message, "Secret a") || !strings.Contains(s.Message, "Secret b")) {
			return fmt.Sprintf("%s: %+v", other, s)
		}
		return ""
	})
}

// TestOneClusterIsEngagedOnce has two sources name one server, the later one first. At no time both have it. Another server
// of the later source is its own.
func TestOneClusterIsEngagedOnce(t *testing.T) {
	s := newServer(t)
	identified(s, "the cluster")
	first, second := &stubSource{name: "first"}, &stubSource{name: "second"}
	o := quick()
	o.Sources = []Source{first, second}
	var engaged atomic.Int32
	one := oneAtATime(t, &engaged)
	p, _ := startSources(t, o, func(ctx context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
		if name == "second#c" {
			return nil
		}
		return one(ctx, name, c)
	})
	p.Subscribe(func(multicluster.ClusterName) {
		_, one := p.Connection("first#a")
		_, two := p.Connection("second#b")
		if one && two {
			t.Error("both names have a connection")
		}
	})
	second.sink.Set("b", Member{ID: "1", Kubeconfig: s.kubeconfig(), Origin: "Secret b"})
	connectedAs(t, p, "second#b", "")
	another := newServer(t)
	identified(another, "another cluster")
	for range 5 {
		first.sink.Set("a", Member{ID: "1", Kubeconfig: s.kubeconfig(), Origin: "Secret a"})
		connectedAs(t, p, "first#a", "second#b")
		second.sink.Set("c", Member{ID: "1", Kubeconfig: another.kubeconfig(), Origin: "Secret c"})
		connectedAs(t, p, "second#c", "")
		second.sink.Remove("c")
		first.sink.Remove("a")
		connectedAs(t, p, "second#b", "")
	}
}

// TestSourceIsAdded while the provider runs. It comes last.
func TestSourceIsAdded(t *testing.T) {
	s := newServer(t)
	identified(s, "the cluster")
	first, added := &stubSource{name: "first"}, &stubSource{name: "added"}
	o := quick()
	o.Sources = []Source{first}
	if err := NewProvider(o).AddSource(nil, added); err == nil {
		t.Error("a source is added though duplicates of its clusters can't be found")
	}
	o.Identify = true
	var engaged atomic.Int32
	p, _ := startSources(t, o, oneAtATime(t, &engaged))
	first.sink.Set("a", Member{ID: "1", Kubeconfig: s.kubeconfig(), Origin: "Secret a"})
	connectedAs(t, p, "first#a", "")
	if conn, _ := p.Connection("first#a"); conn.UID() != "the cluster" {
		t.Errorf("its UID is %q", conn.UID())
	}
	if p.Has("added") {
		t.Error("a source is there before it was added")
	}
	if err := p.AddSource(nil, added); err != nil {
		t.Fatal(err)
	}
	if err := p.AddSource(nil, &stubSource{name: "first"}); err == nil {
		t.Error("a name is added twice")
	}
	if !p.Has("added") {
		t.Error("the source isn't there")
	}
	added.sink.Set("b", Member{ID: "1", Kubeconfig: s.kubeconfig(), Origin: "Secret b"})
	connectedAs(t, p, "first#a", "added#b")
	first.sink.Remove("a")
	connectedAs(t, p, "added#b", "")
	added.sink.Synced()
	if !p.Synced("added") {
		t.Error("it isn't synced")
	}
}

// TestOneClusterOfOneSource has two objects of one source name one server. The older one has it, whichever is connected first,
// and the younger one gets it when the older one is gone, or names another server.
func TestOneClusterOfOneSource(t *testing.T) {
	s, another := newServer(t), newServer(t)
	identified(s, "the cluster")
	identified(another, "another cluster")
	source := &stubSource{name: "first"}
	o := quick()
	o.Sources, o.Identify = []Source{source}, true
	var engaged atomic.Int32
	one := oneAtATime(t, &engaged)
	p, _ := startSources(t, o, func(ctx context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
		if conn, ok := c.(*Connection); ok && conn.UID() != "the cluster" {
			return nil
		}
		return one(ctx, name, c)
	})
	source.sink.Synced()
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	set := func(name multicluster.ClusterName, kubeconfig []byte, created time.Time) {
		source.sink.Set(name, Member{ID: "1", Kubeconfig: kubeconfig, Origin: "Secret " + name.String(), Created: created})
	}
	others := append(s.kubeconfig(), '\n') // not the same text
	set("b", others, made.Add(time.Second))
	connectedAs(t, p, "first#b", "")
	for range 3 {
		set("a", s.kubeconfig(), made)
		connectedAs(t, p, "first#a", "first#b")
		set("a", another.kubeconfig(), made)
		connectedAs(t, p, "first#a", "")
		connectedAs(t, p, "first#b", "")
		set("a", s.kubeconfig(), made)
		connectedAs(t, p, "first#a", "first#b")
		source.sink.Remove("a")
		connectedAs(t, p, "first#b", "")
	}
	// A name decides between objects of one second.
	set("a", s.kubeconfig(), made.Add(time.Second))
	connectedAs(t, p, "first#a", "first#b")
}

// TestOriginalIsWaitedFor has two objects with the very same kubeconfig, and a provider that was started again. The younger
// object never has a connection, not even before the older one has.
func TestOriginalIsWaitedFor(t *testing.T) {
	s := newServer(t)
	identified(s, "the cluster")
	source := &stubSource{name: "first"}
	o := quick()
	o.Sources, o.Identify = []Source{source}, true
	p, _ := startSources(t, o, func(_ context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
		if name == "first#b" {
			t.Error("the younger one is engaged")
		}
		return nil
	})
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	source.sink.Set("b", Member{ID: "2", Kubeconfig: s.kubeconfig(), Origin: "Secret b", Created: made.Add(time.Hour)})
	if n := s.requests.Load(); n > 0 {
		t.Error("it doesn't wait for the source to say that it has named all")
	}
	source.sink.Set("a", Member{ID: "1", Kubeconfig: s.kubeconfig(), Origin: "Secret a", Created: made})
	source.sink.Synced()
	connectedAs(t, p, "first#a", "first#b")
}
