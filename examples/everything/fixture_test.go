package main

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/heedmcp/heed/cancellation"
	fixtures "github.com/heedmcp/heed/transport/transporttest/fixture"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const reason = "user pressed stop"

type event = fixtures.Event

// eventList is what cancel_events returns.
type eventList struct {
	Events []event `json:"events"`
}

// stats is what cancel_stats returns.
type stats struct {
	Goroutines      int   `json:"goroutines"`
	InFlight        int   `json:"in_flight"`
	Lingering       int   `json:"lingering"`
	Parked          int   `json:"parked"`
	Sessions        int   `json:"sessions"`
	DroppedMessages int64 `json:"dropped_messages"`
	Unresponsive    int64 `json:"unresponsive"`
}

var (
	started   = event{Event: "started"}
	elapsed   = event{Event: "elapsed"}
	inside    = event{Event: "entered"}
	committed = event{Event: "committed"}
	finished  = event{Event: "done"}
	returned  = event{Event: "returned"}
)

func cancelledEvent(word string, origin cancellation.Origin) event {
	return event{Event: word, Origin: origin.String(), Reason: reason}
}

// waiting are the fixtures that wait for their token, with what they record when
// it fires.
var waiting = []struct {
	tool      string
	arguments map[string]any
	then      func(cancellation.Origin) []event
	owed      string // what they answer to an origin that is owed an answer; "" for a failure
}{
	{"cancel_wait", nil, observedThen(), "done"},
	{"cancel_timeout", nil, observedThen(), ""},
	{"cancel_error", nil, observedThen(), ""},
	{"cancel_panic", nil, observedThen(), ""},
	{"cancel_hook", nil, func(o cancellation.Origin) []event { return []event{cancelledEvent("hook", o)} }, ""},
	{"cancel_shield", map[string]any{"ms": 300}, func(o cancellation.Origin) []event {
		return []event{committed, cancelledEvent("observed", o)}
	}, "done"},
	{"cancel_poll", map[string]any{"steps": 100, "step_ms": 40}, func(o cancellation.Origin) []event {
		stopped := cancelledEvent("stopped", o)
		stopped.Step = 3 // they begin at 0, 40 and 80 ms, and the cancel comes at 100
		return []event{stopped}
	}, ""},
	{"cancel_ignore", map[string]any{"ms": 300}, func(cancellation.Origin) []event { return []event{returned} }, "done"},
}

func observedThen() func(cancellation.Origin) []event {
	return func(o cancellation.Origin) []event { return []event{cancelledEvent("observed", o)} }
}

// Each fixture that waits, under each origin: the events are these and no
// others, and the wire is silent exactly where no answer is owed.
func TestFixturesStop(t *testing.T) {
	for _, fixture := range waiting {
		t.Run(fixture.tool, func(t *testing.T) {
			inEachEra(t, func(t *testing.T, c *client) {
				for _, origin := range []cancellation.Origin{
					cancellation.Peer, cancellation.Disconnect, cancellation.SessionEnd,
					cancellation.Timeout, cancellation.Shutdown, cancellation.Parent,
				} {
					tag := origin.String()
					arguments := map[string]any{"tag": tag}
					maps.Copy(arguments, fixture.arguments)
					e := c.call(fixture.tool, arguments)
					time.Sleep(100 * time.Millisecond)
					before := c.events(tag)
					require.Equal(t, started, before[0], tag)
					require.False(t, e.answered(), tag)

					if origin == cancellation.Peer {
						c.cancel(e, reason)
					} else {
						require.True(t, c.session.Cancel(idText(e), origin, reason), tag)
					}
					sent := len(e.messages(t, "notifications/progress"))
					time.Sleep(time.Second)

					want := slices.Concat(before, fixture.then(origin))
					assert.Equal(t, want, c.events(tag), tag)
					assert.Len(t, e.messages(t, "notifications/progress"), sent, "progress after the cancel by %s", tag)
					switch {
					case !origin.AnswerOwed():
						e.silent(t)
					case fixture.owed != "":
						assert.Equal(t, fixture.owed, e.text(t), tag)
					default:
						assert.Contains(t, e.failure(t), tag)
					}
				}
			})
		})
	}
}

