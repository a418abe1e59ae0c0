//go:build tools

// Package helm names the program that build.sh builds, so that go.mod and go.sum pin it.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
