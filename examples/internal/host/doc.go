// Package host starts an example's program as an MCP host does, for its test: as a
// process, with the official Go SDK's client at the other end of its pipes.
//
// The program is the test binary itself, started again, so that a test of package
// main tries its main as well.
package host
