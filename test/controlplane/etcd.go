// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"net"
	"path/filepath"
)

// startEtcd lets etcd listen on sockets in its directory: no TCP port to find, and no one else can reach it.
func (c *ControlPlane) startEtcd(ctx context.Context) error {
	// etcd wants a port in the addresses that it would tell other members. A socket's may be any.
	const peer = "unix://peer:0"
	etcd, err := c.run("etcd",
		"--name=etcd",
		"--data-dir="+filepath.Join(c.dir, "etcd"),
		"--listen-client-urls="+c.etcdURL(),
		"--advertise-client-urls=unix://client:0",
		"--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer,
		"--initial-cluster=etcd="+peer,
		"--unsafe-no-fsync", // data that dies with this process needs no disk
		"--enable-grpc-gateway=false",
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	c.etcd = etcd
	var dialer net.Dialer
	return c.wait(ctx, "waiting for etcd", func(ctx context.Context) error {
		conn, err := dialer.DialContext(ctx, "unix", c.path("etcd.sock"))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (c *ControlPlane) etcdURL() string { return "unix://" + c.path("etcd.sock") }
