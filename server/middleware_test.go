package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUse_NilMiddleware(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		require.NotPanics(t, func() { f.Server.Use(nil) })
		p.Call(1, "echo", M{"text": "a"})
		require.Equal(t, "a", p.Text(1))
	})
}
