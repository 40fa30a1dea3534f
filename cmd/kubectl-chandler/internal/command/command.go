// SPDX-License-Identifier: Apache-2.0

// Package command has the commands of kubectl chandler: each one reads, has a summary made, and prints it, or writes an
// annotation by which Chandler is asked for something.
package command

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/observed"
)

// exitError is the exit code of a command that couldn't do its work. A command that judges has a [summary.Verdict].
const exitError = 3

// session is what all commands share.
type session struct {
	genericiooptions.IOStreams
	config           *genericclioptions.ConfigFlags
	allNamespaces    bool
	output, selector string
	verdict          summary.Verdict // of what was looked at
}

// call is one run of a command.
type call struct {
	*session
	context.Context
	client    client.WithWatch // for the management cluster
	namespace string           // of flags and kubeconfig
	args      []string
}

// Run runs a command line, and returns the exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	log.SetLogger(logr.Discard())
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
	root.SetArgs(args)
	s.config.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVarP(&s.output, "output", "o", "", "json, yaml, or wide, which names all clusters")
	root.AddCommand(s.status(), s.why(), s.tree(), s.events(), s.get(), s.history(), s.undo(), s.rollout(), s.migrate(), s.version())
	root.AddCommand(s.changes()...)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(streams.ErrOut, "Error:", err)
		return exitError
	}
	return int(s.verdict)
}

// command makes a command. Its first argument, if it takes any, is completed with names of stacks and clusters.
func (s *session) command(use, short string, args cobra.PositionalArgs, run func(*call) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args, ValidArgsFunction: s.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.call(cmd, args)
			if err != nil {
				return err
			}
			return run(c)
		},
	}
}

// onRead makes a command that reads something first.
func onRead[T any](s *session, use, short string, args cobra.PositionalArgs, read func(*call) (T, error), run func(*call, T) error) *cobra.Command {
	return s.command(use, short, args, func(c *call) error {
		is, err := read(c)
		if err != nil {
			return err
		}
		return run(c, is)
	})
}

func (s *session) call(cmd *cobra.Command, args []string) (*call, error) {
	config, err := s.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	c := &call{session: s, Context: cmd.Context(), args: args}
	if c.client, err = observed.NewClient(config); err != nil {
		return nil, err
	}
	c.namespace, _, err = s.config.ToRawKubeConfigLoader().Namespace()
	if s.allNamespaces {
		c.namespace = ""
	}
	return c, err
}

// in gives a command the flag -A.
func (s *session) inAllNamespaces(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "look in all namespaces")
	return cmd
}

// fleet reads all kinds, in the namespace or with -A in all.
func (c *call) fleet() (*observed.Fleet, error) {
	selector, err := labels.Parse(c.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	return observed.Read(c, c.client, c.namespace, selector)
}

// print writes a summary as -o asks for: an object of the kind, or what text writes.
func (s *session) print(kind string, is any, text func(*printing.Printer)) error {
	if s.output == "" || s.output == "wide" {
		text(s.printer())
		return nil
	}
	printer, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(s.output)
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(is)
	if err != nil {
		return fmt.Errorf("writing %s: %w", kind, err)
	}
	content["apiVersion"], content["kind"] = "cli.addons.cluster.x-k8s.io/v1", kind
	return printer.PrintObj(&unstructured.Unstructured{Object: content}, s.Out)
}

// printer returns one for people. Colors are for terminals, unless NO_COLOR is set (no-color.org).
func (s *session) printer() *printing.Printer {
	return &printing.Printer{Out: s.Out, Wide: s.output == "wide", Now: time.Now(), Color: printers.AllowsColorOutput(s.Out)}
}
