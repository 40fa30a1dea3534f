// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-chandler/chandler/test/audit"
)

// snapshot is what was used so far.
type snapshot struct {
	at       time.Time
	cpu, all time.Duration
	marks    []audit.Mark
	hub      *audit.Mark // nil without a management cluster
}

// phase is what a phase used.
type phase struct {
	Seconds       float64 `json:"seconds"`
	CPU           float64 `json:"cpuSeconds"`    // of the manager and its renderers
	AllCPU        float64 `json:"allCPUSeconds"` // with the API servers and etcd
	Requests      float64 `json:"requests"`      // to a workload cluster, on average
	Writes        float64 `json:"writes"`
	RecordWrites  float64 `json:"recordWrites"`
	HubRequests   float64 `json:"hubRequests"` // for a cluster
	RequestsByUse string  `json:"requestsByUse,omitempty"`
}

func (f *fleet) snapshot() snapshot {
	s := snapshot{}
	if f.hub != nil {
		hub := f.hub.Audit.Mark(f.T)
		s.hub = &hub
	}
	for _, c := range f.clusters {
		s.marks = append(s.marks, c.Audit.Mark(f.T))
	}
	s.cpu, s.all = f.cpu()
	s.at = time.Now()
	return s
}

func (f *fleet) since(begin snapshot) phase {
	p := phase{Seconds: time.Since(begin.at).Seconds()}
	cpu, all := f.cpu()
	p.CPU, p.AllCPU = (cpu - begin.cpu).Seconds(), (all - begin.all).Seconds()
	n := float64(len(f.clusters))
	uses := map[string]int{}
	for _, mark := range begin.marks {
		for _, e := range mark.Requests(f.T, audit.By("chandler")) {
			p.Requests += 1 / n
			resource := "discovery"
			if e.ObjectRef != nil {
				resource = e.ObjectRef.Resource
				if isRecord(&e) {
					resource = "records"
				}
			}
			uses[e.Verb+" "+resource]++
			if !audit.Write(&e) {
				continue
			}
			p.Writes += 1 / n
			if isRecord(&e) {
				p.RecordWrites += 1 / n
			}
		}
	}
	if begin.hub != nil {
		p.HubRequests = float64(len(begin.hub.Requests(f.T, audit.By("chandler")))) / n
	}
	p.RequestsByUse = listed(uses, len(f.clusters))
	return p
}

func isRecord(e *audit.Event) bool {
	return e.ObjectRef != nil && e.ObjectRef.Resource == "secrets" && (e.ObjectRef.Name == "" || strings.HasPrefix(e.ObjectRef.Name, "sh.helm.release."))
}

// requests counts those that were answered so far.
func (f *fleet) requests() int {
	n := 0
	for _, c := range f.clusters {
		n += len(c.Audit.Beginning().Requests(f.T, audit.By("chandler")))
	}
	return n
}

// cpu returns the processor time of the manager with its renderers, and that with all API servers and their storage.
func (f *fleet) cpu() (own, all time.Duration) {
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range processes {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		text := string(data)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		name := text[strings.IndexByte(text, '(')+1 : strings.LastIndexByte(text, ')')]
		isManager := strings.HasPrefix(text, fmt.Sprint(f.pid(), " ")) || fields[1] == strconv.Itoa(f.pid())
		used := ticks(fields[11]) + ticks(fields[12])
		if strings.HasPrefix(text, fmt.Sprint(f.pid(), " ")) {
			used += ticks(fields[13]) + ticks(fields[14]) // of renderers that have ended
		}
		switch {
		case isManager:
			own += used
			all += used
		case name == "kube-apiserver" || name == "etcd":
			all += used
		}
	}
	return own, all
}

func (f *fleet) pid() int {
	switch {
	case f.manager != nil:
		return f.manager.PID()
	case f.other != nil:
		return f.other.PID()
	}
	return -1
}

// ticks are hundredths of a second.
func ticks(field string) time.Duration {
	n, _ := strconv.ParseInt(field, 10, 64)
	return time.Duration(n) * 10 * time.Millisecond
}

// memory is a figure of the manager's, without its renderers, in MiB.
func (f *fleet) memory(field string) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.pid()))
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			if err != nil {
				f.Fatal(err)
			}
			return kib / 1024
		}
	}
	f.Fatal("there is no " + field)
	return 0
}
