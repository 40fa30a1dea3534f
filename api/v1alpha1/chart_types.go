// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChartLocation says where the chart comes from: chartName and repoURL, or chartFrom.
type ChartLocation struct {
	// chartName is the name of the chart in the repository.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z]([0-9A-Za-z._-]*[0-9A-Za-z])?$`
	ChartName string `json:"chartName,omitempty"`

	// repoURL is the URL of the chart's repository. That of a classic one, with an
	// index.yaml, is as "https://charts.example.org". That of one in an OCI
	// registry is as "oci://registry.example.org/charts": chartName is added as the
	// last part of the path. User names, passwords and queries don't belong in it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?|oci)://([0-9A-Za-z_-]+([.][0-9A-Za-z_-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[^?#[:space:]]*)?$')",message="repoURL is https://host/path or oci://registry/path, without user, query and fragment: credentials go into spec.credentials"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getPort() == '' || size(url(self).getPort()) <= 5 && int(url(self).getPort()) <= 65535",message="the port is from 1 to 65535"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^?]*(/|%2[fF]|%5[cC])([.]|%2[eE]){1,2}(;|/|%2[fF]|%5[cC]|[?]|$)')",message="no part of the path is '.' or '..', or stands for it"
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="what follows a percent sign is two hexadecimal digits"
	RepoURL string `json:"repoURL,omitempty"`

	// version of the chart: an exact one, as in "1.17.4", or a range, as in "1.17.x"
	// or ">=1.2 <2", of which the newest published one is taken. Required with
	// repoURL, but for a chart in an OCI registry that has a digest.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[<>=!~^ ]*v?[0-9xX*][0-9A-Za-z.+*<>=!~^|, -]*$')",message="version is an exact semantic version, as in 1.17.4 or v1.15.3-rc.1, or a range, as in 1.17.x or >=1.2 <2"
	Version string `json:"version,omitempty"`

	// digest of the chart, as sha256:<hex>: of its manifest in an OCI registry, of
	// its archive in a classic repository. The chart has to be that one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// credentials for the repository. Defaults to the provider instance's own.
	// +optional
	Credentials *Credentials `json:"credentials,omitempty"`

	// plainHTTP speaks to an OCI registry without TLS, and lets repoURL start with
	// http://. Defaults to false.
	// +optional
	PlainHTTP *bool `json:"plainHTTP,omitempty"`

	// chartFrom is a chart that isn't in a repository.
	// +optional
	ChartFrom *ChartSource `json:"chartFrom,omitempty"`
}

// Credentials are credentials for a chart's repository.
type Credentials struct {
	// secret of this object's namespace that holds them: .dockerconfigjson, or
	// username and password, or token; ca.crt; tls.crt and tls.key.
	// +required
	Secret SecretReference `json:"secret"`
}

// SecretReference names a Secret of this object's namespace.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ChartSource is a chart that isn't in a repository: exactly one of its fields is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.path), has(self.configMap), has(self.secret)].filter(x, x).size() == 1",message="set exactly one of path, configMap and secret"
type ChartSource struct {
	// path of a chart archive or of a chart's directory, relative to the
	// directory that the provider was started with (--artifact-root).
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
}

// ArtifactReference names a key of a ConfigMap or Secret that holds an archive.
type ArtifactReference struct {
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key of the archive (.tgz). Defaults to "chart.tgz".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// HelmOptions are those options of the Helm add-on provider that Chandler has.
type HelmOptions struct {
	// timeout is how long the chart may take to become ready after it was applied;
	// then it counts as failed, though it becomes ready later if its objects do.
	// Whole seconds. Defaults to 10m. From 10s to 24h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('24h')",message="timeout is from 10s to 24h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// takeOwnership says what to do with an object that is in the cluster already,
	// and isn't this release's. True takes it over and changes it. False (the
	// default) leaves it alone, fails, and names it. What another add-on owns is
	// never taken over.
	// +optional
	TakeOwnership *bool `json:"takeOwnership,omitempty"`

	// install holds options of the first installation.
	// +optional
	Install InstallOptions `json:"install,omitempty,omitzero"`
}

// InstallOptions are options of the first installation.
type InstallOptions struct {
	// createNamespace makes the namespace when it is missing. Defaults to true.
	// A namespace made this way stays when the chart is removed.
	// +optional
	CreateNamespace *bool `json:"createNamespace,omitempty"`
}
