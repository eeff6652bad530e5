package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/heedmcp/heed/transport/transporttest"
)

const usage = `heedcheck tries whether an MCP server stops when it is asked to.

usage:
  heedcheck [flags] -- COMMAND ARGS…             a server on stdio; a process for each rule
  heedcheck [flags] URL                          a server on streamable HTTP that runs already
  heedcheck [flags] -url URL -- COMMAND ARGS…    one that is started: {addr} and {port} in URL and
                                                 ARGS stand for a free port on loopback
  heedcheck compare -config FILE [-format F]     several servers, one table (compare -h says more)
  heedcheck -list                                the rules

flags:
  -era both|handshake|stateless   which revisions to speak (default both, as far as the server does)
  -json-only=false                leave out the clients that accept only application/json
  -tool NAME                      a tool that takes a few seconds (default: one that looks like it)
  -args JSON                      its arguments (default: guessed from its schema)
  -nested 'KIND=NAME [JSON]'      a tool that asks the client for KIND: sampling, form, url, roots
                                  or ping; may be repeated (default: one that looks like it)
  -task 'NAME [JSON]'             a tool the calls of which become tasks that take a few seconds (default:
                                  the slow one, if its calls do)
  -header 'NAME: VALUE'           a header of every HTTP request; may be repeated
  -other 'NAME: VALUE'            the same for a second principal, who must see nothing of the first; may
                                  be repeated
  -run REGEXP                     only rules whose names match
  -level MUST|SHOULD|MAY|QoI      only rules that bind as much as this or more (default QoI: all)
  -parallel N                     how many rules to try at the same time (default 4)
  -v                              what was on the wire, of all rules
  -json                           the outcome as JSON
  -junit FILE                     the outcome as JUnit XML, besides
limits, as durations such as 2s:
  -prompt D                       for what should come at once (default 5s)
  -quiet D                        how long to listen for what should not come (default 300ms)
  -exit D                         for the end of a server that is asked to end; over HTTP three times
                                  that (default 6s)
  -slow D                         how long the slow tool may take (default 10s)
  -rule D                         for a rule as a whole (default 1m)
  -start D                        for the first answer of a server that starts (default 15s)

exit status: 0 no rule is broken, 1 one is, 2 wrong use or no server that answers.
`

var errHelp = errors.New("help")

// options are what the command line said.
type options struct {
	command  []string
	env      []string // of compare only
	url      string
	header   http.Header
	other    http.Header // of a second principal; nil: there is none
	settings transporttest.Setting
	era      string // as it was given
	calls    map[transporttest.Need]transporttest.Call
	limits   transporttest.Limits
	rules    []transporttest.Rule
	parallel int
	verbose  bool
	json     bool
	junit    string
	list     bool
}

// parse reads the command line. Its error is one line for the user.
func parse(args []string) (*options, error) {
	o := &options{era: "both", parallel: 4, header: http.Header{}, calls: map[transporttest.Need]transporttest.Call{}}
	var tool, arguments, match, level string
	jsonOnly := true
	args, command := split(args)
	o.command = command
	flags := flag.NewFlagSet("heedcheck", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.era, "era", o.era, "")
	flags.BoolVar(&jsonOnly, "json-only", true, "")
	flags.StringVar(&tool, "tool", "", "")
	flags.StringVar(&arguments, "args", "", "")
	flags.Func("nested", "", o.addNested)
	flags.Func("task", "", o.addTask)
	flags.Func("header", "", func(text string) error { return addHeader(o.header, text) })
	flags.Func("other", "", func(text string) error {
		if o.other == nil {
			o.other = http.Header{}
		}
		return addHeader(o.other, text)
	})
	flags.StringVar(&match, "run", "", "")
	flags.StringVar(&level, "level", "QoI", "")
	flags.IntVar(&o.parallel, "parallel", o.parallel, "")
	flags.BoolVar(&o.verbose, "v", false, "")
	flags.BoolVar(&o.json, "json", false, "")
	flags.StringVar(&o.junit, "junit", "", "")
	flags.BoolVar(&o.list, "list", false, "")
	flags.StringVar(&o.url, "url", "", "")
	flags.DurationVar(&o.limits.Prompt, "prompt", 0, "")
	flags.DurationVar(&o.limits.Quiet, "quiet", 0, "")
	flags.DurationVar(&o.limits.Exit, "exit", 0, "")
	flags.DurationVar(&o.limits.Slow, "slow", 0, "")
	flags.DurationVar(&o.limits.Rule, "rule", 0, "")
	flags.DurationVar(&o.limits.Start, "start", 15*time.Second, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil, errHelp
	case err != nil:
		return nil, fmt.Errorf("%w (-h lists the flags)", err)
	case flags.NArg() > 1 || flags.NArg() == 1 && (o.url != "" || len(command) > 0):
		return nil, fmt.Errorf("unexpected argument %.80q: a command follows after --", flags.Arg(flags.NArg()-1))
	case flags.NArg() == 1:
		o.url = flags.Arg(0)
	}
	if err := o.choose(match, level, jsonOnly); err != nil || o.list {
		return o, err
	}
	if tool != "" {
		call, err := callOf(tool, arguments)
		if err != nil {
			return nil, fmt.Errorf("-args: %w", err)
		}
		o.calls[transporttest.NeedSlow] = call
	} else if arguments != "" {
		return nil, errors.New("-args are of a -tool")
	}
	return o, o.checkServer()
}

