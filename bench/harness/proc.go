package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// server is one implementation under test.
type server struct {
	Name  string
	Path  string
	HTTP  bool // has an HTTP mode
	Stats bool // answers on the stats socket
}

// logLine is one line a handler wrote to BENCH_LOG.
type logLine struct {
	kind byte
	at   int64
	tag  string
}

// proc is a running server.
type proc struct {
	srv   *server
	cmd   *exec.Cmd
	dir   string
	stats string
	addr  string // HTTP address
	in    *os.File
	out   *os.File
	log   chan logLine
	logF  *os.File
	errB  *lockedBuf
	done  chan struct{}
	exit  atomic.Int64 // unix nanos of exit
	start time.Time
}

type lockedBuf struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuf) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() < 64<<10 {
		l.b.Write(p)
	}
	return len(p), nil
}
func (l *lockedBuf) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// hangDir receives what is known about a server that the watchdog had to kill.
var hangDir = filepath.Join(os.TempDir(), "mcpbench-hangs")

var procSeq atomic.Int64

// spawn starts a server, on stdio or over HTTP, with further flags. It waits until an HTTP server listens.
func spawn(s *server, httpMode bool, args ...string) (*proc, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("mcpbench-%d-%d", os.Getpid(), procSeq.Add(1)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p := &proc{srv: s, dir: dir, stats: filepath.Join(dir, "s"), errB: &lockedBuf{}, done: make(chan struct{}), log: make(chan logLine, 1<<16)}
	fifo := filepath.Join(dir, "log")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		return nil, err
	}
	lfd, err := syscall.Open(fifo, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// widen the fifo so that handlers never block on it
	syscall.Syscall(syscall.SYS_FCNTL, uintptr(lfd), 1031, 1<<20)
	f2 := os.NewFile(uintptr(lfd), fifo)
	p.logF = f2
	go func() {
		r := bufio.NewReaderSize(f2, 1<<16)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			kind, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if !ok || len(kind) != 1 {
				continue
			}
			ts, tag, _ := strings.Cut(rest, " ")
			n, err := strconv.ParseInt(ts, 10, 64)
			if err != nil {
				continue
			}
			p.log <- logLine{kind[0], n, tag}
		}
	}()
	var a []string
	if httpMode {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		p.addr = ln.Addr().String()
		ln.Close()
		a = append(a, "-http", p.addr)
	}
	a = append(a, args...)
	p.cmd = exec.Command(s.Path, a...)
	p.cmd.Env = append(os.Environ(), "BENCH_LOG="+fifo)
	if s.Stats {
		p.cmd.Env = append(p.cmd.Env, "BENCH_STATS="+p.stats)
	}
	p.cmd.Stderr = p.errB
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if !httpMode {
		// Blocking pipes of our own: the measuring goroutine reads and writes them with plain
		// system calls, without a trip through the runtime poller.
		var pin, pout [2]int
		if err := syscall.Pipe2(pin[:], syscall.O_CLOEXEC); err != nil {
			return nil, err
		}
		if err := syscall.Pipe2(pout[:], syscall.O_CLOEXEC); err != nil {
			return nil, err
		}
		cin := os.NewFile(uintptr(pin[0]), "stdin")
		cout := os.NewFile(uintptr(pout[1]), "stdout")
		p.cmd.Stdin, p.cmd.Stdout = cin, cout
		p.in, p.out = os.NewFile(uintptr(pin[1]), "in"), os.NewFile(uintptr(pout[0]), "out")
		p.start = time.Now()
		if err := p.cmd.Start(); err != nil {
			return nil, err
		}
		cin.Close()
		cout.Close()
	} else {
		p.start = time.Now()
		if err := p.cmd.Start(); err != nil {
			return nil, err
		}
	}
	go func() {
		p.cmd.Wait()
		p.exit.Store(time.Now().UnixNano())
		close(p.done)
	}()
	if httpMode {
		for i := 0; ; i++ {
			c, err := net.Dial("tcp", p.addr)
			if err == nil {
				c.Close()
				break
			}
			select {
			case <-p.done:
				return nil, fmt.Errorf("%s exited: %s", s.Name, p.errB)
			default:
			}
			if i > 1000 {
				p.kill()
				return nil, errors.New("no listener")
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	return p, nil
}

// kill ends the server and cleans up.
func (p *proc) kill() {
	if p.in != nil {
		p.in.Close()
	}
	p.cmd.Process.Kill()
	<-p.done
	if p.out != nil {
		p.out.Close()
	}
	p.logF.Close()
	os.RemoveAll(p.dir)
}

// watchdog kills the server after d unless stopped; a blocked read then sees EOF.
func (p *proc) watchdog(d time.Duration) (stop func() bool) {
	t := time.AfterFunc(d, func() {
		threads := p.threads()
		time.Sleep(200 * time.Millisecond)
		threads += "--- 200 ms later\n" + p.threads()
		p.cmd.Process.Signal(syscall.SIGQUIT) // a Go server dumps its goroutines on stderr
		time.Sleep(300 * time.Millisecond)
		p.cmd.Process.Kill()
		time.Sleep(100 * time.Millisecond)
		os.MkdirAll(hangDir, 0o755) // without it the watchdog has told less, and killed all the same
		os.WriteFile(filepath.Join(hangDir, fmt.Sprintf("%s-%d.txt", p.srv.Name, time.Now().UnixNano())), []byte(threads+p.errB.String()), 0o644)
	})
	return t.Stop
}

// threads describes what the server's threads are doing.
func (p *proc) threads() string {
	var b strings.Builder
	d, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.pid()))
	for _, t := range d {
		st, _ := os.ReadFile(t + "/stat")
		sc, _ := os.ReadFile(t + "/syscall")
		wc, _ := os.ReadFile(t + "/wchan")
		ss, _ := os.ReadFile(t + "/schedstat")
		if i := bytes.LastIndexByte(st, ')'); i > 0 && len(st) > i+2 {
			fmt.Fprintf(&b, "%s state %c wchan %s schedstat %s syscall %s\n", filepath.Base(t), st[i+2], wc, bytes.TrimSpace(ss), bytes.TrimSpace(sc))
		}
	}
	return b.String()
}

// cpu is user+system time used so far (all threads), at 10 ms resolution.
func (p *proc) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+2:]))
	u, _ := strconv.ParseInt(f[11], 10, 64)
	s, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(u+s) * 10 * time.Millisecond
}

