package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// hostLine describes the machine.
func hostLine() string {
	model, memory := "unknown processor", ""
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		model = field(string(b), "model name", model)
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int64
		if _, err := fmt.Sscanf(field(string(b), "MemTotal", ""), "%d", &kib); err == nil {
			memory = fmt.Sprintf(", %d GiB", (kib+1<<19)>>20)
		}
	}
	var u syscall.Utsname
	kernel := runtime.GOOS
	if syscall.Uname(&u) == nil {
		release, _, _ := strings.Cut(text(u.Release), "-") // what a distribution or a provider adds says nothing
		kernel = text(u.Sysname) + " " + release
	}
	return fmt.Sprintf("%s, %d cores%s, %s, %s", model, runtime.NumCPU(), memory, kernel, runtime.GOARCH)
}

// field finds the first "name : value" line.
func field(s, name, otherwise string) string {
	for line := range strings.Lines(s) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return otherwise
}

func text[T int8 | uint8](c [65]T) string {
	var b []byte
	for _, x := range c {
		if x == 0 {
			break
		}
		b = append(b, byte(x))
	}
	return string(b)
}

// load is the load average of the last minute.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

// versionOf says what a server is made of: from a file beside it, or from what the
// Go linker wrote into it.
func versionOf(path string) string {
	if b, err := os.ReadFile(path + ".version"); err == nil {
		return strings.TrimSpace(string(b))
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	version := "Go " + strings.TrimPrefix(info.GoVersion, "go")
	if b, err := os.ReadFile(path + ".commit"); err == nil {
		version = "commit " + strings.TrimSpace(string(b)) + ", " + version
	}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/modelcontextprotocol/go-sdk", "github.com/mark3labs/mcp-go":
			version += ", " + d.Path + " " + d.Version
		}
	}
	return version
}
