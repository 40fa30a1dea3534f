// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet/fleettest"
)

// A fleet of a hundred with thirty black holes, which come first and fill
// nearly all slots.
func TestThirtyDeadOfAHundred(t *testing.T) {
	s := newServer(t)
	hole := listener(t, "127.0.0.1:0", func(net.Conn) {})
	const deadline = 15 * time.Second // of an attempt; the good ones must not wait for it
	connectAll := func(dead int) time.Duration {
		f := startFleet(t, Options{AllowLoopback: true, ConnectTimeout: deadline, FirstTimeout: deadline})
		defer f.stop()
		for i := range dead {
			f.add(multicluster.ClusterName(fmt.Sprintf("dead/%d", i)), fleettest.Kubeconfig("https://"+hole, s.ca(), user("secret-token")))
		}
		start := time.Now()
		for i := range 100 - dead {
			f.add(multicluster.ClusterName(fmt.Sprintf("good/%d", i)), s.kubeconfig())
		}
		for i := range 100 - dead {
			f.connected(t, multicluster.ClusterName(fmt.Sprintf("good/%d", i)))
		}
		return time.Since(start)
	}
	t.Logf("100 good ones connect in %s", connectAll(0))
	took := connectAll(30)
	t.Logf("70 good ones beside 30 dead ones in %s", took)
	if took > deadline-time.Second {
		t.Error("good clusters waited for dead ones")
	}
}

// A network that swallows everything: requests end in time, the cluster is
// given up, and found again when the network is back.
func TestNetworkThatGoesSilent(t *testing.T) {
	s := newServer(t)
	var silent atomic.Bool
	address := listener(t, "127.0.0.1:0", func(c net.Conn) {
		to, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			return
		}
		pipe := func(to io.Writer, from net.Conn) {
			buffer := make([]byte, 32<<10)
			for {
				n, err := from.Read(buffer)
				if err != nil {
					return
				}
				if silent.Load() {
					continue // dropped
				}
				if _, err := to.Write(buffer[:n]); err != nil {
					return
				}
			}
		}
		go pipe(to, c)
		pipe(c, to)
	})
	o := quick()
	o.ProbeTimeout, o.Timeout = 200*time.Millisecond, 500*time.Millisecond
	f := startFleet(t, o)
	f.add("a/b", fleettest.Kubeconfig("https://"+address, s.ca(), user("secret-token")))
	conn := f.connected(t, "a/b")

	silent.Store(true)
	start := time.Now()
	err := conn.Client().Get(t.Context(), client.ObjectKey{Namespace: "x", Name: "x"}, &corev1.Pod{})
	if took := time.Since(start); err == nil || took > 2*time.Second {
		t.Errorf("the first Get of a kind took %s: %v", took, err)
	}
	<-conn.Done()
	t.Logf("given up after %s: %s", time.Since(start), f.expect(t, "a/b", PhaseUnreachable, ReasonConnectionTimedOut).Message)
	silent.Store(false)
	start = time.Now()
	f.connected(t, "a/b")
	t.Logf("connected again after %s", time.Since(start))
}

func TestMetrics(t *testing.T) {
	of := func(p Phase) float64 { return valueOf(t, clustersByPhase.WithLabelValues(string(p))) }
	before := map[Phase]float64{}
	for _, p := range phases {
		before[p] = of(p)
	}
	attempts := valueOf(t, attemptsByReason.WithLabelValues(ReasonConnectionRefused))

	f := startFleet(t, quick())
	f.add("a/waiting", nil)
	f.add("a/connected", newServer(t).kubeconfig())
	f.add("a/refused", []byte("x"))
	f.add("a/unreachable", fleettest.Kubeconfig("https://"+freeAddress(t), nil, user("t")))
	f.connected(t, "a/connected")
	f.expect(t, "a/refused", PhaseRefused, ReasonKubeconfigRefused)
	f.expect(t, "a/unreachable", PhaseUnreachable, ReasonConnectionRefused)
	for _, p := range phases {
		want := 1.0
		if p == PhaseConnecting {
			want = 0
		}
		eventually(t, func() string {
			if got := of(p) - before[p]; got != want {
				return fmt.Sprintf("%s: %g, want %g", p, got, want)
			}
			return ""
		})
	}
	if got := valueOf(t, attemptsByReason.WithLabelValues(ReasonConnectionRefused)); got <= attempts {
		t.Error("no attempt was counted")
	}
	f.Remove("a/waiting")
	f.stop()
	for _, p := range phases {
		if got := of(p); got != before[p] {
			t.Errorf("%s: %g are left", p, got-before[p])
		}
	}
}

func valueOf(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetGauge().GetValue() + out.GetCounter().GetValue()
}
