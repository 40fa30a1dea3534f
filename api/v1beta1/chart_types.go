// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ChartSource says where a chart comes from: exactly one of path, configMap,
// secret, oci, helm, http, github, git and flux is set.
//
// +kubebuilder:validation:XValidation:rule=`has(self.oci) && has(self.version) && size(dyn(self)) == 2 && !has(self.oci.digest) || (![has(self.path), has(self.configMap), has(self.secret), has(self.oci), has(self.helm), has(self.http), has(self.github), has(self.git), has(self.flux)].exists_one(x, x) ? 'set exactly one of path, configMap, secret, oci, helm, http, github, git and flux' : has(self.verify) && !(has(self.oci) || (has(self.helm) || has(self.github) || has(self.git)) && has(self.verify.provenance)) ? 'verify.cosign is for oci, verify.provenance for oci, helm, github and git' : has(self.digest) && !(has(self.path) || has(self.configMap) || has(self.secret)) ? 'digest is for path, configMap and secret: all others have their own' : !(has(self.oci) || has(self.helm) || has(self.github)) ? (has(self.version) ? 'version is for oci, helm and github: all others hold one version' : has(self.versions) ? 'versions is for oci, helm and github, in the place of version' : "") : has(self.versions) ? (has(self.version) ? 'versions is for oci, helm and github, in the place of version' : (has(self.oci) && has(self.oci.digest) || has(self.helm) && has(self.helm.digest) || has(self.github) && has(self.github.digest)) ? 'with versions, each of them has its own digest' : "") : !has(self.version) ? (!has(self.oci) ? 'helm and github need version or versions' : has(self.oci.digest) ? "" : 'oci needs version (the tag), versions or oci.digest') : (has(self.oci) && has(self.oci.digest) || has(self.helm) && has(self.helm.digest) || has(self.github) && has(self.github.digest)) && !self.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+([-+][0-9A-Za-z.+-]+)?$') ? 'a digest is that of one version: with it, version is an exact one' : "") == ""`,messageExpression=`![has(self.path), has(self.configMap), has(self.secret), has(self.oci), has(self.helm), has(self.http), has(self.github), has(self.git), has(self.flux)].exists_one(x, x) ? 'set exactly one of path, configMap, secret, oci, helm, http, github, git and flux' : has(self.verify) && !(has(self.oci) || (has(self.helm) || has(self.github) || has(self.git)) && has(self.verify.provenance)) ? 'verify.cosign is for oci, verify.provenance for oci, helm, github and git' : has(self.digest) && !(has(self.path) || has(self.configMap) || has(self.secret)) ? 'digest is for path, configMap and secret: all others have their own' : !(has(self.oci) || has(self.helm) || has(self.github)) ? (has(self.version) ? 'version is for oci, helm and github: all others hold one version' : has(self.versions) ? 'versions is for oci, helm and github, in the place of version' : "") : has(self.versions) ? (has(self.version) ? 'versions is for oci, helm and github, in the place of version' : (has(self.oci) && has(self.oci.digest) || has(self.helm) && has(self.helm.digest) || has(self.github) && has(self.github.digest)) ? 'with versions, each of them has its own digest' : "") : !has(self.version) ? (!has(self.oci) ? 'helm and github need version or versions' : has(self.oci.digest) ? "" : 'oci needs version (the tag), versions or oci.digest') : (has(self.oci) && has(self.oci.digest) || has(self.helm) && has(self.helm.digest) || has(self.github) && has(self.github.digest)) && !self.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+([-+][0-9A-Za-z.+-]+)?$') ? 'a digest is that of one version: with it, version is an exact one' : ""`
type ChartSource struct {
	// path of a chart archive or of a chart's directory, relative to the
	// directory that the provider was started with (--artifact-root). In a stack
	// with spec.source it is relative to the bundle's root, and may lead into an
	// archive there, as in "addons.tgz/cni".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '')",message="path is relative, without '..' and empty parts"
	Path string `json:"path,omitempty"`

	// configMap of this object's namespace that holds a chart archive in its binaryData.
	// +optional
	ConfigMap *ArtifactReference `json:"configMap,omitempty"`

	// secret of this object's namespace that holds a chart archive in its data.
	// +optional
	Secret *ArtifactReference `json:"secret,omitempty"`

	// oci is a chart in an OCI registry.
	// +optional
	OCI *OCISource `json:"oci,omitempty"`

	// helm is a chart in a classic Helm repository, one with an index.yaml.
	// +optional
	Helm *HelmSource `json:"helm,omitempty"`

	// http is a chart's archive at an address.
	// +optional
	HTTP *HTTPSource `json:"http,omitempty"`

	// github is a chart's archive among the files of a release at GitHub.
	// +optional
	GitHub *GitHubSource `json:"github,omitempty"`

	// git is a chart in a Git repository.
	// +optional
	Git *GitSource `json:"git,omitempty"`

	// flux is the artifact of an object of Flux.
	// +optional
	Flux *FluxSource `json:"flux,omitempty"`

	// digest of the chart of path, configMap or secret, as sha256:<hex>: of an
	// archive it is what sha256sum prints. The chart has to be that one. In
	// revisions, charts of a bundle have it always.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// version of the chart, for oci, helm and github. It is an exact one, as in "1.17.4"
	// or "v1.15.3", or a range, as in "1.17.x", "~1.17.2" or ">=1.2 <2". The
	// newest published version in a range is taken; see spec.updates. In an OCI registry a version
	// is the tag, written just so, but that "+" is "_" there. At GitHub it is the
	// release's tag without github.tagPrefix. The content that a version was
	// resolved to stays while the add-on is unchanged. Optional with oci.digest;
	// both together say which version the digest has to be of.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[<>=!~^ ]*v?[0-9xX*][0-9A-Za-z.+*<>=!~^|, -]*$')",message="version is an exact semantic version, as in 1.17.4 or v1.15.3-rc.1, or a range, as in 1.17.x or >=1.2 <2"
	Version string `json:"version,omitempty"`

	// versions of the chart by the version of Kubernetes that a cluster runs, in the place
	// of version. The first row that the cluster fits takes effect; see
	// docs/kubernetes-versions.md. For oci, helm and github. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Versions []ChartVersion `json:"versions,omitempty"`

	// verify says who has to have signed the chart. It is part of neither the
	// chart's version nor of what is installed: changing it upgrades nothing.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
}

