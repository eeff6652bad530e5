package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"
)

// Variables are the values that a URI gives to the variables of its template. A
// variable has several values where the template explodes it: {/path*}.
type Variables map[string][]string

// Get returns the first value of a variable, "" when it has none.
func (v Variables) Get(name string) string {
	if values := v[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// template is a registered resource template. It never changes.
type template struct {
	definition *mcp.ResourceTemplate // a copy
	options    ResourceOptions
	read       ResourceHandler

	parsed    *uritemplate.Template // compiled; safe for concurrent use
	pattern   *regexp.Regexp        // tells quickly whether a URI fits
	literal   string                // what every URI that fits begins with
	literals  int                   // how much of the template is no variable, in bytes
	variables []string              // the names
	lists     string                // the characters that separate values of one variable
	weight    int                   // what matching costs for each byte of a URI; see maxCost
}

// Matching keeps each way to read a URI, with all values so far, and copies it for each byte. A path of four thousand
// segments took seconds, and so did eight kilobytes for ten variables.
const (
	maxValues = 64      // bounds the values of a URI's variables, taken together
	maxCost   = 1 << 20 // bounds what is copied, about; some tenths of a second
)

// AddResourceTemplate registers resources whose URIs follow an RFC 6570
// template. Its handler gets the URI and the values of the variables. A template of
// the same text is replaced.
//
// A URI that fits several templates is read through the one with the most
// literal text. The values of associative variables ({?all*}) cannot be told
// from a URI; such templates match nothing. Nor does any template match a URI that could give
// its variables more than 64 values, by the commas and other separators of values in it, or one that is
// long and could be read in so many ways that finding the values would take too long. 8 KiB is not too long for six
// variables, 3 KiB is not for ten; a prefix, {name:50}, counts for as many variables as it has characters.
//
// The errors are those of [AddResource], and one for a template that is malformed.
//
// Specification: server/resources, resource templates.
func AddResourceTemplate[Out ReadOut](s *Server, t *mcp.ResourceTemplate, handler func(ctx context.Context, req *servercontext.Request, in ReadIn) (Out, error), options ...*ResourceOptions) error {
	if handler == nil {
		return s.AddResourceTemplate(t, nil)
	}
	mime := ""
	if t != nil {
		mime = t.MIMEType
	}
	return s.AddResourceTemplate(t, readAs(mime, handler), options...)
}

// MustAddResourceTemplate is AddResourceTemplate for templates that are known to
// be good; it panics where AddResourceTemplate returns an error.
func MustAddResourceTemplate[Out ReadOut](s *Server, t *mcp.ResourceTemplate, handler func(ctx context.Context, req *servercontext.Request, in ReadIn) (Out, error), options ...*ResourceOptions) {
	if err := AddResourceTemplate(s, t, handler, options...); err != nil {
		panic(err)
	}
}

// AddResourceTemplate is the function AddResourceTemplate for handlers that return
// whole results.
func (s *Server) AddResourceTemplate(t *mcp.ResourceTemplate, handler ResourceHandler, options ...*ResourceOptions) error {
	if t == nil {
		return &RegistrationError{Kind: "resource template", Err: errors.New("the template is nil")}
	}
	fail := func(err error) error {
		return &RegistrationError{Kind: "resource template", Name: t.URITemplate, Err: err}
	}
	definition := *t
	registered := &template{definition: &definition, read: handler}
	if len(options) > 0 && options[0] != nil {
		registered.options = *options[0]
	}
	if handler == nil {
		return fail(errors.New("the handler is nil"))
	}
	if err := s.checkTemplate(&definition, registered.options); err != nil {
		return fail(err)
	}
	if err := registered.compile(); err != nil {
		return fail(err)
	}
	s.register(func(reg *registry) {
		reg.templates[definition.URITemplate] = registered
		reg.had |= hasResources
	})
	s.publish(event{kind: eventResourcesChanged})
	return nil
}

// MustAddResourceTemplate is AddResourceTemplate that panics where that returns an error.
func (s *Server) MustAddResourceTemplate(t *mcp.ResourceTemplate, handler ResourceHandler, options ...*ResourceOptions) {
	if err := s.AddResourceTemplate(t, handler, options...); err != nil {
		panic(err)
	}
}

// RemoveResourceTemplates takes templates away. Reads that are running go on.
// Unknown templates are ignored.
func (s *Server) RemoveResourceTemplates(templates ...string) {
	s.register(func(r *registry) {
		for _, t := range templates {
			delete(r.templates, t)
		}
	})
	s.publish(event{kind: eventResourcesChanged})
}

func (s *Server) checkTemplate(d *mcp.ResourceTemplate, o ResourceOptions) error {
	if d.URITemplate == "" {
		return errors.New("the URI template is empty")
	}
	if o.Size != nil {
		return errors.New("a template has no size")
	}
	return s.checkResource(&mcp.Resource{Name: d.Name, Annotations: d.Annotations, Icons: d.Icons, Meta: d.Meta}, o)
}

// compile makes what matching needs.
func (t *template) compile() (err error) {
	text := t.definition.URITemplate
	if t.parsed, err = uritemplate.New(text); err != nil {
		return fmt.Errorf("the URI template is malformed: %w", err)
	}
	t.pattern = t.parsed.Regexp()
	t.variables = t.parsed.Varnames()
	if literal, _, _ := strings.Cut(text, "{"); checkURI(literal) == nil {
		t.literal = literal
	}
	t.lists = ","
	variables, ways := 0, 0
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		t.literals += len(before)
		if !found {
			break
		}
		var expression string
		expression, rest, _ = strings.Cut(after, "}")
		if strings.Contains(expression, "*") {
			t.lists += separator(expression[0])
		}
		for variable := range strings.SplitSeq(expression, ",") {
			variables++
			ways += max(prefix(variable), 1)
		}
	}
	t.weight = 3 * ways * variables
	return nil
}

// prefix is how many characters of a variable count, 0 for all.
func prefix(variable string) int {
	_, length, _ := strings.Cut(variable, ":")
	n, _ := strconv.Atoi(length) // 0 without one
	return n
}

// separator is what stands between the values of an exploded variable, by the operator of its expression.
func separator(operator byte) string {
	switch operator {
	case '.', '/', ';':
		return string(operator)
	case '?', '&':
		return "&"
	}
	return ","
}

// match returns the values that a URI gives to the variables.
func (t *template) match(uri string) (Variables, bool) {
	if !strings.HasPrefix(uri, t.literal) || !t.pattern.MatchString(uri) {
		return nil, false
	}
	values := 1
	for i := len(t.literal); i < len(uri); i++ {
		if strings.IndexByte(t.lists, uri[i]) >= 0 {
			values++
		}
	}
	if values > maxValues || t.weight*(len(uri)-len(t.literal))*(1+values/16) > maxCost {
		return nil, false
	}
	matched := t.parsed.Match(uri)
	if matched == nil {
		return nil, false
	}
	variables := make(Variables, len(matched))
	for name, value := range matched {
		if value.Valid() {
			variables[name] = value.V
		}
	}
	return variables, true
}

// matchers orders templates: the one that says most comes first.
func matchers(registered map[string]*template) []*template {
	return slices.SortedFunc(maps.Values(registered), func(a, b *template) int {
		return cmp.Or(cmp.Compare(b.literals, a.literals), strings.Compare(a.definition.URITemplate, b.definition.URITemplate))
	})
}

// projectTemplate leaves out of a template what the revision does not have.
func (r *revision) projectTemplate(reg *registry, d *mcp.ResourceTemplate) any {
	p := *d
	if !r.structured {
		p.Title, p.Meta = "", nil
	}
	if !r.urlElicitation {
		p.Icons = nil
	}
	var o ResourceOptions
	if registered := reg.templates[d.URITemplate]; registered != nil && registered.definition == d {
		o = registered.options
	}
	p.Annotations = nil
	return &struct {
		mcp.ResourceTemplate
		Annotations json.RawMessage `json:"annotations,omitempty"`
	}{ResourceTemplate: p, Annotations: r.annotations(d.Annotations, o.Priority)}
}
