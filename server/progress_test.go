package server_test

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const progressMethod = "notifications/progress"

// Over time no more is sent than the burst and one report for each interval,
// whatever the rhythm of the reports.
func TestProgress_RateAfterTheBurst(t *testing.T) {
	for name, rhythm := range map[string][]time.Duration{
		"fast":    {300 * time.Microsecond},
		"1ms":     {time.Millisecond},
		"7ms":     {7 * time.Millisecond},
		"12ms":    {12 * time.Millisecond},
		"in twos": {time.Millisecond, 11 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			eachEra(t, func(t *testing.T, f *fixture, p *peer) {
				const length = 3 * time.Second
				reports := 0
				f.tool("report", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
					for start := time.Now(); time.Since(start) < length; reports++ {
						if err := req.Progress(ctx, float64(reports), 0, ""); err != nil {
							return nil, err
						}
						time.Sleep(rhythm[reports%len(rhythm)])
					}
					return nil, nil
				})
				p.Call(1, "report", nil, M{"progressToken": 1})
				p.Answer(1)
				sent := len(p.Sent(progressMethod))
				most := 16 + int(length/(10*time.Millisecond)) + 1
				require.LessOrEqual(t, sent, most)
				require.GreaterOrEqual(t, sent, min(reports, most)*8/10, "and not much less")
			})
		})
	}
}

// However reports are merged, values grow, and the last one comes before the result.
func TestProgress_GrowsAndEndsBeforeTheResult(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("report", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			var all sync.WaitGroup
			for worker := range 4 {
				all.Go(func() {
					for i := range 250 {
						assert.NoError(t, req.Progress(ctx, float64(i*4+worker), 1000, "step"))
					}
				})
			}
			all.Wait()
			return nil, req.Progress(ctx, 1000, 1000, "last")
		})
		p.Call(1, "report", nil, M{"progressToken": "t"})
		p.Answer(1)
		lines := p.Lines()
		require.NotNil(t, lines[len(lines)-1].Result, "the result is the last line")
		last := lines[len(lines)-2]
		require.Equal(t, progressMethod, last.Method)
		require.Equal(t, "last", last.Param("message"))
		require.Equal(t, 1000.0, last.Param("progress"))
		before := -1.0
		sent := p.Sent(progressMethod)
		for _, m := range sent {
			require.Equal(t, "t", m.Param("progressToken"))
			require.Greater(t, m.Param("progress"), before)
			require.Equal(t, 1000.0, m.Param("total"))
			before = m.Param("progress").(float64)
		}
		require.LessOrEqual(t, len(sent), 18, "a burst, what was merged, and the last")
	})
}

func TestProgress_HeldReportIsSentInTime(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("report", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
			for i := range 40 {
				_ = req.Progress(ctx, float64(i), 0, "")
			}
			return nil, f.wait(ctx, tagged{MS: 60_000})
		})
		p.Call(1, "report", nil, M{"progressToken": 1})
		p.settle()
		require.Len(t, p.Sent(progressMethod), 16, "the burst")
		time.Sleep(10 * time.Millisecond)
		p.settle()
		sent := p.Sent(progressMethod)
		require.Len(t, sent, 17)
		require.Equal(t, 39.0, sent[16].Param("progress"))
		p.Cancel(1, "")
	})
}

func TestProgress_NothingIsMergedWithANegativeInterval(t *testing.T) {
	eachEraWith(t, &server.Options{ProgressInterval: -1}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		p.Call(1, "echo", M{"progress": 300}, M{"progressToken": 1})
		p.Answer(1)
		require.Len(t, p.Sent(progressMethod), 300)
	})
}

// Values that do not grow, or are no numbers, are dropped.
func TestProgress_ValuesThatDoNotGrow(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("report", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			for _, v := range []float64{-1, -1, math.NaN(), -2, 0, math.Inf(-1), 0, 0.5, math.Inf(1), 0.25, 1, 1e21} {
				_ = req.Progress(ctx, v, math.NaN(), "")
			}
			return nil, nil
		})
		p.Call(1, "report", nil, M{"progressToken": 1})
		p.Answer(1)
		var values []any
		for _, m := range p.Sent(progressMethod) {
			values = append(values, m.Param("progress"))
			require.Nil(t, m.Param("total"))
		}
		require.Equal(t, []any{-1.0, 0.0, 0.5, 1.0, 1e21}, values)
	})
}

