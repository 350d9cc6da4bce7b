package supervise

import "syscall"

// childAttributes puts a child out of reach of the terminal's Ctrl-C and ties its life to ours.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
