// Package requestkey holds the key under which a handler's context answers the request that
// it serves.
//
//	func (c *callContext) Value(key any) any {
//		if key == (requestkey.Key{}) {
//			return c.request // a *servercontext.Request
//		}
//		…
//	}
//
// It is a package of its own so that a server's context can answer it without another
// context around it for each call.
//
// # Concurrency
//
// There is nothing but a type.
//
// # Guarantees
//
//   - No package outside of this module can use the key.
package requestkey
