package heed

import (
	_ "github.com/invopop/jsonschema"
	_ "github.com/modelcontextprotocol/go-sdk/auth"
	_ "github.com/modelcontextprotocol/go-sdk/mcp"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/segmentio/encoding/json"
	_ "github.com/stretchr/testify/require"
	_ "github.com/yosida95/uritemplate/v3"
	_ "go.uber.org/goleak"
)
