// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"maps"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
)

// renderChart renders a chart, within a worker. It returns the lookups that the request has no answers for, also
// with an error.
func renderChart(req *ChartRequest, lim limits, enter func(stage)) (*Result, []Lookup, error) {
	lookups := newLookups(req.Answers)
	result, err := renderWith(lookups, req, lim, enter)
	return result, lookups.asked, err
}

// renderWith has the steps of Helm's install action, in the same order.
func renderWith(lookups *lookups, req *ChartRequest, lim limits, enter func(stage)) (*Result, error) {
	enter(stageLoad)
	ch, err := loadChart(req.Files)
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
		return nil, failf(ReasonChartInvalid, "Chart.yaml: kubeVersion %q does not admit Kubernetes %s; take another version of the chart, or upgrade the cluster", r, req.Facts.KubeVersion)
	}

	enter(stageValues)
	values, err := coalesce(ch, req.Values)
	if err != nil {
		return nil, err
	}
	if !req.SkipSchema {
		enter(stageSchema)
		if err := checkSchemas(ch, values); err != nil {
			return nil, err
		}
	}

	result := &Result{Name: ch.Name(), Version: ch.Metadata.Version, AppVersion: ch.AppVersion()}
	if result.Metadata, err = json.Marshal(ch.Metadata); err != nil {
		return nil, &Error{Reason: ReasonChartInvalid, Err: err}
	}
	enter(stageManifests)
	base := manifestReader{limits: lim, namespace: req.Release.Namespace, lenient: true}
	crds, err := readCRDs(&base, ch.CRDObjects())
	if err != nil {
		return nil, err
	}
	facts.bring(crds)
	memory := newGenerator(req.Generated, lim.GeneratedBytes)
	defer func() { req.Sensitive = append(req.Sensitive, memory.secrets()...) }() // for what is said of an error
	memory.follow(ch)
	var reader *manifestReader
	round := func() ([]document, error) {
		enter(stageTemplates)
		files, err := execute(ch, values, req.Release, facts, memory, lookups)
		if err != nil {
			return nil, err
		}
		enter(stageManifests)
		counted := base
		reader = &counted
		return readTemplates(reader, files)
	}
	documents, err := memory.settle(round, req.Release.Namespace)
	if err != nil {
		return nil, err
	}
	if len(req.LiveObjects) > 0 {
		if documents, err = memory.takeOver(documents, req.LiveObjects, req.Release.Namespace, req.RenewLost, round); err != nil {
			return nil, err
		}
	}
	if len(req.Patches) > 0 {
		enter(stagePatches)
		if documents, crds, err = applyPatches(reader, req.Patches, documents, crds); err != nil {
			return nil, err
		}
	}
	if documents, result.Hooks, err = splitHooks(documents); err != nil {
		return nil, err
	}
	if err := reader.collectInto(result, documents); err != nil {
		return nil, err
	}
	result.CRDs = crds
	result.Generated, result.FactsUsed = memory.used(), facts.answers()
	result.Made = memory.madeSome()
	return result, nil
}

// coalesce applies conditions, tags and import-values of the dependencies, and puts the
// user's values over the chart's.
func coalesce(ch *chart.Chart, user map[string]any) (common.Values, error) {
	if user == nil {
		user = map[string]any{}
	}
	if err := chartutil.ProcessDependencies(ch, user); err != nil {
		return nil, &Error{Reason: ReasonChartInvalid, Err: err}
	}
	values, err := util.CoalesceValues(ch, user)
	if err != nil {
		return nil, &Error{Reason: ReasonChartInvalid, Err: err}
	}
	return values, nil
}

// execute runs the templates; the result maps their paths to what they wrote. Names are not
// resolved, because the engine is given no DNS.
func execute(ch *chart.Chart, values common.Values, rel Release, facts *inquiry, memory *generator, lookups *lookups) (map[string]string, error) {
	e := engine.Engine{CustomTemplateFuncs: memory.funcs()}
	maps.Copy(e.CustomTemplateFuncs, memory.followFuncs())
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
	if full := memory.err(); full != nil {
		return nil, full
	}
	if err != nil {
		return nil, &Error{Reason: ReasonTemplateFailed, Err: errors.New(err.Error())}
	}
	return files, nil
}
