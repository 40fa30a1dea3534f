// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Reasons of a Failure. They are stable API.
const (
	// ReasonWaitingForCRDs: CustomResourceDefinitions aren't established yet.
	ReasonWaitingForCRDs = "WaitingForCRDs"
	// ReasonWaitingForDeletion: objects aren't gone yet.
	ReasonWaitingForDeletion = "WaitingForDeletion"
	// ReasonWaitingForWebhook: the API server couldn't call an admission or
	// conversion webhook, which this add-on may be about to bring.
	ReasonWaitingForWebhook = "WaitingForWebhook"
	// ReasonNamespaceMissing: the release's namespace isn't there, or is going away.
	ReasonNamespaceMissing = "NamespaceMissing"
	// ReasonObjectExists: an object is there and isn't this add-on's.
	ReasonObjectExists = "ObjectExists"
	// ReasonOwnedByOther: an object belongs to another add-on.
	ReasonOwnedByOther = "OwnedByOther"
	// ReasonFieldConflict: somebody else owns a field of an object and set it differently.
	ReasonFieldConflict = "FieldConflict"
	// ReasonImmutableField: a change of a field that can't be changed.
	ReasonImmutableField = "ImmutableField"
	// ReasonKindMissing: the cluster doesn't know an object's kind.
	ReasonKindMissing = "KindMissing"
	// ReasonForbidden: Chandler's user in the cluster may not do this.
	ReasonForbidden = "Forbidden"
	// ReasonObjectRejected: the API server, or a webhook, refused an object.
	ReasonObjectRejected = "ObjectRejected"
)

// FailureKind says what to do about an error of the API server.
type FailureKind int

const (
	// Transient: not about the object. The caller retries.
	Transient FailureKind = iota
	// Deferred: something that may come by itself, so it isn't a failure yet.
	Deferred
	// Rejected: somebody has to change something.
	Rejected
)

// Failure is an object that couldn't be applied or deleted.
type Failure struct {
	Kind    FailureKind
	Reason  string
	Message string // begins with the object
	err     error
}

func (f *Failure) Error() string { return f.Message }

// Unwrap returns what the API server, or the connection to it, said.
func (f *Failure) Unwrap() error { return f.err }

// MaxWords bounds what is quoted of the API server, in bytes.
const MaxWords = 300

// Classify tells what an error about an object means. ownKind says that a CRD of
// this add-on defines the object's kind.
func Classify(err error, key record.ObjectKey, ownKind bool) *Failure {
	kind, reason, meaning := meaningOf(err, key, ownKind)
	return &Failure{
		Kind: kind, Reason: reason, Message: fmt.Sprintf("%s: %s", key, meaning),
		err: fmt.Errorf("%s: %w", key, Redact(err, key)),
	}
}

func meaningOf(err error, key record.ObjectKey, ownKind bool) (kind FailureKind, reason, meaning string) {
	status, answered := AnswerOf(err)
	words := wordsOf(status, key)
	switch {
	case meta.IsNoMatchError(err) && ownKind, apierrors.IsNotFound(err) && ownKind && status.Details.Kind != "namespaces":
		// Its CRD is established, yet discovery is a moment behind.
		return Deferred, ReasonWaitingForCRDs, "the cluster doesn't serve this kind yet"
	case meta.IsNoMatchError(err):
		return Rejected, ReasonKindMissing, fmt.Sprintf(
			"the cluster has no kind %s in API group %q. Install its CustomResourceDefinition first, as with an add-on that this one depends on",
			key.Kind, key.Group)
	case !answered && unaskable(key) != "":
		return Rejected, ReasonObjectRejected, unaskable(key)
	case !answered:
		return Transient, "", err.Error()
	case malformed(status):
		return Rejected, ReasonObjectRejected, words
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Deferred, ReasonNamespaceMissing, fmt.Sprintf("namespace %s is being deleted", key.Namespace)
	case WebhookUnavailable(status):
		return Deferred, ReasonWaitingForWebhook, words + ". Check what serves this webhook"
	case apierrors.IsUnauthorized(err), apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err),
		apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), status.Code >= http.StatusInternalServerError,
		apierrors.IsConflict(err) && conflicts(status) == "":
		return Transient, "", words
	case apierrors.IsForbidden(err):
		return Rejected, ReasonForbidden, words
	case apierrors.IsConflict(err):
		return Rejected, ReasonFieldConflict, conflicts(status) +
			". Set " + AdoptionPolicyField + " to Adopt to take them over, or leave the fields out of its values"
	case apierrors.IsNotFound(err) && status.Details.Kind == "namespaces":
		return Rejected, ReasonNamespaceMissing, fmt.Sprintf("namespace %s doesn't exist", key.Namespace)
	case immutable(status):
		return Rejected, ReasonImmutableField, words + keepOrRecreate
	default:
		return Rejected, ReasonObjectRejected, words
	}
}

