// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
)

// hidden are the secrets of an add-on, which all that people read of it is kept free of. They come from the caller,
// from what lookup finds, and from the records that were read or made. It is safe for concurrent use.
type hidden struct {
	release Release

	mu      sync.Mutex
	known   []string
	records []*record.Record
	quoted  *message.Redactor // of all these, nil until it is needed
}

func (h *hidden) learn(secrets ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.quoted = append(h.known, secrets...), nil
}

func (h *hidden) learnRecord(rec *record.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.records, rec) {
		h.records, h.quoted = append(h.records, rec), nil
	}
}

// in returns a whole message without the secrets.
func (h *hidden) in(text string) string {
	var redactor *message.Redactor
	return h.redact(text, &redactor)
}

// inWords returns what is quoted, of many objects maybe, without the secrets. It is to be called before the words are
// shortened. If that takes too much work, the later ones are left out.
func (h *hidden) inWords(text string) string { return h.redact(text, &h.quoted) }

// redact returns a text without the secrets, by a redactor that is made if there is none yet. The name and the namespace
// of the release stay, which all messages have.
func (h *hidden) redact(text string, by **message.Redactor) string {
	if text == "" {
		return ""
	}
	h.mu.Lock()
	if *by == nil {
		*by = message.NewRedactor(slices.DeleteFunc(h.all(), func(secret string) bool {
			return secret == h.release.Name || secret == h.release.Namespace
		}))
	}
	redactor := *by
	h.mu.Unlock()
	return redactor.Redact(text)
}

func (h *hidden) all() []string {
	all := slices.Clone(h.known)
	for _, rec := range h.records {
		all = append(all, secretsOf(rec)...)
	}
	return all
}

// keepIn notes in a new record those secrets that nothing else in it tells. They are of the rendering, and of the
// records before it, whose objects may be in the cluster until the revision is deployed.
func (h *hidden) keepIn(rec *record.Record) {
	rec.State.Sensitive = sensitive(rec.State.Sensitive, secretsIn(rec))
	rec.State.PreviousSensitive = sensitive(h.all(), secretsOf(rec))
	h.learnRecord(rec)
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

// conceal takes the secrets out of an answer of the API server, which quotes what it refuses.
func (h *hidden) conceal(err error) error {
	status, answered := object.AnswerOf(err)
	if !answered {
		return err
	}
	status.Message = h.inWords(status.Message)
	for i := range status.Details.Causes {
		cause := &status.Details.Causes[i]
		cause.Message = h.inWords(cause.Message)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// concealed is an error with other words.
type concealed struct {
	words string
	err   error
}

func (c *concealed) Error() string { return c.words }

// Unwrap returns what tells the meaning of the error.
func (c *concealed) Unwrap() error { return c.err }

// concealAll takes the secrets out of an error that is returned, and out of the answer that it wraps.
func (h *hidden) concealAll(err error) error {
	if _, isOutcome := errors.AsType[*stopped](err); err == nil || isOutcome {
		return err // whose message is hidden already
	}
	if words := h.in(err.Error()); words != err.Error() {
		return &concealed{words: words, err: h.conceal(err)}
	}
	return err
}

// failureOf returns what an error about an object means, nil for none. It tells nothing that comes
// from Secrets.
func (r *call) failureOf(key record.ObjectKey, err error) *object.Failure {
	if f, ok := errors.AsType[*object.Failure](err); ok || err == nil {
		return f
	}
	return object.Classify(r.hidden.conceal(err), key, r.scope.Defines(schema.GroupKind{Group: key.Group, Kind: key.Kind}))
}
