//go:build !linux

package main

import "syscall"

const parentDied = syscall.SIGHUP

// signalParentDeath exists on Linux only: elsewhere, closing stdin has to do.
func signalParentDeath() {}
