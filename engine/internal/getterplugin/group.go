package getterplugin

import (
	"os/exec"
	"syscall"
)

// inGroup makes the child the head of a process group, so that its plugin can be ended with it.
func inGroup(child *exec.Cmd) { child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(child *exec.Cmd) error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }

// endOwnGroup is for a child whose engine is gone and cannot end it any more.
func endOwnGroup() { _ = syscall.Kill(0, syscall.SIGKILL) }
