package servercontext

// TraceContext is the W3C trace context that a client may pass in _meta.
// Empty fields were not sent.
//
// Specification: SEP-414; W3C Trace Context and Baggage define the values.
type TraceContext struct {
	Traceparent string
	Tracestate  string
	Baggage     string
}

// TraceContext returns the request's trace context.
func (r *Request) TraceContext() TraceContext {
	meta := r.Meta()
	text := func(key string) string {
		s, _ := meta[key].(string)
		return s
	}
	return TraceContext{
		Traceparent: text("traceparent"),
		Tracestate:  text("tracestate"),
		Baggage:     text("baggage"),
	}
}
