// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/test/must"
)

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func expectNoFile(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program was run: %v", err)
	}
}

// write replaces a file at once, as a mounted Secret or kubectl does.
func write(t *testing.T, path string, data []byte) {
	t.Helper()
	must.Succeed(t, os.WriteFile(path+"~", data, 0o600))
	must.Succeed(t, os.Rename(path+"~", path))
}

// kubeconfigWith returns a file with some contexts, each for a server.
func kubeconfigWith(t *testing.T, contexts map[string][]byte) []byte {
	t.Helper()
	all := clientcmdapi.NewConfig()
	for name, data := range contexts {
		one, err := clientcmd.Load(data)
		must.Succeed(t, err)
		current := one.Contexts[one.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	data, err := clientcmd.Write(*all)
	must.Succeed(t, err)
	return data
}

// startFiles finds clusters in a directory, by events alone.
func startFiles(t *testing.T, dir string, contexts ...string) *hub {
	t.Helper()
	source, err := files.New(files.Options{Paths: []string{dir}, Contexts: contexts, Interval: time.Hour})
	must.Succeed(t, err)
	return start(t, quick(source))
}

// Contexts of files are clusters, those that match a pattern, as long as they are there.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	h := startFiles(t, dir, "kind-*")
	one, two := fleet.NameOf(files.Name, "kind-one"), fleet.NameOf(files.Name, "kind-two")
	first := filepath.Join(dir, "a")
	write(t, first, kubeconfigWith(t, map[string][]byte{"kind-one": h.workload.Kubeconfig(), "production": h.other.Kubeconfig()}))
	conn := h.connected(t, one)
	works(t, conn)
	if s := h.State(fleet.NameOf(files.Name, "production")); s.Phase != fleet.PhaseUnknown {
		t.Errorf("a context that nothing matches: %+v", s)
	}

	write(t, filepath.Join(dir, "b"), kubeconfigWith(t, map[string][]byte{"kind-one": h.other.Kubeconfig(), "kind-two": h.other.Kubeconfig()}))
	late := h.connected(t, two)
	if conn.GetConfig().Host != h.workload.Config().Host || conn.Context().Err() != nil {
		t.Error("the second file's context of the same name counts")
	}
	double := fleet.NameOf(files.Name, multicluster.ClusterName(filepath.Join(dir, "b")+"+kind-one"))
	if says := h.expect(t, double, fleet.PhaseWaiting, fleet.ReasonKubeconfigUnreadable); !strings.Contains(says, first) || !strings.Contains(says, "kind-one of "+filepath.Join(dir, "b")) {
		t.Error(says)
	}

	// What can't be read for a while stays.
	write(t, first, []byte("{"))
	h.expect(t, one, fleet.PhaseConnected, fleet.ReasonKubeconfigUnreadable)
	write(t, first, nil)
	if conn.Context().Err() != nil {
		t.Error("disconnected while the file can't be read")
	}

	// The second file has it once the first has it no more.
	write(t, first, kubeconfigWith(t, nil))
	<-conn.Done()
	if conn = h.connected(t, one); conn.GetConfig().Host != h.other.Config().Host {
		t.Errorf("connected to %s", conn.GetConfig().Host)
	}
	h.expect(t, double, fleet.PhaseUnknown, fleet.ReasonClusterUnknown)
	must.Succeed(t, os.Remove(filepath.Join(dir, "b")))
	h.gone(t, one, conn)
	h.gone(t, two, late)
}

// TestMountedFiles are replaced as the kubelet does it: by another target of a symbolic link. The directory comes later.
func TestMountedFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mounted")
	h := startFiles(t, dir)
	mount := func(version string, data []byte) {
		must.Succeed(t, os.MkdirAll(filepath.Join(dir, version), 0o700))
		write(t, filepath.Join(dir, version, "config"), data)
		must.Succeed(t, os.Symlink(version, filepath.Join(dir, "..next")))
		must.Succeed(t, os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
	}
	mount("..1", kubeconfigWith(t, map[string][]byte{"one": h.workload.Kubeconfig()}))
	must.Succeed(t, os.Symlink(filepath.Join("..data", "config"), filepath.Join(dir, "config")))
	conn := h.connected(t, fleet.NameOf(files.Name, "one"))
	mount("..2", kubeconfigWith(t, map[string][]byte{"one": h.other.Kubeconfig()}))
	<-conn.Done()
	if conn = h.connected(t, fleet.NameOf(files.Name, "one")); conn.GetConfig().Host != h.other.Config().Host {
		t.Errorf("connected to %s", conn.GetConfig().Host)
	}
}

// TestTrustedFiles may run programs and read files. A context that doesn't change stays connected while others do.
func TestTrustedFiles(t *testing.T) {
	dir := t.TempDir()
	h := newHub(t)
	tokens := h.tokens(t)
	config := h.workload.Config()
	script := "#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"" + tokens() + "\"}}'\n"
	must.Succeed(t, os.WriteFile(filepath.Join(dir, ".plugin"), []byte(script), 0o700))
	write(t, filepath.Join(dir, ".token"), []byte(tokens()))
	contexts := map[string][]byte{
		"exec": fleettest.Kubeconfig(config.Host, config.CAData, &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "./.plugin", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}),
		"token-file": fleettest.Kubeconfig(config.Host, config.CAData, &clientcmdapi.AuthInfo{TokenFile: ".token"}),
	}
	file := filepath.Join(dir, "a")
	write(t, file, kubeconfigWith(t, contexts))
	source, err := files.New(files.Options{TrustedPaths: []string{dir}})
	must.Succeed(t, err)
	h.run(t, quick(source))
	name := func(context string) multicluster.ClusterName {
		return fleet.NameOf(files.Name, multicluster.ClusterName(context))
	}
	byProgram, byFile := h.connected(t, name("exec")), h.connected(t, name("token-file"))
	works(t, byProgram)
	works(t, byFile)

	contexts["other"] = h.other.Kubeconfig()
	contexts["exec"] = h.other.Kubeconfig()
	write(t, file, kubeconfigWith(t, contexts))
	works(t, h.connected(t, name("other")))
	<-byProgram.Done()
	if works(t, h.connected(t, name("exec"))); byFile.Context().Err() != nil {
		t.Error("a context that is as before was disconnected")
	}
	write(t, file, []byte("{"))
	h.expect(t, name("token-file"), fleet.PhaseConnected, fleet.ReasonKubeconfigUnreadable)
}

