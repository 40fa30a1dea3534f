// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "strings"

// GitSource is a directory, or a file, of a commit in a Git repository.
//
// +kubebuilder:validation:XValidation:rule="has(self.commit) ? !has(self.semver) : [has(self.branch), has(self.tag), has(self.semver)].exists_one(x, x)",message="set one of branch, tag, semver and commit"
// +kubebuilder:validation:XValidation:rule="!has(self.digest) || has(self.commit)",message="digest needs commit"
// +kubebuilder:validation:XValidation:rule="!self.url.startsWith('http://') || has(self.plainHTTP) && self.plainHTTP",message="http:// needs plainHTTP: true"
type GitSource struct {
	// url of the repository: https://host/path or ssh://user@host/path.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?://|ssh://([0-9A-Za-z_.-]+@)?)([0-9A-Za-z.-]+|[[][0-9A-Fa-f:.]+[]])(:[0-9]{1,5})?(/[0-9A-Za-z_~][0-9A-Za-z_.~+-]*)+/?$')",message="url is https://host/path or ssh://user@host/path"
	URL string `json:"url"`

	// branch that is followed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z_./+-]+$`
	Branch string `json:"branch,omitempty"`

	// tag whose commit is taken, once.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z_./+-]+$`
	Tag string `json:"tag,omitempty"`

	// semver is a range of tags.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Semver string `json:"semver,omitempty"`

	// commit that is taken.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	Commit string `json:"commit,omitempty"`

	// path of the content in the repository. Defaults to the root.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.split('/').all(p, !(p in ['', '..']))",message="path has no '..' and no empty parts"
	Path string `json:"path,omitempty"`

	// digest of the content at path of commit.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// secretRef names a Secret with credentials.
	// +optional
	SecretRef *CredentialsReference `json:"secretRef,omitempty"`

	// plainHTTP lets url start with http://. Defaults to false.
	// +optional
	PlainHTTP *bool `json:"plainHTTP,omitempty"`
}

// What versions of Git sources have before the name of a branch or tag, and before the commit.
const (
	GitBranches = "heads/"
	GitTags     = "tags/"
	GitCommit   = "@sha1:"
)

// Version returns the commit with its branch or tag, as in "heads/main@sha1:<hex>"; "" if no commit is named.
func (g *GitSource) Version() string {
	switch {
	case g.Commit == "":
		return ""
	case g.Branch != "":
		return GitBranches + g.Branch + GitCommit + g.Commit
	case g.Tag != "":
		return GitTags + g.Tag + GitCommit + g.Commit
	}
	return GitCommit[1:] + g.Commit
}

// Pin names the commit of a version in the place of what is followed, without a digest.
func (g *GitSource) Pin(version string) {
	name, commit, _ := strings.Cut(version, GitCommit)
	g.Branch, g.Tag, g.Semver, g.Commit, g.Digest = "", "", "", commit, ""
	if branch, ok := strings.CutPrefix(name, GitBranches); ok {
		g.Branch = branch
		return
	}
	g.Tag = strings.TrimPrefix(name, GitTags)
}
