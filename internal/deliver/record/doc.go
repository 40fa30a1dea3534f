// SPDX-License-Identifier: Apache-2.0

// Package record keeps what an add-on installed in a workload cluster: a Secret
// for each revision, in Helm's own storage format, with a few facts of ours
// beside it.
//
// The format is that of helm.sh/helm/v4/pkg/storage/driver (secrets.go, util.go):
// a Secret of type helm.sh/release.v1 named sh.helm.release.v1.<name>.v<revision>
// with the labels name, owner, status and version, whose key "release" is
// base64(gzip(json(release))). So `helm list`, `helm history` and `helm get
// manifest` work, and `helm upgrade`, `rollback` and `uninstall` do as well.
//
// Ours are:
//   - labels and annotations (see Summary), which show whether there is work
//     without a read of the Secret's data;
//   - the key "chandler": gzip(json(State)), with the inventory and progress;
//   - the key "crds": gzip(json) of the CRDs of the chart's crds/ directory, which
//     Helm's manifest doesn't hold, for as long as the revision is pending.
//
// When Helm writes such a Secret again, it drops our annotations and keys, and
// keeps our labels. Then the manifest is the inventory.
package record
