//go:build tools

// Package realserver names the programs that build.sh builds, so that go.mod and go.sum pin them.
package realserver

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
