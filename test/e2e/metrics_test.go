// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// calm is how long nothing may happen for a manager to count as idle. It is
// longer than the delays after which controllers look again.
const calm = 1500 * time.Millisecond

// activity is what a manager's controllers did so far, and have to do.
type activity struct {
	reconciles float64
	backlog    float64 // queued or under way
}

// reconciled counts the reconciles of one controller.
func (m *manager) reconciled(controller string) (float64, error) {
	return m.sum("controller_runtime_reconcile_total", fmt.Sprintf("controller=%q", controller))
}

func (m *manager) activity() (activity, error) {
	var a activity
	var err error
	if a.reconciles, err = m.sum("controller_runtime_reconcile_total"); err != nil {
		return a, err
	}
	depth, err := m.sum("workqueue_depth")
	if err != nil {
		return a, err
	}
	active, err := m.sum("controller_runtime_active_workers")
	a.backlog = depth + active
	return a, err
}

// settle returns when the controllers have nothing to do any more.
func (tn *tenant) settle() {
	tn.t.Helper()
	var last activity
	since := time.Now()
	poll(tn.t, 2*time.Minute, "the manager is to come to rest", func() error {
		now, err := tn.manager.activity()
		if err != nil {
			since = time.Now()
			return err
		}
		if now != last || now.backlog != 0 || now.reconciles == 0 {
			last, since = now, time.Now()
		}
		if time.Since(since) < calm {
			return fmt.Errorf("%.0f reconciles so far, %.0f under way", now.reconciles, now.backlog)
		}
		return nil
	})
}

// awaitReconcile returns when the controller has reconciled since it had done
// so this often, and has nothing left to do.
func (tn *tenant) awaitReconcile(controller string, before float64) {
	tn.t.Helper()
	poll(tn.t, 30*time.Second, "a change of an annotation is to be looked at", func() error {
		now, err := tn.manager.reconciled(controller)
		if err == nil && now <= before {
			err = fmt.Errorf("%.0f reconciles, as before", now)
		}
		if err != nil {
			return err
		}
		a, err := tn.manager.activity()
		if err == nil && a.backlog > 0 {
			err = fmt.Errorf("%.0f reconciles under way", a.backlog)
		}
		return err
	})
}

// sum adds up the samples of a metric that have all the given labels.
func (m *manager) sum(metric string, labels ...string) (float64, error) {
	response, err := http.Get(m.metrics)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var sum float64
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		series, value, ok := cutLast(lines.Text(), " ")
		name, rest, _ := strings.Cut(series, "{")
		if !ok || name != metric {
			continue
		}
		matches := true
		for _, label := range labels {
			matches = matches && strings.Contains(rest, label)
		}
		if !matches {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", series, err)
		}
		sum += number
	}
	return sum, lines.Err()
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
