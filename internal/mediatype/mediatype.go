package mediatype

import (
	"bytes"
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"
)

// byExtension are the types of files that models work with. The tables of operating
// systems differ in these, or lack them.
var byExtension = map[string]string{
	".c": "text/x-c", ".cc": "text/x-c++", ".cpp": "text/x-c++", ".css": "text/css", ".csv": "text/csv",
	".gif": "image/gif", ".go": "text/x-go", ".h": "text/x-c", ".htm": "text/html", ".html": "text/html",
	".java": "text/x-java", ".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".js": "text/javascript",
	".json": "application/json", ".log": "text/plain", ".md": "text/markdown", ".mjs": "text/javascript",
	".mp3": "audio/mpeg", ".pdf": "application/pdf", ".png": "image/png", ".py": "text/x-python",
	".rb": "text/x-ruby", ".rs": "text/x-rust", ".sh": "text/x-shellscript", ".sql": "application/sql",
	".svg": "image/svg+xml", ".toml": "application/toml", ".ts": "text/x-typescript", ".tsv": "text/tab-separated-values",
	".txt": "text/plain", ".wav": "audio/wav", ".webp": "image/webp", ".xml": "application/xml",
	".yaml": "application/yaml", ".yml": "application/yaml", ".zip": "application/zip",
}

// Of tells the type of a file by its path, with slashes, and, unless data is nil, its
// contents; "" when it cannot be told.
func Of(name string, data []byte) string {
	extension := strings.ToLower(path.Ext(name))
	if known := byExtension[extension]; known != "" {
		return known
	}
	if known, _, _ := strings.Cut(mime.TypeByExtension(extension), ";"); known != "" {
		return known
	}
	switch {
	case data == nil:
		return ""
	case IsText(data):
		return "text/plain"
	}
	known, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return known
}

// IsText tells whether contents can be sent as text.
func IsText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }
