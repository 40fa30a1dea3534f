// SPDX-License-Identifier: Apache-2.0

package object

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
