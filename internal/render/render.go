// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	sourcefailure "github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
)

// Release is what a chart sees as .Release.
type Release struct {
	Name      string
	Namespace string
	Revision  int
	// Upgrade is .Release.IsUpgrade; .Release.IsInstall is its opposite.
	Upgrade bool
}

// ChartRequest asks for the rendering of one chart.
type ChartRequest struct {
	Files   []artifact.File `cbor:"-"`
	Release Release
	// Values are the user's, of the types that JSON is decoded into; the chart's own defaults are
	// coalesced below them, as Helm does.
	Values map[string]any
	// SkipSchema leaves out the check of the values against the schemas of the chart.
	SkipSchema bool
	Facts      Facts
	// Generated are the values an earlier rendering generated; they are used again.
	Generated Generated
	// Sensitive are strings that must not appear in the text of an error, such as the values
	// read from Secrets. Those shorter than 4 bytes are ignored.
	Sensitive []string
	// Patches are applied to all objects: those of the templates, hooks and CRDs.
	Patches []addonsv1.Patch

	// Lookup answers what templates ask `lookup` for; nil: nothing is found. It is called
	// only if they ask for something.
	Lookup func(ctx context.Context, asked []Lookup) ([]LookupAnswer, error) `cbor:"-"`
	// Answers are those that Lookup gave.
	Answers []LookupAnswer
	// Live reads the objects of the Helm release that is taken over; nil if none is. It is
	// called only if the chart generates something.
	Live func(ctx context.Context) ([]*unstructured.Unstructured, error) `cbor:"-"`
	// LiveObjects are those that Live gave.
	LiveObjects []*unstructured.Unstructured
	// RenewLost makes values again that can't be read from the live objects. Else these are an error.
	RenewLost bool
}

// Result is a rendered chart, a kustomization that was built, or manifests.
type Result struct {
	Name, Version, AppVersion string
	// Metadata is Chart.yaml as Helm's release record keeps it (chart.metadata).
	Metadata json.RawMessage
	// CRDs are the objects of the crds/ folders, those of subcharts too.
	CRDs []*unstructured.Unstructured
	// Objects are the templates' objects without hooks, Lists flattened, in Helm's install order.
	Objects []*unstructured.Unstructured
	// Manifest is the same as text, byte for byte as Helm records it.
	Manifest string
	// Hooks are Helm's hooks without tests, in the order Helm runs those of one event.
	Hooks []Hook
	// Generated are the values this rendering generated or used again. Secret: never log.
	Generated Generated
	// Made says that some of Generated were made up by this rendering.
	Made bool
	// FactsUsed are the questions this rendering asked about the cluster.
	FactsUsed FactsUsed
}

// TemplateRequest asks for the rendering of one values template.
type TemplateRequest struct {
	// Name appears in messages, e.g. `spec.addons[0].valuesTemplate`.
	Name string
	Text string
	// Data has the roots Cluster, ControlPlane and InfraCluster, as objects are decoded.
	Data map[string]any
	// Strict makes a field without a value an error in place of the text "<no value>".
	Strict bool
}

// Chart renders a chart. A failure that a user can act on is an *[Error]; any other error
// is ctx's, or means that no worker could be started.
func (r *Renderer) Chart(ctx context.Context, req ChartRequest) (*Result, error) {
	if _, err := common.ParseKubeVersion(req.Facts.KubeVersion); err != nil {
		return nil, fmt.Errorf("facts: kubeVersion %q: %w", req.Facts.KubeVersion, err)
	}
	result, err := r.lookUp(ctx, &req)
	if err != nil || !result.Made || req.Live == nil {
		return result, err
	}
	if req.LiveObjects, err = req.Live(ctx); err != nil || len(req.LiveObjects) == 0 {
		return result, err
	}
	for _, live := range req.LiveObjects {
		req.Sensitive = append(slices.Clip(req.Sensitive), SecretsIn(live.Object)...)
	}
	return r.lookUp(ctx, &req)
}

// result has a request for objects answered.
func (r *Renderer) result(ctx context.Context, req *request) (*Result, error) {
	resp, err := r.do(ctx, req)
	return resultOf(resp, err)
}

// Template renders a values template in the syntax of the Cluster API Add-on Provider for
// Helm: text/template with sprig's functions, without env, expandenv and getHostByName. One that
// calls a function that returns something else each time is refused.
// Errors are as those of [Renderer.Chart].
func (r *Renderer) Template(ctx context.Context, req TemplateRequest) (string, error) {
	resp, err := r.do(ctx, &request{Template: &req})
	if err != nil {
		return "", err
	}
	if resp.Template == nil {
		return "", errProtocol
	}
	return *resp.Template, nil
}

// Open has a worker look into what comes from elsewhere. Errors of what is opened are of type
// [*failure.Error] of package artifact/failure.
func (r *Renderer) Open(ctx context.Context, job *opener.Job) (*opener.Opened, error) {
	resp, err := r.do(ctx, &request{Open: job})
	failed, ok := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return resp.Opened, nil
	case !ok:
		return nil, err
	case sourcefailure.IsReason(failed.Reason):
		return nil, sourcefailure.New(failed.Reason, "%w", failed.Err)
	case failed.Reason == ReasonOutOfMemory, failed.Reason == ReasonRenderTimeout, failed.Reason == ReasonOutputTooLarge:
		return nil, sourcefailure.New(sourcefailure.ArtifactTooLarge, "it can't be opened: %w", failed.Err)
	}
	return nil, sourcefailure.New(sourcefailure.ArtifactInvalid, "it can't be opened: %w", failed.Err)
}
