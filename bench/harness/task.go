package main

import (
	"strings"
	"time"
)

// task is one thing to measure.
type task struct {
	name string
	http bool
	run  func(s *server, r rec, note func(string)) error
}

// tasksAt are all tasks, with their durations and counts scaled.
func tasksAt(scale float64) []task {
	during := func(d time.Duration) time.Duration { return time.Duration(float64(d) * scale) }
	times := func(n int) int { return max(20, int(float64(n)*scale)) }
	// sizes are part of what a figure says, and shrink only for a first look
	size := func(n int) int {
		if scale >= .5 {
			return n
		}
		return times(n)
	}
	echoArgs := `{"text":"` + echoText + `"}`
	big := strings.Repeat("The quick brown fox jumps over the lazy dog. 0123456789 äöü \\n ", 250)
	// Over HTTP, since servers that read standard input with plain system calls stop for a minute
	// when a collection begins at the wrong instant (Go 1.26), and 1 MB texts make many of them.
	mega := strings.Repeat(big, 60)
	httpTask := func(prefix string, modern bool, tool, args, meta, want string, flags ...string) task {
		return task{prefix, true, func(s *server, r rec, note func(string)) error {
			return mHTTP(s, 32, during(1200*time.Millisecond), modern, flags, tool, args, meta, want, prefix, r, note)
		}}
	}
	return []task{
		{"startup", false, func(s *server, r rec, note func(string)) error { return mStartup(s, times(8), r) }},
		{"seq", false, func(s *server, r rec, note func(string)) error { return mSeq(s, times(4000), r) }},
		{"pipe64", false, func(s *server, r rec, note func(string)) error {
			return mPipe(s, 64, during(1500*time.Millisecond), echoText, "pipe64", r)
		}},
		{"pipe16k", false, func(s *server, r rec, note func(string)) error {
			return mPipe(s, 2, during(700*time.Millisecond), big, "pipe16k", r)
		}},
		{"list100", false, func(s *server, r rec, note func(string)) error {
			return mList(s, times(600), r)
		}},
		{"core100", false, func(s *server, r rec, note func(string)) error {
			return mCore(s, during(500*time.Millisecond), r)
		}},
		{"read50", false, func(s *server, r rec, note func(string)) error {
			return mRead(s, times(1500), r)
		}},
		{"notify", false, func(s *server, r rec, note func(string)) error {
			return mNotify(s, times(20000), r)
		}},
		{"cancel", false, func(s *server, r rec, note func(string)) error { return mCancel(s, times(2000), r) }},
		{"cancel1000", false, func(s *server, r rec, note func(string)) error {
			return mCancelAmong(s, times(1000), size(1000), r, note)
		}},
		{"inflight", false, func(s *server, r rec, note func(string)) error {
			return mInflight(s, size(10000), nil, "inflight", r, note)
		}},
		{"inflightmax", false, func(s *server, r rec, note func(string)) error {
			if s.Name != "mcpgo" {
				return nil
			}
			return mInflight(s, size(10000), []string{"-max"}, "inflightmax", r, note)
		}},
		httpTask("http_legacy_json", false, "echo", echoArgs, "", echoText, "-json"),
		httpTask("http_legacy_sse", false, "echo", echoArgs, "", echoText),
		httpTask("http_modern_json", true, "echo", echoArgs, "", echoText, "-modern", "-json"),
		httpTask("http_modern_sse", true, "echo", echoArgs, "", echoText, "-modern"),
		{"http_1m", true, func(s *server, r rec, note func(string)) error {
			return mHTTP(s, 4, during(900*time.Millisecond), true, []string{"-modern", "-json"}, "echo", `{"text":"`+mega+`"}`, "", "The quick brown fox", "http_1m", r, note)
		}},
		{"http2", true, func(s *server, r rec, note func(string)) error {
			return mHTTP2(s, 32, during(1000*time.Millisecond), r)
		}},
		httpTask("http_legacy_progress", false, "progress", `{"n":3}`, `"progressToken":"p"`, `"done"`),
		httpTask("http_modern_progress", true, "progress", `{"n":3}`, `"progressToken":"p"`, `"done"`, "-modern"),
		{"hcancel_legacy", true, func(s *server, r rec, note func(string)) error {
			return mHTTPCancel(s, times(2000), false, nil, "hcancel_legacy", r)
		}},
		{"hcancel_modern", true, func(s *server, r rec, note func(string)) error {
			return mHTTPCancel(s, times(2000), true, []string{"-modern"}, "hcancel_modern", r)
		}},
		{"hcancel_modern_opt", true, func(s *server, r rec, note func(string)) error {
			if s.Name != "gosdk" {
				return nil
			}
			return mHTTPCancel(s, times(2000), true, []string{"-modern", "-propagate"}, "hcancel_modern_opt", r)
		}},
		{"sessions", true, func(s *server, r rec, note func(string)) error {
			return mSessions(s, size(5000), false, "sessions", r, note)
		}},
		{"sessionsget", true, func(s *server, r rec, note func(string)) error {
			return mSessions(s, size(1000), true, "sessionsget", r, note)
		}},
	}
}
