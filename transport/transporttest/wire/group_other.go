//go:build !unix

package wire

import "os/exec"

func isolate(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
