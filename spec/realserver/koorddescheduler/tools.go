//go:build tools

// Package koorddescheduler names the program that build.sh builds, so that go.mod and go.sum pin it.
package koorddescheduler

import _ "github.com/koordinator-sh/koordinator/cmd/koord-descheduler"
