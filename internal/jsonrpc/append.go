package jsonrpc

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// OpenResponse appends a response up to the place of its result. The caller
// appends the result, one JSON value without line breaks, and then
// [CloseResponse].
func OpenResponse(b []byte, id ID) []byte {
	return append(openID(b, id), `,"result":`...)
}

// CloseResponse ends what [OpenResponse] began.
func CloseResponse(b []byte) []byte { return append(b, '}') }

// AppendResponse appends the response to the request id. An empty result is
// written as {}, which is MCP's empty result.
func AppendResponse(b []byte, id ID, result []byte) []byte {
	b = OpenResponse(b, id)
	if len(result) == 0 {
		b = append(b, "{}"...)
	} else {
		b = AppendCompact(b, result)
	}
	return CloseResponse(b)
}

// AppendError appends the error response to the request id. The zero id is
// written as null, which is right when the id could not be told. Empty data is
// left out.
func AppendError(b []byte, id ID, code int, message string, data []byte) []byte {
	b = append(openID(b, id), `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	b = AppendString(b, message)
	if len(data) > 0 {
		b = append(b, `,"data":`...)
		b = AppendCompact(b, data)
	}
	return append(b, "}}"...)
}

// AppendNotification appends a notification. Empty params are left out.
func AppendNotification(b []byte, method string, params []byte) []byte {
	return appendCall(append(b, `{"jsonrpc":"2.0"`...), method, params)
}

// AppendRequest appends a request. Empty params are left out.
func AppendRequest(b []byte, id ID, method string, params []byte) []byte {
	return appendCall(openID(b, id), method, params)
}

func openID(b []byte, id ID) []byte {
	return id.Append(append(b, `{"jsonrpc":"2.0","id":`...))
}

func appendCall(b []byte, method string, params []byte) []byte {
	b = append(b, `,"method":`...)
	b = AppendString(b, method)
	if len(params) > 0 {
		b = append(b, `,"params":`...)
		b = AppendCompact(b, params)
	}
	return append(b, '}')
}

// AppendString appends s as a JSON string with as few escapes as JSON allows:
// the quote, the backslash and the control characters below U+0020. Each byte
// that is not UTF-8 becomes U+FFFD.
//
// Characters that only matter to HTML or to old JavaScript (<, U+2028) are
// written as they are; nothing here is ever read by either.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	raw := view(s)
	for start := 0; ; {
		end, high := special(raw, start, 0)
		if high&highBits == 0 {
			b = append(b, raw[start:end]...)
		} else {
			b = appendUTF8(b, raw[start:end])
		}
		if end == len(raw) {
			return append(b, '"')
		}
		b = appendEscape(b, raw[end])
		start = end + 1
	}
}

func appendUTF8(b, text []byte) []byte {
	for {
		bad := invalidUTF8(text)
		if bad < 0 {
			return append(b, text...)
		}
		b = append(b, text[:bad]...)
		b = utf8.AppendRune(b, utf8.RuneError)
		text = text[bad+1:]
	}
}

func appendEscape(b []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	}
	return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}

// AppendCompact appends a JSON value so that it holds no line break: as it is
// when it has none, else without its white space. Of bytes that are not valid
// JSON it promises only that no CR or LF is left.
func AppendCompact(b, raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return append(b, raw...)
	}
	for i, inString := 0, false; i < len(raw); {
		if !inString {
			switch c := raw[i]; c {
			case ' ', '\t', '\n', '\r':
			default:
				b = append(b, c)
				inString = c == '"'
			}
			i++
			continue
		}
		end, _ := special(raw, i, 0)
		b = append(b, raw[i:end]...)
		if i = end; i == len(raw) {
			break
		}
		switch c := raw[i]; {
		case c == '"':
			b = append(b, c)
			inString = false
		case c == '\\' && i+1 < len(raw) && raw[i+1] >= 0x20:
			b = append(b, c, raw[i+1])
			i++
		case c != '\n' && c != '\r':
			b = append(b, c)
		}
		i++
	}
	return b
}
