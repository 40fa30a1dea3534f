// SPDX-License-Identifier: Apache-2.0

package ui

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

var errNotFound = errors.New("there is nothing of this name")

// request is what a view is made of.
type request struct {
	*http.Request
	client    client.WithWatch
	others    client.Client
	fleet     *observed.Fleet
	namespace string
}

// page is a view with what is around it.
type page struct {
	View, Title, Path string
	// Command shows the same in a terminal.
	Command string
	Problem error
	Reading int
	At      time.Time
	Of      any
}

// view fills a page.
type view func(*request, *page) error

// views are by their addresses.
var views = map[string]view{
	"/{$}":                        fleetView,
	"/causes":                     causesView,
	"/held":                       heldView,
	"/instances":                  instancesView,
	"/changes":                    changesView,
	"/events":                     eventsView,
	"/cluster/{namespace}/{name}": clusterView,
	"/stack/{namespace}/{name}":   stackView,
	"/values/{namespace}/{name}/{in}/{addon}": valuesView,
}

//go:embed pages.tmpl
var text string

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"age": func(t *metav1.Time) string {
		if t.IsZero() {
			return "-"
		}
		return duration.HumanDuration(time.Since(t.Time))
	},
	"at": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") },
	"to": func(parts ...string) (path string) {
		for _, part := range parts {
			path += "/" + url.PathEscape(part)
		}
		return path
	},
	"printed": func(page string, of any) (string, error) { // as in a terminal
		text := &strings.Builder{}
		err := (&printing.Printer{Out: text, Now: time.Now()}).Write(page, of)
		return text.String(), err
	},
	"value": (&printing.Printer{}).Value, "places": printing.Places,
	"number": printing.Number, "join": strings.Join,
	"pair": func(p *page, to, text string) map[string]string {
		return map[string]string{"Path": p.Path, "To": to, "Text": text}
	},
	"few":    func(names []string) string { return message.List(names, ", ", message.Few) },
	"stands": func(m rollout.Member) *metav1.Time { return &metav1.Time{Time: m.StandsSince()} },
	"seen":   func(e eventsv1.Event) time.Time { return observed.LastSeen(&e) },
	"kind": func(e eventsv1.Event) string {
		return map[string]string{"AddonStack": "stack", "ClusterAddon": "cluster"}[e.Regarding.Kind]
	},
	"micro": func(t metav1.MicroTime) *metav1.Time { return &metav1.Time{Time: t.Time} },
}).Parse(text))

// command returns a command line, with the namespace that is looked at.
func (q *request) command(line string) string {
	if q.namespace == "" {
		return "kubectl chandler " + line + " -A"
	}
	return "kubectl chandler " + line + " -n " + q.namespace
}

func causesView(q *request, p *page) error {
	p.View, p.Title, p.Command, p.Of = "causes", "Causes", q.command("status -o wide"), summary.StatusOf(q.fleet, false)
	return nil
}

func heldView(q *request, p *page) error {
	p.View, p.Title, p.Command, p.Of = "held", "Held removals", q.command("status"), summary.StatusOf(q.fleet, false).Held
	return nil
}

func instancesView(q *request, p *page) error {
	p.View, p.Title, p.Command, p.Of = "instances", "Instances", q.command("status"), q.fleet
	return nil
}

// clusterPage is a cluster with what changed there.
type clusterPage struct {
	*summary.Cluster
	*summary.Changes
}

// cluster returns the place in the fleet of the cluster that is asked for, -1 if it isn't there.
func (q *request) cluster() int {
	return slices.IndexFunc(q.fleet.Clusters, func(ca addonsv1.ClusterAddon) bool {
		return ca.Namespace == q.PathValue("namespace") && ca.Name == q.PathValue("name")
	})
}

func clusterView(q *request, p *page) error {
	namespace, name, at := q.PathValue("namespace"), q.PathValue("name"), q.cluster()
	if at < 0 {
		return errNotFound
	}
	p.View, p.Title, p.Command = "cluster", "Cluster "+name, "kubectl chandler why cluster/"+name+" -n "+namespace
	p.Of = clusterPage{summary.ClusterOf(q.fleet, &q.fleet.Clusters[at]), summary.ChangesOf(&observed.Fleet{Clusters: q.fleet.Clusters[at : at+1]}, time.Time{})}
	return nil
}

// mostChanges are shown, and as many events.
const mostChanges = 300

// changesView shows what the statuses tell, in the last hours that the query has as since.
func changesView(q *request, p *page) error {
	line, begin := "history", time.Time{}
	if since := q.FormValue("since"); since != "" {
		ago, err := time.ParseDuration(since)
		if err != nil {
			return fmt.Errorf("since: %w", err)
		}
		line, begin = "history --since "+ago.String(), p.At.Add(-ago)
	}
	is := summary.ChangesOf(q.fleet, begin)
	is.Changes = is.Changes[:min(len(is.Changes), mostChanges)]
	p.View, p.Title, p.Command, p.Of = "changes", "Changes", q.command(line), is
	return nil
}

func eventsView(q *request, p *page) error {
	events, err := observed.Events(q.Context(), q.client, observed.EventsAbout(q.namespace, ""))
	if err != nil {
		return err
	}
	slices.Reverse(events.Items)
	p.View, p.Title, p.Command, p.Of = "events", "Events", q.command("events"), events.Items[:min(len(events.Items), mostChanges)]
	return nil
}
