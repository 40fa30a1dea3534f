// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"path"
	"strings"
	"time"

	"github.com/cluster-chandler/chandler/test/audit"
)

// snapshot is what was used so far.
type snapshot struct {
	at              time.Time
	alone, cpu, all time.Duration
	bytes           int64
	// Of the managers; none of those that have ended.
	unpackings, renderings float64
	marks                  []audit.Mark
	hub                    *audit.Mark // nil without a management cluster
}

// phase is what a phase used.
type phase struct {
	Seconds          float64 `json:"seconds"`
	FirstWrite       float64 `json:"firstWrite,omitzero"` // to a workload cluster, after so many seconds
	ManagerCPU       float64 `json:"managerCPUSeconds"`   // of the managers
	CPU              float64 `json:"cpuSeconds"`          // with their renderers
	AllCPU           float64 `json:"allCPUSeconds"`       // with the API servers and etcd
	Requests         float64 `json:"requests"`            // to a workload cluster, on average
	Writes           float64 `json:"writes"`
	RecordWrites     float64 `json:"recordWrites"`
	recordLists      float64 // of the requests; the others don't depend on how fast the machine is
	KiB              float64 `json:"kib"`         // to and from a workload cluster
	HubRequests      float64 `json:"hubRequests"` // for a cluster
	Unpackings       float64 `json:"unpackings"`  // of charts, by all managers
	Renderings       float64 `json:"renderings"`  // by workers, of all clusters
	RequestsByUse    string  `json:"requestsByUse,omitempty"`
	HubRequestsByUse string  `json:"hubRequestsByUse,omitempty"`
	// StatusWrites are those of AddonStacks' statuses, by stack.
	StatusWrites map[string]int `json:"statusWrites,omitempty"`
}

func (f *fleet) snapshot() snapshot {
	s := snapshot{bytes: f.bytes()}
	if f.hub != nil {
		hub := f.hub.Audit.Mark(f.TB)
		s.hub = &hub
	}
	for _, server := range f.servers {
		s.marks = append(s.marks, server.Audit.Mark(f.TB))
	}
	s.unpackings, s.renderings = f.work()
	s.alone, s.cpu, s.all = f.cpu()
	s.at = time.Now()
	return s
}

func (f *fleet) work() (unpackings, renderings float64) {
	return f.metric("chandler_source_unpackings_total"), f.metric("chandler_renderings_total", `result="Rendered"`)
}

func (f *fleet) bytes() (sum int64) {
	for _, c := range f.clusters {
		sum += c.Bytes()
	}
	return sum
}

func (f *fleet) since(begin snapshot) phase {
	p := phase{Seconds: time.Since(begin.at).Seconds()}
	alone, cpu, all := f.cpu()
	p.ManagerCPU, p.CPU, p.AllCPU = (alone - begin.alone).Seconds(), (cpu - begin.cpu).Seconds(), (all - begin.all).Seconds()
	unpackings, renderings := f.work()
	p.Unpackings, p.Renderings = unpackings-begin.unpackings, renderings-begin.renderings
	var requests, writes, recordWrites, recordLists int
	uses := map[string]int{}
	for _, mark := range begin.marks {
		for _, e := range mark.Requests(f.TB, notProbe) {
			requests++
			uses[useOf(&e)]++
			if e.Verb == "list" && isRecord(&e) {
				recordLists++
			}
			if !audit.Write(&e) {
				continue
			}
			writes++
			if after := e.RequestReceivedTimestamp.Sub(begin.at).Seconds(); writes == 1 || after < p.FirstWrite {
				p.FirstWrite = after
			}
			if isRecord(&e) {
				recordWrites++
			}
		}
	}
	n := float64(len(f.clusters))
	p.Requests, p.Writes, p.RecordWrites, p.recordLists = float64(requests)/n, float64(writes)/n, float64(recordWrites)/n, float64(recordLists)/n
	p.KiB = float64(f.bytes()-begin.bytes) / 1024 / n
	if begin.hub != nil {
		p.countHub(begin.hub.Requests(f.TB, audit.By(user)), len(f.clusters))
	}
	p.RequestsByUse = listed(uses, len(f.clusters))
	return p
}

// countHub counts requests to the management cluster.
func (p *phase) countHub(requests []audit.Event, clusters int) {
	uses := map[string]int{}
	p.StatusWrites = map[string]int{}
	for _, e := range requests {
		if e.ObjectRef == nil {
			uses[e.Verb+" discovery"]++
			continue
		}
		uses[e.Verb+" "+path.Join(e.ObjectRef.Resource, e.ObjectRef.Subresource)]++
		if audit.Write(&e) && e.ObjectRef.Resource == "addonstacks" && e.ObjectRef.Subresource == "status" {
			p.StatusWrites[e.ObjectRef.Name]++
		}
	}
	p.HubRequests, p.HubRequestsByUse = float64(len(requests))/float64(clusters), listed(uses, clusters)
}

// useOf returns what a request does with what.
func useOf(e *audit.Event) string {
	switch {
	case e.ObjectRef == nil:
		return e.Verb + " discovery"
	case isRecord(e):
		return e.Verb + " records"
	}
	return e.Verb + " " + e.ObjectRef.Resource
}

func isRecord(e *audit.Event) bool {
	return e.ObjectRef != nil && e.ObjectRef.Resource == "secrets" && (e.ObjectRef.Name == "" || strings.HasPrefix(e.ObjectRef.Name, "sh.helm.release."))
}
