// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// kindOfFailure says what to do about an error of the API server.
type kindOfFailure int

const (
	// transient: not about the object. The caller retries.
	transient kindOfFailure = iota
	// deferred: something that may come by itself, so it isn't a failure yet.
	deferred
	// rejected: somebody has to change something.
	rejected
)

// failure is an object that couldn't be applied or deleted.
type failure struct {
	kind    kindOfFailure
	reason  string
	message string // begins with the object
	err     error
}

func (f *failure) Error() string { return f.message }

// Unwrap returns what the API server, or the connection to it, said.
func (f *failure) Unwrap() error { return f.err }

// maxWords bounds what is quoted of the API server, in bytes.
const maxWords = 300

// classify tells what an error about an object means. ownKind says that a CRD of
// this add-on defines the object's kind.
func classify(err error, key record.ObjectKey, ownKind bool) *failure {
	kind, reason, meaning := meaningOf(err, key, ownKind)
	return &failure{
		kind: kind, reason: reason, message: fmt.Sprintf("%s: %s", key, meaning),
		err: fmt.Errorf("%s: %w", key, redact(err, key)),
	}
}

func meaningOf(err error, key record.ObjectKey, ownKind bool) (kind kindOfFailure, reason, meaning string) {
	status, answered := answerOf(err)
	words := wordsOf(status, key)
	switch {
	case isNoMatch(err) && ownKind, apierrors.IsNotFound(err) && ownKind && status.Details.Kind != "namespaces":
		// Its CRD is established, yet discovery is a moment behind.
		return deferred, ReasonWaitingForCRDs, "the cluster doesn't serve this kind yet"
	case isNoMatch(err):
		return rejected, ReasonKindMissing, fmt.Sprintf(
			"the cluster has no kind %s in API group %q. Install its CustomResourceDefinition first, as with an add-on that this one depends on",
			key.Kind, key.Group)
	case !answered && unaskable(key) != "":
		return rejected, ReasonObjectRejected, unaskable(key)
	case !answered:
		return transient, "", err.Error()
	case malformed(status):
		return rejected, ReasonObjectRejected, words
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return deferred, ReasonNamespaceMissing, fmt.Sprintf("namespace %s is being deleted", key.Namespace)
	case webhookUnavailable(status):
		return deferred, ReasonWaitingForWebhook, words
	case apierrors.IsUnauthorized(err), apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err),
		apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), status.Code >= http.StatusInternalServerError,
		apierrors.IsConflict(err) && conflicts(status) == "":
		return transient, "", words
	case apierrors.IsForbidden(err):
		return rejected, ReasonForbidden, words
	case apierrors.IsConflict(err):
		return rejected, ReasonFieldConflict, conflicts(status) +
			". Set " + adoptionPolicyField + " to Adopt to take them over, or leave the fields out of its values"
	case apierrors.IsNotFound(err) && status.Details.Kind == "namespaces":
		return rejected, ReasonNamespaceMissing, fmt.Sprintf("namespace %s doesn't exist", key.Namespace)
	case immutable(status):
		return rejected, ReasonImmutableField, words + keepOrRecreate
	default:
		return rejected, ReasonObjectRejected, words
	}
}

// keepOrRecreate is the way out of a change of a field that can't be changed.
const keepOrRecreate = ". Keep the value as it was. If nothing is lost with the object, set the add-on's immutableFieldPolicy to Recreate"

// madeOtherwise turns the failure to repair an object. The add-on has changed no field of it: somebody made the
// object again with another value of a field that can't be changed.
func (f *failure) madeOtherwise() {
	if f != nil && f.reason == ReasonImmutableField {
		f.message = strings.TrimSuffix(f.message, keepOrRecreate) +
			". Somebody made the object again with another value. Delete it if nothing is lost with it: then it is made as the add-on has it"
	}
}

// unaskable says why no API server can be asked about an object; "" if one can.
func unaskable(key record.ObjectKey) string {
	if faults := content.IsPathSegmentName(key.Name); len(faults) > 0 {
		return fmt.Sprintf("metadata.name %s; correct it", faults[0])
	}
	if faults := content.IsPathSegmentName(key.Namespace); len(faults) > 0 {
		return fmt.Sprintf("metadata.namespace %s; correct it", faults[0])
	}
	return ""
}

// webhookUnavailable says that the API server couldn't call a webhook (its texts:
// k8s.io/apiserver, webhook/errors/statuserror.go and conversion/webhook_converter.go).
func webhookUnavailable(s metav1.Status) bool {
	return s.Code == http.StatusInternalServerError &&
		(strings.Contains(s.Message, "failed calling webhook") || strings.Contains(s.Message, "conversion webhook for"))
}

