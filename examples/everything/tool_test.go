package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Clients depend on these names: none may go, and a new one is written down here.
var tools = []string{
	"test_simple_text",
	"test_image_content",
	"test_audio_content",
	"test_embedded_resource",
	"test_multiple_content_types",
	"test_error_handling",
	"test_tool_with_logging",
	"test_tool_with_progress",
	"test_logging_tool",
	"test_sampling",
	"test_elicitation",
	"test_elicitation_sep1034_defaults",
	"test_elicitation_sep1330_enums",
	"json_schema_2020_12_tool",
	"test_x_mcp_header",
	"test_missing_capability",
	"test_streaming_elicitation",
	"test_input_required_result_elicitation",
	"test_input_required_result_sampling",
	"test_input_required_result_list_roots",
	"test_input_required_result_request_state",
	"test_input_required_result_tampered_state",
	"test_input_required_result_multiple_inputs",
	"test_input_required_result_multi_round",
	"test_input_required_result_capabilities",
	"test_trigger_tool_change",
	"test_trigger_prompt_change",
	"test_reconnection",
	"echo",
	"cancel_wait",
	"cancel_timeout",
	"cancel_error",
	"cancel_panic",
	"cancel_foreign",
	"cancel_poll",
	"cancel_ignore",
	"cancel_hook",
	"cancel_shield",
	"cancel_nested",
	"cancel_then_nested",
	"cancel_sequence",
	"cancel_events",
	"cancel_stats",
	"greet",
	"slow_compute",
	"failing_job",
	"protocol_error_job",
	"confirm_delete",
	"multi_input",
	"test_tool_with_task",
}

type listedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func listTools(t *testing.T, c *client) []listedTool {
	t.Helper()
	var list struct {
		Tools      []listedTool `json:"tools"`
		NextCursor string       `json:"nextCursor"`
	}
	require.NoError(t, json.Unmarshal(c.request("tools/list", nil).result(t), &list))
	require.Empty(t, list.NextCursor)
	return list.Tools
}

func TestToolNames(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		var names []string
		for _, tool := range listTools(t, c) {
			names = append(names, tool.Name)
			assert.NotEmpty(t, tool.Description, tool.Name)
			var schema struct{ Type string }
			require.NoError(t, json.Unmarshal(tool.InputSchema, &schema))
			assert.Equal(t, "object", schema.Type, tool.Name)
		}
		assert.Equal(t, tools, names, "in the order of registration")
	})
}

// Some clients try the first tool without arguments.
func TestFirstToolNeedsNoArguments(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		first := listTools(t, c)[0].Name
		assert.Equal(t, "test_simple_text", first)
		assert.NotEmpty(t, c.call(first, map[string]any{}).text(t))
		assert.NotEmpty(t, c.call(first, nil).text(t))
	})
}

// Arguments of the cancellation fixtures, by tool: * marks those that must be given.
func TestArgumentsOfFixtures(t *testing.T) {
	want := map[string][]string{
		"cancel_wait":        {"tag*", "ms"},
		"cancel_timeout":     {"tag*", "ms"},
		"cancel_error":       {"tag*"},
		"cancel_panic":       {"tag*"},
		"cancel_foreign":     {"tag*"},
		"cancel_poll":        {"tag*", "steps", "step_ms"},
		"cancel_ignore":      {"tag*", "ms", "log"},
		"cancel_hook":        {"tag*"},
		"cancel_shield":      {"tag*", "ms"},
		"cancel_nested":      {"tag*", "kind*", "then_ms"},
		"cancel_sequence":    {"tag*"},
		"cancel_then_nested": {"tag*", "kind*"},
		"cancel_events":      {"tag"},
		"cancel_stats":       nil,
		"echo":               {"text*", "progress"},
	}
	inEachEra(t, func(t *testing.T, c *client) {
		got := map[string][]string{}
		for _, tool := range listTools(t, c) {
			if _, ok := want[tool.Name]; !ok {
				continue
			}
			var schema struct {
				Properties map[string]any `json:"properties"`
				Required   []string       `json:"required"`
			}
			require.NoError(t, json.Unmarshal(tool.InputSchema, &schema))
			got[tool.Name] = nil
			for _, name := range schema.Required {
				require.Contains(t, schema.Properties, name)
				delete(schema.Properties, name)
				got[tool.Name] = append(got[tool.Name], name+"*")
			}
			for name := range schema.Properties {
				got[tool.Name] = append(got[tool.Name], name)
			}
		}
		require.Len(t, got, len(want))
		for name := range want {
			assert.ElementsMatch(t, want[name], got[name], name)
		}
	})
}

func TestDefaultsOfArguments(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		defaults := map[string]map[string]any{}
		for _, tool := range listTools(t, c) {
			var schema struct {
				Properties map[string]struct {
					Default any `json:"default"`
				} `json:"properties"`
			}
			require.NoError(t, json.Unmarshal(tool.InputSchema, &schema))
			defaults[tool.Name] = map[string]any{}
			for name, property := range schema.Properties {
				defaults[tool.Name][name] = property.Default
			}
		}
		assert.EqualValues(t, 60_000, defaults["cancel_wait"]["ms"])
		assert.EqualValues(t, 60_000, defaults["cancel_timeout"]["ms"])
		assert.EqualValues(t, 0, defaults["cancel_nested"]["then_ms"])
	})
}
