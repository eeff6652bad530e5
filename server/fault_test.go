package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

func TestFault_CodeZeroIsNeverWritten(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("zero", func(context.Context, *servercontext.Request, tagged) (any, error) {
			return nil, &sdkrpc.Error{Message: "no code"}
		})
		p.Call(1, "zero", nil)
		m := p.Answer(1)
		require.EqualValues(t, sdkrpc.CodeInternalError, m.Code(), m.Raw)
		require.Equal(t, "no code", m.Error.Message)
	})
}

func TestFault_DataThatIsNoJSONIsLeftOut(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("data", func(context.Context, *servercontext.Request, tagged) (any, error) {
			return nil, fmt.Errorf("wrapped: %w", &sdkrpc.Error{Code: -31999, Message: "m", Data: json.RawMessage(`{"a":`)})
		})
		p.Call(1, "data", nil)
		m := p.Answer(1)
		require.Equal(t, -31999, m.Code(), m.Raw)
		require.Empty(t, m.Error.Data)
	})
}
