//go:build !linux

package supervise

import "syscall"

// childAttributes puts a child out of reach of the terminal's Ctrl-C; only Linux can do more.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
