// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"maps"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/keptvalues"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/internal/render/patch"
)

// Render renders a chart, within a worker. It returns the lookups that the request has no answers for, also
// with an error. An error without a reason is of the stage that was entered last.
func Render(req *job.Chart, lim job.Limits, enter func(job.Stage)) (*job.Result, []job.Lookup, error) {
	lookups := newLookups(req.Answers)
	result, err := renderWith(lookups, req, lim, enter)
	return result, lookups.asked, err
}

// renderWith has the steps of Helm's install action, in the same order.
func renderWith(lookups *lookups, req *job.Chart, lim job.Limits, enter func(job.Stage)) (*job.Result, error) {
	enter(job.StageLoad)
	ch, err := load(req.Files)
	if err != nil {
		return nil, err
	}
	if err := checkInstallable(ch); err != nil {
		return nil, err
	}
	facts, err := newInquiry(req.Facts)
	if err != nil {
		return nil, err
	}
	if r := ch.Metadata.KubeVersion; r != "" && !facts.inRange(r) {
		return nil, failure.New(job.ReasonChartInvalid, "Chart.yaml: kubeVersion %q does not admit Kubernetes %s; take another version of the chart, or upgrade the cluster", r, req.Facts.KubeVersion)
	}

	enter(job.StageValues)
	values, err := coalesce(ch, req.Values)
	if err != nil {
		return nil, err
	}
	if !req.SkipSchema {
		enter(job.StageSchema)
		if err := checkSchemas(ch, values); err != nil {
			return nil, err
		}
	}

	result := &job.Result{Name: ch.Name(), Version: ch.Metadata.Version, AppVersion: ch.AppVersion()}
	if result.Chart, err = json.Marshal(&chart.Chart{Metadata: ch.Metadata, Values: ch.Values}); err != nil {
		return nil, err
	}
	enter(job.StageManifests)
	base := manifest.Reader{Limits: lim, Namespace: req.Release.Namespace, Lenient: true}
	crds, err := readCRDs(&base, ch.CRDObjects())
	if err != nil {
		return nil, err
	}
	facts.bring(crds)
	generator := keptvalues.NewGenerator(req.Generated, lim.GeneratedBytes)
	defer func() { req.Sensitive = append(req.Sensitive, generator.Secrets()...) }() // for what is said of an error
	generator.MarkTemplates(ch)
	var reader *manifest.Reader
	round := func() ([]manifest.Document, error) {
		enter(job.StageTemplates)
		files, err := execute(ch, values, req.Release, facts, generator, lookups)
		if err != nil {
			return nil, err
		}
		result.Notes = notesOf(ch, files)
		enter(job.StageManifests)
		counted := base
		reader = &counted
		return readTemplates(reader, files)
	}
	documents, err := generator.RenderUntilStable(round, req.Release.Namespace)
	if err != nil {
		return nil, err
	}
	if len(req.LiveObjects) > 0 {
		if documents, err = generator.TakeOver(documents, req.LiveObjects, req.Release.Namespace, req.RenewLost, round); err != nil {
			return nil, err
		}
	}
	if documents, crds, err = patch.Apply(reader, req.Edits, documents, crds, enter); err != nil {
		return nil, err
	}
	if documents, result.Hooks, err = manifest.SplitHooks(documents); err != nil {
		return nil, err
	}
	if err := reader.CollectInto(result, documents); err != nil {
		return nil, err
	}
	result.CRDs = crds
	result.Generated, result.FactsUsed = generator.Used(), facts.answers()
	result.Made = generator.MadeSome()
	return result, nil
}

// coalesce applies conditions, tags and import-values of the dependencies, and puts the
// user's values over the chart's.
func coalesce(ch *chart.Chart, user map[string]any) (common.Values, error) {
	if user == nil {
		user = map[string]any{}
	}
	if err := chartutil.ProcessDependencies(ch, user); err != nil {
		return nil, err
	}
	return util.CoalesceValues(ch, user)
}

// execute runs the templates; the result maps their paths to what they wrote. Names are not
// resolved, because the engine is given no DNS.
func execute(ch *chart.Chart, values common.Values, rel job.Release, facts *inquiry, generator *keptvalues.Generator, lookups *lookups) (map[string]string, error) {
	e := engine.Engine{CustomTemplateFuncs: generator.Funcs()}
	maps.Copy(e.CustomTemplateFuncs, generator.MarkFuncs())
	e.CustomTemplateFuncs["lookup"] = lookups.find
	files, err := e.Render(ch, common.Values{
		"Chart":        ch.Metadata,
		"Capabilities": &capabilities{facts},
		"Release": map[string]any{
			"Name":      rel.Name,
			"Namespace": rel.Namespace,
			"IsUpgrade": rel.Upgrade,
			"IsInstall": !rel.Upgrade,
			"Revision":  rel.Revision,
			"Service":   "Helm",
		},
		"Values": values,
	})
	if full := generator.Err(); full != nil {
		return nil, full
	}
	if err != nil {
		return nil, failure.New(job.ReasonTemplateFailed, "%s; correct the add-on's values, or the chart", err.Error())
	}
	return files, nil
}