// malformed says that an object can't be converted to its type. The API server
// answers that with code 500 and no reason (managedfields, structuredmerge.go).
func malformed(s metav1.Status) bool {
	return s.Code == http.StatusInternalServerError && s.Reason == "" &&
		(strings.HasPrefix(s.Message, "failed to create typed ") || strings.HasPrefix(s.Message, "failed to convert new object"))
}

// safeWords are those of the server about a malformed object that quote no value.
var safeWords = regexp.MustCompile(`\.[^ :]+: expected [a-z]+|\.[^ :]+: field not declared in schema|illegal base64 data at input byte [0-9]+`)

// immutable says that all that is wrong is a field that can't be changed.
func immutable(s metav1.Status) bool {
	return s.Reason == metav1.StatusReasonInvalid && len(s.Details.Causes) > 0 && !slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return !immutableWords.MatchString(c.Message)
	})
}

// immutableWords are those of the API server about a field that can't be changed.
var immutableWords = regexp.MustCompile(`immutable|may not be changed|may not change once set|cannot change roleRef|` +
	`updates to statefulset spec for fields other than|pod updates may not change fields other than|^Forbidden: updates to .* are forbidden`)

// conflicts names the fields that another manager owns, and that manager.
func conflicts(s metav1.Status) string {
	var texts []string
	for _, c := range s.Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			texts = append(texts, c.Field+": "+c.Message)
		}
	}
	slices.Sort(texts)
	return message.Shorten(firstOf(texts), maxWords)
}

// wordsOf is what the server said. Of a Secret only the fields are told, as the
// server quotes values.
func wordsOf(s metav1.Status, key record.ObjectKey) string {
	if key.Kind != "Secret" || key.Group != "" {
		return message.Shorten(s.Message, maxWords)
	}
	text := string(s.Reason)
	if text == "" {
		text = http.StatusText(int(s.Code))
	}
	if malformed(s) {
		return "it is malformed. " + safeWords.FindString(s.Message)
	}
	var fields []string
	for _, c := range s.Details.Causes {
		if c.Field != "" {
			fields = append(fields, c.Field)
		}
	}
	slices.Sort(fields)
	if fields = slices.Compact(fields); len(fields) > 0 {
		text += " (" + firstOf(fields) + ")"
	}
	return message.Shorten(text, maxWords)
}

// redact drops the words about a Secret from an error that is to be returned.
func redact(err error, key record.ObjectKey) error {
	status, answered := answerOf(err)
	if key.Kind != "Secret" || key.Group != "" || !answered {
		return err
	}
	status.Message = wordsOf(status, key)
	// Its causes quote values, too.
	status.Details = &metav1.StatusDetails{Name: status.Details.Name, RetryAfterSeconds: status.Details.RetryAfterSeconds}
	return &apierrors.StatusError{ErrStatus: status}
}

// failureOf returns what an error about an object means, nil for none. It tells nothing that comes
// from Secrets.
func (r *run) failureOf(key record.ObjectKey, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok || err == nil {
		return f
	}
	return classify(r.conceal(err), key, r.scope.defines(schema.GroupKind{Group: key.Group, Kind: key.Kind}))
}

// reject returns the failure of an object that somebody has to change something for.
func reject(key record.ObjectKey, reason, message string) error {
	return &failure{kind: rejected, reason: reason, message: fmt.Sprintf("%s: %s", key, message)}
}

// postpone returns the failure of an object that is gone, or there, after a while.
func postpone(key record.ObjectKey, message string) error {
	return &failure{kind: deferred, reason: ReasonWaitingForDeletion, message: fmt.Sprintf("%s: %s", key, message)}
}

// failures are those of one pass over the objects, in the objects' order.
type failures []*failure

// transient returns an error of those that are to be retried, nil if there is none.
func (f failures) transient() error {
	for _, each := range f {
		if each.kind == transient {
			return each.err
		}
	}
	return nil
}

// first returns the reason of the first of a kind, and the messages of the first few.
func (f failures) first(kind kindOfFailure) (reason, message string) {
	var messages []string
	for _, each := range f {
		if each.kind != kind {
			continue
		}
		if reason == "" {
			reason = each.reason
		}
		messages = append(messages, each.message)
	}
	return reason, firstOf(messages)
}

// answerOf returns what the API server answered; false if the error is none of its answers.
func answerOf(err error) (metav1.Status, bool) {
	api := apierrors.APIStatus(nil)
	answered := errors.As(err, &api)
	status := metav1.Status{}
	if answered {
		status = api.Status()
	}
	if status.Details = status.Details.DeepCopy(); status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	return status, answered
}

// isAbout says that the server found a field wrong.
func isAbout(err error, field string) bool {
	status, _ := answerOf(err)
	return slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
}

// isGone says that an object isn't there, or its kind isn't.
func isGone(err error) bool { return apierrors.IsNotFound(err) || isNoMatch(err) }
