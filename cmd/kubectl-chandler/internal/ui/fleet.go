// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"maps"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// matrix has a row for each cluster and a column for each add-on, in groups.
type matrix struct {
	*summary.Status
	Clusters, Ready int
	Label           string // by whose value clusters are grouped, "" for their namespaces
	Columns         []string
	Groups          []*group
}

// group are clusters with the same value of a label. Those that are well are counted, and are rows if the group is open.
type group struct {
	Name    string
	IsOpen  bool
	Well    int
	Columns int
	Rows    []row
}

type row struct {
	Namespace, Name string
	IsWell          bool
	Why             string  // nothing can be done on the cluster
	Cells           []*cell // nil for an add-on that the cluster hasn't got
}

type cell struct {
	Phase           addonsv1.AddonPhase
	Version, Reason string
	HasDrift        bool
}

// fleetView shows the matrix. Its query has the label to group by, and the group whose rows are all shown.
func fleetView(q *request, p *page) error {
	label, open := q.FormValue("label"), q.FormValue("open")
	groupOf, err := q.groups(label)
	if err != nil {
		return err
	}
	m := &matrix{Status: summary.StatusOf(q.fleet, false), Label: label, Clusters: len(q.fleet.Clusters)}
	columns, groups := map[string]int{}, map[string]*group{}
	for i := range q.fleet.Clusters {
		for _, a := range q.fleet.Clusters[i].Status.Addons {
			columns[a.Name] = 0
		}
	}
	m.Columns = slices.Sorted(maps.Keys(columns))
	for i, name := range m.Columns {
		columns[name] = i
	}
	for i := range q.fleet.Clusters {
		ca := &q.fleet.Clusters[i]
		name := groupOf(ca)
		g := groups[name]
		if g == nil {
			g = &group{Name: name, IsOpen: q.Form.Has("open") && open == name, Columns: len(m.Columns) + 1}
			groups[name] = g
		}
		isWell := isWell(ca)
		if isWell {
			m.Ready++
			g.Well++
		}
		if !isWell || g.IsOpen {
			g.Rows = append(g.Rows, rowOf(ca, isWell, columns))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		m.Groups = append(m.Groups, groups[name])
	}
	p.View, p.Title, p.Command, p.Of = "fleet", "Fleet", q.command("status"), m
	return nil
}

// groups returns the group of a cluster: the value of a label of its Cluster, or for "" its namespace.
func (q *request) groups(label string) (func(*addonsv1.ClusterAddon) string, error) {
	values := map[string]map[string]string{} // by namespace and name
	if label == "" {
		return func(ca *addonsv1.ClusterAddon) string { return ca.Namespace }, nil
	}
	for i := range q.fleet.Clusters {
		namespace := q.fleet.Clusters[i].Namespace
		if values[namespace] != nil {
			continue
		}
		members, err := observed.Members(q.Context(), q.client, namespace)
		if err != nil {
			return nil, err
		}
		values[namespace] = map[string]string{}
		for name, m := range members {
			values[namespace][name] = m.Labels[label]
		}
	}
	return func(ca *addonsv1.ClusterAddon) string { return values[ca.Namespace][ca.Name] }, nil
}

// isWell reports whether all add-ons of a cluster are Ready, and something can be done there.
func isWell(ca *addonsv1.ClusterAddon) bool {
	return stack.Blocking(ca) == nil && len(summary.HeldOut(ca)) == 0 &&
		!slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return a.Phase != addonsv1.AddonReady })
}

func rowOf(ca *addonsv1.ClusterAddon, isWell bool, columns map[string]int) row {
	is := row{Namespace: ca.Namespace, Name: ca.Name, IsWell: isWell, Cells: make([]*cell, len(columns))}
	if c := stack.Blocking(ca); c != nil {
		is.Why = c.Reason
	}
	for i := range ca.Status.Addons {
		a := &ca.Status.Addons[i]
		at := columns[a.Name]
		if had := is.Cells[at]; had != nil && had.Phase != addonsv1.AddonReady {
			continue // another one of the name is worse
		}
		is.Cells[at] = &cell{a.Phase, a.Version, a.Reason, a.Drift != nil && a.Drift.Objects > 0}
	}
	return is
}
