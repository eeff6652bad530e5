package transporttest

import "slices"

// Level is how much a rule binds.
type Level uint8

const (
	Must    Level = iota // the specification says MUST or MUST NOT
	Should               // SHOULD or SHOULD NOT
	May                  // MAY
	Quality              // it says nothing, but users suffer
)

func (l Level) String() string { return [...]string{"MUST", "SHOULD", "MAY", "QoI"}[l] }

// MarshalText is the level in words.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Need is what a rule needs of a server, or of the way in which it is served, in
// order to be judged. Besides the constants it is the name of a tool: a
// fixture of package fixture.
type Need string

const (
	NeedSlow     Need = "a tool that takes a few seconds"
	NeedReports  Need = "a slow tool that reports progress"
	NeedProgress Need = "a tool that reports progress as often as it is told"
	NeedEnd      Need = "a service whose end can be seen"
	NeedShutdown Need = "a service that can be asked to shut down"
	NeedSampling Need = "a tool that samples the client's model"
	NeedForm     Need = "a tool that elicits a form"
	NeedURL      Need = "a tool that elicits by URL"
	NeedRoots    Need = "a tool that lists the client's roots"
	NeedPing     Need = "a tool that pings the client"
	NeedTask     Need = "a tool the calls of which become tasks"
	NeedOther    Need = "a second principal"
)

// Rule is one thing that a server does, or does not do, about cancellation.
type Rule struct {
	Name        string
	Explanation string // what the server does that keeps it
	Page        string // of the specification, "" where that says nothing
	Level       Level
	Settings    Setting // in which it applies
	Needs       []Need  // all of them; the rule is skipped otherwise

	// Alone rules look at the whole server, so that nothing else may be done with it
	// meanwhile.
	Alone bool

	run func(*probe)
}

// ownServer tells whether the rule is tried on a server that no other rule uses, where one
// can be had: it ends it, may bring it down, or looks at all that runs in it.
func (r Rule) ownServer() bool {
	return r.Alone || slices.Contains(r.Needs, NeedEnd) || slices.Contains(r.Needs, "cancel_panic")
}

// Pages of the specification.
const (
	pageCancel    = "basic/utilities/cancellation"
	pageProgress  = "basic/utilities/progress"
	pageLifecycle = "basic/lifecycle"
	pageTransport = "basic/transports"
	pageHTTP      = "basic/transports/streamable-http"
	pageBasic     = "basic"
	pageInput     = "basic/patterns/multi-round-trip-requests"
	pageListen    = "basic/patterns/subscriptions"
	pageTasks     = "extension io.modelcontextprotocol/tasks"
)

// Rules returns all rules, in an order that goes from the simple to the strange.
func Rules() []Rule {
	return slices.Concat(
		silenceRules, responseRules, strayRules, idRules, orderRules, isolationRules, disconnectRules,
		nestedRules, roundRules, taskRules, handlerRules, featureRules, batchRules, sessionRules, lifeRules, loadRules,
	)
}
