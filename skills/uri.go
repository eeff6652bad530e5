package skills

import "strings"

// uriOf is the URI of a path in the tree, without a slash at its end; "." is the tree
// itself, which has none without a prefix.
//
// Specification: extension io.modelcontextprotocol/skills, resource mapping.
func (o *Options) uriOf(name string) string {
	full := o.fullPath(name)
	if full == "" {
		return ""
	}
	return o.Scheme + "://" + escape(full)
}

// fullPath is the path of a URI: that in the tree behind the prefix.
func (o *Options) fullPath(name string) string {
	switch {
	case name == ".":
		return o.Prefix
	case o.Prefix == "":
		return name
	}
	return o.Prefix + "/" + name
}

// escape escapes what is neither a slash nor unreserved. The first segment stands where
// URIs have their authority, and is a name there.
//
// Specification: RFC 3986, section 2.3 and 3.2.2.
func escape(path string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		switch {
		case c == '/', c == '-', c == '.', c == '_', c == '~',
			'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
