package main

import (
	"os/exec"
	"syscall"
)

// tie lets a process end when this one does, even when this one is killed: an
// HTTP server has no stdin that would tell it.
func tie(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
