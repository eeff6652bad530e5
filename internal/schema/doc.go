// Package schema infers JSON Schemas from Go types and checks raw JSON against schemas: the arguments and
// results of tools, and the forms of elicitation.
//
//	raw, err := schema.For(reflect.TypeFor[Args]()) // {"type":"object","properties":{"city":…},…}
//	s, err := schema.Compile(raw, nil)              // once, at registration
//
//	args, err := s.Prepare(params.Arguments)        // defaults added, then validated
//	if err != nil { … }                             // `city is required`: one line a model can act on
//	var in Args
//	err = schema.Decode(args, &in)                  // by case, strict types
//
// [ForOutput] is the same for results, where a nil slice is written as null. [Schema.Headers] lists the arguments
// that HTTP headers mirror.
//
// # Dialects
//
// JSON Schema 2020-12 is the default, as in MCP. "$schema" may name drafts 2019-09, 7, 6 and 4; any other dialect
// is an error of [Compile]. References must stay inside the schema: nothing is ever loaded from a network or a
// file, except that the official metaschemas are built in. Regular expressions are RE2.
//
// Beyond the dialect, "format" is asserted in every draft for date-time, date, time, duration, email, hostname,
// ipv4, ipv6, uri, uri-reference, iri, iri-reference, uri-template, uuid, json-pointer, relative-json-pointer and
// regex (also period and semver), since [For] describes a time.Time with it; other formats are annotations. So is
// "contentEncoding": "base64", which describes []byte. contentMediaType and contentSchema are annotations.
//
// # Concurrency
//
// All functions are safe for concurrent use. A [Schema] never changes after Compile.
//
// # Guarantees
//
//   - What Decode reads is what was validated. Names match by case, an object that gives a name twice is refused,
//     numbers are compared exactly and an integer that does not fit is refused rather than wrapped around.
//   - Errors are one bounded line each, with untrusted text quoted and cut.
//   - No input makes validation run away. Nesting, numbers (512 characters, exponent ±1000), regular expressions
//     and schemas are bounded, and a validation that would take more steps than [Limits].Time allows is refused
//     before it starts. Steps are counted, not timed: a format, a comparison of a large enum or const value with
//     a large value, and the size of one value's errors are counted roughly.
//   - The fast path for flat objects of scalars accepts exactly what the engine accepts.
package schema
