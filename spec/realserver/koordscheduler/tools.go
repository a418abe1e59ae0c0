//go:build tools

// Package koordscheduler names the program that build.sh builds, so that go.mod and go.sum pin it.
package koordscheduler

import _ "github.com/koordinator-sh/koordinator/cmd/koord-scheduler"
