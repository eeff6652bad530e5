package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/heedmcp/heed/transport/transporttest"
)

const compareUsage = `heedcheck compare tries several servers and prints one table.

usage:
  heedcheck compare -config FILE [-format text|markdown|page|json] [-run REGEXP] [-era E] [-parallel N]

The file is JSON:
  {"servers": [{
    "name": "Mine",
    "stdio": ["my-server", "--stdio"],
    "http": ["my-server", "--http", "{addr}"],
    "url": "http://{addr}/mcp",
    "era": "both",
    "tool": "wait", "args": {"ms": 2000},
    "nested": {"sampling": "ask"},
    "task": "work {\"ms\": 2000}",
    "headers": {"Authorization": "Bearer secret"},
    "other": {"Authorization": "Bearer somebody-else"},
    "env": ["MODE=test"]
  }]}
Of stdio, http and url any may be left out, but not all. {addr} and {port} stand for a free port on
loopback. Relative commands are looked for where heedcheck runs. Entries that follow one another under the
same name are one server, such as one that needs a process for each era.

exit status: 0 all servers could be tried, whatever came out, 2 wrong use or a server that could not.
`

// config is what compare is given.
type config struct {
	Servers []serverConfig `json:"servers"`
}

type serverConfig struct {
	Name    string            `json:"name"`
	Stdio   []string          `json:"stdio"`
	HTTP    []string          `json:"http"`
	URL     string            `json:"url"`
	Era     string            `json:"era"`
	Tool    string            `json:"tool"`
	Args    json.RawMessage   `json:"args"`
	Nested  map[string]string `json:"nested"`
	Task    string            `json:"task"`
	Headers map[string]string `json:"headers"`
	Other   map[string]string `json:"other"` // of a second principal
	Env     []string          `json:"env"`
}

func readConfig(name string) (*config, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	var c config
	if err := decoder.Decode(&c); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(c.Servers) == 0 {
		return nil, fmt.Errorf("%s: there are no servers in it", name)
	}
	return &c, nil
}

// options are those with which a server is tried, on stdio and over HTTP.
func (s serverConfig) options(base *options) ([]*options, error) {
	one := *base
	one.calls = map[transporttest.Need]transporttest.Call{}
	one.header = map[string][]string{}
	one.env = s.Env
	if s.Era != "" {
		settings, err := settingsOf(s.Era)
		if err != nil {
			return nil, fmt.Errorf("%s: era: want both, handshake or stateless, got %.80q", s.Name, s.Era)
		}
		one.settings &= settings
	}
	if s.Tool != "" {
		call, err := callOf(s.Tool, string(s.Args))
		if err != nil {
			return nil, fmt.Errorf("%s: args: %w", s.Name, err)
		}
		one.calls[transporttest.NeedSlow] = call
	}
	for kind, tool := range s.Nested {
		if err := one.addNested(kind + "=" + tool); err != nil {
			return nil, fmt.Errorf("%s: nested: %w", s.Name, err)
		}
	}
	if s.Task != "" {
		if err := one.addTask(s.Task); err != nil {
			return nil, fmt.Errorf("%s: task: %w", s.Name, err)
		}
	}
	for name, value := range s.Headers {
		one.header[name] = []string{value}
	}
	if len(s.Other) > 0 {
		one.other = map[string][]string{}
	}
	for name, value := range s.Other {
		one.other[name] = []string{value}
	}
	var all []*options
	if len(s.Stdio) > 0 {
		o := one
		o.command = s.Stdio
		all = append(all, &o)
	}
	if s.URL != "" {
		o := one
		o.command, o.url = s.HTTP, s.URL
		all = append(all, &o)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: neither stdio nor url is given", s.Name)
	}
	for _, o := range all {
		if err := o.checkServer(); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return all, nil
}

func runCompare(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	base := &options{era: "both", parallel: 4}
	base.limits.Start = time.Minute // several servers on one machine take their time
	var name, format, match string
	flags := flag.NewFlagSet("heedcheck compare", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&name, "config", "", "")
	flags.StringVar(&format, "format", "text", "")
	flags.StringVar(&match, "run", "", "")
	flags.StringVar(&base.era, "era", base.era, "")
	flags.IntVar(&base.parallel, "parallel", base.parallel, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, compareUsage)
		return exitOK
	case err != nil:
		return fail(stderr, err)
	case name == "" || flags.NArg() > 0:
		return fail(stderr, errors.New("compare wants -config FILE and nothing else (compare -h says more)"))
	}
	write, ok := tableFormats[format]
	if !ok {
		return fail(stderr, fmt.Errorf("-format: want text, markdown, page or json, got %.80q", format))
	}
	if err := base.choose(match, "QoI", true); err != nil {
		return fail(stderr, err)
	}
	c, err := readConfig(name)
	if err != nil {
		return fail(stderr, err)
	}
	reports, status := c.try(ctx, base, stderr)
	if err := write(stdout, base.rules, reports); err != nil {
		return fail(stderr, err)
	}
	return status
}

// try tries the servers, one after another.
func (c *config) try(ctx context.Context, base *options, stderr io.Writer) ([]*report, int) {
	var reports []*report
	status := exitOK
	for i := 0; i < len(c.Servers); {
		name := c.Servers[i].Name
		began := time.Now()
		var out transporttest.Outcome
		var err error
		for ; i < len(c.Servers) && c.Servers[i].Name == name && err == nil; i++ {
			var all []*options
			all, err = c.Servers[i].options(base)
			for _, o := range all {
				part := o.outcome(ctx)
				out.Verdicts = append(out.Verdicts, part.Verdicts...)
				out.Unspoken = append(out.Unspoken, part.Unspoken...)
			}
		}
		if err != nil {
			status = fail(stderr, err)
			continue
		}
		r := newReport(name, out, time.Since(began))
		if len(r.Verdicts) == 0 {
			why := "there is no setting to try it in"
			if len(r.Unspoken) > 0 {
				why = r.Unspoken[0].Reason
			}
			status = fail(stderr, fmt.Errorf("%s could not be tried: %s", name, why))
		}
		fmt.Fprintf(stderr, "%s: %s\n", name, r.summary())
		reports = append(reports, r)
	}
	return reports, status
}

func (o *options) outcome(ctx context.Context) transporttest.Outcome {
	t, shut := o.target()
	defer shut()
	return transporttest.Check(ctx, t, transporttest.Plan{Settings: o.settings, Rules: o.rules, Parallel: o.parallel})
}
