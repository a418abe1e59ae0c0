//go:build tools

// Package oldest names the program that build.sh builds, so that go.mod and go.sum pin it.
package oldest

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