// A file that an administrator mounts isn't trusted with programs and files of the container.
func TestHostileFiles(t *testing.T) {
	dir := t.TempDir()
	ran := filepath.Join(dir, ".ran")
	h := startFiles(t, dir)
	config := h.workload.Config()
	write(t, filepath.Join(dir, "a"), kubeconfigWith(t, map[string][]byte{
		"exec":  fleettest.Kubeconfig(config.Host, config.CAData, &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "touch", Args: []string{ran}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}),
		"proxy": bytes.Replace(h.workload.Kubeconfig(), []byte("server: "), []byte("proxy-url: http://proxy.example.com\n    server: "), 1),
		"good":  h.workload.Kubeconfig(),
	}))
	h.connected(t, fleet.NameOf(files.Name, "good"))
	for _, name := range []string{"exec", "proxy"} {
		h.expect(t, fleet.NameOf(files.Name, multicluster.ClusterName(name)), fleet.PhaseRefused, fleet.ReasonKubeconfigRefused)
	}
	expectNoFile(t, ran)
}

// Options that can't be meant are told before the manager starts.
func TestFilesWithoutSense(t *testing.T) {
	for name, o := range map[string]files.Options{
		"no paths":          {},
		"a broken pattern":  {Paths: []string{"x"}, Contexts: []string{"["}},
		"a pattern of many": {Paths: []string{"x"}, Contexts: []string{"good", "bad["}},
	} {
		if _, err := files.New(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
