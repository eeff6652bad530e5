package skills_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/skills"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestListsSkills(t *testing.T) {
	c := serve(t, shelf(), nil)
	all := get[skillList](c, "skills/list", nil)
	assert.Equal(t, []string{
		"skill://acme/billing/refunds/SKILL.md",
		"skill://acme/billing/refunds/inner/SKILL.md",
		"skill://git-workflow/SKILL.md",
	}, uris(all.Skills))
	assert.Equal(t, "complete", all.ResultType)
	require.NotNil(t, all.TTLMs)
	assert.Zero(t, *all.TTLMs)
	assert.Equal(t, "private", all.CacheScope)
	assert.Empty(t, all.NextCursor)
	assert.JSONEq(t, `{"name":"git-workflow","description":"What git-workflow is for."}`, string(all.Skills[2].Frontmatter))

	var files []string
	for _, f := range all.Skills[0].files(t) {
		files = append(files, f.URI)
	}
	assert.ElementsMatch(t, []string{
		"skill://acme/billing/refunds/SKILL.md",
		"skill://acme/billing/refunds/a%20b/%C3%BC%3F.txt",
		"skill://acme/billing/refunds/data.bin",
		"skill://acme/billing/refunds/examples/email.md",
		"skill://acme/billing/refunds/inner/SKILL.md",
		"skill://acme/billing/refunds/inner/more.txt",
	}, files, "a skill has what is below it, another skill included, and nothing hidden")
}

func TestGetsASkill(t *testing.T) {
	c := serve(t, shelf(), &skills.Options{Cache: server.CacheHint{TTL: time.Minute, Public: true}})
	one := get[struct {
		Skill      skill  `json:"skill"`
		TTLMs      int    `json:"ttlMs"`
		CacheScope string `json:"cacheScope"`
		ResultType string `json:"resultType"`
		NextCursor any    `json:"nextCursor"`
	}](c, "skills/get", M{"uri": "skill://git-workflow/SKILL.md"})
	assert.Equal(t, get[skillList](c, "skills/list", nil).Skills[2], one.Skill, "the entry is that of the list")
	assert.Equal(t, "complete", one.ResultType)
	assert.Equal(t, 60_000, one.TTLMs)
	assert.Equal(t, "public", one.CacheScope)
	assert.Nil(t, one.NextCursor)

	for _, uri := range []any{
		"skill://nobody/SKILL.md", "skill://git-workflow", "skill://git-workflow/", "skill://acme/billing/refunds/examples/email.md",
		"skill://GIT-WORKFLOW/SKILL.md", "", nil, 7, "\x00", "skill://git-workflow/../git-workflow/SKILL.md",
	} {
		assert.Equal(t, -32602, c.refused("skills/get", M{"uri": uri}), "%v", uri)
	}
	assert.JSONEq(t, `{"uri":"skill://nobody/SKILL.md"}`, string(c.ask("skills/get", M{"uri": "skill://nobody/SKILL.md"}).Error.Data))
	assert.Equal(t, -32602, c.refused("skills/get", nil))
}

func TestPages(t *testing.T) {
	tree := fstest.MapFS{}
	var want []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		tree[name+"/SKILL.md"] = top(name)
		want = append(want, "skill://"+name+"/SKILL.md")
	}
	for size := 1; size <= 6; size++ {
		c := serve(t, tree, &skills.Options{PageSize: size})
		var got []string
		pages, cursor := 0, ""
		for {
			params := M{}
			if pages > 0 {
				params["cursor"] = cursor
			}
			page := get[skillList](c, "skills/list", params)
			got = append(got, uris(page.Skills)...)
			pages++
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		assert.Equal(t, want, got)
		assert.Equal(t, (len(want)+size-1)/size, pages, "pages of %d", size)
		for _, bad := range []any{"", "x", "!", 7, "bjpy", true} {
			assert.Equal(t, -32602, c.refused("skills/list", M{"cursor": bad}), "%v", bad)
		}
	}
}

