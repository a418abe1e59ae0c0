//go:build tools

// Package koordmanager names the program that build.sh builds, so that go.mod and go.sum pin it.
package koordmanager

import _ "github.com/koordinator-sh/koordinator/cmd/koord-manager"
