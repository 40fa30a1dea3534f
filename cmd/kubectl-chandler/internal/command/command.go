// SPDX-License-Identifier: Apache-2.0

// Package command has the commands of kubectl chandler: each one reads, has a summary made, and prints it, or writes an
// annotation by which Chandler is asked for something.
package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/printing"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/observed"
)

// exitError is the exit code of a command that couldn't do its work. A command that gives a verdict has a [summary.Verdict].
const exitError = 3

// call is one run of a command line.
type call struct {
	format
	context.Context
	config        *genericclioptions.ConfigFlags
	allNamespaces bool
	selector      string
	verdict       summary.Verdict // of what was looked at

	args      []string
	server    *rest.Config     // of the management cluster
	client    client.WithWatch // for it
	namespace string           // of flags and kubeconfig
}

// Run runs a command line, and returns the exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	log.SetLogger(logr.Discard())
	c := &call{format: format{IOStreams: streams}, Context: ctx, config: genericclioptions.NewConfigFlags(true)}
	c.config.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS = -1 // a command makes few requests, each of which is waited for
		return config
	}
	root := &cobra.Command{
		Use: "kubectl-chandler", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl chandler"},
		Short: "See how the add-ons of a fleet are, and act on them", SilenceUsage: true, SilenceErrors: true,
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetArgs(args)
	c.config.AddFlags(root.PersistentFlags())
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shownFlags, f.Name) })
	root.PersistentFlags().StringVarP(&c.output, "output", "o", "", "json, yaml, or wide, which names all clusters")
	root.AddCommand(c.status(), c.why(), c.tree(), c.events(), c.get(), c.history(), c.plan(), c.undo(), c.rollout(), c.migrate(), c.version(), c.ui())
	root.AddCommand(c.changes()...)
	addExamples(root)
	completeFlags(c, root)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(streams.ErrOut, "Error:", printing.Clean(err.Error()))
		return exitError
	}
	return int(c.verdict)
}

// shownFlags are those of kubectl's own flags that help shows. All of them work, and kubectl options lists them.
var shownFlags = []string{"namespace", "context", "kubeconfig"}

// command makes a command. Its first argument, if it takes any, is completed with names of stacks and clusters.
func (c *call) command(use, short string, args cobra.PositionalArgs, run func() error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args, ValidArgsFunction: c.completeNames,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := c.begin(args); err != nil {
				return err
			}
			return run()
		},
	}
}

// group makes a command that has others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}

// onRead makes a command that reads something first.
func onRead[T any](c *call, use, short string, args cobra.PositionalArgs, read func() (T, error), run func(T) error) *cobra.Command {
	return c.command(use, short, args, func() error {
		is, err := read()
		if err != nil {
			return err
		}
		return run(is)
	})
}

// begin connects to the management cluster.
func (c *call) begin(args []string) (err error) {
	c.args = args
	if c.server, err = c.config.ToRESTConfig(); err == nil {
		c.client, err = observed.NewClient(c.server)
	}
	if err != nil {
		return err
	}
	c.namespace, _, err = c.config.ToRawKubeConfigLoader().Namespace()
	if c.allNamespaces {
		c.namespace = ""
	}
	return err
}

// everyKind returns a client that knows all kinds of the management cluster.
func (c *call) everyKind() (client.Client, error) {
	is, err := client.New(c.server, client.Options{Scheme: c.client.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", c.server.Host, err)
	}
	return is, nil
}

// inAllNamespaces gives a command the flag -A.
func (c *call) inAllNamespaces(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "look in all namespaces")
	return cmd
}

// read reads an object of the namespace.
func (c *call) read(o client.Object, name string) error {
	if err := c.client.Get(c, client.ObjectKey{Namespace: c.namespace, Name: name}, o); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// fleet reads all kinds, in the namespace or with -A in all. If there is nothing, there has to be a namespace.
func (c *call) fleet() (*observed.Fleet, error) {
	selector, err := labels.Parse(c.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	f, err := observed.Read(c, c.client, c.namespace, selector)
	if err == nil && c.namespace != "" && len(f.Stacks)+len(f.Clusters) == 0 {
		if missing := c.client.Get(c, client.ObjectKey{Name: c.namespace}, &corev1.Namespace{}); apierrors.IsNotFound(missing) {
			return nil, missing
		}
	}
	return f, err
}

// outputs are those of -o.
var outputs = []string{"json", "yaml", "wide"}

// format is -o, and where a command writes.
type format struct {
	genericiooptions.IOStreams
	output string
}

// check returns an error if -o isn't known.
func (f *format) check() error {
	if f.output != "" && !slices.Contains(outputs, f.output) {
		return fmt.Errorf("-o: %s is none of %s", f.output, strings.Join(outputs, ", "))
	}
	return nil
}

// print writes what was asked for as -o says: an object of a kind, or a page that shows something.
func (f *format) print(kind string, is any, page string, shown any) error {
	if f.output == "" || f.output == "wide" {
		return f.write(page, shown)
	}
	if err := f.check(); err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(is)
	if err != nil {
		return fmt.Errorf("writing %s: %w", kind, err)
	}
	content["apiVersion"], content["kind"] = "cli.addons.cluster.x-k8s.io/v1", kind
	data, err := json.MarshalIndent(content, "", "    ")
	text := printing.Escape(string(data)) + "\n"
	if f.output == "yaml" && err == nil {
		data, err = yaml.JSONToYAML([]byte(text))
		text = printing.Clean(string(data))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", kind, err)
	}
	_, err = fmt.Fprint(f.Out, text)
	return err
}

// write writes a page. Colors are for terminals, unless NO_COLOR is set (no-color.org).
func (f *format) write(page string, of any) error {
	p := &printing.Printer{Out: f.Out, Wide: f.output == "wide", Now: time.Now(), Color: printers.AllowsColorOutput(f.Out)}
	return p.Write(page, of)
}
