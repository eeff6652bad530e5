package streamable

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// hostAllowed checks the Host header of a request that came in over loopback. A
// page of somebody else whose name was made to resolve to 127.0.0.1 reaches a local
// server, but cannot hide its name.
//
// Specification: basic/transports/streamable-http (2026-07-28), security.
func (h *Handler) hostAllowed(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !loopbackAddr(local) {
		return true
	}
	if loopbackName(hostname(r.Host)) {
		return true
	}
	for _, allowed := range h.options.AllowedHosts {
		if allowed == "*" || strings.EqualFold(allowed, r.Host) || strings.EqualFold(allowed, hostname(r.Host)) {
			return true
		}
	}
	return false
}

// originOf checks the Origin header. Without one the request does not come from a
// page of another site.
func (h *Handler) originOf(r *http.Request) (origin string, present, ok bool) {
	values := r.Header["Origin"]
	switch len(values) {
	case 0:
		return "", false, true
	case 1:
		return values[0], true, h.originAllowed(values[0], r)
	}
	return "", true, false
}

func (h *Handler) originAllowed(origin string, r *http.Request) bool {
	for _, allowed := range h.options.AllowedOrigins {
		if allowed == "*" || strings.EqualFold(allowed, origin) {
			return true
		}
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	return loopbackName(u.Hostname()) || sameHost(u, r.Host)
}

// sameHost tells whether an origin is that of the Host header, default ports
// included. The scheme that the client used may have been left at a proxy, so
// it is not compared.
func sameHost(u *url.URL, host string) bool {
	name, port := hostname(host), ""
	if _, p, err := net.SplitHostPort(host); err == nil {
		port = p
	}
	standard := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	originPort := u.Port()
	if originPort == "" {
		originPort = standard
	}
	if port == "" {
		port = standard
	}
	return strings.EqualFold(u.Hostname(), name) && originPort == port
}

// hostname is the name in a Host header, without port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// loopbackName tells whether a name can only mean this machine.
func loopbackName(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

func loopbackAddr(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
