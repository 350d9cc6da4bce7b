package supervise

import "syscall"

// soReusePort is SO_REUSEPORT, which package syscall does not name on every Linux architecture.
const soReusePort = 0xf

// childAttributes puts a child out of reach of the terminal's Ctrl-C and ties its life to ours.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
