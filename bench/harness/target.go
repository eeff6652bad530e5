package main

// target is what Heed wants to reach in one figure: the ratio of its median to
// that of each other server, or a bound of its own.
type target struct {
	figure string
	metric string
	unit   string
	more   bool               // a higher value is better
	ratios map[string]float64 // by server; at most, or at least if more
	bound  float64            // of the value itself; 0: none
}

const (
	floorServer = "floor"
	heedServer  = "heed"
	sdkServer   = "gosdk"
	peerServer  = "mcpgo"
)

func against(floor, peer, sdk float64) map[string]float64 {
	m := map[string]float64{}
	for name, v := range map[string]float64{floorServer: floor, peerServer: peer, sdkServer: sdk} {
		if v > 0 {
			m[name] = v
		}
	}
	return m
}

var targets = []target{
	{"stdio, 64 outstanding, CPU per call", "pipe64_cpu_us", "µs", false, against(1, .22, .05), 0},
	{"stdio, 64 outstanding, calls per second", "pipe64_calls_s", "", true, against(1, 3, 14), 0},
	{"stdio, 16 kB text, CPU per call", "pipe16k_cpu_us", "µs", false, against(.7, .2, .25), 0},
	{"HTTP session, JSON, CPU per call", "http_legacy_json_cpu_us", "µs", false, against(1.15, .5, .1), 0},
	{"HTTP stateless, JSON, CPU per call", "http_modern_json_cpu_us", "µs", false, against(1.15, .27, .06), 0},
	{"HTTP session, default mode, CPU per call", "http_legacy_sse_cpu_us", "µs", false, against(1.15, .5, .15), 0},
	{"HTTP stateless, default mode, CPU per call", "http_modern_sse_cpu_us", "µs", false, against(1.15, .5, .15), 0},
	{"HTTP session, three progress notifications, CPU per call", "http_legacy_progress_cpu_us", "µs", false, against(1.15, .5, .15), 0},
	{"HTTP stateless, three progress notifications, CPU per call", "http_modern_progress_cpu_us", "µs", false, against(1.15, .5, .15), 0},
	{"stdio, allocations per call", "pipe64_mallocs", "", false, against(.7, 0, 0), 0},
	{"HTTP stateless, allocations per call", "http_modern_json_mallocs", "", false, against(.7, 0, 0), 0},
	{"stdio, cancel latency, p50", "cancel_p50_us", "µs", false, against(1.1, 0, 0), 0},
	{"stdio, cancel latency, p99", "cancel_p99_us", "µs", false, against(1.3, 0, 0), 0},
	{"HTTP session, cancel latency, p50", "hcancel_legacy_p50_us", "µs", false, against(1.1, 0, 0), 0},
	{"HTTP session, cancel latency, p99", "hcancel_legacy_p99_us", "µs", false, against(1.3, 0, 0), 0},
	{"HTTP stateless, cancel latency, p50", "hcancel_modern_p50_us", "µs", false, against(1.1, 0, 0), 0},
	{"HTTP stateless, cancel latency, p99", "hcancel_modern_p99_us", "µs", false, against(1.3, 0, 0), 0},
	{"bytes per waiting call, 10 000 on one stdio connection", "inflight_heapstack_B_per_req", "B", false, against(1.15, 0, .65), 0},
	{"cancel all 10 000: until the last has observed it", "inflight_cancel_all_ms", "ms", false, against(1.5, 0, .12), 0},
	{"live bytes per idle HTTP session", "sessions_heapstack_B_per_session", "B", false, nil, 1024},
	{"live bytes per HTTP session with an open GET stream", "sessionsget_heapstack_B_per_session", "B", false, against(1.15, 0, 0), 0},
	{"tools/list with 100 tools in the core, CPU per call", "core100_cpu_us", "µs", false, against(0, 0, .005), 0},
	{"start to first answer", "startup_ms", "ms", false, against(1.2, 0, .85), 0},
}