// keepOrRecreate is the way out of a change of a field that can't be changed.
const keepOrRecreate = ". Keep the value as it was. If nothing is lost with the object, set the add-on's immutableFieldPolicy to Recreate"

// OfRepair has the message of a failure to repair an object say the way out. The add-on has changed no field of it. Others
// made the object again with another value of a field that can't be changed, or an item that doesn't fit beside the add-on's.
func (f *Failure) OfRepair() {
	switch {
	case f == nil:
	case f.Reason == ReasonImmutableField:
		f.Message = strings.TrimSuffix(f.Message, keepOrRecreate) +
			". Somebody made the object again with another value. Delete it if nothing is lost with it: then it is made as the add-on has it"
	case f.Reason == ReasonObjectRejected:
		f.Message += ". So it isn't repaired. If others changed an item of a list, as the port of a Service, undo that"
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

// WebhookUnavailable says that the API server couldn't call a webhook (its texts:
// k8s.io/apiserver, webhook/errors/statuserror.go and conversion/webhook_converter.go).
func WebhookUnavailable(s metav1.Status) bool {
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
	return message.Shorten(message.FirstFew(texts), MaxWords)
}

// wordsOf returns the words of the server. It tells only the fields of a Secret, as the server
// quotes values.
func wordsOf(s metav1.Status, key record.ObjectKey) string {
	if key.Kind != "Secret" || key.Group != "" {
		return message.Shorten(s.Message, MaxWords)
	}
	text := cmp.Or(string(s.Reason), http.StatusText(int(s.Code)))
	if malformed(s) {
		return "it is malformed. " + safeWords.FindString(s.Message)
	}
	fields := sets.New[string]()
	for _, c := range s.Details.Causes {
		fields.Insert(c.Field)
	}
	if fields.Delete(""); len(fields) > 0 {
		text += " (" + message.FirstFew(sets.List(fields)) + ")"
	}
	return message.Shorten(text, MaxWords)
}

// Redact drops the words about a Secret from an error that is to be returned.
func Redact(err error, key record.ObjectKey) error {
	status, answered := AnswerOf(err)
	if key.Kind != "Secret" || key.Group != "" || !answered {
		return err
	}
	status.Message = wordsOf(status, key)
	// Its causes quote values, too.
	status.Details = &metav1.StatusDetails{Name: status.Details.Name, RetryAfterSeconds: status.Details.RetryAfterSeconds}
	return &apierrors.StatusError{ErrStatus: status}
}

// Reject returns the failure of an object that somebody has to change something for.
func Reject(key record.ObjectKey, reason, message string) error {
	return &Failure{Kind: Rejected, Reason: reason, Message: fmt.Sprintf("%s: %s", key, message)}
}

// Postpone returns the failure of an object that is gone, or there, after a while.
func Postpone(key record.ObjectKey, message string) error {
	return &Failure{Kind: Deferred, Reason: ReasonWaitingForDeletion, Message: fmt.Sprintf("%s: %s", key, message)}
}

// Failures are those of one pass over the objects, in the objects' order.
type Failures []*Failure

// Worst returns those that count as one failure, with the reason of the first and the messages of the first few; nil if
// there are none. Those that are to be retried say nothing of the add-on, so they come first, and those that may end by
// themselves last.
func (f Failures) Worst() *Failure {
	for _, kind := range []FailureKind{Transient, Rejected, Deferred} {
		some := slices.DeleteFunc(slices.Clone(f), func(each *Failure) bool { return each.Kind != kind })
		if len(some) == 0 {
			continue
		}
		var messages []string
		for _, each := range some {
			messages = append(messages, each.Message)
		}
		return &Failure{Kind: kind, Reason: some[0].Reason, Message: message.FirstFew(messages), err: some[0].err}
	}
	return nil
}

// AnswerOf returns what the API server answered; false if the error is none of its answers.
func AnswerOf(err error) (metav1.Status, bool) {
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

// IsAbout says that the server found a field wrong.
func IsAbout(err error, field string) bool {
	status, _ := AnswerOf(err)
	return slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
}

// IsGone says that an object isn't there, or its kind isn't.
func IsGone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
