package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/require"
)

func TestProgress_RateAfterTheBurst(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 7 * time.Millisecond, 12 * time.Millisecond, 300 * time.Microsecond} {
		t.Run(every.String(), func(t *testing.T) {
			eachEra(t, func(t *testing.T, f *fixture, p *peer) {
				const length = 3 * time.Second
				f.tool("report", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
					for i := range int(length / every) {
						if err := req.Progress(ctx, float64(i), 0, ""); err != nil {
							return nil, err
						}
						time.Sleep(every)
					}
					return nil, nil
				})
				p.Call(1, "report", nil, M{"progressToken": 1})
				p.Answer(1)
				sent := len(p.Sent("notifications/progress"))
				most := 16 + int(length/(10*time.Millisecond)) + 1
				require.LessOrEqual(t, sent, most)
				require.GreaterOrEqual(t, sent, min(int(length/every), most)/2)
			})
		})
	}
}