// split cuts the command off that follows after --.
func split(args []string) (flags, command []string) {
	for i, arg := range args {
		if arg == "--" {
			return args[:i], args[i+1:]
		}
	}
	return args, nil
}

// choose sets the rules and the settings.
func (o *options) choose(match, level string, jsonOnly bool) error {
	pattern, err := regexp.Compile(match)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	most, err := levelOf(level)
	if err != nil {
		return err
	}
	for _, rule := range transporttest.Rules() {
		if pattern.MatchString(rule.Name) && rule.Level <= most {
			o.rules = append(o.rules, rule)
		}
	}
	if len(o.rules) == 0 {
		return fmt.Errorf("no rule is called so: %.80q (-list lists them)", match)
	}
	o.settings, err = settingsOf(o.era)
	if !jsonOnly {
		o.settings &^= transporttest.JSONs
	}
	return err
}

func levelOf(text string) (transporttest.Level, error) {
	for level := transporttest.Must; level <= transporttest.Quality; level++ {
		if strings.EqualFold(level.String(), text) {
			return level, nil
		}
	}
	return 0, fmt.Errorf("-level: want MUST, SHOULD, MAY or QoI, got %.80q", text)
}

func settingsOf(era string) (transporttest.Setting, error) {
	switch era {
	case "both", "":
		return transporttest.All, nil
	case "handshake":
		return transporttest.Handshakes, nil
	case "stateless":
		return transporttest.Statelesses, nil
	}
	return 0, fmt.Errorf("-era: want both, handshake or stateless, got %.80q", era)
}

func callOf(tool, arguments string) (transporttest.Call, error) {
	call := transporttest.Call{Tool: tool}
	if strings.TrimSpace(arguments) == "" {
		return call, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &object); err != nil || object == nil {
		return call, fmt.Errorf("want a JSON object, got %.80q", arguments)
	}
	call.Arguments = json.RawMessage(arguments)
	return call, nil
}

var nestedNeeds = map[string]transporttest.Need{
	"sampling": transporttest.NeedSampling, "form": transporttest.NeedForm, "url": transporttest.NeedURL,
	"roots": transporttest.NeedRoots, "ping": transporttest.NeedPing,
}

func (o *options) addNested(text string) error {
	kind, rest, ok := strings.Cut(text, "=")
	need, known := nestedNeeds[kind]
	tool, arguments, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if !ok || !known || tool == "" {
		return errors.New("want sampling=NAME, form=NAME, url=NAME, roots=NAME or ping=NAME")
	}
	call, err := callOf(tool, arguments)
	o.calls[need] = call
	return err
}

func (o *options) addTask(text string) error {
	tool, arguments, _ := strings.Cut(strings.TrimSpace(text), " ")
	if tool == "" {
		return errors.New("want NAME, or NAME JSON")
	}
	call, err := callOf(tool, arguments)
	o.calls[transporttest.NeedTask] = call
	return err
}

func addHeader(to http.Header, text string) error {
	name, value, ok := strings.Cut(text, ":")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return errors.New("want NAME: VALUE")
	}
	to[name] = append(to[name], strings.TrimSpace(value))
	return nil
}

// checkServer says whether there is something to try.
func (o *options) checkServer() error {
	if o.url == "" {
		if len(o.command) == 0 {
			return errors.New("which server? heedcheck -- COMMAND ARGS… or heedcheck URL (-h says more)")
		}
		return nil
	}
	u, err := url.Parse(strings.NewReplacer("{addr}", "127.0.0.1:1", "{port}", "1").Replace(o.url))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("want a URL such as http://127.0.0.1:8080/mcp, got %.80q (a command follows after --)", o.url)
	}
	return nil
}
