// SPDX-License-Identifier: Apache-2.0

// Package helmtemplate renders charts with Helm's own install action, as `helm template` does.
package helmtemplate

import (
	"bytes"
	"context"
	"fmt"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube/fake"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// Of returns release demo in namespace kube-system of a packed chart, for a version of Kubernetes. A panic of Helm's is an
// error, too.
func Of(archive []byte, values map[string]any, kubeVersion string, apiVersions ...string) (rel *release.Release, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	ch, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	version, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(&action.Configuration{
		Releases:   storage.Init(driver.NewMemory()),
		KubeClient: &fake.PrintingKubeClient{Out: &bytes.Buffer{}},
	})
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace = "demo", "kube-system"
	install.KubeVersion, install.APIVersions = version, apiVersions
	releaser, err := install.RunWithContext(context.Background(), ch, values)
	if err != nil {
		return nil, err
	}
	return releaser.(*release.Release), nil
}
