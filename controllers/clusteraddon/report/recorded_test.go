// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/report"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upgradegate"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/addons"
	"github.com/cluster-chandler/chandler/test/must"
)

// refused returns a function that returns why an API server would refuse a ClusterAddon.
func refused(t testing.TB) func(*addonsv1.ClusterAddon) field.ErrorList {
	t.Helper()
	data, err := os.ReadFile("../../../config/crd/bases/addons.cluster.x-k8s.io_clusteraddons.yaml")
	must.Succeed(t, err)
	crd, props := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.JSONSchemaProps{}
	must.Succeed(t, yaml.Unmarshal(data, crd))
	of := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	must.Succeed(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(of, props, nil))
	schema, _, err := validation.NewSchemaValidator(props)
	must.Succeed(t, err)
	structural, err := structuralschema.NewStructural(props)
	must.Succeed(t, err)
	return func(ca *addonsv1.ClusterAddon) field.ErrorList {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ca)
		if err != nil { // a fuzz target may not call Helper
			t.Fatal(err)
		}
		return append(validation.ValidateCustomResource(nil, object, schema), listtype.ValidateListSetsAndMaps(nil, structural, object)...)
	}
}

// said is what the Secret of a record says.
type said struct {
	name, namespace, revision, status                                 string
	stack, version, digest, serviceAccount, facts, dependsOn, objects string
}

func (s said) secret(owner string) metav1.PartialObjectMetadata {
	const prefix = "addons.cluster.x-k8s.io/"
	m := metav1.PartialObjectMetadata{}
	m.Namespace, m.Name = s.namespace, "sh.helm.release.v1."+s.name+".v"+s.revision
	m.Labels = map[string]string{
		"owner": "helm", "name": s.name, "version": s.revision, "status": s.status,
		addonsv1.AddonLabel: s.name, addonsv1.AddonNamespaceLabel: s.namespace,
	}
	m.Annotations = map[string]string{
		record.OwnerAnnotation: owner, record.DigestAnnotation: s.digest, prefix + "record-format": "1", prefix + "stack": s.stack,
		prefix + "chart-version": s.version, prefix + "service-account": s.serviceAccount, prefix + "facts-used": s.facts,
		prefix + "depends-on": s.dependsOn, prefix + "objects": s.objects, prefix + "failure": s.version, prefix + "rolled-back": s.digest,
	}
	return m
}

// honest is a record as it is written.
var honest = said{
	"web", "apps", "1", deliver.StatusDeployed, "platform", "1.0.0", "sha256:1", "deployer", `{"kubeRange":{">=1.30":true}}`, "cni,dns", "3",
}

// statusOfRecords returns a ClusterAddon with what these records say in its status, in each way that there is.
func statusOfRecords(ran bool, wants []string, records ...metav1.PartialObjectMetadata) *addonsv1.ClusterAddon {
	ca := &addonsv1.ClusterAddon{Spec: addonsv1.ClusterAddonSpec{ClusterName: "prod"}}
	ca.Namespace, ca.Name, ca.UID = "team", "prod", "1"
	o := &gather.Observed{ClusterAddon: ca, Installed: record.Summarize(records)}
	if ran {
		ca.Status.ObservedUID = ca.UID
		for _, installed := range o.Installed {
			ca.Status.Addons = append(ca.Status.Addons, releases.Status(installed, addonsv1.AddonReady))
		}
	}
	var statuses []addonsv1.AddonStatus
	for release, installed := range o.Installed {
		if sets.New(wants...).Has(release.Name) {
			a := addons.Wanted("platform", release.Name)
			a.Namespace = release.Namespace
			o.Wanted = append(o.Wanted, a)
			status := a.Status()
			status.Phase = addonsv1.AddonReady
			releases.Describe(&status, installed)
			statuses = append(statuses, status)
		}
	}
	leaving, kept := removal.Unwanted{Observed: o, Proofs: &releases.Proofs{}}.Partition()
	for i := range leaving {
		statuses = append(statuses, releases.Status(leaving[i], addonsv1.AddonRemoving))
	}
	report.WriteAddons(ca, append(statuses, kept...), nil, nil)
	ca.Status.KubernetesVersions = upgradegate.KubernetesVersions(o)
	return ca
}

// FuzzStatusOfRecords has the Secret of a release record say anything: the status can be written all the same.
func FuzzStatusOfRecords(f *testing.F) {
	why := refused(f)
	add := func(change func(*said)) {
		s := honest
		change(&s)
		f.Add(s.name, s.namespace, s.revision, s.status, s.stack, s.version, s.digest, s.serviceAccount, s.facts, s.dependsOn, s.objects)
	}
	long := strings.Repeat("x", 9000)
	for _, change := range []func(*said){
		func(*said) {},
		func(s *said) { s.status = deliver.StatusUninstalling },
		func(s *said) { s.stack = "" },
		func(s *said) { s.stack, s.version, s.digest, s.serviceAccount = long, long, long, long },
		func(s *said) { s.version = strings.Repeat("é", 200) },
		func(s *said) { s.name = long[:60] },
		func(s *said) { s.namespace = "" },
		func(s *said) { s.revision = "-1" },
		func(s *said) { s.revision = "0" },
		func(s *said) { s.revision = "4294967295" },
		func(s *said) { s.objects = "-1" },
		func(s *said) { s.objects = "-99999999999" },
		func(s *said) { s.facts = `{"kubeRange":{"":true,"` + long + `":true}}` },
		func(s *said) { s.facts, s.dependsOn = "{", long },
	} {
		add(change)
	}
	f.Fuzz(func(t *testing.T, name, namespace, revision, status, stack, version, digest, serviceAccount, facts, dependsOn, objects string) {
		s := said{name, namespace, revision, status, stack, version, digest, serviceAccount, facts, dependsOn, objects}
		for _, wants := range [][]string{nil, {name}} {
			for _, ran := range []bool{true, false} {
				ca := statusOfRecords(ran, wants, s.secret("team/prod"))
				if errs := why(ca); len(errs) > 0 {
					t.Fatalf("wanted: %t, ran before: %t: %v", wants != nil, ran, errs.ToAggregate())
				}
			}
		}
	})
}

// TestStatusOfManyRecords fits an API server, however many Secrets somebody makes up.
func TestStatusOfManyRecords(t *testing.T) {
	why := refused(t)
	var records []metav1.PartialObjectMetadata
	var wants []string
	for i := range 4096 {
		s := honest
		s.name, s.stack = fmt.Sprint("made-up-", i), strings.Repeat("x", 300)
		if i < 64 {
			s.name = fmt.Sprint("own-", i)
			wants = append(wants, s.name)
			ranges := map[string]bool{}
			for j := range 1000 {
				ranges[fmt.Sprintf(">=1.%d || >=1.%d%s", i, j, strings.Repeat(" ", 200))] = true
			}
			facts, err := json.Marshal(map[string]any{"kubeRange": ranges})
			must.Succeed(t, err)
			s.facts = string(facts)
		}
		records = append(records, s.secret("team/prod"))
	}
	ca := statusOfRecords(false, wants, records...)
	if errs := why(ca); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	text, err := json.Marshal(ca)
	if err != nil || len(text) > 1<<20 {
		t.Errorf("it has %d bytes: %v", len(text), err)
	}
	if !strings.HasPrefix(ca.Status.ReadyAddons, "64/") {
		t.Errorf("%s of the add-ons that are wanted are in it", ca.Status.ReadyAddons)
	}
}
