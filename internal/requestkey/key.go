package requestkey

// Key is the key. Its value is a *servercontext.Request.
type Key struct{}
