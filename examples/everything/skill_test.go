package main

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Skills are listed, looked up and read; each file is what its digest says.
func TestSkills(t *testing.T) {
	type skill struct {
		URI         string         `json:"uri"`
		Frontmatter map[string]any `json:"frontmatter"`
		Resources   []struct {
			URI, Digest string
			Size        int
		} `json:"resources"`
	}
	inBubble(t, true, `{}`, func(t *testing.T, c *client) {
		all := decodeResult[struct{ Skills []skill }](t, c.request("skills/list", nil)).Skills
		require.Len(t, all, 2)
		for i, name := range []string{"read-an-answer", "stop-a-batch"} {
			assert.Equal(t, "skill://"+name+"/SKILL.md", all[i].URI)
			assert.Equal(t, name, all[i].Frontmatter["name"])
			assert.NotEmpty(t, all[i].Frontmatter["description"])
			assert.Len(t, all[i].Resources, 2)
			for _, file := range all[i].Resources {
				read := decodeResult[struct{ Contents []struct{ Text string } }](t, c.read(file.URI))
				sum := sha256.Sum256([]byte(read.Contents[0].Text))
				assert.Equal(t, file.Digest, "sha256:"+hex.EncodeToString(sum[:]), file.URI)
				assert.Len(t, read.Contents[0].Text, file.Size, file.URI)
			}
			got := decodeResult[struct{ Skill skill }](t, c.request("skills/get", map[string]any{"uri": all[i].URI}))
			assert.Equal(t, all[i], got.Skill)
			directory := decodeResult[listed](t, c.request("resources/directory/read", map[string]any{"uri": "skill://" + name}))
			assert.Len(t, directory.Resources, 2)
		}
		assert.Equal(t, -32602, c.request("skills/get", map[string]any{"uri": "skill://nobody/SKILL.md"}).reply(t).Error.Code)
	})
	inBubble(t, false, `{}`, func(t *testing.T, c *client) {
		assert.Equal(t, -32601, c.request("skills/list", nil).reply(t).Error.Code, "extensions came with the stateless era")
		assert.Contains(t, string(c.read("skill://stop-a-batch/SKILL.md").result(t)), "text/markdown")
	})
}
