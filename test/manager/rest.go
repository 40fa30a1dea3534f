// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// calm is how long nothing may happen for a manager to count as idle: longer than the delays after which
	// controllers look again.
	calm = 1500 * time.Millisecond
	// restTimeout is how long a manager may take to come to rest.
	restTimeout = 2 * time.Minute
)

// activity is what a manager's controllers did so far, and have to do.
type activity struct {
	started    bool
	reconciles float64
	backlog    float64 // queued or under way
}

// AwaitRest returns when the controllers have nothing to do any more.
func (p *Process) AwaitRest() {
	p.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last activity
	start, since := time.Now(), time.Now()
	for time.Since(since) < calm {
		<-tick.C
		now, err := p.activity()
		if err != nil || now != last || now.backlog != 0 || !now.started {
			last, since = now, time.Now()
		}
		if time.Since(start) > restTimeout {
			p.t.Fatalf("the manager doesn't come to rest within %s: %+v (%v)", restTimeout, now, err)
		}
	}
}

func (p *Process) activity() (activity, error) {
	response, err := http.Get(p.Metrics)
	if err != nil {
		return activity{}, err
	}
	defer response.Body.Close()
	var a activity
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		series, text, _ := strings.Cut(lines.Text(), "} ")
		name, _, _ := strings.Cut(series, "{")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue // a comment, or a metric without labels
		}
		switch name {
		case "controller_runtime_reconcile_total":
			a.started = true
			a.reconciles += value
		case "workqueue_depth", "controller_runtime_active_workers":
			a.backlog += value
		}
	}
	return a, lines.Err()
}
