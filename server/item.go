package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What all registered items have in common: icons, _meta, annotations. The rules
// are checked when an item is registered, where its author sees the error.

// checkItem checks icons and _meta.
func (s *Server) checkItem(icons []mcp.Icon, meta mcp.Meta) error {
	if err := checkIcons(icons); err != nil {
		return err
	}
	for key := range meta {
		if err := s.checkMetaKey(key); err != nil {
			return err
		}
	}
	return nil
}

// checkIcons checks that clients may load the icons.
//
// Specification: basic/index, icons.
func checkIcons(icons []mcp.Icon) error {
	for _, icon := range icons {
		u, err := url.Parse(icon.Source)
		switch {
		case err != nil || !(u.Scheme == "https" && u.Host != "" || u.Scheme == "data"):
			return fmt.Errorf("icon %q: the source must be an https or a data URI", bounded(icon.Source))
		case icon.Theme != "" && icon.Theme != "light" && icon.Theme != "dark":
			return fmt.Errorf("icon %q: the theme must be light or dark", bounded(icon.Source))
		}
		for _, size := range icon.Sizes {
			if !isIconSize(size) {
				return fmt.Errorf("icon %q: the size %q is neither any nor like 48x48", bounded(icon.Source), bounded(size))
			}
		}
	}
	return nil
}

func isIconSize(size string) bool {
	if size == "any" {
		return true
	}
	width, height, ok := strings.Cut(size, "x")
	return ok && isDigits(width) && isDigits(height)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// checkMetaKey checks the name of a _meta entry: an optional prefix of labels,
// which must not be one that the protocol has for itself, and a name. An extension that the server
// advertises may use the keys that are its own.
//
// Specification: basic/index, _meta.
func (s *Server) checkMetaKey(key string) error {
	slash := strings.IndexByte(key, '/')
	prefix, name := "", key
	if slash >= 0 {
		prefix, name = key[:slash], key[slash+1:]
	}
	if slash >= 0 {
		labels := strings.Split(prefix, ".")
		for _, label := range labels {
			if !isLabel(label) {
				return fmt.Errorf("_meta key %q: the prefix must be labels of letters, digits and hyphens", bounded(key))
			}
		}
		if len(labels) > 1 && (labels[1] == "modelcontextprotocol" || labels[1] == "mcp") && !s.ownsKey(key) {
			return fmt.Errorf("_meta key %q: the prefix is reserved by the protocol", bounded(key))
		}
	}
	if slash < 0 && name == "" || !isMetaName(name) {
		return fmt.Errorf("_meta key %q: the name must be letters, digits, hyphens, underscores and dots", bounded(key))
	}
	return nil
}

func (s *Server) ownsKey(key string) bool {
	for id := range s.options.Extensions {
		if rest, ok := strings.CutPrefix(key, id); ok && (rest == "" || rest[0] == '/' || rest[0] == '.' || rest[0] == '-') {
			return true
		}
	}
	return false
}

func isLabel(s string) bool {
	return s != "" && isLetter(s[0]) && isAlphanumeric(s[len(s)-1]) && onlyBytes(s, "-")
}

// isMetaName allows the empty name, as the specification does behind a prefix.
func isMetaName(s string) bool {
	return s == "" || isAlphanumeric(s[0]) && isAlphanumeric(s[len(s)-1]) && onlyBytes(s, "-_./")
}

func onlyBytes(s, besides string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && strings.IndexByte(besides, s[i]) < 0 {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isAlphanumeric(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// checkURI checks that a resource's URI is one.
//
// Specification: server/resources, custom URI schemes follow RFC 3986.
func checkURI(uri string) error {
	if uri == "" {
		return errors.New("the URI is empty")
	}
	for i := range len(uri) {
		if c := uri[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return fmt.Errorf("the URI has the byte %q, which must be percent-encoded", c)
		}
	}
	u, err := url.Parse(uri)
	if err != nil {
		return fmt.Errorf("the URI is malformed: %w", err)
	}
	if u.Scheme == "" {
		return errors.New("the URI has no scheme")
	}
	return nil
}

// checkAnnotations checks the hints about a resource. priority replaces the one
// among them unless it is nil.
//
// Specification: server/resources, annotations.
func checkAnnotations(a *mcp.Annotations, priority *float64) error {
	if a == nil {
		a = &mcp.Annotations{}
	}
	p := a.Priority
	if priority != nil {
		p = *priority
	}
	if !(p >= 0 && p <= 1) {
		return fmt.Errorf("the priority %v is not between 0 and 1", p)
	}
	for _, role := range a.Audience {
		if role != roleUser && role != roleAssistant {
			return fmt.Errorf("the audience %q is neither user nor assistant", bounded(string(role)))
		}
	}
	if a.LastModified != "" {
		if _, err := time.Parse(time.RFC3339, a.LastModified); err != nil {
			return fmt.Errorf("lastModified %q is no ISO 8601 time", bounded(a.LastModified))
		}
	}
	return nil
}

// annotations encodes annotations as the revision has them; nil when nothing is
// left of them. priority replaces the one among them unless it is nil.
func (r *revision) annotations(a *mcp.Annotations, priority *float64) json.RawMessage {
	o := &object{b: []byte{'{'}}
	if a != nil {
		if len(a.Audience) > 0 {
			if o.value("audience", a.Audience) != nil {
				return nil
			}
		}
		if r.structured {
			o.text("lastModified", a.LastModified)
		}
		if priority == nil && a.Priority != 0 {
			priority = &a.Priority
		}
	}
	if priority != nil && finite(*priority) {
		o.key("priority")
		o.b = appendNumber(o.b, *priority)
	}
	if !o.begun {
		return nil
	}
	return o.end()
}