// ChartVersion is the version of a chart for some versions of Kubernetes.
type ChartVersion struct {
	// kubernetes is the range of Kubernetes versions that the chart's version is for, as in
	// ">=1.34 <1.35" or "1.34.x". Only numbers count: v1.34.2-eks-1 is 1.34.2.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9vxX*.<>=!~^|, -]+$')",message="kubernetes is a range of versions, as in 1.34.x or >=1.34 <1.36"
	Kubernetes string `json:"kubernetes"`

	// version of the chart: an exact one, as in "1.17.4" or "v1.15.3".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?[0-9]+[.][0-9]+[.][0-9]+([-+][0-9A-Za-z.+-]+)?$')",message="version is an exact semantic version, as in 1.17.4 or v1.15.3-rc.1"
	Version string `json:"version"`

	// digest of that version, as oci.digest, helm.digest or github.digest. The chart has to
	// be that one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
}

// OCISource is a chart in an OCI registry, as `helm push` puts it there.
type OCISource struct {
	// url of the chart's repository, as in "oci://registry.example.org/charts/cilium":
	// without tag and digest, which are version and digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^oci://([0-9A-Za-z-]+([.][0-9A-Za-z-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)+$')",message="url is oci://registry/path/chart in lower case, without tag and digest: these are version and oci.digest"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getPort() == '' || size(url(self).getPort()) <= 5 && int(url(self).getPort()) <= 65535",message="the port is from 1 to 65535"
	URL string `json:"url"`

	// digest of the chart's manifest in the registry, as sha256:<hex>. The chart
	// has to be that one; no tag is looked up.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// secretRef names a Secret of this object's namespace with credentials for the
	// registry. Defaults to the provider instance's own credentials.
	// +optional
	SecretRef *CredentialsReference `json:"secretRef,omitempty"`

	// plainHTTP speaks to the registry without TLS. Defaults to false.
	// +optional
	PlainHTTP *bool `json:"plainHTTP,omitempty"`
}

// HelmSource is a chart in a classic Helm repository.
//
// +kubebuilder:validation:XValidation:rule="!self.url.startsWith('http://') || has(self.plainHTTP) && self.plainHTTP",message="an url that starts with http:// needs plainHTTP: true"
type HelmSource struct {
	// url of the repository, as in "https://charts.example.org/stable": where its
	// index.yaml is. User names, passwords and queries don't belong in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([0-9A-Za-z_-]+([.][0-9A-Za-z_-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[^?#[:space:]]*)?$')",message="url is https://host/path without user, query and fragment; credentials go into secretRef"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getPort() == '' || size(url(self).getPort()) <= 5 && int(url(self).getPort()) <= 65535",message="the port is from 1 to 65535"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^?]*(/|%2[fF]|%5[cC])([.]|%2[eE]){1,2}(;|/|%2[fF]|%5[cC]|[?]|$)')",message="no part of the path is '.' or '..', or stands for it"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('oci://')",message="a chart in an OCI registry is named by chart.oci.url, as in oci://registry.example.org/charts/web, in the place of helm"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('http') || isURL(self)",message="what follows a percent sign is two hexadecimal digits"
	URL string `json:"url"`

	// chart is the chart's name in the repository's index.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z]([0-9A-Za-z._-]*[0-9A-Za-z])?$`
	Chart string `json:"chart"`

	// digest of the chart's archive, as sha256:<hex>: what sha256sum prints. The
	// chart has to be that one, whatever the index says.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// secretRef names a Secret of this object's namespace with credentials for the
	// repository. Defaults to the provider instance's own credentials.
	// +optional
	SecretRef *CredentialsReference `json:"secretRef,omitempty"`

	// plainHTTP lets url start with http://: without TLS. Defaults to false.
	// +optional
	PlainHTTP *bool `json:"plainHTTP,omitempty"`
}

// CredentialsReference names a Secret with credentials: .dockerconfigjson, or
// username and password, or token; ca.crt; tls.crt and tls.key; identity and
// known_hosts, for Git by SSH.
type CredentialsReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// ArtifactReference names a key of a ConfigMap or Secret that holds an archive, or a
// file of manifests.
type ArtifactReference struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// key of the archive (.tgz), or of the manifests. Defaults to "chart.tgz".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}
