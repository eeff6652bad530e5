package server

import "slices"

// The protocol revisions that Heed serves.
const (
	Version20241105 = "2024-11-05"
	Version20250326 = "2025-03-26"
	Version20250618 = "2025-06-18"
	Version20251125 = "2025-11-25"
	Version20260728 = "2026-07-28"
)

// Versions lists the protocol revisions that Heed serves, newest first.
func Versions() []string {
	all := make([]string, len(revisions))
	for i, r := range revisions {
		all[i] = r.version
	}
	return all
}

// Versions lists the protocol revisions that this server serves, newest first.
func (s *Server) Versions() []string { return s.versions() }

// revision is everything in which protocol revisions differ. It is the only
// place that knows; the rest of the server asks these fields and the methods
// beside them (encode.go).
type revision struct {
	version   string
	stateless bool // no handshake: _meta in each request, resultType in each result

	batches           bool // arrays of messages
	audio             bool // audio content
	toolAnnotations   bool // also progress messages and the completions capability
	structured        bool // structured content, output schemas, resource links, titles, _meta on features
	elicitation       bool // form mode
	urlElicitation    bool // and explicit modes, icons, sampling with tools, titled enums
	completionContext bool
	anySchemaRoot     bool // structured content and output schemas need not be objects
	notFound          int  // code for a resource that does not exist
}

const (
	codeResourceNotFound = -32002 // of the handshake era
	codeInvalidParams    = -32602
)

// revisions is ordered newest first.
var revisions = []*revision{
	{version: Version20260728, stateless: true, audio: true, toolAnnotations: true, structured: true, elicitation: true,
		urlElicitation: true, completionContext: true, anySchemaRoot: true, notFound: codeInvalidParams},
	{version: Version20251125, audio: true, toolAnnotations: true, structured: true, elicitation: true,
		urlElicitation: true, completionContext: true, notFound: codeResourceNotFound},
	{version: Version20250618, audio: true, toolAnnotations: true, structured: true, elicitation: true,
		completionContext: true, notFound: codeResourceNotFound},
	{version: Version20250326, batches: true, audio: true, toolAnnotations: true, notFound: codeResourceNotFound},
	{version: Version20241105, notFound: codeResourceNotFound},
}

// supported filters revisions by the versions an operator wants to serve, keeping their order.
func supported(versions []string) (revs []*revision, unknown string) {
	if versions == nil {
		return revisions, ""
	}
	for _, v := range versions {
		if !slices.Contains(Versions(), v) {
			return nil, v
		}
	}
	for _, r := range revisions {
		if slices.Contains(versions, r.version) {
			revs = append(revs, r)
		}
	}
	return revs, ""
}

func find(revs []*revision, version string) *revision {
	for _, r := range revs {
		if r.version == version {
			return r
		}
	}
	return nil
}

// negotiate picks the revision to answer initialize with: the one asked for, or
// else the newest that has a handshake; nil when none has.
//
// Specification: basic/lifecycle (2025-11-25), version negotiation.
func negotiate(revs []*revision, asked string) *revision {
	if r := find(revs, asked); r != nil && !r.stateless {
		return r
	}
	for _, r := range revs {
		if !r.stateless {
			return r
		}
	}
	return nil
}
