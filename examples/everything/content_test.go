package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/png"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestContentOfEachKind(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		assert.Equal(t, "This is a simple text response for testing.", c.call("test_simple_text", nil).text(t))

		image := c.call("test_image_content", nil).tool(t).Content
		require.Len(t, image, 1)
		checkPicture(t, image[0])

		audio := c.call("test_audio_content", nil).tool(t).Content
		require.Len(t, audio, 1)
		assert.Equal(t, "audio", audio[0]["type"])
		assert.Equal(t, "audio/wav", audio[0]["mimeType"])
		data, err := base64.StdEncoding.DecodeString(audio[0]["data"].(string))
		require.NoError(t, err)
		assert.Equal(t, "RIFF", string(data[:4]))
		assert.EqualValues(t, len(data)-8, uint32(data[4])|uint32(data[5])<<8, "the file's length")

		embedded := c.call("test_embedded_resource", nil).tool(t).Content
		require.Len(t, embedded, 1)
		assert.Equal(t, map[string]any{"type": "resource", "resource": map[string]any{
			"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content.",
		}}, embedded[0])

		mixed := c.call("test_multiple_content_types", nil).tool(t).Content
		require.Len(t, mixed, 3)
		assert.Equal(t, "text", mixed[0]["type"])
		checkPicture(t, mixed[1])
		resource := mixed[2]["resource"].(map[string]any)
		assert.Equal(t, "test://mixed-content-resource", resource["uri"])
		assert.Equal(t, "application/json", resource["mimeType"])
		assert.True(t, json.Valid([]byte(resource["text"].(string))))
	})
}

func checkPicture(t *testing.T, block map[string]any) {
	t.Helper()
	assert.Equal(t, "image", block["type"])
	assert.Equal(t, "image/png", block["mimeType"])
	data, err := base64.StdEncoding.DecodeString(block["data"].(string))
	require.NoError(t, err)
	_, err = png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
}

func TestErrorIsAResult(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		assert.Equal(t, "This tool intentionally returns an error for testing", c.call("test_error_handling", nil).failure(t))
	})
}

func TestLoggingInHandshakeEra(t *testing.T) {
	inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
		assert.JSONEq(t, `{}`, string(c.request("logging/setLevel", map[string]any{"level": "debug"}).result(t)))
		checkLog(t, c)
		c.request("logging/setLevel", map[string]any{"level": "warning"}).result(t)
		quiet := c.call("test_tool_with_logging", nil)
		time.Sleep(time.Second)
		assert.Empty(t, quiet.messages(t, "notifications/message"))
	})
}

func TestLoggingInStatelessEra(t *testing.T) {
	inStatelessEra(t, func(t *testing.T, c *client) {
		for _, tool := range []string{"test_tool_with_logging", "test_logging_tool"} {
			quiet := c.call(tool, nil)
			time.Sleep(time.Second)
			assert.NotEmpty(t, quiet.text(t))
			assert.Empty(t, quiet.messages(t, "notifications/message"), "the client has not asked for messages")
		}
		c.level = "info"
		checkLog(t, c)
		assert.Len(t, c.call("test_logging_tool", nil).messages(t, "notifications/message"), 1)
	})
}

func checkLog(t *testing.T, c *client) {
	t.Helper()
	e := c.call("test_tool_with_logging", nil)
	time.Sleep(time.Second)
	assert.NotEmpty(t, e.text(t))
	var data []string
	for _, m := range e.messages(t, "notifications/message") {
		var params struct{ Level, Data string }
		require.NoError(t, json.Unmarshal(m.Params, &params))
		assert.Equal(t, "info", params.Level)
		data = append(data, params.Data)
	}
	assert.Equal(t, []string{"Tool execution started", "Tool processing data", "Tool execution completed"}, data)
}

func TestProgressInThreeSteps(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("test_tool_with_progress", nil)
		time.Sleep(75 * time.Millisecond)
		assert.Equal(t, []float64{0, 50}, progressOf(t, e))
		time.Sleep(50 * time.Millisecond)
		assert.Equal(t, []float64{0, 50, 100}, progressOf(t, e))
		require.False(t, e.answered(), "some clients lose a report that comes together with the result")
		time.Sleep(50 * time.Millisecond)
		assert.NotEmpty(t, e.text(t))
	})
}

// Each tool that takes its time stops when its client cancels.
func TestReportsStop(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		for _, tool := range []string{"test_tool_with_logging", "test_tool_with_progress"} {
			e := c.call(tool, nil)
			c.cancel(e, reason)
			e.silent(t)
			assert.Equal(t, 0, statsOf(t, c).Lingering, tool)
		}
	})
}

