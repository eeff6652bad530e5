package server

// slots bounds how many handlers run at once. A nil channel is no bound.
type slots struct{ free chan struct{} }

func (s *slots) init(n int) {
	if n > 0 {
		s.free = make(chan struct{}, n)
	}
}

// A call may hold a slot of the server and one of its tool.
const (
	holdsServer uint32 = 1 << iota
	holdsTool
)

// acquireSlots waits for the slots that the call needs. It reports false when the
// call was cancelled first: its handler must then never start. The tool's comes
// first, so that a call that waits for it holds up no other tool.
func (c *Call) acquireSlots() bool {
	if c.method.endless || c.method.brief {
		return c.source.Requested() == nil
	}
	return c.acquire(c.method.slotsOf(c), holdsTool) &&
		c.acquire(&c.server.slots, holdsServer) &&
		c.source.Requested() == nil
}

func (c *Call) acquire(s *slots, which uint32) bool {
	if s == nil || s.free == nil {
		return true
	}
	select {
	case s.free <- struct{}{}:
	default:
		select {
		case s.free <- struct{}{}:
		case <-c.source.Token().Done():
			return false
		}
	}
	if c.session.isClosed() {
		// The slot may come from a call that Close has cancelled already; the same is
		// about to happen to this one, which must not start before (S4).
		<-c.source.Token().Done()
	}
	c.slot.Or(which)
	if c.source.Requested() != nil {
		c.releaseSlots() // the cancel may have looked before the slot was noted
		return false
	}
	return true
}

// takeToolSlot takes over the tool's slot that another call of the same tool holds.
func (c *Call) takeToolSlot(from *Call) {
	if from.slot.And(^holdsTool)&holdsTool != 0 {
		c.slot.Or(holdsTool)
	}
}

// releaseSlots gives back what the call holds. A cancel does so at once: a
// handler that ignores its token must not keep others from running.
func (c *Call) releaseSlots() {
	held := c.slot.Swap(0)
	if held&holdsServer != 0 {
		<-c.server.slots.free
	}
	if held&holdsTool != 0 {
		<-c.method.slotsOf(c).free
	}
}
