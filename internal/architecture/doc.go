// Package architecture holds no code, only tests: what a reader may rely on
// anywhere in this repository and what no compiler checks. Each test is one
// rule; its failure names the place and says why the rule exists.
//
//   - arrows_test.go: which package may import which, and what it may reach
//   - runtime_test.go: who may start the official SDK's runtime
//   - names_test.go: spelling of identifiers, messages and file names; banned names
//   - files_test.go: length of files, one package comment per package
//   - tests_test.go: what tests may not do
//   - text_test.go: what no file may say
//
// A new package needs a row in the table of arrows_test.go.
//
//	go test ./internal/architecture
//
// # Concurrency
//
// The tests only read the tree, once, and share what they have parsed.
//
// # Guarantees
//
// Rules are checked on every file that git could hold: build tags, test files
// and the modules of examples and benchmarks are no way around them. A rule
// that matches nothing any longer fails, so that no rule can rot.
package architecture