// What is read is what the digest is of, and of the type that the file has.
func TestReadsFiles(t *testing.T) {
	tree := shelf()
	c := serve(t, tree, nil)
	for uri, want := range map[string]struct{ path, mime string }{
		"skill://git-workflow/SKILL.md":                    {"git-workflow/SKILL.md", "text/markdown"},
		"skill://acme/billing/refunds/examples/email.md":   {"acme/billing/refunds/examples/email.md", "text/markdown"},
		"skill://acme/billing/refunds/data.bin":            {"acme/billing/refunds/data.bin", "application/octet-stream"},
		"skill://acme/billing/refunds/a%20b/%C3%BC%3F.txt": {"acme/billing/refunds/a b/ü?.txt", "text/plain"},
	} {
		got := get[contents](c, "resources/read", M{"uri": uri})
		require.Len(t, got.Contents, 1)
		assert.Equal(t, uri, got.Contents[0].URI)
		assert.Equal(t, want.mime, got.Contents[0].MIMEType, uri)
		data := got.Contents[0].Blob
		if got.Contents[0].Text != nil {
			data = []byte(*got.Contents[0].Text)
		}
		assert.Equal(t, tree[want.path].Data, data)
	}
}

// Lists of resources show each SKILL.md under the skill's name, in every revision.
func TestListsManifestsAsResources(t *testing.T) {
	c := serve(t, shelf(), nil)
	listed := get[resourceList](c, "resources/list", nil).Resources
	require.Len(t, listed, 3)
	assert.Equal(t, "skill://git-workflow/SKILL.md", listed[2].URI)
	assert.Equal(t, "git-workflow", listed[2].Name)
	assert.Equal(t, "What git-workflow is for.", listed[2].Description)
	assert.Equal(t, "text/markdown", listed[2].MIMEType)
	assert.EqualValues(t, len(shelf()["git-workflow/SKILL.md"].Data), listed[2].Size)
}

func TestReadsDirectories(t *testing.T) {
	tree := shelf()
	tree["acme/billing/refunds/empty"] = &fstest.MapFile{Mode: os.ModeDir}
	c := serve(t, tree, &skills.Options{DirectoryRead: true})
	read := func(uri string) (children []string) {
		for _, r := range get[resourceList](c, "resources/directory/read", M{"uri": uri}).Resources {
			children = append(children, r.URI+" "+r.Name+" "+r.MIMEType)
		}
		return children
	}
	assert.Equal(t, []string{
		"skill://acme/billing/refunds/SKILL.md refunds text/markdown",
		"skill://acme/billing/refunds/a%20b a b inode/directory",
		"skill://acme/billing/refunds/data.bin data.bin application/octet-stream",
		"skill://acme/billing/refunds/empty empty inode/directory",
		"skill://acme/billing/refunds/examples examples inode/directory",
		"skill://acme/billing/refunds/inner inner inode/directory",
	}, read("skill://acme/billing/refunds"))
	assert.Equal(t, []string{
		"skill://acme/billing/refunds/inner/SKILL.md inner text/markdown",
		"skill://acme/billing/refunds/inner/more.txt more.txt text/plain",
	}, read("skill://acme/billing/refunds/inner"))
	assert.JSONEq(t, `[]`, string(get[map[string]jsonText](c, "resources/directory/read", M{"uri": "skill://acme/billing/refunds/empty"})["resources"]))
	for _, uri := range []any{"skill://git-workflow/SKILL.md", "skill://nobody", "skill://acme/billing", "skill://acme/billing/refunds/", "skill://acme/billing/refunds/.git", nil} {
		assert.Equal(t, -32602, c.refused("resources/directory/read", M{"uri": uri}), "%v", uri)
	}

	c = serve(t, tree, &skills.Options{DirectoryRead: true, PageSize: 4})
	first := get[resourceList](c, "resources/directory/read", M{"uri": "skill://acme/billing/refunds"})
	require.Len(t, first.Resources, 4)
	second := get[resourceList](c, "resources/directory/read", M{"uri": "skill://acme/billing/refunds", "cursor": first.NextCursor})
	require.Len(t, second.Resources, 2)
	assert.Empty(t, second.NextCursor)
}

