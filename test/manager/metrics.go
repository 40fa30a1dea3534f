// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Activity is what a manager's controllers did so far, and have to do.
type Activity struct {
	Started    bool
	Reconciles float64
	Backlog    float64 // queued or under way
}

// Activity returns what the controllers do at this moment.
func (p *Process) Activity() (Activity, error) {
	var a Activity
	err := p.eachSample(func(metric, _ string, value float64) {
		switch metric {
		case "controller_runtime_reconcile_total":
			a.Started = true
			a.Reconciles += value
		case "workqueue_depth", "controller_runtime_active_workers":
			a.Backlog += value
		}
	})
	return a, err
}

// Sum adds up the samples of a metric that have all the labels, each as in `controller="clusteraddon"`.
func (p *Process) Sum(metric string, labels ...string) (float64, error) {
	var sum float64
	err := p.eachSample(func(name, all string, value float64) {
		for _, label := range labels {
			if !strings.Contains(all, label) {
				return
			}
		}
		if name == metric {
			sum += value
		}
	})
	return sum, err
}

func (p *Process) eachSample(use func(metric, labels string, value float64)) error {
	response, err := http.Get(p.Metrics)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := lines.Text()
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[end+1:], 64)
		if err != nil {
			return fmt.Errorf("metrics: %q: %w", line, err)
		}
		metric, labels, _ := strings.Cut(line[:end], "{")
		use(metric, labels, value)
	}
	return lines.Err()
}
