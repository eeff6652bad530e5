// Package mediatype tells the MIME types of files, the same on every system.
//
//	mediatype.Of("guide.md", nil) // text/markdown
//
// # Concurrency
//
// All functions may be called concurrently.
//
// # Guarantees
//
// The types of files that models work with do not depend on the tables of the operating
// system.
package mediatype