func idText(e *exchange) string {
	raw, err := json.Marshal(e.id)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestWaitElapses(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("cancel_wait", map[string]any{"tag": "a", "ms": 250})
		time.Sleep(249 * time.Millisecond)
		require.False(t, e.answered())
		time.Sleep(2 * time.Millisecond)
		assert.Equal(t, "done", e.text(t))
		assert.Equal(t, []event{started, elapsed}, c.events("a"))
	})
}

func TestWaitLastsAMinuteByDefault(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("cancel_wait", map[string]any{"tag": "a"})
		time.Sleep(59 * time.Second)
		require.False(t, e.answered())
		time.Sleep(2 * time.Second)
		assert.Equal(t, "done", e.text(t))
	})
}

// The limit is 200 ms, whatever ms says, and the answer names it.
func TestTimeoutIsAnswered(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("cancel_timeout", map[string]any{"tag": "a", "ms": 60_000})
		time.Sleep(199 * time.Millisecond)
		require.False(t, e.answered())
		time.Sleep(2 * time.Millisecond)
		assert.Contains(t, e.failure(t), "timeout")
		events := c.events("a")
		require.Len(t, events, 2)
		assert.Equal(t, started, events[0])
		assert.Equal(t, "observed", events[1].Event)
		assert.Equal(t, "timeout", events[1].Origin)
		assert.NotEmpty(t, events[1].Reason)
	})
}

func TestTimeoutThatIsNotReached(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("cancel_timeout", map[string]any{"tag": "a", "ms": 100})
		time.Sleep(101 * time.Millisecond)
		assert.Equal(t, "done", e.text(t))
		assert.Equal(t, []event{started, elapsed}, c.events("a"))
	})
}

func TestPollReportsEachStep(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("cancel_poll", map[string]any{"tag": "a", "steps": 40, "step_ms": 10})
		time.Sleep(395 * time.Millisecond)
		assert.Equal(t, counted(1, 40), progressOf(t, e))
		require.False(t, e.answered(), "the last report comes a step before the result")
		time.Sleep(10 * time.Millisecond)
		assert.Equal(t, "done", e.text(t))
		assert.Equal(t, counted(1, 40), progressOf(t, e))
		assert.Equal(t, []event{started}, c.events("a"))
	})
}

func TestIgnoreReportsEvery20Milliseconds(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("cancel_ignore", map[string]any{"tag": "a", "ms": 90})
		time.Sleep(91 * time.Millisecond)
		assert.Equal(t, "done", e.text(t))
		assert.Equal(t, []float64{20, 40, 60, 80}, progressOf(t, e))
		assert.Equal(t, []event{started, returned}, c.events("a"))
	})
}

// The handler does not look, so nothing counts as observed before it returns.
func TestIgnoreLingers(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("cancel_ignore", map[string]any{"tag": "a", "ms": 7000})
		c.cancel(e, reason)
		e.silent(t)
		assert.Equal(t, 1, statsOf(t, c).Lingering)
		time.Sleep(6 * time.Second)
		assert.EqualValues(t, 1, statsOf(t, c).Unresponsive)
		time.Sleep(2 * time.Second)
		assert.Equal(t, 0, statsOf(t, c).Lingering)
		assert.Equal(t, []event{started, returned}, c.events("a"))
		e.silent(t)
	})
}

func TestShieldCommits(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("cancel_shield", map[string]any{"tag": "a", "ms": 50})
		time.Sleep(51 * time.Millisecond)
		assert.Equal(t, "done", e.text(t))
		assert.Equal(t, []event{started, inside, committed, finished}, c.events("a"))
	})
}

// Somebody else's cancellation error is an error like any other.
func TestForeignErrorIsAnswered(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("cancel_foreign", map[string]any{"tag": "a"})
		assert.Contains(t, e.failure(t), "somebody else's request")
		assert.Empty(t, c.events("a"))
	})
}

func TestMethodTakesItsTime(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.request("heed/wait", map[string]any{"tag": "a", "ms": 20})
		time.Sleep(21 * time.Millisecond)
		var result struct{ Text string }
		require.NoError(t, json.Unmarshal(e.result(t), &result))
		assert.Equal(t, "done", result.Text)
		assert.Equal(t, []event{started, elapsed}, c.events("a"))
	})
}

