package transporttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// survey is what a server has that rules need, in one setting. It is made once
// and not changed after.
type survey struct {
	setting Setting
	version string                     // that was agreed on
	tools   map[string]json.RawMessage // input schemas by name
	calls   map[Need]Call              // of the tools that are found or given, besides fixtures
	lasts   time.Duration              // of the slow tool, when it is left alone
	reports bool                       // the slow tool reports progress
	tasks   bool                       // the server has the extension of tasks, and clients can name it
	asTask  time.Duration              // how long the tool that becomes a task takes, when it is left alone
	other   bool                       // there is a second principal
	why     map[Need]string            // why there is no call for a need
	end     bool                       // the end of the service can be seen
	ask     bool                       // the service can be asked to end
}

// look makes the survey of a target in a setting. The error says why the server cannot
// be tried in it.
func look(ctx context.Context, t *Target, setting Setting) (*survey, error) {
	s := &survey{setting: setting, tools: map[string]json.RawMessage{}, calls: map[Need]Call{}, why: map[Need]string{}}
	v := runProbe(ctx, t, nil, setting, Rule{Name: "survey", run: s.make})
	if v.Status != Pass {
		return nil, &surveyError{v}
	}
	return s, nil
}

// surveyError is why a setting cannot be tried.
type surveyError struct{ verdict Verdict }

func (e *surveyError) Error() string { return e.verdict.Reason }

func (s *survey) make(p *probe) {
	c := p.open()
	s.version = c.version
	restarts := !p.setting.stream() && p.target.Restart != nil
	s.end, s.ask = restarts || c.life.Ended != nil, restarts || c.life.Shutdown != nil
	switch {
	case p.setting.handshake() && c.version == newestStateless:
		p.errorf("the server answers initialize with revision %s, which has no initialize", c.version)
	case c.http != nil && p.setting.handshake() && c.session == "":
		p.errorf("the server opens no session, so that no request can be named by another")
	}
	c.fenceWithin(p.limits.Start, "first of all")
	s.other = c.other != nil
	s.tasks = c.hasTasks()
	s.list(c)
	if s.fixtures() {
		return
	}
	for need, call := range p.target.Calls {
		s.given(need, call)
	}
	s.find()
	s.measure(c)
	s.measureTask(c)
}

// list asks for the tools.
func (s *survey) list(c *client) {
	cursor := ""
	for range 50 {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		m := c.send(option{method: "tools/list", params: params, control: true}).answer(2*c.p.limits.Prompt, "tools/list")
		var result struct {
			Tools []struct {
				Name        string          `json:"name"`
				InputSchema json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
			NextCursor string `json:"nextCursor"`
		}
		if m.Error != nil || json.Unmarshal(m.Result, &result) != nil {
			return // a server without tools
		}
		for _, tool := range result.Tools {
			s.tools[tool.Name] = tool.InputSchema
		}
		if cursor = result.NextCursor; cursor == "" {
			return
		}
	}
}

// fixtures tells whether the server has those of package fixture, which tell what
// happens behind the wire.
func (s *survey) fixtures() bool {
	_, waits := s.tools["cancel_wait"]
	_, tells := s.tools["cancel_events"]
	return waits && tells
}

// given notes a call that the user wants.
func (s *survey) given(need Need, call Call) {
	schema, ok := s.tools[call.Tool]
	if !ok {
		s.why[need] = fmt.Sprintf("the server has no tool %q", call.Tool)
		return
	}
	if call.Arguments == nil {
		call.Arguments = guessArguments(schema)
	}
	s.calls[need] = call
}

// find looks for tools that may be what is needed.
func (s *survey) find() {
	for _, c := range candidates {
		if _, given := s.calls[c.need]; given || s.why[c.need] != "" {
			continue
		}
		name, ok := c.among(s.tools)
		if !ok {
			s.why[c.need] = "the server has nothing that looks like " + string(c.need) + "; name one"
			continue
		}
		s.calls[c.need] = Call{Tool: name, Arguments: guessArguments(s.tools[name])}
	}
}

// measure leaves the slow tool alone to see how long it takes.
func (s *survey) measure(c *client) {
	slow, ok := s.calls[NeedSlow]
	if !ok {
		return
	}
	began := time.Now()
	o := call(slow.Tool, slow.Arguments)
	o.report = true
	r := c.send(o)
	e, ok := r.answered(c.p.limits.Slow)
	s.lasts = time.Since(began)
	s.reports = r.reports(r.from) >= 2
	const short = 800 * time.Millisecond
	if !ok {
		if words := c.lastWords(); words != "" {
			c.p.errorf("%s with %s brings the server down%s", slow.Tool, slow.Arguments, words)
		}
	}
	switch {
	case !ok:
		s.unfit(fmt.Sprintf("%s with %s does not end within %s when it is left alone", slow.Tool, slow.Arguments, c.p.limits.Slow))
	case isToolError(e.Message):
		s.unfit(fmt.Sprintf("%s with %s fails: %.200s", slow.Tool, slow.Arguments, e.Message.Raw))
	case s.lasts < short:
		s.unfit(fmt.Sprintf("%s with %s takes only %s", slow.Tool, slow.Arguments, s.lasts.Round(time.Millisecond)))
	}
}

// unfit gives the slow tool up.
func (s *survey) unfit(why string) {
	delete(s.calls, NeedSlow)
	s.why[NeedSlow] = why + "; name a tool and arguments with which it takes a few seconds"
}

// lacks says which of the needs the server cannot meet, "" when it can meet all.
func (s *survey) lacks(needs []Need) string {
	for _, need := range needs {
		if why := s.missing(need); why != "" {
			return why
		}
	}
	return ""
}

func (s *survey) missing(need Need) string {
	switch need {
	case NeedEnd:
		return unless(s.end, "cannot be judged from outside: the end of the service cannot be seen")
	case NeedShutdown:
		return unless(s.ask, "cannot be judged from outside: the service cannot be asked to end")
	case NeedOther:
		return unless(s.other, "cannot be judged from outside: no second principal is given")
	case NeedTask:
		return s.missingTask()
	case NeedReports:
		if s.fixtures() || s.reports && s.missing(NeedSlow) == "" {
			return ""
		}
		return "the slow tool reports progress less than twice in a call"
	case NeedSlow, NeedProgress, NeedSampling, NeedForm, NeedURL, NeedRoots, NeedPing:
		if _, found := s.calls[need]; found {
			return ""
		}
		if s.fixtures() {
			return s.cannotAsk(need)
		}
		if s.why[need] != "" {
			return s.why[need]
		}
		return "the server has nothing that looks like " + string(need)
	}
	_, found := s.tools[string(need)]
	return unless(found && s.fixtures(), fmt.Sprintf("cannot be judged from outside: the server has no fixture %q", need))
}

// cannotAsk says that the fixture that asks the client cannot ask for what is needed: its
// schema lists what it can ask for, if that is not all.
func (s *survey) cannotAsk(need Need) string {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.need == need })
	if i < 0 {
		return ""
	}
	schema, found := s.tools["cancel_nested"]
	if !found {
		return `cannot be judged from outside: the server has no fixture "cancel_nested"`
	}
	var asks struct {
		Properties struct {
			Kind property `json:"kind"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(schema, &asks) // without a schema that can be read it may ask for anything
	known := asks.Properties.Kind.Enum
	can := len(known) == 0 || slices.Contains(known, any(kinds[i].name))
	return unless(can, fmt.Sprintf("cannot be judged from outside: the server's handlers cannot ask for %s", kinds[i].name))
}

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}
