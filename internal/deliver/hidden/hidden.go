// SPDX-License-Identifier: Apache-2.0

// Package hidden has the secrets of an add-on, and keeps messages free of them.
package hidden

import (
	"cmp"
	"slices"
	"sync"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

const (
	// leastRendered is how long a value of a rendered Secret has to be to be hidden, in bytes. Shorter
	// ones are mostly words such as admin, which names of objects have, too.
	leastRendered = 8
	// maxSensitive is how much a record keeps of strings that came from Secrets, in bytes.
	maxSensitive = 64 << 10
	// maxQuoted bounds what is looked through of all that a delivery quotes, in bytes times the secrets.
	maxQuoted = 64 << 20
)

// Secrets are the secrets of an add-on, which all that people read of it is kept free of. They come from the caller,
// from what lookup finds, and from the records that were read or made. It is safe for concurrent use.
type Secrets struct {
	scope *object.Scope

	mu      sync.Mutex
	known   []string
	records []*record.Record
	secrets []string // of all these, nil until they are needed
	quoted  int      // of maxQuoted
}

// New returns the secrets of the add-on with the scope, of which these are known.
func New(scope *object.Scope, known []string) *Secrets {
	return &Secrets{scope: scope, known: slices.Clone(known)}
}

// Known returns the secrets that came from the caller, and from what lookup finds.
func (h *Secrets) Known() []string { return h.known }

// All returns all secrets that are known by now.
func (h *Secrets) All() []string {
	secrets, _ := h.secretsFor("")
	return secrets
}

// Learn has more secrets hidden.
func (h *Secrets) Learn(secrets ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.secrets = append(h.known, secrets...), nil
}

// LearnRecord has the secrets of a record hidden.
func (h *Secrets) LearnRecord(rec *record.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secrets = nil
	if !slices.Contains(h.records, rec) {
		h.records = append(h.records, rec)
	}
}

// In returns a whole message without the secrets.
func (h *Secrets) In(text string) string {
	secrets, _ := h.secretsFor(text)
	return message.Redact(text, secrets)
}

// InWords returns what is quoted, of many objects maybe, without the secrets. It is to be called before the words are
// shortened. If that takes too much work, the later ones are left out.
func (h *Secrets) InWords(text string) string {
	secrets, work := h.secretsFor(text)
	h.mu.Lock()
	h.quoted += work
	tooMuch := h.quoted > maxQuoted
	h.mu.Unlock()
	if tooMuch && text != "" {
		return message.Redacted
	}
	return message.Redact(text, secrets)
}

// secretsFor returns what to look for in a text, and how much work that is. The name and the namespace of the release
// stay, which all messages have.
func (h *Secrets) secretsFor(text string) (secrets []string, work int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.secrets == nil {
		h.secrets = slices.DeleteFunc(h.all(), func(secret string) bool {
			return secret == h.scope.Release.Name || secret == h.scope.Release.Namespace
		})
	}
	return h.secrets, len(text) * len(h.secrets)
}

func (h *Secrets) all() []string {
	all := slices.Clone(h.known)
	for _, rec := range h.records {
		all = append(all, secretsOf(rec)...)
	}
	return all
}

// KeepIn notes in a new record those secrets that nothing else in it tells. They are of the rendering, and of the
// records before it, whose objects may be in the cluster until the revision is deployed.
func (h *Secrets) KeepIn(rec *record.Record) {
	rec.State.Sensitive = sensitive(rec.State.Sensitive, secretsIn(rec))
	rec.State.PreviousSensitive = sensitive(h.all(), secretsOf(rec))
	h.LearnRecord(rec)
}

// sensitive returns what is in strings and not in others. The longest are left out where these take too much:
// hardly a message has all of one.
func sensitive(strings, others []string) []string {
	slices.SortFunc(strings, func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) })
	slices.Sort(others)
	var kept []string
	room := maxSensitive
	for _, s := range slices.Compact(strings) {
		if _, known := slices.BinarySearch(others, s); known || !message.Hides(s) {
			continue
		}
		if room -= len(s); room < 0 {
			break
		}
		kept = append(kept, s)
	}
	return kept
}

// secretsOf returns the secrets that a record tells of.
func secretsOf(rec *record.Record) []string {
	if rec.State == nil {
		return secretsIn(rec)
	}
	return slices.Concat(rec.State.Sensitive, rec.State.PreviousSensitive, secretsIn(rec))
}

// secretsIn returns what a record's rendering generated, and what its Secrets have.
func secretsIn(rec *record.Record) []string {
	var all []string
	if rec.State != nil {
		all = job.Generated(rec.State.Generated).Secrets()
	}
	for _, o := range rec.Secrets() {
		for _, value := range job.SecretsIn(o.Object) {
			if len(value) >= leastRendered {
				all = append(all, value)
			}
		}
	}
	return all
}