func TestEchoSaysWhatItIsTold(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		for _, said := range []string{"", "hello", " line\r\nbreak\u2028\"\\", "☃ 𝄞"} {
			assert.Equal(t, said, c.call("echo", map[string]any{"text": said}).text(t))
		}
		e := c.call("echo", map[string]any{"text": "after", "progress": 1000})
		assert.Equal(t, "after", e.text(t))
		assert.Equal(t, counted(1, 1000), progressOf(t, e))
	})
}

func TestFixturesRefuseWrongArguments(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		for _, wrong := range []struct {
			tool      string
			arguments map[string]any
		}{
			{"cancel_wait", nil},
			{"cancel_wait", map[string]any{"tag": 1}},
			{"cancel_wait", map[string]any{"tag": "a", "ms": -1}},
			{"cancel_wait", map[string]any{"tag": "a", "ms": 1e12}},
			{"cancel_wait", map[string]any{"tag": "a", "ms": 1.5}},
			{"cancel_poll", map[string]any{"tag": "a", "steps": -1}},
			{"cancel_nested", map[string]any{"tag": "a", "kind": "nonsense"}},
			{"cancel_nested", map[string]any{"tag": "a"}},
			{"cancel_stats", map[string]any{"tag": "a"}},
			{"echo", nil},
		} {
			assert.Contains(t, c.call(wrong.tool, wrong.arguments).failure(t), "invalid arguments", "%v", wrong)
		}
		assert.Empty(t, c.events("a"))
	})
}

func TestEventsOfATagAndOfAll(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		assert.Equal(t, `{"events":[]}`, string(c.call("cancel_events", nil).tool(t).StructuredContent))
		began := time.Now()
		c.call("cancel_wait", map[string]any{"tag": "a", "ms": 10})
		c.call("cancel_wait", map[string]any{"tag": "b", "ms": 20})
		time.Sleep(time.Second)
		assert.Equal(t, []event{started, elapsed}, c.events("a"))

		var all eventList
		c.call("cancel_events", nil).structured(t, &all)
		want := []event{
			{Tag: "a", Event: "started", AtNS: began.UnixNano()},
			{Tag: "b", Event: "started", AtNS: began.UnixNano()},
			{Tag: "a", Event: "elapsed", AtNS: began.Add(10 * time.Millisecond).UnixNano()},
			{Tag: "b", Event: "elapsed", AtNS: began.Add(20 * time.Millisecond).UnixNano()},
		}
		assert.Equal(t, want, all.Events)
	})
}

// The request that asks does not count itself.
func TestStats(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		idle := statsOf(t, c)
		assert.Positive(t, idle.Goroutines)
		idle.Goroutines = 0
		assert.Equal(t, stats{Sessions: 1}, idle)

		e := c.call("cancel_wait", map[string]any{"tag": "a"})
		c.call("cancel_wait", map[string]any{"tag": "b", "ms": 10})
		assert.Equal(t, 2, statsOf(t, c).InFlight)
		c.cancel(e, reason)
		time.Sleep(time.Second)
		after := statsOf(t, c)
		after.Goroutines = 0
		assert.Equal(t, stats{Sessions: 1, DroppedMessages: 1}, after, "the result of the cancelled call is dropped")
	})
}

func TestStatsNameEachFigure(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		var figures map[string]float64
		c.call("cancel_stats", nil).structured(t, &figures)
		assert.ElementsMatch(t, []string{
			"goroutines", "in_flight", "lingering", "parked", "sessions", "dropped_messages", "unresponsive",
		}, slices.Collect(maps.Keys(figures)))
	})
}

func statsOf(t *testing.T, c *client) stats {
	t.Helper()
	var s stats
	c.call("cancel_stats", nil).structured(t, &s)
	return s
}

// progressOf are the values reported, each of which must carry the request's own token.
func progressOf(t *testing.T, e *exchange) []float64 {
	t.Helper()
	var values []float64
	for _, m := range e.messages(t, "notifications/progress") {
		var params struct {
			ProgressToken string  `json:"progressToken"`
			Progress      float64 `json:"progress"`
		}
		require.NoError(t, json.Unmarshal(m.Params, &params))
		require.Equal(t, "progress-"+idText(e), params.ProgressToken)
		values = append(values, params.Progress)
	}
	return values
}

func counted(from, to int) []float64 {
	var values []float64
	for i := from; i <= to; i++ {
		values = append(values, float64(i))
	}
	return values
}
