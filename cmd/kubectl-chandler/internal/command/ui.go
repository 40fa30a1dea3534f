// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/ui"
)

func (c *call) ui() *cobra.Command {
	port := 0
	cmd := c.command("ui", "Show a page for a browser on this machine, which follows changes", cobra.NoArgs, func() error {
		others, err := c.everyKind()
		if err != nil {
			return err
		}
		l, err := (&net.ListenConfig{}).Listen(c, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("--port: %w", err)
		}
		fmt.Fprintf(c.Out, "http://%s/\n", l.Addr())
		return ui.New(c.client, others, c.namespace).Run(c, l)
	})
	cmd.Long = "Show a page for a browser on this machine until it is interrupted. The page is read-only: it shows what you may read, to all\n" +
		"who may open connections on this machine."
	cmd.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1; by default one that is free")
	return c.inAllNamespaces(cmd)
}
