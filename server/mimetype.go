package server

import "github.com/heedmcp/heed/internal/mediatype"

// mimeType tells the type of a file by its path and, unless data is nil, its
// contents; "" when it cannot be told.
func (t *fileTree) mimeType(name string, data []byte) string {
	if t.options.MIMEType != nil {
		if own := t.options.MIMEType(name); own != "" {
			return own
		}
	}
	return mediatype.Of(name, data)
}
