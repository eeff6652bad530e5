package streamable

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// accepts is what a client takes as an answer.
type accepts struct{ json, stream bool }

// acceptsOf reads the Accept header. Without one a client takes everything.
func acceptsOf(h http.Header) accepts {
	values := h["Accept"]
	switch {
	case len(values) == 0:
		return accepts{json: true, stream: true}
	case len(values) == 1 && (values[0] == "application/json, text/event-stream" || values[0] == "application/json,text/event-stream"):
		return accepts{json: true, stream: true}
	}
	var json, stream quality
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			name, rank := mediaRange(item)
			switch name {
			case "application/json":
				json.set(2, rank)
			case "application/*":
				json.set(1, rank)
			case "text/event-stream":
				stream.set(2, rank)
			case "text/*":
				stream.set(1, rank)
			case "*/*":
				json.set(0, rank)
				stream.set(0, rank)
			}
		}
	}
	return accepts{json: json.accepted, stream: stream.accepted}
}

// quality is what the most specific range said about a media type.
type quality struct {
	specific int // of the range that decided, plus one; 0: none did
	accepted bool
}

func (q *quality) set(specific int, accepted bool) {
	if specific+1 >= q.specific {
		q.specific, q.accepted = specific+1, accepted
	}
}

// mediaRange splits an item of an Accept header into the range and whether it
// is wanted at all.
func mediaRange(item string) (name string, wanted bool) {
	name, params, _ := strings.Cut(item, ";")
	wanted = true
	for param := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(key), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			wanted = err != nil || q > 0
		}
	}
	return strings.ToLower(strings.TrimSpace(name)), wanted
}

// jsonContent tells whether a body is declared as JSON that can be read as it is.
func jsonContent(h http.Header) bool {
	if encoding := h["Content-Encoding"]; len(encoding) > 0 && !strings.EqualFold(encoding[0], "identity") {
		return false
	}
	values := h["Content-Type"]
	if len(values) != 1 {
		return false
	}
	if values[0] == "application/json" {
		return true
	}
	name, params, err := mime.ParseMediaType(values[0])
	if err != nil || name != "application/json" {
		return false
	}
	charset, given := params["charset"]
	return !given || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "us-ascii")
}
