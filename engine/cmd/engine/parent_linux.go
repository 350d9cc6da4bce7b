package main

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// parentDied is what the kernel sends when the thread that started this process ends.
const parentDied = syscall.SIGHUP

func init() {
	// The request is a property of the thread that makes it: the main thread lives as long as the process.
	runtime.LockOSThread()
}

// signalParentDeath is a best effort: closing stdin is what stops the engine, where both work.
func signalParentDeath() {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(parentDied), 0, 0, 0)
}
