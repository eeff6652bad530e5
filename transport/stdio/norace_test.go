//go:build !race

package stdio_test

// flood is how many messages make a flood.
const flood = 1_000_000
