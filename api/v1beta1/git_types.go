// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "strings"

// GitSource is a directory, or a file, of a commit in a Git repository.
//
// +kubebuilder:validation:XValidation:rule="[has(self.branch), has(self.tag), has(self.semver)].filter(x, x).size() == (has(self.commit) && !has(self.branch) && !has(self.tag) ? 0 : 1)",message="set exactly one of branch, tag, semver and commit; branch or tag may say where commit is from"
// +kubebuilder:validation:XValidation:rule="!has(self.digest) || has(self.commit)",message="a digest is that of one commit: it needs commit"
// +kubebuilder:validation:XValidation:rule="!self.url.startsWith('http://') || has(self.plainHTTP) && self.plainHTTP",message="an url that starts with http:// needs plainHTTP: true"
type GitSource struct {
	// url of the repository, as in "https://github.com/owner/name.git" or
	// "ssh://git@github.com/owner/name.git".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?://|ssh://([0-9A-Za-z_][0-9A-Za-z_.-]*@)?)([0-9A-Za-z-]+([.][0-9A-Za-z-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[0-9A-Za-z_.~+-]+)+/?$')",message="url is https://host/path or ssh://user@host/path, without password, query and fragment; credentials go into secretRef"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getPort() == '' || size(url(self).getPort()) <= 5 && int(url(self).getPort()) <= 65535",message="the port is from 1 to 65535"
	// +kubebuilder:validation:XValidation:rule="!self.split('/').exists(p, p == '..' || p == '.')",message="no part of the path is '.' or '..'"
	URL string `json:"url"`

	// branch whose newest commit is followed; see spec.updates.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z_][0-9A-Za-z_./+-]*$`
	Branch string `json:"branch,omitempty"`

	// tag whose commit is taken. It is looked up once: a tag that is moved changes
	// nothing.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z_][0-9A-Za-z_./+-]*$`
	Tag string `json:"tag,omitempty"`

	// semver is a range of semantic versions, as in "1.17.x" or ">=1.2 <2". The newest
	// tag in it is followed; see spec.updates.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z_.+*<>=!~^|, -]+$`
	Semver string `json:"semver,omitempty"`

	// commit that is taken, with all 40 digits. Revisions have it always, with the
	// branch or tag that it is from.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	Commit string `json:"commit,omitempty"`

	// path of the chart's directory, or of the directory or file with the content, in
	// the repository. It may be an archive (.tgz), or lead into one. Defaults to the
	// repository's root.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '')",message="path is relative, without '..' and empty parts"
	Path string `json:"path,omitempty"`

	// digest of the content at path, as sha256:<hex>: that of its files, as of a
	// directory in the artifact root. The content has to be that one. Revisions have it
	// always.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// secretRef names a Secret of this object's namespace with credentials for the
	// host: username and password, or token, for https; identity and known_hosts for
	// ssh. Defaults to the provider instance's own credentials.
	// +optional
	SecretRef *CredentialsReference `json:"secretRef,omitempty"`

	// plainHTTP lets url start with http://: without TLS. Defaults to false.
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

// Pin names the commit of a version in the place of what is followed.
func (g *GitSource) Pin(version, digest string) {
	name, commit, _ := strings.Cut(version, GitCommit)
	g.Branch, g.Tag, g.Semver, g.Commit, g.Digest = "", "", "", commit, digest
	if branch, ok := strings.CutPrefix(name, GitBranches); ok {
		g.Branch = branch
		return
	}
	g.Tag = strings.TrimPrefix(name, GitTags)
}
