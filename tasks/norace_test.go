//go:build !race

package tasks_test

const tasksAtOnce = 10_000
