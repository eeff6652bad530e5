package gosdk_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// graph is a store of things and how they relate, kept by tools with typed results.
type graph struct {
	mu    sync.Mutex
	nodes map[string]*node
	edges []edge
}

type node struct {
	Name  string   `json:"name" jsonschema:"the node's unique name"`
	Kind  string   `json:"kind"`
	Facts []string `json:"facts,omitempty"`
}

type edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Verb string `json:"verb" jsonschema:"how the two relate"`
}

type (
	nodesIn struct {
		Nodes []node `json:"nodes"`
	}
	edgesIn struct {
		Edges []edge `json:"edges"`
	}
	namesIn struct {
		Names []string `json:"names"`
	}
	searchIn struct {
		Text  string `json:"text"`
		Limit *int   `json:"limit,omitempty"`
	}
	countOut struct {
		Count int `json:"count"`
	}
	nodesOut struct {
		Nodes []*node `json:"nodes"`
	}
	subgraph struct {
		Nodes []*node        `json:"nodes"`
		Edges []edge         `json:"edges"`
		Kinds map[string]int `json:"kinds,omitempty"`
	}
)

func newGraph() *graph { return &graph{nodes: map[string]*node{}} }

func (g *graph) register(r registry) {
	addTool(r, &mcp.Tool{Name: "add_nodes", Description: "adds nodes"}, g.addNodes)
	addTool(r, &mcp.Tool{Name: "add_edges", Description: "relates nodes"}, g.addEdges)
	addTool(r, &mcp.Tool{Name: "remove", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}}, g.remove)
	addTool(r, &mcp.Tool{Name: "search", Title: "Search"}, g.search)
	addTool(r, &mcp.Tool{Name: "read"}, g.read)
	addTool(r, &mcp.Tool{Name: "nothing"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, *subgraph, error) {
		return nil, nil, nil
	})
	addTool(r, &mcp.Tool{Name: "names"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, map[string]any, error) {
		return nil, map[string]any{"a": 1.5, "html": "<&>"}, nil
	})
}

func (g *graph) addNodes(_ context.Context, _ *mcp.CallToolRequest, in nodesIn) (*mcp.CallToolResult, countOut, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range in.Nodes {
		if g.nodes[n.Name] != nil {
			return nil, countOut{}, fmt.Errorf("node %q exists", n.Name)
		}
		g.nodes[n.Name] = &n
	}
	return nil, countOut{len(g.nodes)}, nil
}

func (g *graph) addEdges(_ context.Context, _ *mcp.CallToolRequest, in edgesIn) (*mcp.CallToolResult, *countOut, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.edges = append(g.edges, in.Edges...)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "related"}}}, &countOut{len(g.edges)}, nil
}

func (g *graph) remove(_ context.Context, _ *mcp.CallToolRequest, in namesIn) (*mcp.CallToolResult, any, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range in.Names {
		delete(g.nodes, name)
	}
	g.edges = slices.DeleteFunc(g.edges, func(e edge) bool { return slices.Contains(in.Names, e.From) || slices.Contains(in.Names, e.To) })
	return nil, nil, nil
}

func (g *graph) search(_ context.Context, _ *mcp.CallToolRequest, in searchIn) (*mcp.CallToolResult, nodesOut, error) {
	return nil, nodesOut{g.sorted(func(n *node) bool { return strings.Contains(n.Name, in.Text) }, in.Limit)}, nil
}

func (g *graph) read(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, subgraph, error) {
	s := subgraph{Nodes: g.sorted(func(*node) bool { return true }, nil), Kinds: map[string]int{}}
	for _, n := range s.Nodes {
		s.Kinds[n.Kind]++
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.Edges = slices.Clone(g.edges)
	return nil, s, nil
}

func (g *graph) sorted(keep func(*node) bool, limit *int) []*node {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []*node
	for _, n := range g.nodes {
		if keep(n) {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b *node) int { return strings.Compare(a.Name, b.Name) })
	if limit != nil && len(found) > *limit {
		found = found[:*limit]
	}
	return found
}

func playGraph(s *script) {
	s.tools()
	s.call("read", nil)
	s.call("add_nodes", M{"nodes": []M{{"name": "ada", "kind": "person", "facts": []string{"wrote notes"}}, {"name": "engine", "kind": "machine"}}})
	s.call("add_nodes", M{"nodes": []M{{"name": "ada", "kind": "person"}}})
	s.call("add_nodes", M{"nodes": "none"})
	s.call("add_nodes", M{})
	s.call("add_edges", M{"edges": []M{{"from": "ada", "to": "engine", "verb": "programs"}}})
	s.call("search", M{"text": "a"})
	s.call("search", M{"text": "", "limit": 1})
	s.call("search", M{"text": "", "Limit": 1})
	s.call("read", M{})
	s.call("remove", M{"names": []string{"engine"}})
	s.call("read", nil)
	s.call("nothing", nil)
	s.call("names", M{"any": "thing"})
	s.call("absent", nil)
}
