//go:build race

package transporttest_test

// raceEnabled tells that everything takes several times as long.
const raceEnabled = true
