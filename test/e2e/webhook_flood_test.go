// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/process"
)

const (
	// floodMemory is the most that the webhooks' process may have resident under a flood, in MiB.
	floodMemory = 256
	// floodPatience is the most that the admission of an AddonStack may take under a flood.
	floodPatience = time.Second
	// floodAdmissions is how many AddonStacks are admitted under a flood.
	floodAdmissions = 40
	// stalledPerPath is how many connections to each path are held open, and send next to nothing.
	stalledPerPath = 200
)

// flooded are the paths that strangers may ask, each with the repeated part of a body that is costly to decode.
var flooded = []struct{ path, head, each, tail string }{
	{"/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterdelete/before-cluster-delete", `{"cluster":{"metadata":{"managedFields":[`, `{},`, `{}]}}}`},
	{"/convert", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"addons.cluster.x-k8s.io/v1beta1","objects":[`, `{},`, `{}]}}`},
	{"/convert", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"addons.cluster.x-k8s.io/v1beta1","objects":[`,
		`{"apiVersion":"addons.cluster.x-k8s.io/v1alpha1","kind":"AddonStack","metadata":{"name":"a"},"spec":{"addons":[{"name":"a"}]}},`, `null]}}`},
	{"/convert", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"addons.cluster.x-k8s.io/v1beta1","objects":[` +
		`{"apiVersion":"addons.cluster.x-k8s.io/v1alpha1","kind":"AddonStack","metadata":{"name":"a","annotations":{"cluster.x-k8s.io/conversion-data":"{\"spec\":{\"addons\":[`,
		`{},`, `{}]}}"}}}]}}`},
	{"/validate-addons-cluster-x-k8s-io-v1beta1-addonstack", floodedReview + `"metadata":{"name":"a","managedFields":[`, `{},`, `{}]}}}}`},
	{"/validate-addons-cluster-x-k8s-io-v1beta1-addonstack", floodedReview + `"metadata":{"name":"a"},"spec":{"addons":[`, `{},`, `{}]}}}}`},
}

const floodedReview = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",` +
	`"kind":{"group":"addons.cluster.x-k8s.io","version":"v1beta1","kind":"AddonStack"},"object":{"apiVersion":"addons.cluster.x-k8s.io/v1beta1","kind":"AddonStack",`

// TestWebhookFlood has strangers hold connections to the port of the webhooks open and send what is costly. They come
// from other addresses than the API server, whose reviews are answered as ever.
func TestWebhookFlood(t *testing.T) {
	long.Test(t) // it asserts a time, for a machine at rest
	tn := newTenant(t)
	s := tn.serveWebhooks()
	path := tn.writeChart("good", "1.0.0", configMapChart)
	admit := func() error {
		return world.hub.Create(t.Context(), tn.newStack("probe", nil, tn.addon("a", path)), client.DryRunAll)
	}
	NewWithT(t).Expect(admit()).To(Succeed())
	resting := memoryOf(t, s.manager)

	ctx, cancel := context.WithCancel(t.Context())
	var strangers sync.WaitGroup
	stop := func() { cancel(); strangers.Wait() }
	defer stop()
	stalled, wanted, tried := sets.New[string](), int64(0), atomic.Int64{}
	for i := range flooded {
		f := &flooded[i]
		address := s.addressOf(f.path)
		for range stalledPerPath {
			if !stalled.Has(f.path) {
				wanted++
				strangers.Go(func() { stall(ctx, address, f.path, &tried) })
			}
		}
		stalled.Insert(f.path)
		for _, size := range []int{16 << 20, 3<<20 - 1, 128 << 10, 40 << 10} { // the small ones are as costly to decode as any
			body := append([]byte(f.head), bytes.Repeat([]byte(f.each), (size-len(f.head)-len(f.tail))/len(f.each))...)
			body = append(body, f.tail...)
			strangers.Go(func() { send(ctx, address, f.path, body) })
		}
	}

	poll(t, patience, "the strangers are to have come", func() error {
		if is := tried.Load(); is < wanted {
			return fmt.Errorf("%d of %d connections were tried", is, wanted)
		}
		return nil
	})
	most, slowest := 0, time.Duration(0)
	for range floodAdmissions {
		start := time.Now()
		if err := admit(); err != nil {
			t.Errorf("an AddonStack isn't admitted: %v", err)
		}
		slowest = max(slowest, time.Since(start))
		most = max(most, memoryOf(t, s.manager))
		time.Sleep(250 * time.Millisecond) // the flood continues meanwhile
	}
	stop()
	t.Logf("%d MiB at rest, %d MiB at most; an AddonStack was admitted within %s", resting, most, slowest)
	if peak, err := process.Memory(s.PID(), process.PeakResident); err != nil || peak > floodMemory {
		t.Errorf("%.0f MiB were resident, %v; want at most %d", peak, err, floodMemory)
	}
	if slowest > floodPatience {
		t.Errorf("an AddonStack was admitted after %s; want at most %s", slowest, floodPatience)
	}
}

// stranger trusts any server, and nobody knows it.
var stranger = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}

// Strangers who are silent, and who send, have addresses of their own.
var silentAt, sendingAt = dialerAt(2), dialerAt(3)

func dialerAt(host byte) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)}}
}

// stall holds connections to a server open, one after the other, without an end of the request.
func stall(ctx context.Context, address, path string, tried *atomic.Int64) {
	for ctx.Err() == nil {
		conn, err := (&tls.Dialer{NetDialer: silentAt, Config: stranger}).DialContext(ctx, "tcp", address)
		tried.Add(1)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", path, 1<<20)
			_, _ = io.Copy(io.Discard, conn)
			stop()
			_ = conn.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// send sends a body again and again, whatever the answer.
func send(ctx context.Context, address, path string, body []byte) {
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: stranger.Clone(), DialContext: sendingAt.DialContext, DisableKeepAlives: true}}
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path, bytes.NewReader(body))
		if err != nil {
			return
		}
		request.Header.Set("Content-Type", "application/json")
		if response, err := c.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
