package main

import "slices"

// A probe answers one yes/no style question about a server, in words.
type probe struct {
	id, question, wanted string
	http                 bool
	run                  func(s *server) string
}

// probes are all of them, in the order of the report.
var probes = slices.Concat(stdioProbes, httpProbes)
