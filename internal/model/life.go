package model

import "slices"

// Phase is where a request's handler is.
type Phase uint8

const (
	Queued   Phase = iota // accepted; the handler has not begun
	Running               // the handler runs
	Parked                // it waits for a retry to bring it the client's input
	Returned              // it has returned, never will begin, or goes on in a retry
)

// Cause is who or what asked the request to stop.
type Cause uint8

const (
	Nobody Cause = iota
	Peer
	Disconnect
	SessionEnd
	Timeout
	Shutdown
)

// Owed reports whether the client is still to be answered: it did not ask for
// the end, and is there to hear of it.
func (c Cause) Owed() bool { return c == Timeout || c == Shutdown }

// Fate is what the client gets to see in the end.
type Fate uint8

const (
	Open      Fate = iota // nothing yet
	Value                 // a result
	Failure               // the handler's own error
	Cancelled             // an error that names the cause
	Asked                 // a request for input; the handler is parked
	Silent                // nothing, ever
)

// Kind is a kind of event.
type Kind uint8

const (
	Start   Kind = iota // a slot is free: the handler begins
	Cancel              // somebody asks for the end
	Return              // the handler returns a value, or its own error if Failed
	Obey                // the handler returns because it was cancelled, if it was
	Report              // the handler sends a notification
	Ask                 // the handler asks the client and waits
	Answer              // the client answers that
	Park                // what it asked is put to a client that cannot be sent requests
	Resume              // the retry takes the handler over
	Overdue             // a cancelled handler has used up its grace
)

// Event is something that happens to a request.
type Event struct {
	Kind   Kind
	Cause  Cause // of Cancel
	Failed bool  // of Return
}

// Life is the state of one request. The zero value was just accepted.
type Life struct {
	Phase  Phase
	Cause  Cause
	Fate   Fate
	Asking bool // a question of its handler is open

	Reports   int // notifications on the wire
	Questions int // requests to the client on the wire
	Retracts  int // cancels of those
}

// After returns the life after an event. Events that cannot touch it change nothing.
func (l Life) After(e Event) Life {
	switch e.Kind {
	case Start:
		if l.Phase == Queued && l.Cause == Nobody {
			l.Phase = Running
		}
	case Cancel:
		return l.cancelled(e.Cause)
	case Return:
		return l.returned(e.Failed)
	case Obey:
		if l.Cause != Nobody {
			return l.returned(true)
		}
	case Report:
		if l.mayWrite() {
			l.Reports++
		}
	case Ask:
		if l.mayWrite() {
			l.Asking = true
			l.Questions++
		}
	case Answer:
		l.Asking = false
	case Park:
		if l.mayWrite() {
			l.Phase, l.Fate = Parked, Asked
		}
	case Resume:
		if l.Phase == Parked && l.Cause == Nobody {
			l.Phase = Returned
		}
	case Overdue:
		if l.Phase == Running && l.Fate == Open && l.Cause.Owed() {
			l.Fate = Cancelled
		}
	}
	return l
}

// mayWrite: from the moment a cancel was received nothing is written any more.
func (l Life) mayWrite() bool { return l.Phase == Running && l.Cause == Nobody && l.Fate == Open }

// cancelled: the first cancel counts, and only while the handler has not returned.
func (l Life) cancelled(by Cause) Life {
	if l.Cause != Nobody || l.Phase == Returned {
		return l
	}
	l.Cause = by
	if l.Asking {
		l.Asking = false
		l.Retracts++
	}
	if l.Fate == Open && !by.Owed() {
		l.Fate = Silent
	}
	if l.Phase == Queued { // it never begins
		return l.returned(true)
	}
	return l
}

func (l Life) returned(failed bool) Life {
	if l.Phase == Returned {
		return l
	}
	l.Phase = Returned
	switch {
	case l.Fate != Open: // answered or silenced before: what it returns is dropped
	case !failed:
		l.Fate = Value
	case l.Cause != Nobody:
		l.Fate = Cancelled
	default:
		l.Fate = Failure
	}
	return l
}

// HoldsID reports whether the request's id is taken.
func (l Life) HoldsID() bool { return l.Fate == Open }

// HoldsSlot reports whether it counts among those that run: a cancelled handler does not.
func (l Life) HoldsSlot() bool { return l.Phase == Running && l.Cause == Nobody }

// Settled reports whether the client has got all that it ever will get.
func (l Life) Settled() bool { return l.Fate != Open }

// Outcomes lists what may become of a life when events happen at the same time: each
// order of them that there can be. obeys says that the handler returns once it was cancelled.
func Outcomes(l Life, events []Event, obeys bool) []Life {
	if obeys {
		// It may notice at any moment, and has noticed by the end.
		events = append(slices.Clone(events), Event{Kind: Obey})
	}
	seen := map[Life]bool{}
	permute(slices.Clone(events), func(order []Event) {
		end := l
		for _, e := range order {
			end = end.After(e)
		}
		if obeys && end.Phase != Queued {
			end = end.After(Event{Kind: Obey})
		}
		seen[end] = true
	})
	all := make([]Life, 0, len(seen))
	for life := range seen {
		all = append(all, life)
	}
	return all
}

// permute calls f with every order of the events.
func permute(events []Event, f func([]Event)) { permuteFrom(events, 0, f) }

func permuteFrom(events []Event, from int, f func([]Event)) {
	if from >= len(events)-1 {
		f(events)
		return
	}
	for i := from; i < len(events); i++ {
		events[from], events[i] = events[i], events[from]
		permuteFrom(events, from+1, f)
		events[from], events[i] = events[i], events[from]
	}
}
