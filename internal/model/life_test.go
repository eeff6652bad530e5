package model_test

import (
	"testing"

	"github.com/heedmcp/heed/internal/model"
	"github.com/stretchr/testify/assert"
)

func after(events ...model.Event) model.Life {
	var l model.Life
	for _, e := range events {
		l = l.After(e)
	}
	return l
}

var (
	start   = model.Event{Kind: model.Start}
	value   = model.Event{Kind: model.Return}
	failure = model.Event{Kind: model.Return, Failed: true}
	obey    = model.Event{Kind: model.Obey}
	ask     = model.Event{Kind: model.Ask}
	report  = model.Event{Kind: model.Report}
	park    = model.Event{Kind: model.Park}
	overdue = model.Event{Kind: model.Overdue}
)

func by(c model.Cause) model.Event { return model.Event{Kind: model.Cancel, Cause: c} }

// The table of the wire rule.
func TestFates(t *testing.T) {
	assert.Equal(t, model.Value, after(start, value).Fate)
	assert.Equal(t, model.Failure, after(start, failure).Fate)
	assert.Equal(t, model.Open, after(start, obey).Fate, "there was nothing to obey")
	for _, c := range []model.Cause{model.Peer, model.Disconnect, model.SessionEnd} {
		assert.Equal(t, model.Silent, after(start, by(c), value).Fate)
		assert.Equal(t, model.Silent, after(start, by(c), failure).Fate)
		assert.Equal(t, model.Silent, after(by(c), start, value).Fate)
		assert.Equal(t, model.Silent, after(start, by(c), overdue).Fate)
		assert.Equal(t, model.Value, after(start, value, by(c)).Fate, "too late")
	}
	for _, c := range []model.Cause{model.Timeout, model.Shutdown} {
		assert.Equal(t, model.Open, after(start, by(c)).Fate)
		assert.Equal(t, model.Value, after(start, by(c), value).Fate, "the work is done")
		assert.Equal(t, model.Cancelled, after(start, by(c), obey).Fate)
		assert.Equal(t, model.Cancelled, after(start, by(c), overdue, value).Fate)
		assert.Equal(t, model.Cancelled, after(by(c)).Fate, "it never began")
	}
	assert.Equal(t, model.Peer, after(start, by(model.Peer), by(model.Shutdown)).Cause, "the first stays")
}

func TestWritesOfALife(t *testing.T) {
	assert.Equal(t, 1, after(start, report, by(model.Peer), report).Reports)
	assert.Zero(t, after(start, by(model.Shutdown), ask).Questions)
	asked := after(start, ask, by(model.Timeout))
	assert.Equal(t, 1, asked.Retracts)
	assert.False(t, asked.Asking)
	assert.Zero(t, after(start, ask, model.Event{Kind: model.Answer}, by(model.Peer)).Retracts)
}

func TestParkedLives(t *testing.T) {
	parked := after(start, park)
	assert.Equal(t, model.Parked, parked.Phase)
	assert.False(t, parked.HoldsID())
	assert.False(t, parked.HoldsSlot())
	assert.Equal(t, model.Returned, parked.After(model.Event{Kind: model.Resume}).Phase)
	gone := parked.After(by(model.Peer))
	assert.Equal(t, model.Asked, gone.Fate, "it was answered")
	assert.Equal(t, model.Parked, gone.After(model.Event{Kind: model.Resume}).Phase, "nobody resumes what was cancelled")
}

func TestOutcomesOfARace(t *testing.T) {
	running := after(start)
	assert.Len(t, model.Outcomes(running, []model.Event{value}, false), 1)
	assert.ElementsMatch(t, []model.Life{after(start, value), after(start, by(model.Peer), value)},
		model.Outcomes(running, []model.Event{value, by(model.Peer)}, false))
	assert.ElementsMatch(t,
		[]model.Life{after(start, value), after(start, by(model.Timeout), value), after(start, by(model.Timeout), obey)},
		model.Outcomes(running, []model.Event{value, by(model.Timeout)}, true))
	assert.Equal(t, []model.Life{after(by(model.Peer))},
		model.Outcomes(model.Life{}, []model.Event{start, by(model.Peer)}, true),
		"whether its handler began or not")
}
