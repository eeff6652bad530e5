//go:build race

package stdio_test

// flood is how many messages make a flood. The race detector makes each cost fifteen times as much, and finds in the first
// thousand what there is to be found: what a flood leaves behind is for the build without it to say.
const flood = 100_000