func TestSchemaIsListedVerbatim(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		schemas := map[string]string{}
		for _, tool := range listTools(t, c) {
			schemas[tool.Name] = string(tool.InputSchema)
		}
		assert.JSONEq(t, schemaOf2020, schemas["json_schema_2020_12_tool"])
		assert.JSONEq(t, schemaWithHeader, schemas["test_x_mcp_header"])
	})
}

func TestSchemaIsEnforced(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		const tool = "json_schema_2020_12_tool"
		assert.Contains(t, c.call(tool, map[string]any{"contactMethod": "phone", "phone": "1"}).text(t), `"phone":"1"`)
		assert.NotEmpty(t, c.call(tool, map[string]any{"email": "a@b.c", "address": map[string]any{"city": "Paris"}}).text(t))
		for _, wrong := range []map[string]any{
			nil,
			{"name": "Ada"},
			{"contactMethod": "phone", "email": "a@b.c"},
			{"email": "a@b.c", "more": 1},
			{"email": "a@b.c", "address": map[string]any{"city": 1}},
		} {
			assert.Contains(t, c.call(tool, wrong).failure(t), "invalid arguments", "%v", wrong)
		}
	})
}

func TestHeaderOfArgument(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		assert.Equal(t, "region=eu", c.call("test_x_mcp_header", map[string]any{"region": "eu", "level": 3}).text(t))
		assert.Equal(t, "region=", c.call("test_x_mcp_header", nil).text(t))
		headers := c.fixture.server.ParamHeaders("test_x_mcp_header")
		require.Len(t, headers, 1)
		assert.Equal(t, "Region", headers[0].Name)
	})
}

func TestMissingCapability(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		assert.NotEmpty(t, c.call("test_missing_capability", nil).text(t))
	})
	inBubble(t, true, `{"elicitation":{}}`, func(t *testing.T, c *client) {
		failure := c.call("test_missing_capability", nil).reply(t).Error
		require.NotNil(t, failure)
		assert.Equal(t, -32021, failure.Code)
		assert.JSONEq(t, `{"requiredCapabilities":{"sampling":{}}}`, string(failure.Data))
	})
}

func TestStreamCarriesNotificationsOnly(t *testing.T) {
	inEachEra(t, func(t *testing.T, c *client) {
		e := c.call("test_streaming_elicitation", nil)
		assert.NotEmpty(t, e.text(t))
		assert.Equal(t, counted(1, 3), progressOf(t, e))
		assert.Len(t, e.sent, 3)
	})
}

func TestSampling(t *testing.T) {
	inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
		e := c.call("test_sampling", map[string]any{"prompt": "Say hello"})
		asked := answerNext(t, c, e, "sampling/createMessage", kinds[0].answer)
		assert.JSONEq(t, `{"maxTokens":100,"messages":[{"role":"user","content":{"type":"text","text":"Say hello"}}]}`, string(asked.Params))
		assert.Equal(t, "LLM response: hello", e.text(t))
	})
	inBubble(t, false, `{}`, func(t *testing.T, c *client) {
		assert.NotNil(t, c.call("test_sampling", map[string]any{"prompt": "Say hello"}).reply(t).Error)
	})
}

func TestElicitationForms(t *testing.T) {
	for _, form := range []struct {
		tool      string
		arguments map[string]any
		schema    string
		answer    string
		content   string
	}{
		{"test_elicitation", map[string]any{"message": "Who?"}, formPlain,
			`{"username":"ada","email":"ada@example.com"}`, `{"email":"ada@example.com","username":"ada"}`},
		{"test_elicitation_sep1034_defaults", nil, formDefaults,
			`{"age":31}`, `{"age":31,"name":"John Doe","score":95.5,"status":"active","verified":true}`},
		{"test_elicitation_sep1330_enums", nil, formEnums,
			`{"titledMulti":["value1","value3"],"legacyEnum":"opt2"}`, `{"legacyEnum":"opt2","titledMulti":["value1","value3"]}`},
	} {
		t.Run(form.tool, func(t *testing.T) {
			inBubble(t, false, everyCapability, func(t *testing.T, c *client) {
				e := c.call(form.tool, form.arguments)
				asked := answerNext(t, c, e, "elicitation/create", `{"action":"accept","content":`+form.answer+`}`)
				var params struct {
					Message         string
					RequestedSchema json.RawMessage
				}
				require.NoError(t, json.Unmarshal(asked.Params, &params))
				assert.NotEmpty(t, params.Message)
				assert.JSONEq(t, form.schema, string(params.RequestedSchema))
				assert.Equal(t, "Elicitation completed: action=accept, content="+form.content, e.text(t))

				e = c.call(form.tool, form.arguments)
				answerNext(t, c, e, "elicitation/create", `{"action":"decline"}`)
				assert.Contains(t, e.text(t), "action=decline")
			})
		})
	}
}
