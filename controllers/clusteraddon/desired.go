// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render"
)

// settled says whether the newest record is deployed, of just these inputs, and
// has no certificate that is to be renewed.
func (q *request) settled(ctx context.Context, in *inputs, record deliver.Summary) (bool, error) {
	renew := !record.RenewAt.IsZero() && !q.now.Before(record.RenewAt)
	if record.Status != deliver.StatusDeployed || renew {
		return false, nil
	}
	digest, err := q.digestNow(ctx, in, record.FactsUsed)
	if err != nil {
		return false, err
	}
	return record.Settled(digest), nil
}

// digestNow is the digest of the inputs, with the questions that the record's
// rendering asked about the cluster. While these would get the same answers, it
// is the record's digest if no other input changed. If not, it is of all that is
// known of the cluster now.
func (q *request) digestNow(ctx context.Context, in *inputs, factsUsed string) (string, error) {
	var asked render.FactsUsed
	if factsUsed == "" {
		return in.digest(asked)
	}
	if err := json.Unmarshal([]byte(factsUsed), &asked); err != nil {
		return "", fmt.Errorf("facts in the record of release %s: %w", in.release.Name, err)
	}
	if reflect.ValueOf(asked).IsZero() {
		return in.digest(asked)
	}
	q.kinds.ensure(q.workload.name, q.workload.conn, asked)
	facts, missing, err := q.workload.facts(ctx)
	if err != nil {
		return "", err
	}
	if stillHolds(asked, facts, missing) {
		return in.digest(asked)
	}
	all, err := hash(facts)
	if err != nil {
		return "", err
	}
	return in.digest(render.FactsUsed{APIVersions: all})
}

// stillHolds says whether the questions would get the same answers now. Of all API versions
// that can't be told while some can't be discovered.
func stillHolds(asked render.FactsUsed, facts render.Facts, missing []string) bool {
	return asked.APIVersions != "" && len(missing) > 0 || asked.Holds(withFormer(facts, missing, asked))
}

// withFormer adds what was there when it was asked for, and is of a group version
// that can't be discovered now: that isn't gone.
func withFormer(facts render.Facts, missing []string, asked render.FactsUsed) render.Facts {
	for apiVersion, had := range asked.Has {
		if had && slices.ContainsFunc(missing, func(gv string) bool { return apiVersion == gv || strings.HasPrefix(apiVersion, gv+"/") }) {
			facts.APIVersions = append(slices.Clip(facts.APIVersions), apiVersion)
		}
	}
	return facts
}

// desired is the add-on as the deliverer takes it.
func (q *request) desired(a *addon, in *inputs) deliver.Desired {
	return deliver.Desired{
		Release:          in.release,
		Owner:            ownerOf(q.ca),
		OwnerUID:         q.ca.UID,
		Artifact:         in.artifact,
		ArtifactVersion:  in.version,
		Stack:            a.stack,
		Spec:             specDigest(a),
		DependsOn:        a.DependsOn,
		Leaving:          q.leavingReleases(),
		CreateNamespace:  ptr.Deref(a.CreateNamespace, true),
		Adoption:         cmp.Or(a.AdoptionPolicy, addonsv1.AdoptionPolicyFail),
		DeletionPolicy:   a.deletionPolicy,
		ProgressDeadline: progressDeadline(a),
		Readiness:        a.Readiness,
		Postcondition:    q.postcondition(a),
		Postconditions:   postconditionsDigest(a),
		Sensitive:        in.secrets,
		WatchFilter:      q.ca.Labels[clusterv1.WatchLabel],
		Digest: func(ctx context.Context, factsUsed string) (string, error) {
			return q.digestNow(ctx, in, factsUsed)
		},
		Render: func(ctx context.Context, r deliver.RenderInput) (*deliver.Rendering, error) {
			return q.render(ctx, a, in, r)
		},
	}
}

func progressDeadline(a *addon) time.Duration {
	return time.Duration(ptr.Deref(a.ProgressDeadlineSeconds, addonsv1.DefaultProgressDeadlineSeconds)) * time.Second
}

// render makes the add-on's objects. It is called only when something changed.
func (q *request) render(ctx context.Context, a *addon, in *inputs, r deliver.RenderInput) (*deliver.Rendering, error) {
	artifact, err := q.Sources.Fetch(ctx, in.chart, in.artifact)
	if err != nil {
		return nil, ofAddon(a, err)
	}
	result, err := q.build(ctx, in, artifact.Files, r)
	if err != nil {
		return nil, ofAddon(a, err)
	}
	digest, err := in.digest(result.FactsUsed)
	if err != nil {
		return nil, err
	}
	factsUsed, err := json.Marshal(result.FactsUsed)
	if err != nil {
		return nil, fmt.Errorf("facts of release %s: %w", in.release.Name, err)
	}
	return &deliver.Rendering{Result: *result, Digest: digest, FactsUsed: string(factsUsed), Values: in.values}, nil
}
