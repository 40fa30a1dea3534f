// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"

	"github.com/cluster-chandler/chandler/internal/artifact"
)

// visit identifies the address together with how it is asked: two references with
// the same may share the answer, in which namespaces ever they are.
func (r Reference) visit() string {
	address := r.Address()
	if at := r.Chart.HTTP; at != nil {
		address = at.URL + "@" + at.Digest
	}
	visit := address + " over " + r.Base().Scheme + r.Kind.Suffix()
	if r.PlainHTTP() && r.Base().Scheme != "http" { // what it refers to may come without TLS
		visit += " or http"
	}
	if at := r.Chart.GitHub; at != nil && at.APIURL != "" {
		visit += " by " + at.APIURL
	}
	if secret := r.SecretRef(); secret != nil {
		visit += " with Secret " + r.Namespace + "/" + secret.Name
	}
	return visit
}

// Source identifies where the reference's versions come from, and how it is asked.
func (r Reference) Source() string {
	r = r.WithDigest("")
	r.Chart.Version = ""
	if at := r.Chart.GitHub; at != nil {
		return r.String() + " with tags " + at.TagPrefix
	}
	return r.String()
}

// DigestQuestion is the name of what is asked to resolve the reference. Who wants another
// signature has a question of his own: what he refuses may be good for others.
func (r Reference) DigestQuestion() string {
	question := "digest of " + r.String()
	if r.Chart.Verify == nil {
		return question
	}
	policy, err := json.Marshal(r.Chart.Verify)
	if err != nil { // it has nothing that isn't plain
		return question
	}
	return question + " for " + r.Namespace + ", verified by " + artifact.DigestOf(policy) // which may be long, while many questions are remembered
}
