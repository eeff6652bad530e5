//go:build race

package tasks_test

// tasksAtOnce is lower here: the race detector takes its time with goroutines.
const tasksAtOnce = 2_000