// Tokens come back as they were sent, also where a float64 would not hold them.
func TestCase05_ProgressTokensAreExact(t *testing.T) {
	for _, token := range []string{`1`, `0`, `-7`, `"1"`, `""`, `9007199254740993`, `123456789012345678901234567890`, `"a\"b\u0000"`, `1.50`, `"ключ"`} {
		t.Run(token, func(t *testing.T) {
			eachEra(t, func(t *testing.T, f *fixture, p *peer) {
				p.Call(1, "echo", M{"progress": 1}, M{"progressToken": json.RawMessage(token)})
				p.Answer(1)
				sent := p.Sent(progressMethod)
				require.Len(t, sent, 1)
				if strings.HasPrefix(token, `"`) {
					require.JSONEq(t, token, memberOf(t, sent[0].Params, "progressToken"))
					return
				}
				require.Equal(t, token, memberOf(t, sent[0].Params, "progressToken"))
			})
		})
	}
	for _, meta := range []M{nil, {"progressToken": nil}, {"progressToken": true}, {"progressToken": M{}}, {"progressToken": []int{1}}} {
		eachEra(t, func(t *testing.T, f *fixture, p *peer) {
			p.Call(1, "echo", M{"progress": 3}, meta)
			p.Answer(1)
			require.Empty(t, p.Sent(progressMethod), "without a token there is no progress")
		})
	}
}

func memberOf(t testing.TB, object json.RawMessage, name string) string {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &members))
	return string(members[name])
}

// Messages came with 2025-03-26.
func TestProgress_MessagePerRevision(t *testing.T) {
	for _, version := range server.Versions() {
		inBubbleWith(t, nil, peerOptions{Version: version}, func(t *testing.T, f *fixture, p *peer) {
			f.tool("report", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
				return nil, req.Progress(ctx, 1, 2, "line\nbreak")
			})
			p.Call(1, "report", nil, M{"progressToken": 1})
			p.Answer(1)
			want := any("line\nbreak")
			if version == server.Version20241105 {
				want = nil
			}
			require.Equal(t, want, p.Sent(progressMethod)[0].Param("message"), version)
		})
	}
}

// What is reported after the cancel, or held back by then, is dropped and counted.
func TestCase03_NoProgressAfterTheCancel(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		f.tool("report", func(ctx context.Context, req *servercontext.Request, in tagged) (any, error) {
			for i := range 200 {
				err := req.Progress(context.Background(), float64(i), 0, "") // as a handler does that does not look
				require.NoError(t, err)
				time.Sleep(time.Millisecond)
				_ = in
			}
			return nil, nil
		})
		p.Call(1, "report", nil, M{"progressToken": 1})
		time.Sleep(50*time.Millisecond + time.Microsecond)
		p.settle()
		before := len(p.Sent(progressMethod))
		require.NotZero(t, before)
		p.Cancel(1, "enough")
		f.Done(1)
		require.Len(t, p.Sent(progressMethod), before)
		require.Greater(t, f.Stats().Dropped, int64(100))
		p.Silent(1)
	})
}

// Progress after the result is dropped, and two reports right before it keep their order.
func TestCase04_NoProgressAfterTheResult(t *testing.T) {
	eachEra(t, func(t *testing.T, f *fixture, p *peer) {
		var late *servercontext.Request
		f.tool("report", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			late = req
			for i := range 30 { // beyond the burst
				_ = req.Progress(ctx, float64(i), 0, "")
			}
			return "done", req.Progress(ctx, 30, 0, strconv.Itoa(30))
		})
		p.Call(1, "report", nil, M{"progressToken": 1})
		require.Equal(t, "done", p.Text(1))
		n := len(p.Sent(progressMethod))
		require.NoError(t, late.Progress(context.Background(), 31, 0, ""))
		time.Sleep(time.Second)
		require.Len(t, p.Sent(progressMethod), n)
		require.Equal(t, 30.0, p.Sent(progressMethod)[len(p.Sent(progressMethod))-1].Param("progress"))
	})
}

// A limit that starts anew with progress does so without a token, too.
func TestLimit_ProgressWithoutTokenCounts(t *testing.T) {
	eachEraWith(t, &server.Options{Timeout: 100 * time.Millisecond, ResetOnProgress: true}, peerOptions{}, func(t *testing.T, f *fixture, p *peer) {
		f.tool("report", func(ctx context.Context, req *servercontext.Request, _ tagged) (any, error) {
			for i := range 10 {
				if err := req.Progress(ctx, float64(i), 0, ""); err != nil {
					return nil, err
				}
				time.Sleep(90 * time.Millisecond)
			}
			return "done", cancellation.Checkpoint(ctx)
		})
		p.Call(1, "report", nil)
		require.Equal(t, "done", p.Text(1))
	})
}
