package model_test

import (
	"fmt"

	"pgregory.net/rapid"
)

// action is what a step does. What it is about is chosen among what there is when its turn comes.
type action uint8

const (
	actCall     action = iota // a client calls a tool
	actCancel                 // a client cancels an id, whoever has it
	actOrder                  // a handler is told what to do
	actAnswer                 // a client answers a question, its own or another's
	actDrop                   // a client drops a response
	actResume                 // and comes back for it
	actRetry                  // a client brings the input that it was asked for
	actReplay                 // and does so again
	actEnd                    // a session ends, and another takes its place
	actOperator               // an operator cancels a request
	actWait                   // time goes by
	actions
)

func (a action) String() string {
	return [...]string{"call", "cancel", "order", "answer", "drop", "resume", "retry", "replay", "end", "operator", "wait"}[a]
}

// step is one action.
type step struct {
	Act     action
	A, B, C uint8
	Settle  bool // all that follows from it happens before the next step
}

func (s step) String() string {
	settled := ""
	if s.Settle {
		settled = ", settled"
	}
	return fmt.Sprintf("%v(%d %d %d%s)", s.Act, s.A, s.B, s.C, settled)
}

// script is one run.
type script struct {
	Slots  int // of Options.MaxConcurrent; 0: no bound
	Drains bool
	Steps  []step
}

// weights make calls and orders more likely than ends.
var weights = []action{
	actCall, actCall, actCall, actCall, actCall, actCall, actCancel, actCancel, actCancel, actCancel,
	actOrder, actOrder, actOrder, actOrder, actOrder, actOrder, actOrder, actAnswer, actAnswer, actDrop, actResume,
	actRetry, actRetry, actReplay, actEnd, actOperator, actWait, actWait,
}

var stepGen = rapid.Custom(func(t *rapid.T) step {
	return step{
		Act: rapid.SampledFrom(weights).Draw(t, "act"),
		A:   rapid.Uint8Range(0, 15).Draw(t, "a"), B: rapid.Uint8Range(0, 15).Draw(t, "b"), C: rapid.Uint8Range(0, 15).Draw(t, "c"),
		Settle: rapid.Bool().Draw(t, "settle"),
	}
})

const (
	maxSteps  = 75
	minSteps  = 15
	meanSteps = 21 // about so many has one script
)

var scriptGen = rapid.Custom(func(t *rapid.T) script {
	return script{
		Slots:  rapid.SampledFrom([]int{0, 0, 2, 3}).Draw(t, "slots"),
		Drains: rapid.Bool().Draw(t, "drains"),
		Steps:  rapid.SliceOfN(stepGen, minSteps, maxSteps).Draw(t, "steps"),
	}
})
