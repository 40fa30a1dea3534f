// SPDX-License-Identifier: Apache-2.0

package v1beta1

// KustomizationSource is a kustomization in an artifact: exactly one of path,
// configMap, secret, oci, http, github, git and flux is set.
//
// +kubebuilder:validation:XValidation:rule="!has(self.oci) || has(self.version) || has(self.oci.digest)",message="oci needs version (the tag) or oci.digest"
// +kubebuilder:validation:XValidation:rule="!has(self.github) || has(self.version) && has(self.github.asset)",message="github needs version (the tag) and github.asset"
type KustomizationSource struct {
	ArtifactSource `json:",inline"`

	// directory of the kustomization in the artifact, as in "overlays/prod".
	// Defaults to the artifact's root.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '')",message="directory is relative, without '..' and empty parts"
	Directory string `json:"directory,omitempty"`
}

// ManifestsSource is plain manifests in an artifact: exactly one of path,
// configMap, secret, oci, http, github, git and flux is set. The artifact is an archive, or a
// single file of YAML or JSON, such as many projects' install.yaml; its content says which.
//
// +kubebuilder:validation:XValidation:rule="!has(self.oci) || has(self.version) || has(self.oci.digest)",message="oci needs version (the tag) or oci.digest"
// +kubebuilder:validation:XValidation:rule="!has(self.github) || has(self.version) && has(self.github.asset)",message="github needs version (the tag) and github.asset"
type ManifestsSource struct {
	ArtifactSource `json:",inline"`

	// directory of the manifests in the artifact; those in directories below it
	// count, too. Defaults to the artifact's root.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '')",message="directory is relative, without '..' and empty parts"
	Directory string `json:"directory,omitempty"`
}

// ArtifactSource says where an archive of files comes from; or a single file, if it
// is manifests.
//
// +kubebuilder:validation:XValidation:rule="[has(self.path), has(self.configMap), has(self.secret), has(self.oci), has(self.http), has(self.github), has(self.git), has(self.flux)].exists_one(x, x)",message="set exactly one of path, configMap, secret, oci, http, github, git and flux"
// +kubebuilder:validation:XValidation:rule="!has(self.version) || has(self.oci) || has(self.github)",message="version is for oci and github: all others hold one version"
// +kubebuilder:validation:XValidation:rule="!has(self.version) || !(has(self.oci) && has(self.oci.digest) || has(self.github) && has(self.github.digest)) || !self.version.matches('[*<>=!~^|, ]|^v?([0-9]+[.]){0,2}[xX]([.][xX]){0,2}$')",message="a digest is that of one version: with it, version is a tag"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || has(self.oci) && has(self.verify.cosign) || has(self.git) && has(self.verify.provenance)",message="verify is for oci with cosign, and for git with provenance"
type ArtifactSource struct {
	// path of an archive or a directory, relative to the directory that the
	// provider was started with (--artifact-root). Manifests may be in a single
	// file, too: .yaml, .yml or .json.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '')",message="path is relative, without '..' and empty parts"
	Path string `json:"path,omitempty"`

	// configMap of this object's namespace that holds an archive in its binaryData;
	// or a file of manifests, in its data or binaryData.
	// +optional
	ConfigMap *ArtifactReference `json:"configMap,omitempty"`

	// secret of this object's namespace that holds an archive in its data; or a file
	// of manifests.
	// +optional
	Secret *ArtifactReference `json:"secret,omitempty"`

	// oci is an artifact in an OCI registry, with one layer that is an archive
	// (.tar.gz), as Flux, oras and Argo CD put it there; or a file of manifests.
	// +optional
	OCI *OCISource `json:"oci,omitempty"`

	// http is an archive (.tar.gz), or a file of manifests, at an address.
	// +optional
	HTTP *HTTPSource `json:"http,omitempty"`

	// github is files of a release at GitHub.
	// +optional
	GitHub *GitHubSource `json:"github,omitempty"`

	// git is content of a Git repository.
	// +optional
	Git *GitSource `json:"git,omitempty"`

	// flux is the artifact of an object of Flux.
	// +optional
	Flux *FluxSource `json:"flux,omitempty"`

	// version is the tag of oci or github, as it is written there, but for
	// github.tagPrefix. Or it is a range of semantic versions, as in "1.17.x",
	// "~1.17.2" or ">=1.2 <2", of which the newest published one is taken; see
	// spec.updates. A range has an operator, or an "x" or "*" for a number: "1.17" is a
	// tag. Optional with oci.digest.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[*<>=!~^ ]*[0-9A-Za-z_*][0-9A-Za-z_.+*<>=!~^|, -]*$')",message="version is a tag, or a range of semantic versions, as in 1.17.x or >=1.2 <2"
	Version string `json:"version,omitempty"`

	// verify says who has to have signed the artifact, or its commit. It is for oci with
	// cosign, and for git with provenance.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
}

