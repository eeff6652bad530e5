package transporttest

// The rules of this file: nobody can cancel what is somebody else's.

var isolationRules = []Rule{
	{
		Name: "isolation-sessions", Page: pageTransport, Level: Must, Settings: HTTPHandshake | HTTPHandshakeJSON, Needs: []Need{NeedSlow},
		Explanation: "two sessions use the same id: a cancel in the one leaves the other alone",
		run:         sessionsAreIsolated,
	},
	{
		Name: "isolation-stateless", Page: pageHTTP, Level: Must, Settings: HTTPStateless | HTTPStatelessJSON, Needs: []Need{NeedSlow},
		Explanation: "two clients use the same id: neither a POSTed cancel nor the end of one response touches the other",
		run:         clientsAreIsolated,
	},
}

func sessionsAreIsolated(p *probe) {
	one := p.open()
	other := one.sibling()
	const id = "1"
	mine, theirs := one.slow().withID(id).begin(), other.slow().withID(id).begin()
	theirs.request.stop(stop)
	if theirs.tag != "" {
		theirs.stopped() // of another tool it is only known when mine would be over as well
	}
	one.fence("after a cancel in another session")
	p.sleep(p.limits.Quiet)
	mine.untouched("by a cancel in another session")
	mine.request.stop(stop)
	mine.stopped()
}

func clientsAreIsolated(p *probe) {
	one := p.open()
	other := one.sibling()
	const id = "1"
	mine, theirs := one.slow().withID(id).begin(), other.slow().withID(id).begin()
	other.cancel(id, stop)
	one.fence("after a POSTed cancel")
	p.sleep(p.limits.Quiet)
	mine.untouched("by a cancel that another client has POSTed")
	theirs.request.stop(stop)
	theirs.stopped()
	one.fence("after another client has closed its response")
	p.sleep(p.limits.Quiet)
	mine.untouched("by another client that has closed its response")
}
