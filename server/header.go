package server

// ParamHeader binds a property of a tool's arguments to the HTTP header
// Mcp-Param-<Name> that repeats it.
//
// Specification: basic/transports/streamable-http (2026-07-28), custom headers from tool parameters.
type ParamHeader struct {
	Name string   // what follows Mcp-Param-, as the schema has it
	Path []string // names from the root of the arguments to the property
	Type string   // string, integer or boolean
}

// ParamHeaders lists the headers that repeat arguments of a tool, nil when it has
// none or does not exist. They were compiled when the tool was registered and
// must not be changed.
func (s *Server) ParamHeaders(tool string) []ParamHeader {
	if t := s.current().tools[tool]; t != nil {
		return t.headers
	}
	return nil
}
