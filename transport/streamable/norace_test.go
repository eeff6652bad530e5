//go:build !race

package streamable_test

// flood is how many messages make a flood.
const flood = 1_000_000
