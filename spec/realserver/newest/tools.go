//go:build tools

// Package newest names the program that build.sh builds, so that go.mod and go.sum pin it.
package newest

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