func (p *proc) pid() int { return p.cmd.Process.Pid }

// rss is the resident set in bytes.
func (p *proc) rss() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
	if err != nil {
		return 0
	}
	for _, l := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

type memStats struct {
	Goroutines                                            int
	TotalAlloc, Mallocs, HeapAlloc, HeapInuse, StackInuse uint64
	NumGC                                                 uint32
	PauseTotal                                            uint64
}

// mem asks the server for runtime statistics; gc makes it collect and return memory first.
func (p *proc) mem(gc bool) memStats {
	var m memStats
	if !p.srv.Stats {
		return m
	}
	c, err := net.Dial("unix", p.stats)
	if err != nil {
		return m
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if gc {
		io.WriteString(c, "gc\n")
	} else {
		io.WriteString(c, "stats\n")
	}
	json.NewDecoder(c).Decode(&m)
	return m
}

// waitLog returns the next log line within d.
func (p *proc) waitLog(d time.Duration) (logLine, bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case l := <-p.log:
		return l, true
	case <-t.C:
		return logLine{}, false
	}
}

// waitTag returns the next line of one of the kinds for tag, dropping others.
func (p *proc) waitTag(kinds, tag string, d time.Duration) (logLine, bool) {
	end := time.Now().Add(d)
	for {
		l, ok := p.waitLog(time.Until(end))
		if !ok {
			return l, false
		}
		if l.tag == tag && strings.IndexByte(kinds, l.kind) >= 0 {
			return l, true
		}
	}
}

const initParams = `{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{},"roots":{}},"clientInfo":{"name":"mcpbench","version":"1.0.0"}}`
const initReq = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + initParams + "}\n"
const initializedNote = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// stdioConn is an initialized stdio session.
type stdioConn struct {
	p *proc
	r *bufio.Reader
}

// dialStdio spawns and initializes.
func dialStdio(s *server, args ...string) (*stdioConn, time.Duration, error) {
	p, err := spawn(s, false, args...)
	if err != nil {
		return nil, 0, err
	}
	stop := p.watchdog(20 * time.Second)
	defer stop()
	c := &stdioConn{p, bufio.NewReaderSize(p.out, 4<<20)}
	if _, err := io.WriteString(p.in, initReq); err != nil {
		p.kill()
		return nil, 0, err
	}
	line, err := c.r.ReadSlice('\n')
	took := time.Since(p.start)
	if err != nil || !bytes.Contains(line, []byte(`"result"`)) {
		p.kill()
		return nil, 0, fmt.Errorf("initialize: %v %s %s", err, line, p.errB)
	}
	io.WriteString(p.in, initializedNote)
	return c, took, nil
}

// idOf finds the numeric id of a response, or -1.
func idOf(line []byte) int64 {
	i := bytes.Index(line, []byte(`"id":`))
	if i < 0 {
		return -1
	}
	i += 5
	n, any := int64(0), false
	for i < len(line) && line[i] >= '0' && line[i] <= '9' {
		n = n*10 + int64(line[i]-'0')
		i++
		any = true
	}
	if !any {
		return -1
	}
	return n
}
