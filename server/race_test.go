//go:build race

package server_test

// slackAllocs allows for what the race detector allocates, and drops from pools.
const slackAllocs = 10
