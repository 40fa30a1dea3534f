// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Verification says who has to have signed an artifact. Without a signature by one
// of them nothing of the artifact is read, and what is installed stays.
//
// +kubebuilder:validation:XValidation:rule="has(self.cosign) != has(self.provenance)",message="set exactly one of cosign and provenance"
type Verification struct {
	// cosign accepts signatures made with cosign. It is for oci.
	// +optional
	Cosign *CosignVerification `json:"cosign,omitempty"`

	// provenance accepts provenance files of Helm, as `helm package --sign` makes
	// them, of charts of oci, helm and github; and of git, commits that are signed
	// with OpenPGP, as `git commit -S` makes them.
	// +optional
	Provenance *ProvenanceVerification `json:"provenance,omitempty"`
}

// CosignVerification says whose signatures count: one by any of the keys, or of
// the identities, is enough.
//
// +kubebuilder:validation:XValidation:rule="has(self.publicKeys) || has(self.keyless)",message="set publicKeys, keyless, or both"
type CosignVerification struct {
	// publicKeys that signatures may be made with, in PEM. From 1 to 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	PublicKeys []TrustReference `json:"publicKeys,omitempty"`

	// keyless accepts signatures made with short-lived certificates that say who
	// asked for them.
	// +optional
	Keyless *KeylessVerification `json:"keyless,omitempty"`
}

// KeylessVerification says whose certificates count, and who may have issued them.
type KeylessVerification struct {
	// identities that certificates may be of. From 1 to 8.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Identities []CertificateIdentity `json:"identities"`

	// trustRoot is a Sigstore trusted root: the certificate authorities,
	// transparency logs and timestamp authorities to trust. Signatures have to be in
	// its logs. Nothing is downloaded for it.
	// +required
	TrustRoot TrustReference `json:"trustRoot,omitzero"`
}

// CertificateIdentity is who asked for a certificate.
//
// +kubebuilder:validation:XValidation:rule="has(self.subject) != has(self.subjectRegExp)",message="set exactly one of subject and subjectRegExp"
// +kubebuilder:validation:XValidation:rule="!has(self.subjectRegExp) || ['a'.matches(self.subjectRegExp)].size() == 1",message="subjectRegExp is a regular expression (RE2)"
type CertificateIdentity struct {
	// issuer that vouched for the subject, as in
	// "https://token.actions.githubusercontent.com".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Issuer string `json:"issuer"`

	// subject as the certificate has it: an e-mail address, or the URI of a
	// workflow.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Subject string `json:"subject,omitempty"`

	// subjectRegExp is a regular expression (RE2) that matches all of the subject.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
}

// ProvenanceVerification says whose provenance files count.
type ProvenanceVerification struct {
	// keyring has the OpenPGP public keys that provenance files may be signed with,
	// as `gpg --export` writes them, armored or not.
	// +required
	Keyring TrustReference `json:"keyring,omitzero"`
}

// TrustReference names a key of a ConfigMap or Secret of this object's namespace
// that holds what is trusted. It is public: a ConfigMap will do.
type TrustReference struct {
	// kind of the object: ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// key in the object. Defaults to "cosign.pub" for a public key, to
	// "trusted_root.json" for a trust root, and to "pubring.gpg" for a keyring.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// Defaults of TrustReference.key.
const (
	DefaultPublicKeyKey = "cosign.pub"
	DefaultTrustRootKey = "trusted_root.json"
	DefaultKeyringKey   = "pubring.gpg"
)

// References are all ConfigMaps and Secrets that the verification reads.
func (v *Verification) References() []TrustReference {
	if v == nil {
		return nil
	}
	var references []TrustReference
	if v.Cosign != nil {
		references = append(references, v.Cosign.PublicKeys...)
		if v.Cosign.Keyless != nil {
			references = append(references, v.Cosign.Keyless.TrustRoot)
		}
	}
	if v.Provenance != nil {
		references = append(references, v.Provenance.Keyring)
	}
	return references
}
