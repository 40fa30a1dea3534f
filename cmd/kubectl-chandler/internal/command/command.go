// SPDX-License-Identifier: Apache-2.0

// Package command has the commands of kubectl chandler: each one reads, has a summary made, and prints it, or writes an
// annotation by which Chandler is asked for something.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/observed"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
)

// exitError is the exit code of a command that couldn't do its work. Those that judge have [summary.Verdict].
const exitError = 3

// judged ends a command whose output says what isn't well.
type judged summary.Verdict

// Error implements error.
func (j judged) Error() string { return fmt.Sprintf("exit code %d", int(j)) }

// verdict returns the error that a verdict ends a command with, nil if all is well.
func verdict(v summary.Verdict) error {
	if v == summary.Well {
		return nil
	}
	return judged(v)
}

// session is what all commands share.
type session struct {
	genericiooptions.IOStreams
	config        *genericclioptions.ConfigFlags
	allNamespaces bool
	output        string
	selector      string
}

// Run runs a command line, and returns the exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	log.SetLogger(logr.Discard())
	root := newRoot(streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if is, ok := errors.AsType[judged](err); ok {
		return int(is)
	}
	if err != nil {
		fmt.Fprintln(streams.ErrOut, "Error:", err)
		return exitError
	}
	return 0
}

func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	s := &session{IOStreams: streams, config: genericclioptions.NewConfigFlags(true)}
	s.config.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.QPS = -1 // a command makes few requests, each of which is waited for
		return c
	}
	root := &cobra.Command{
		Use: "kubectl-chandler", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl chandler"},
		Short: "See how the add-ons of a fleet are, and act on them", SilenceUsage: true, SilenceErrors: true,
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	s.config.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVarP(&s.output, "output", "o", "", "json, yaml, or wide, which names all clusters")
	root.AddCommand(s.status(), s.why(), s.tree(), s.events(), s.get(), s.look(), s.pause(), s.resume(), s.confirm(),
		s.history(), s.undo(), s.rollout(), s.version())
	return root
}

// client returns a client for the management cluster.
func (s *session) client() (client.WithWatch, error) {
	config, err := s.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return observed.NewClient(config)
}

// namespace returns the namespace of flags and kubeconfig.
func (s *session) namespace() (string, error) {
	namespace, _, err := s.config.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// scope returns what is to be read: a namespace, or all with -A.
func (s *session) scope() (observed.Scope, error) {
	is := observed.Scope{}
	if s.selector != "" {
		selector, err := labels.Parse(s.selector)
		if err != nil {
			return is, fmt.Errorf("--selector: %w", err)
		}
		is.Stacks = selector
	}
	if s.allNamespaces {
		return is, nil
	}
	var err error
	is.Namespace, err = s.namespace()
	return is, err
}

// allowAllNamespaces gives a command the flag -A.
func (s *session) allowAllNamespaces(c *cobra.Command) {
	c.Flags().BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "look in all namespaces")
}

// print writes a summary as -o asks for: an object of the kind, or what text writes.
func (s *session) print(kind string, is any, text func(*printing.Printer)) error {
	switch s.output {
	case "", "wide":
		text(s.printer())
		return nil
	}
	flags := genericclioptions.NewJSONYamlPrintFlags()
	printer, err := flags.ToPrinter(s.output)
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(is)
	if err != nil {
		return fmt.Errorf("writing %s: %w", kind, err)
	}
	content["apiVersion"], content["kind"] = "cli.addons.cluster.x-k8s.io/v1", cmp.Or(kind, "Report")
	return printer.PrintObj(&unstructured.Unstructured{Object: content}, s.Out)
}

// printer returns one for people. Colors are for terminals, unless NO_COLOR is set (no-color.org).
func (s *session) printer() *printing.Printer {
	file, isFile := s.Out.(*os.File)
	return &printing.Printer{
		Out: s.Out, Wide: s.output == "wide", Now: time.Now(),
		Color: isFile && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd())),
	}
}