// The capability says what there is.
func TestAdvertises(t *testing.T) {
	type discovered struct {
		Capabilities struct {
			Extensions map[string]M `json:"extensions"`
			Resources  M            `json:"resources"`
		} `json:"capabilities"`
	}
	c := serve(t, shelf(), nil)
	d := get[discovered](c, "server/discover", nil).Capabilities
	assert.Equal(t, map[string]M{skills.ID: {}}, d.Extensions)
	assert.NotNil(t, d.Resources)
	assert.Equal(t, -32601, c.refused("resources/directory/read", M{"uri": "skill://git-workflow"}))

	c = serve(t, shelf(), &skills.Options{DirectoryRead: true})
	assert.Equal(t, map[string]M{skills.ID: {"directoryRead": true}}, get[discovered](c, "server/discover", nil).Capabilities.Extensions)
}

func TestGeneratedSkillsHaveNoDigests(t *testing.T) {
	c := serve(t, shelf(), &skills.Options{Dynamic: func(path string) bool { return path == "git-workflow" }})
	all := get[skillList](c, "skills/list", nil).Skills
	assert.JSONEq(t, `"dynamic"`, string(all[2].Resources))
	assert.NotEmpty(t, all[0].files(t))
	assert.NotNil(t, get[contents](c, "resources/read", M{"uri": all[2].URI}).Contents[0].Text)
}

func TestPrefixAndScheme(t *testing.T) {
	tree := fstest.MapFS{"SKILL.md": top("refunds"), "a.txt": text("a")}
	c := serve(t, tree, &skills.Options{Scheme: "acme+v1", Prefix: "Team A/refunds", DirectoryRead: true})
	all := get[skillList](c, "skills/list", nil).Skills
	assert.Equal(t, []string{"acme+v1://Team%20A/refunds/SKILL.md"}, uris(all))
	assert.Equal(t, "a", *get[contents](c, "resources/read", M{"uri": "acme+v1://Team%20A/refunds/a.txt"}).Contents[0].Text)
	assert.Len(t, get[resourceList](c, "resources/directory/read", M{"uri": "acme+v1://Team%20A/refunds"}).Resources, 2)
}

// What the filter of resources hides is nowhere.
func TestFilterHidesSkills(t *testing.T) {
	c := serve(t, shelf(), &skills.Options{DirectoryRead: true, Cache: server.CacheHint{Public: true}})
	const hidden = "skill://git-workflow/SKILL.md"
	c.s.SetResourceFilter(func(_ context.Context, _ *servercontext.Request, uri string, _ *mcp.Resource) bool {
		return uri != hidden && uri != "skill://git-workflow"
	})
	all := get[skillList](c, "skills/list", nil)
	assert.Len(t, all.Skills, 2)
	assert.NotContains(t, uris(all.Skills), hidden)
	assert.Equal(t, "private", all.CacheScope)
	assert.Equal(t, -32602, c.refused("skills/get", M{"uri": hidden}))
	assert.Equal(t, -32602, c.refused("resources/read", M{"uri": hidden}))
	assert.Equal(t, -32602, c.refused("resources/directory/read", M{"uri": "skill://git-workflow"}))
	assert.Len(t, get[resourceList](c, "resources/list", nil).Resources, 2)
}

// From a root on a disk, no link leads out, and links are no files of a skill.
func TestServesARoot(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "one", "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "one", "SKILL.md"), top("one").Data, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "one", "sub", "x.md"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "one", "link")))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	c := serve(t, root.FS(), nil)
	all := get[skillList](c, "skills/list", nil).Skills
	require.Len(t, all, 1)
	assert.Len(t, all[0].files(t), 2)
	assert.Equal(t, -32602, c.refused("resources/read", M{"uri": "skill://one/link"}))
	got := get[contents](c, "resources/read", M{"uri": "skill://one/sub/x.md"})
	sum := sha256.Sum256([]byte(*got.Contents[0].Text))
	assert.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), all[0].files(t)[1].Digest)
}
