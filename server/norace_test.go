//go:build !race

package server_test

const slackAllocs = 0