// HTTPSource is an archive, or a file of manifests, at an address.
//
// +kubebuilder:validation:XValidation:rule="!self.url.startsWith('http://') || has(self.plainHTTP) && self.plainHTTP",message="an url that starts with http:// needs plainHTTP: true"
type HTTPSource struct {
	// url of the content, as in "https://example.org/web-1.0.0.tgz". User names,
	// passwords and fragments don't belong in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([0-9A-Za-z_-]+([.][0-9A-Za-z_-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[^#[:space:]]*)?$')",message="url is https://host/path without user and fragment; credentials go into secretRef"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getPort() == '' || size(url(self).getPort()) <= 5 && int(url(self).getPort()) <= 65535",message="the port is from 1 to 65535"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^?]*(/|%2[fF]|%5[cC])([.]|%2[eE]){1,2}(;|/|%2[fF]|%5[cC]|[?]|$)')",message="no part of the path is '.' or '..', or stands for it"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('http') || isURL(self)",message="what follows a percent sign is two hexadecimal digits"
	URL string `json:"url"`

	// digest of the content, as sha256:<hex>: what sha256sum prints. An address
	// promises nothing of what is behind it; the content has to be that one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest"`

	// secretRef names a Secret of this object's namespace with credentials for the
	// host. Defaults to the provider instance's own credentials.
	// +optional
	SecretRef *CredentialsReference `json:"secretRef,omitempty"`

	// plainHTTP lets url start with http://: without TLS. Defaults to false.
	// +optional
	PlainHTTP *bool `json:"plainHTTP,omitempty"`
}

// GitHubSource is files of releases at GitHub, or at a server with the same API.
//
// +kubebuilder:validation:XValidation:rule="self.url.startsWith('https://') && (!has(self.apiURL) || self.apiURL.startsWith('https://')) || has(self.plainHTTP) && self.plainHTTP",message="an url that starts with http:// needs plainHTTP: true"
type GitHubSource struct {
	// url of the repository, as in "https://github.com/owner/name".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([0-9A-Za-z-]+([.][0-9A-Za-z-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?/[0-9A-Za-z_-][0-9A-Za-z_.-]*/[.]{0,2}[0-9A-Za-z_-][0-9A-Za-z_.-]*$')",message="url is https://host/owner/name, without anything behind it"
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.git')",message="url is that of the repository's page, without .git"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getPort() == '' || size(url(self).getPort()) <= 5 && int(url(self).getPort()) <= 65535",message="the port is from 1 to 65535"
	URL string `json:"url"`

	// apiURL is where the server's API is. Defaults to https://api.github.com for
	// github.com, to https://api.<host> for hosts of ghe.com, and else to
	// https://<host>/api/v3. The instance's own credentials for the host of url go to
	// no other API.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([0-9A-Za-z-]+([.][0-9A-Za-z-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[0-9A-Za-z_~-][0-9A-Za-z_.~-]*)*/?$')",message="apiURL is https://host/path without user, query and fragment; credentials go into secretRef"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getPort() == '' || size(url(self).getPort()) <= 5 && int(url(self).getPort()) <= 65535",message="the port is from 1 to 65535"
	APIURL string `json:"apiURL,omitempty"`

	// tagPrefix is what the tags of the releases have before the version, as "cilium-"
	// in "cilium-1.17.4". Releases with other tags are left out. Defaults to none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z_./+-]+$`
	TagPrefix string `json:"tagPrefix,omitempty"`

	// asset is the name of the release's file that is the archive, or the manifests, as
	// in "install.yaml". A "*" in it stands for any characters, as in "cilium-*.tgz";
	// exactly one file may have such a name, not counting those that end in ".prov".
	// Defaults to "*.tgz" for charts; a bundle without it is all files of the release,
	// at most 128.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z_.+*-]+$`
	Asset string `json:"asset,omitempty"`

	// digest of the file, as sha256:<hex>: what sha256sum prints. For a bundle
	// without asset it is that of the list of its files, which the stack's revisions
	// show; see docs/sources/github.md. The content has to be that one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// secretRef names a Secret of this object's namespace with credentials for the
	// API: token, which has to be allowed to read the repository's contents. Without
	// one, GitHub answers 60 requests an hour. Defaults to the provider instance's own
	// credentials.
	// +optional
	SecretRef *CredentialsReference `json:"secretRef,omitempty"`

	// plainHTTP lets url and apiURL start with http://: without TLS. Defaults to false.
	// +optional
	PlainHTTP *bool `json:"plainHTTP,omitempty"`
}

// Patch changes objects of an add-on, as kustomize does it.
type Patch struct {
	// target selects the objects: those that match all that is set. Without it the
	// patch itself says (apiVersion, kind, metadata.name) which object it is for.
	// +optional
	Target *PatchTarget `json:"target,omitempty"`

	// patch in YAML: a strategic merge patch, or a list of JSON patch operations.
	// At most 64 KiB.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Patch string `json:"patch"`
}

// PatchTarget selects objects of an add-on.
// +kubebuilder:validation:MinProperties=1
type PatchTarget struct {
	// group of the objects' API. Defaults to any.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// version of the objects' API. Defaults to any.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`

	// kind of the objects. Defaults to any.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// namespace of the objects, as a regular expression that matches all of it.
	// Defaults to any.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`

	// name of the objects, as a regular expression that matches all of it.
	// Defaults to any.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// labelSelector that the objects' labels match, as in "app=web,tier!=cache".
	// Defaults to any.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	LabelSelector string `json:"labelSelector,omitempty"`
}
